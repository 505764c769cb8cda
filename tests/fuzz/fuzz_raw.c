/* Fuzz target: the reader of raw captures, and the replay of the blocks it finds. Reading must end
 * and stay in bounds, and a whole block must match its hash. The replay must give exactly its
 * bytes. If bit 0 of the first byte is set, the hashes are corrected first. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "capture/source/block_replay.h"
#include "formats/reader/input.h"
#include "tests/fuzz/repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_data(void *context, const struct bc_source_data *data)
{
	uint64_t *given = context;

	if (data->broken != NULL && data->broken->cause >= BC_GAP_CAUSES)
		abort();
	*given += data->broken == NULL ? data->count : 0;
	return true;
}

static void read_blocks(struct bc_input *input)
{
	static struct bc_raw_block block;
	struct bc_block_replay replay = {.next_entry = 0};
	struct bc_segment_reader *reader;
	uint64_t given = 0;
	uint64_t kept = 0;
	const bool is_over = false;
	const struct bc_source_sink sink = {.context = &given, .data = on_data};
	int found;

	if (bc_input_capture(input, &reader) != 0)
		return;
	while ((found = bc_raw_read(reader, &block)) > BC_FOUND_END) {
		if (found != BC_FOUND_CHUNK)
			continue;
		if (XXH3_64bits(block.data, block.bytes) != block.hash)
			abort();
		kept += block.bytes;
		bc_block_replay_start(&replay, &block, bc_segment_reader_follows(reader));
		if (!bc_block_replay_push(
			    &replay, &block, bc_segment_reader_header(reader), &sink, &is_over))
			abort();
	}
	if (!bc_block_replay_flush(&replay, &sink) || given > kept)
		abort();
	bc_block_replay_free(&replay);
	bc_segment_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[1 << 16];
	struct bc_input *input;
	struct bc_probe probe;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (size == 0 || size > sizeof(bytes)) {
		close(fd);
		return 0;
	}
	memcpy(bytes, data + 1, size - 1);
	if ((data[0] & 1) != 0)
		repair_hashes(bytes, size - 1);
	if (fd < 0 || write(fd, bytes, size - 1) != (ssize_t)(size - 1) ||
		lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
		    BC_FORMAT_UNKNOWN, &probe) == 0) {
		if (probe.is_capture)
			read_blocks(input);
		bc_input_close(input);
	}
	close(fd);
	return 0;
}
