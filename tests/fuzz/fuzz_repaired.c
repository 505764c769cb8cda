/* Fuzz target: segments whose hashes are corrected after each mutation, so that the reader gets
 * past them. Reading must end, chunks must match their hashes, and the reader of entries must
 * deliver as many records as the whole chunks have, with and without the index. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/codec/input.h"
#include "formats/codec/reader.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/sequence_check.h"
#include "formats/trace/filter_parse.h"
#include "tests/fuzz/repair.h"

#define SIZE_MAX_BYTES (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bc_input *open_input(int fd, struct bc_probe *probe)
{
	struct bc_input *input;

	if (lseek(fd, 0, SEEK_SET) != 0 ||
		bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
			BC_FORMAT_SEGMENT, BC_WINDOW_LOG, probe) != 0)
		abort();
	return input;
}

/* Reads the chunks, and checks them as `buscap verify` does. */
static void read_chunks(int fd, bool skips_records)
{
	static struct bc_chunk chunk;
	struct bc_sequence_check sequence = {.has_recording = false};
	struct bc_probe probe;
	struct bc_input *input = open_input(fd, &probe);
	struct bc_segment_reader *reader;
	struct bc_missing missing;
	int found;

	if (bc_input_segments(input, &reader) != 0)
		abort();
	if (skips_records && probe.packing == BC_PACKING_NONE)
		bc_segment_reader_skip_records(reader, fd, NULL, NULL);
	while ((found = bc_segment_read(reader, &chunk)) > BC_FOUND_END) {
		size_t bytes = (size_t)chunk.info.records * BC_RECORD_BYTES;
		if (found == BC_FOUND_SEGMENT)
			bc_sequence_check_expect(&sequence, bc_segment_reader_header(reader));
		if (found != BC_FOUND_CHUNK)
			continue;
		if (!skips_records && bc_hash(chunk.records, bytes) != chunk.info.records_hash)
			abort();
		if (bc_sequence_check_chunk(&sequence, &chunk, &missing) < 0)
			abort();
	}
	/* A start that says LZ4 around a segment: what is compressed may end before it should. */
	if (found != BC_FOUND_END && (found != -EBADMSG || probe.packing == BC_PACKING_NONE))
		abort();
	bc_sequence_check_reset(&sequence);
	bc_segment_reader_close(reader);
	bc_input_close(input);
}

static bool needs_chunk(void *context, const struct bc_chunk_info *info)
{
	struct bc_filter_bounds bounds;

	if (!bc_filter_chunk(context, info, 66000000, &bounds))
		return false;
	if (bounds.numbers.first > bounds.numbers.last || bounds.ticks.first > bounds.ticks.last)
		abort();
	return true;
}

/* As cut reads a segment. */
static void read_entries(int fd, bool has_index)
{
	struct bc_filter filter;
	struct bc_sequence_check sequence = {.has_recording = false};
	char err[160];
	struct bc_reader_options options = {.format = bc_format_options_default(),
		.index_fd = has_index ? fd : -1,
		.as_runs = has_index,
		.needs_chunk = needs_chunk,
		.context = &filter,
		.sequence = &sequence};
	struct bc_probe probe;
	struct bc_input *input = open_input(fd, &probe);
	struct bc_reader *reader;
	struct bc_batch batch;

	if (!bc_filter_parse(&filter, NULL, "addr=0-7fffffff type=read,write,fetch proc=0", err,
		    sizeof(err)))
		abort();
	filter.numbers.first = 3;
	filter.ticks.last = 1000000;
	filter.has_wall = has_index;
	filter.from_ns = 0;
	filter.to_ns = INT64_MAX;
	if (bc_reader_open(&reader, input, BC_FORMAT_SEGMENT, &options) == 0) {
		while (bc_reader_next(reader, &batch) > 0)
			if (batch.fault != NULL && batch.fault->what[0] == '\0')
				abort();
		bc_reader_close(reader);
	}
	bc_sequence_check_reset(&sequence);
	bc_input_close(input);
}

static void read_index(int fd)
{
	struct bc_segment_index index;
	struct bc_chunk_info info;

	if (bc_segment_index_load(&index, fd) != 0)
		return;
	for (uint32_t row = 0; row < index.head.rows; row++)
		bc_segment_index_row(&index, row, &info);
	bc_segment_index_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[SIZE_MAX_BYTES];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (size > sizeof(bytes)) {
		close(fd);
		return 0;
	}
	memcpy(bytes, data, size);
	repair_hashes(bytes, size);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	read_chunks(fd, false);
	read_chunks(fd, true);
	read_entries(fd, false);
	read_entries(fd, true);
	read_index(fd);
	close(fd);
	return 0;
}
