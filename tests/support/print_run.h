/* Reader, converter and printer in memory, like `buscap convert` without files. */
#ifndef BC_TESTS_SUPPORT_PRINT_RUN_H
#define BC_TESTS_SUPPORT_PRINT_RUN_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/trace/printer.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

/* The result of a conversion: bytes and counts. */
struct printed {
	struct trace trace;
	int rc;           /* 0, or the error of the printer */
	uint64_t refused; /* if rc != 0: number of the refused entry */
	char err[160];
	uint64_t trait_losses[BC_TRAIT_BITS];
	uint64_t left_out[BC_TRAIT_BITS];
	uint64_t splits;
};

struct print_run {
	const struct bc_format_info *info;
	struct bc_entry_converter fit;
	void *state;
	size_t capacity;
	size_t slack; /* buffer space per call in addition to BC_PRINT_MAX */
	struct printed *to;
};

static inline void print_run_start(struct print_run *run, struct printed *to, enum bc_format format,
	const struct bc_format_options *options, size_t slack)
{
	*to = (struct printed){.rc = 0};
	*run = (struct print_run){.info = bc_format_info(format), .slack = slack, .to = to};
	assert_non_null(run->info->printer);
	bc_entry_converter_init(&run->fit, format, options);
	run->state = bc_printer_start(run->info->printer, options);
	assert_non_null(run->state);
}

static inline struct bc_print print_run_buffer(struct print_run *run, size_t same_bytes)
{
	size_t need = run->to->trace.n + BC_PRINT_MAX + run->slack + same_bytes;

	if (need > run->capacity) {
		run->capacity = 2 * need;
		run->to->trace.bytes = realloc(run->to->trace.bytes, run->capacity);
		assert_non_null(run->to->trace.bytes);
	}
	return (struct bc_print){.out = (char *)run->to->trace.bytes + run->to->trace.n,
		.capacity = BC_PRINT_MAX + run->slack,
		.trait_losses = run->fit.trait_losses};
}

static inline void print_run_add(struct print_run *run, const struct bc_entry *entries, size_t n)
{
	const struct bc_entry *part;

	bc_entry_convert_batch(&run->fit, entries, n);
	while ((n = bc_entry_converter_next(&run->fit, &part)) != 0) {
		while (n != 0 && run->to->rc == 0) {
			struct bc_print print = print_run_buffer(run, 0);
			print.entries = part;
			print.count = n;
			run->to->rc = run->info->printer->print(run->state, &print);
			assert_true(print.used <= print.capacity);
			run->to->trace.n += print.used;
			run->to->splits += print.splits;
			part = print.entries;
			n = print.count;
			if (run->to->rc == 0)
				continue;
			run->to->refused = part->number;
			memcpy(run->to->err, print.err, sizeof(print.err));
		}
		run->fit.lost = NULL;
	}
}

/* Prints records as the printer takes them. Returns how many it took as a run. */
static inline size_t print_run_add_records(struct print_run *run, struct bc_record_run records)
{
	size_t taken = 0;
	struct bc_entry entry;

	while (records.count != 0 && run->to->rc == 0) {
		struct bc_print print = print_run_buffer(run, records.count * BC_RECORD_BYTES);
		taken += records.count;
		run->info->printer->print_run(run->state, &print, &records);
		taken -= records.count;
		assert_true(print.used <= print.capacity);
		run->to->trace.n += print.used;
		run->to->splits += print.splits;
		if (print.same_bytes != 0)
			memcpy(run->to->trace.bytes + run->to->trace.n, print.same,
				print.same_bytes);
		run->to->trace.n += print.same_bytes;
		print_run_add(run, &entry, bc_record_run_entries(&records, &entry, 1));
	}
	return taken;
}

static inline void print_run_finish(struct print_run *run)
{
	for (bool is_over = run->info->printer->tail == NULL; !is_over;) {
		struct bc_print print = print_run_buffer(run, 0);
		is_over = run->info->printer->tail(run->state, &print);
		run->to->trace.n += print.used;
	}
	if (run->info->printer->free != NULL)
		run->info->printer->free(run->state);
	free(run->state);
	memcpy(run->to->trait_losses, run->fit.trait_losses, sizeof(run->to->trait_losses));
	memcpy(run->to->left_out, run->fit.left_out, sizeof(run->to->left_out));
}

/* A reader of bytes. */
struct read_run {
	int fd;
	struct bc_input *input;
	struct bc_reader *reader;
};

static inline void read_run_open(
	struct read_run *run, const struct trace *trace, enum bc_format format)
{
	struct bc_reader_options options = {.format = bc_format_options_default(), .index_fd = -1};
	struct bc_probe probe;

	run->fd = memfd_create("trace", MFD_CLOEXEC);
	assert_true(run->fd >= 0);
	for (size_t at = 0; at < trace->n;) {
		ssize_t n = write(run->fd, trace->bytes + at, trace->n - at);
		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_int_equal(lseek(run->fd, 0, SEEK_SET), 0);
	assert_int_equal(
		bc_input_open(&run->input, (struct bc_input_stream){.fd = run->fd, .wake_fd = -1},
			format, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(bc_reader_open(&run->reader, run->input, format, &options), 0);
}

static inline void read_run_close(struct read_run *run)
{
	bc_reader_close(run->reader);
	bc_input_close(run->input);
	close(run->fd);
}

/* Returns all entries of a trace in allocated memory. */
static inline struct bc_entry *entries_of(
	const struct trace *trace, enum bc_format format, size_t *count)
{
	struct bc_entry *entries = NULL;
	size_t capacity = 0;
	struct read_run run;
	struct bc_batch batch;
	int rc;

	*count = 0;
	read_run_open(&run, trace, format);
	while ((rc = bc_reader_next(run.reader, &batch)) == 1) {
		if (*count + batch.count >= capacity) {
			capacity = 2 * (*count + batch.count + 1);
			entries = realloc(entries, capacity * sizeof(*entries));
			assert_non_null(entries);
		}
		if (batch.count != 0)
			memcpy(entries + *count, batch.entries, batch.count * sizeof(*entries));
		*count += batch.count;
	}
	assert_int_equal(rc, 0);
	read_run_close(&run);
	return entries;
}

/* Prints entries that were read from a format, or BC_FORMAT_UNKNOWN. */
static inline struct printed print_entries(const struct bc_entry *entries, size_t count,
	enum bc_format from, enum bc_format to, const struct bc_format_options *options)
{
	struct bc_format_options set = options != NULL ? *options : bc_format_options_default();
	struct print_run run;
	struct printed printed;

	set.source_traits = bc_format_info(from)->traits;
	print_run_start(&run, &printed, to, &set, 100);
	print_run_add(&run, entries, count);
	print_run_finish(&run);
	return printed;
}

static inline struct printed convert_trace(const struct trace *trace, enum bc_format from,
	enum bc_format to, const struct bc_format_options *options)
{
	size_t count;
	struct bc_entry *entries = entries_of(trace, from, &count);
	struct printed printed = print_entries(entries, count, from, to, options);

	free(entries);
	return printed;
}

static inline void printed_free(struct printed *printed)
{
	trace_free(&printed->trace);
}

static inline void assert_nothing_lost(const struct printed *printed)
{
	assert_int_equal(printed->rc, 0);
	for (unsigned i = 0; i < BC_TRAIT_BITS; i++) {
		assert_int_equal(printed->trait_losses[i], 0);
		assert_int_equal(printed->left_out[i], 0);
	}
}

static inline uint64_t reduced_of(const struct printed *printed, uint32_t trait)
{
	return printed->trait_losses[__builtin_ctz(trait)];
}

#endif
