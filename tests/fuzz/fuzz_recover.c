/* Fuzz target: recovery. The first byte selects whether it is the last segment of a killed
 * recording (bit 1), whether the hashes are corrected first (bit 2), and whether the name is known
 * (bit 3). The output must be a whole, sealed file with only chunks of the input, and every intact
 * chunk of the input, as found by a search that is independent of the reader. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/segment/recover.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/sequence_check.h"
#include "tests/fuzz/repair.h"
#include "tests/fuzz/scratch.h"

#define SIZE_MAX_BYTES (1u << 16)
#define CHUNKS_MAX     512

#define NAME "20261120T091500Z-3f9a2c-00000.byu.lz4"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An intact chunk of the input. */
struct intact {
	struct bc_chunk_info info;
	size_t end; /* in the input */
};

/* Finds the intact chunks: at each place in turn, behind the previous one. */
static size_t find_intact(struct intact *list, const uint8_t *bytes, size_t size)
{
	static struct bc_chunk chunk;
	size_t count = 0;

	for (size_t at = 0; at + BC_CHUNK_HEADER_MIN <= size && count < CHUNKS_MAX;) {
		size_t n = bc_chunk_header_bytes(bytes + at);
		if (n == 0 || n > size - at || !bc_chunk_header_read(&chunk, bytes + at, n) ||
			chunk.info.frame_bytes > size - at - n ||
			bc_chunk_frame_read(&chunk, bytes + at + n) != 0) {
			at++;
			continue;
		}
		at += n + chunk.info.frame_bytes;
		list[count++] = (struct intact){.info = chunk.info, .end = at};
	}
	return count;
}

/* Whether two chunks can't both be in a segment. */
static bool exclude(const struct bc_chunk_info *a, const struct bc_chunk_info *b)
{
	bool is_before = a->number < b->number && a->first_record + a->records <= b->first_record;
	bool is_after = b->number < a->number && b->first_record + b->records <= a->first_record;

	return !is_before && !is_after;
}

/* With a header, the chunks may all belong to another segment. */
static bool has_any_header(const uint8_t *bytes, size_t size)
{
	struct bc_segment_header header;

	for (size_t at = 0; at + BC_SKIPPABLE_BYTES <= size; at++) {
		size_t n = bc_segment_header_bytes(bytes + at);
		if (n != 0 && n <= size - at && bc_segment_header_read(&header, bytes + at, n))
			return true;
	}
	return false;
}

struct output {
	bool is_sealed;
	bool has_header;
	struct bc_segment_header header;
	uint64_t records;
	size_t count;
	struct bc_chunk_info chunks[2 * CHUNKS_MAX];
};

/* Reads the output, which must be undamaged. */
static void read_output(struct output *out, int dir_fd, const char *name)
{
	static struct bc_chunk chunk;
	struct bc_segment_reader *reader;
	struct bc_sequence_check sequence = {.has_recording = false};
	struct bc_missing missing;
	int found;
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	memset(out, 0, sizeof(*out));
	if (fd < 0 || bc_segment_reader_open(&reader,
			      (struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0) != 0)
		abort();
	while ((found = bc_segment_read(reader, &chunk)) > BC_FOUND_END) {
		if (found == BC_FOUND_DAMAGE)
			abort();
		if (found == BC_FOUND_SEGMENT) {
			out->has_header = true;
			out->header = *bc_segment_reader_header(reader);
			bc_sequence_check_expect(&sequence, &out->header);
		}
		if (found != BC_FOUND_CHUNK)
			continue;
		if (bc_sequence_check_chunk(&sequence, &chunk, &missing) < 0 ||
			missing.records != 0)
			abort();
		out->records += chunk.info.records;
		if (out->count < 2 * CHUNKS_MAX)
			out->chunks[out->count++] = chunk.info;
	}
	bc_sequence_check_reset(&sequence);
	out->is_sealed = bc_segment_reader_is_sealed(reader);
	bc_segment_reader_close(reader);
	close(fd);
}

static bool has_chunk(
	const struct bc_chunk_info *chunks, size_t count, const struct bc_chunk_info *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (chunks[i].records_hash == wanted->records_hash &&
			chunks[i].records == wanted->records &&
			chunks[i].first_record == wanted->first_record)
			return true;
	return false;
}

/* Every intact chunk of the segment that does not contradict another one must be there. */
static void check_chunks(const struct output *out, const struct intact *list, size_t count)
{
	static const char unknown[] = "unknown-";
	const char *recording = out->header.recording;
	uint32_t segment = out->header.segment;
	uint64_t tag = bc_recording_tag(recording);

	/* Without a header and a name, the recording is named after its tag. */
	if (strncmp(recording, unknown, strlen(unknown)) == 0)
		tag = strtoull(recording + strlen(unknown), NULL, 16);
	for (size_t i = 0; i < count; i++) {
		const struct bc_chunk_info *info = &list[i].info;
		bool is_clear = info->recording_tag == tag && info->segment == segment;
		for (size_t k = 0; k < count && is_clear; k++)
			is_clear = k == i || list[k].info.recording_tag != tag ||
				   list[k].info.segment != segment || !exclude(info, &list[k].info);
		if (is_clear && !has_chunk(out->chunks, out->count, info))
			abort();
	}
}

static void check_recovered(
	const struct bc_recovered *recovered, int rc, int dir_fd, const uint8_t *bytes, size_t size)
{
	static struct intact list[CHUNKS_MAX];
	static struct output out;
	size_t count = find_intact(list, bytes, size);

	if (rc != 0 || !recovered->is_written) {
		if (faccessat(dir_fd, NAME, F_OK, 0) == 0)
			abort();
		if (rc != 0 || (count != 0 && !has_any_header(bytes, size)))
			abort();
		return;
	}
	read_output(&out, dir_fd, NAME);
	if (!out.is_sealed || !out.has_header || out.records != recovered->records)
		abort();
	check_chunks(&out, list, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[SIZE_MAX_BYTES];
	static int dir_fd = -1;
	struct bc_recovered recovered;
	struct bc_segment_name name;

	if (dir_fd < 0)
		dir_fd = scratch_open();
	if (size == 0 || size > sizeof(bytes))
		return 0;
	uint8_t first = *data++;
	size--;
	memcpy(bytes, data, size);
	if ((first & 4) != 0)
		repair_hashes(bytes, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	bool has_name = bc_segment_name_read(&name, NAME);
	bool is_killed = (first & 2) != 0;
	const struct bc_recover_options options = {
		.fallback = has_name && (first & 8) != 0 ? &name : NULL,
		.boot_id = is_killed ? "0123456789abcdef0123456789abcdef" : NULL,
	};
	int rc = bc_recover(&recovered, fd, dir_fd, NAME, &options);
	check_recovered(&recovered, rc, dir_fd, bytes, size);
	unlinkat(dir_fd, NAME, 0);
	close(fd);
	return 0;
}
