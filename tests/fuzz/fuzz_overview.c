/* Fuzz target: pictures of one or two segments, whose hashes are corrected after each mutation.
 * Drawing must end; every column must have as many records as its counts say, and the JSON and the
 * events must be written. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/overview/overview.h"
#include "tests/fuzz/repair.h"

#define SIZE_MAX_BYTES (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_open(void *context, const char *path)
{
	(void)context;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void on_fault(void *context, const struct bc_segment_fault *fault)
{
	(void)context;
	(void)fault;
}

static int make_file(const uint8_t *data, size_t size)
{
	static uint8_t bytes[SIZE_MAX_BYTES];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	memcpy(bytes, data, size);
	repair_hashes(bytes, size);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	return fd;
}

static void check_picture(const struct bc_overview_picture *p)
{
	for (uint32_t i = 0; i < p->column_count; i++) {
		const struct bc_overview_column *c = &p->columns[i];
		uint64_t records = c->uncounted;
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			records += c->counts[class];
		if (records != c->records || c->to_ns < c->from_ns)
			abort();
		for (uint32_t k = 0; k < c->cell_count; k++)
			if (c->cells[k].first >= p->row_count)
				abort();
	}
}

static void draw(struct bc_overview *o, const struct bc_overview_options *options)
{
	struct bc_byte_buffer text = {.max = SIZE_MAX};

	if (bc_overview_draw(o, options) != 0)
		abort();
	const struct bc_overview_picture *p = bc_overview_picture(o);
	if (p->column_count > options->columns || p->row_count > options->rows)
		abort();
	check_picture(p);
	if (bc_overview_json(o, NULL, &text) != 0)
		abort();
	bc_byte_buffer_free(&text);
}

/* Draws everything, then smaller and smaller parts. */
static void draw_zooms(struct bc_overview *o)
{
	static const unsigned columns[] = {30, 7, 1};
	uint64_t span = (uint64_t)bc_overview_contents(o).to_ns -
			(uint64_t)bc_overview_contents(o).from_ns;

	for (unsigned i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		struct bc_overview_options options = bc_overview_options_default();
		options.columns = columns[i];
		options.rows = i == 1 ? 2 : 200;
		options.work = i == 0 ? options.work : i * 5000; /* one chunk, or two */
		draw(o, &options);
		options.from_ns = bc_overview_contents(o).from_ns;
		options.to_ns = (int64_t)((uint64_t)options.from_ns + (span >> (4 * i + 1)));
		options.place_to = i == 2 ? 4096 : BC_PLACES - 1;
		draw(o, &options);
	}
}

/* The first byte is the share of the others that are in the first file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bc_segment_io io = {.open = on_open, .fault = on_fault};
	char names[2][32];
	char *paths[] = {names[0], names[1]};
	struct bc_overview *o;
	struct bc_byte_buffer text = {.max = SIZE_MAX};

	if (size == 0 || size > SIZE_MAX_BYTES)
		return 0;
	size_t first = (size - 1) * data[0] / 255;
	int fds[] = {make_file(data + 1, first), make_file(data + 1 + first, size - 1 - first)};
	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", fds[i]);
	if (bc_overview_open(&o, &io) != 0 || bc_overview_update(o, paths, 2) != 0)
		abort();
	draw_zooms(o);
	if (bc_overview_events_json(o, INT64_MIN, INT64_MAX, 100, &text) != 0)
		abort();
	bc_byte_buffer_free(&text);
	bc_overview_close(o);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
