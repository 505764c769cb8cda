/* Fuzz target: converts a file, which may be compressed. The first byte names the source format (or
 * detection), the second the target and a filter. Reading must end, each fault must have a
 * description, and a printer must stay within its buffer and give a reason for an error. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/codec/format.h"
#include "formats/codec/input.h"
#include "formats/codec/reader.h"
#include "formats/trace/filter_parse.h"
#include "formats/trace/printer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct writer {
	const struct bc_printer *printer;
	void *state;
	char *out;
	struct bc_entry_converter converter;
	bool has_filter;
	struct bc_filter filter;
	size_t printed;
	bool is_over;
};

/* A single access of 4 GB becomes a huge number of bus cycles, so stop after this many bytes. */
#define OUTPUT_MAX (4u << 20)

static struct bc_print start_print(struct writer *w)
{
	return (struct bc_print){
		.out = w->out, .capacity = BC_PRINT_MAX, .trait_losses = w->converter.trait_losses};
}

static void finish_print(struct writer *w, const struct bc_print *print, int rc)
{
	if (print->used > print->capacity || (rc != 0 && print->err[0] == '\0'))
		abort();
	w->printed += print->used;
	w->is_over = rc != 0 || w->printed > OUTPUT_MAX;
}

static void print_entries(struct writer *w, const struct bc_entry *run, size_t n)
{
	while (n != 0 && !w->is_over) {
		struct bc_print print = start_print(w);
		print.entries = run;
		print.count = n;
		int rc = w->printer->print(w->state, &print);
		finish_print(w, &print, rc);
		if (rc == 0 && print.count == n && print.used == 0)
			abort(); /* there was room for at least one entry */
		run = print.entries;
		n = print.count;
	}
}

static void add_entries(struct writer *w, const struct bc_entry *entries, size_t n)
{
	const struct bc_entry *run;

	bc_entry_convert_batch(&w->converter, entries, n);
	while ((n = bc_entry_converter_next(&w->converter, &run)) != 0)
		print_entries(w, run, n);
}

static void add_records(struct writer *w, struct bc_record_run run)
{
	struct bc_entry entry;

	while (run.count != 0 && !w->is_over) {
		if (w->printer->print_run != NULL) {
			const uint8_t *end = run.records + run.count * BC_RECORD_BYTES;
			struct bc_print print = start_print(w);
			w->printer->print_run(w->state, &print, &run);
			finish_print(w, &print, 0);
			if (run.records + run.count * BC_RECORD_BYTES != end)
				abort();
		}
		add_entries(w, &entry, bc_record_run_entries(&run, &entry, 1));
	}
}

static bool selects(const struct writer *w, const struct bc_entry *entry)
{
	return !w->has_filter || bc_filter_entry(&w->filter, entry);
}

static void write_all(struct writer *w, struct bc_reader *reader)
{
	struct bc_batch batch;

	if (w->printer->head != NULL) {
		struct bc_print print = start_print(w);
		w->printer->head(w->state, &print);
		finish_print(w, &print, 0);
	}
	while (bc_reader_next(reader, &batch) > 0) {
		size_t n;
		if (batch.fault != NULL && batch.fault->what[0] == '\0')
			abort();
		for (size_t i = 0; i < batch.count; i += n) {
			for (n = 0; i + n < batch.count && selects(w, &batch.entries[i + n]); n++)
				continue;
			add_entries(w, batch.entries + i, n);
			n += n == 0; /* skips one that is not selected */
		}
		add_records(w, batch.run);
	}
	for (bool is_over = w->printer->tail == NULL || w->is_over; !is_over;) {
		struct bc_print print = start_print(w);
		is_over = w->printer->tail(w->state, &print);
		finish_print(w, &print, 0);
	}
}

static void convert(struct bc_input *input, enum bc_format from, enum bc_format to, unsigned filter)
{
	static const char *const filters[] = {NULL, "type=read,write", "addr=1000-1fff proc=0-3"};
	struct bc_reader_options options = {
		.format = bc_format_options_default(), .index_fd = -1, .as_runs = filter % 3 == 0};
	struct writer w = {.printer = bc_format_info(to)->printer};
	struct bc_reader *reader;

	if (from == BC_FORMAT_LINES) /* the command line refuses them without a layout */
		options.format.layout = "{type} {addr}";
	if (w.printer == NULL || bc_reader_open(&reader, input, from, &options) != 0)
		return;
	char err[160];
	w.has_filter = filter % 3 != 0;
	if (w.has_filter &&
		!bc_filter_parse(&w.filter, NULL, filters[filter % 3], err, sizeof(err)))
		abort();
	options.format.source_traits = bc_format_info(from)->traits;
	options.format.map_pages = from !=
				   BC_FORMAT_SEGMENT; /* with it, there are no runs of bcp1 */
	bc_entry_converter_init(&w.converter, to, &options.format);
	w.state = bc_printer_start(w.printer, &options.format);
	w.out = malloc(BC_PRINT_MAX);
	if (w.state == NULL || w.out == NULL)
		abort();
	write_all(&w, reader);
	if (w.printer->free != NULL)
		w.printer->free(w.state);
	free(w.state);
	free(w.out);
	bc_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_input *input;
	struct bc_probe probe;

	if (size < 2)
		return 0;
	enum bc_format from = (enum bc_format)(data[0] % BC_FORMATS);
	enum bc_format to = (enum bc_format)(data[1] % BC_FORMATS);
	unsigned filter = data[1] / BC_FORMATS;
	data += 2;
	size -= 2;
	if (from != BC_FORMAT_UNKNOWN && !bc_format_info(from)->can_read)
		return 0;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1}, from,
		    BC_WINDOW_LOG, &probe) == 0) {
		convert(input, probe.format, to, filter);
		bc_input_close(input);
	}
	close(fd);
	return 0;
}
