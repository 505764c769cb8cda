/* Runs a format's printer on entries, with a small buffer. */
#ifndef BC_TESTS_SUPPORT_PRINTED_H
#define BC_TESTS_SUPPORT_PRINTED_H

#include <stdlib.h>
#include <string.h>

#include "formats/codec/format.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"
#include "tests/support/test.h"

struct printed {
	char *text; /* null-terminated */
	size_t bytes;
	int rc;      /* of the last print() */
	size_t left; /* entries that were not printed */
	char err[160];
	uint64_t trait_losses[BC_TRAIT_BITS];
};

static void printed_append(struct printed *all, struct bc_print *p)
{
	all->text = realloc(all->text, all->bytes + p->used + 1);
	assert_non_null(all->text);
	memcpy(all->text + all->bytes, p->out, p->used);
	all->bytes += p->used;
	all->text[all->bytes] = '\0';
	p->used = 0;
}

/* Prints head, entries and tail. `moment` may be NULL. Free the result with printed_free(). */
static struct printed print_all_at(enum bc_format format, const struct bc_format_options *options,
	const struct bc_moment *moment, const struct bc_entry *entries, size_t count)
{
	static char *buffer; /* for all calls: a new one for each would take most of the time */
	const struct bc_printer *printer = bc_format_info(format)->printer;
	struct printed all = {.rc = 0};
	struct bc_print p = {.entries = entries,
		.count = count,
		.moment = moment,
		.capacity = BC_PRINT_MAX + 300,
		.trait_losses = all.trait_losses};
	void *state = bc_printer_start(printer, options);

	if (buffer == NULL)
		buffer = malloc(p.capacity);
	p.out = buffer;
	assert_non_null(p.out);
	assert_non_null(state);
	if (printer->head != NULL)
		printer->head(state, &p);
	printed_append(&all, &p);
	while (p.count != 0 && all.rc == 0) {
		size_t before = p.count;
		all.rc = printer->print(state, &p);
		assert_true(all.rc != 0 || p.count < before);
		printed_append(&all, &p);
	}
	all.left = p.count;
	memcpy(all.err, p.err, sizeof(all.err));
	while (all.rc == 0 && printer->tail != NULL) {
		bool is_over = printer->tail(state, &p);
		printed_append(&all, &p);
		if (is_over)
			break;
	}
	if (printer->free != NULL)
		printer->free(state);
	free(state);
	return all;
}

static inline struct printed print_all(enum bc_format format,
	const struct bc_format_options *options, const struct bc_entry *entries, size_t count)
{
	return print_all_at(format, options, NULL, entries, count);
}

static inline void printed_free(struct printed *all)
{
	free(all->text);
}

/* Prints entries from a source with these traits. Returns allocated text. */
static inline char *print_text(
	enum bc_format format, bc_traits traits, const struct bc_entry *entries, size_t count)
{
	struct bc_format_options options = bc_format_options_default();

	options.source_traits = traits;
	struct printed all = print_all(format, &options, entries, count);
	assert_int_equal(all.rc, 0);
	assert_int_equal(strlen(all.text), all.bytes);
	return all.text;
}

static inline struct bc_text text_of(const char *text)
{
	return (struct bc_text){.at = text, .bytes = (uint32_t)strlen(text)};
}

#endif
