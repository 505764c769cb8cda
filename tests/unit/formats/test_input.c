#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "formats/codec/input.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/dice.h"
#include "tests/support/packed.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

TEST_THREADS;

#define SAMPLES 20000u

static const enum bc_format formats[] = {BC_FORMAT_BCP1, BC_FORMAT_RAW6, BC_FORMAT_BYU,
	BC_FORMAT_BYU_BE, BC_FORMAT_BYU16, BC_FORMAT_BYU24};

#define FORMATS (COUNT_OF(formats))

struct fixture {
	struct temp_dir dir;
	struct trace plain[FORMATS];
	struct trace packed[FORMATS];
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->plain[0] = trace_of_sim(1, SAMPLES, 2);
	for (size_t i = 1; i < FORMATS; i++)
		f->plain[i] = formats[i] == BC_FORMAT_RAW6 ? trace_to_raw6(&f->plain[0])
							   : trace_to_byu(&f->plain[0], formats[i]);
	for (size_t i = 0; i < FORMATS; i++)
		f->packed[i] = trace_to_lz4(&f->plain[i], i % 2);
}

static void tear_down(struct fixture *f)
{
	for (size_t i = 0; i < FORMATS; i++) {
		trace_free(&f->plain[i]);
		trace_free(&f->packed[i]);
	}
	temp_dir_remove(&f->dir);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

static int open_bytes(struct fixture *f, const uint8_t *bytes, size_t n)
{
	temp_write(&f->dir, "trace", bytes, n);
	int fd = openat(f->dir.fd, "trace", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Result of reading an input: the bytes, and how it ended. */
struct given {
	uint8_t *bytes;
	size_t n;
	ssize_t end;
};

static struct given read_input(struct bc_input *input, size_t most, size_t room)
{
	struct given given = {.bytes = malloc(most + room)};

	assert_non_null(given.bytes);
	while ((given.end = bc_input_read(input, given.bytes + given.n, room)) > 0) {
		given.n += (size_t)given.end;
		assert_true(given.n <= most);
	}
	return given;
}

static void assert_gives(int fd, enum bc_format wanted, enum bc_format format, bool is_lz4,
	const struct trace *expected, size_t room)
{
	struct bc_probe probe;
	struct bc_input *input;

	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 wanted, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(probe.format, format);
	assert_int_equal(probe.packing == BC_PACKING_LZ4, is_lz4);
	struct given given = read_input(input, expected->n, room);
	assert_int_equal(given.end, 0);
	assert_int_equal(given.n, expected->n);
	assert_memory_equal(given.bytes, expected->bytes, given.n);
	free(given.bytes);
	bc_input_close(input);
	close(fd);
}

TEST_F(every_format_is_read_whole_compressed_or_not)
{
	static const size_t rooms[] = {1, 1000, 65536, 1 << 20};

	for (size_t i = 0; i < FORMATS; i++) {
		for (size_t r = i == 0 ? 0 : 1; r < 4; r++) {
			const struct trace *plain = &f->plain[i];
			int fd = open_bytes(f, plain->bytes, plain->n);
			assert_gives(fd, BC_FORMAT_UNKNOWN, formats[i], false, plain, rooms[r]);
			fd = open_bytes(f, f->packed[i].bytes, f->packed[i].n);
			assert_gives(fd, BC_FORMAT_UNKNOWN, formats[i], true, plain, rooms[r]);
		}
	}
}

TEST_F(a_given_format_is_not_detected)
{
	for (size_t i = 0; i < FORMATS; i++) {
		const struct trace *plain = &f->plain[FORMATS - 1 - i];
		const struct trace *packed = &f->packed[FORMATS - 1 - i];
		int fd = open_bytes(f, plain->bytes, plain->n);
		assert_gives(fd, formats[i], formats[i], false, plain, 5000);
		fd = open_bytes(f, packed->bytes, packed->n);
		assert_gives(fd, formats[i], formats[i], true, plain, 5000);
	}
}

TEST_F(tiny_files_of_a_given_format_are_read_completely)
{
	for (size_t n = 0; n < 100; n++) {
		struct trace part = {f->plain[0].bytes, n};
		int fd = open_bytes(f, part.bytes, n);
		assert_gives(fd, BC_FORMAT_RAW6, BC_FORMAT_RAW6, false, &part, 7);
		struct trace packed = trace_to_lz4(&part, true);
		fd = open_bytes(f, packed.bytes, packed.n);
		assert_gives(fd, BC_FORMAT_RAW6, BC_FORMAT_RAW6, true, &part, 7);
		trace_free(&packed);
	}
}

struct feeder {
	int fd;
	const struct trace *trace;
	size_t step;
};

static void *feed(void *context)
{
	const struct feeder *feeder = context;
	const struct trace *trace = feeder->trace;

	for (size_t at = 0; at < trace->n; at += feeder->step) {
		size_t n = trace->n - at < feeder->step ? trace->n - at : feeder->step;
		if (write(feeder->fd, trace->bytes + at, n) != (ssize_t)n)
			break;
	}
	close(feeder->fd);
	return NULL;
}

TEST_F(a_pipe_is_read_like_a_file_in_any_pieces)
{
	static const size_t steps[] = {3, 1000, 70001};

	for (size_t s = 0; s < 3; s++) {
		for (size_t i = 0; i < FORMATS; i++) {
			for (int is_lz4 = 0; is_lz4 < 2; is_lz4++) {
				int fds[2];
				pthread_t thread;
				if (steps[s] < 1000 && i % 3 != 0)
					continue;
				assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
				struct feeder feeder = {
					fds[1], is_lz4 ? &f->packed[i] : &f->plain[i], steps[s]};
				assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
				assert_gives(fds[0], BC_FORMAT_UNKNOWN, formats[i], is_lz4,
					&f->plain[i], 30000);
				pthread_join(thread, NULL);
			}
		}
	}
}

TEST_F(an_unknown_format_is_refused_with_a_reason)
{
	struct dice dice = {.state = 3};
	uint8_t noise[5000];
	struct bc_probe probe;
	struct bc_input *input;

	dice_fill(&dice, noise, sizeof(noise));
	int fd = open_bytes(f, noise, sizeof(noise));
	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe),
		-EINVAL);
	assert_non_null(strstr(probe.err, "fits no known format"));
	close(fd);
	fd = open_bytes(f, noise, 0);
	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe),
		-EINVAL);
	assert_non_null(strstr(probe.err, "empty"));
	close(fd);
	assert_int_equal(
		bc_input_open(&input, (struct bc_input_stream){.fd = f->dir.fd, .wake_fd = -1},
			BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe),
		-EISDIR);
	bc_input_close(NULL);
}

static struct trace make_segment(struct fixture *f)
{
	struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c"};
	struct bc_segment_writer writer;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct trace segment;

	assert_non_null(chunk);
	assert_int_equal(
		bc_segment_create(&writer, f->dir.fd, "s.byu.lz4", ".partial", &header), 0);
	for (uint32_t i = 0; i < 3; i++) {
		bc_chunk_reset(chunk, i, 0);
		chunk->info.recording_tag = bc_recording_tag(header.recording);
		chunk->info.first_record = 1000 * i;
		chunk->info.records = 1000;
		memcpy(chunk->records, f->plain[2].bytes + i * 12000, 12000);
		segment_append(&writer, chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	segment.bytes = temp_read(&f->dir, "s.byu.lz4", &segment.n);
	assert_int_equal(unlinkat(f->dir.fd, "s.byu.lz4", 0), 0);
	free(chunk);
	return segment;
}

static void assert_is_the_segment(
	struct fixture *f, int fd, enum bc_format wanted, enum bc_packing packing)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_header header;
	struct bc_segment_reader *reader;
	struct bc_probe probe;
	struct bc_input *input;

	assert_non_null(chunk);
	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 wanted, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(probe.format, BC_FORMAT_SEGMENT);
	assert_int_equal(probe.packing, packing);
	if (bc_input_segment_header(input, &header))
		assert_string_equal(header.recording, "20261120T091500Z-3f9a2c");
	else
		assert_true(lseek(fd, 0, SEEK_CUR) < 0); /* a pipe, and the start is too short */
	assert_int_equal(bc_input_segments(input, &reader), 0);
	assert_int_equal(bc_segment_read(reader, chunk), BC_FOUND_SEGMENT);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(bc_segment_read(reader, chunk), BC_FOUND_CHUNK);
		assert_memory_equal(chunk->records, f->plain[2].bytes + i * 12000, 12000);
	}
	assert_int_equal(bc_segment_read(reader, chunk), BC_FOUND_INDEX);
	assert_int_equal(bc_segment_read(reader, chunk), BC_FOUND_END);
	assert_true(bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	bc_input_close(input);
	free(chunk);
	close(fd);
}

/* As a file, and through a pipe in pieces; detected and named. */
static void assert_is_the_segment_everywhere(
	struct fixture *f, const struct trace *file, enum bc_packing packing)
{
	static const enum bc_format wanted[] = {BC_FORMAT_UNKNOWN, BC_FORMAT_SEGMENT};
	static const size_t steps[] = {100, 5000};

	for (int i = 0; i < 2; i++) {
		int fd = open_bytes(f, file->bytes, file->n);
		assert_is_the_segment(f, fd, wanted[i], packing);
		for (int s = 0; s < 2; s++) {
			int fds[2];
			pthread_t thread;
			assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
			struct feeder feeder = {fds[1], file, steps[s]};
			assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
			assert_is_the_segment(f, fds[0], wanted[i], packing);
			pthread_join(thread, NULL);
		}
	}
}

TEST_F(a_segment_is_read_in_chunks_from_its_first_byte)
{
	struct trace segment = make_segment(f);

	assert_is_the_segment_everywhere(f, &segment, BC_PACKING_NONE);
	trace_free(&segment);
}

TEST_F(a_segment_is_read_whole_in_any_compression)
{
	struct trace segment = make_segment(f);
	struct trace packed[PACKED];

	pack_all(packed, &segment);
	for (unsigned i = 0; i < PACKED; i++) {
		assert_is_the_segment_everywhere(f, &packed[i], packings[i]);
		trace_free(&packed[i]);
	}
	trace_free(&segment);
}

/* What is left begins in the LZ4 frame of its first chunk. */
TEST_F(a_segment_without_its_start_is_recognized_by_its_next_chunk)
{
	static const uint8_t lz4[] = {0x04, 0x22, 0x4D, 0x18};
	struct trace segment = make_segment(f);
	const uint8_t *frame = memmem(segment.bytes + 4, segment.n - 4, lz4, sizeof(lz4));

	assert_non_null(frame);
	for (size_t n = segment.n; n >= segment.n - 1; n--) { /* sealed, torn */
		struct bc_probe probe;
		struct bc_input *input;
		int fd = open_bytes(f, frame, (size_t)(segment.bytes + n - frame));
		assert_int_equal(
			bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe),
			0);
		assert_int_equal(probe.format, BC_FORMAT_SEGMENT);
		assert_int_equal(probe.packing, BC_PACKING_NONE);
		bc_input_close(input);
		close(fd);
	}
	trace_free(&segment);
}

TEST_F(a_segment_without_its_start_is_recognized_by_its_end)
{
	struct trace segment = make_segment(f);
	struct bc_probe probe;
	struct bc_input *input;

	memset(segment.bytes, 0, segment.n - 32);
	for (size_t n = segment.n; n >= segment.n - 32; n--) {
		/* Everything but the last 32 bytes may be missing, but none of these. */
		const uint8_t *begins[] = {segment.bytes, segment.bytes + segment.n - 32};
		for (int i = 0; i < 2; i++) {
			size_t bytes = (size_t)(segment.bytes + n - begins[i]);
			int fd = open_bytes(f, begins[i], bytes);
			int rc = bc_input_open(&input,
				(struct bc_input_stream){.fd = fd, .wake_fd = -1},
				BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe);
			assert_int_equal(
				rc == 0 && probe.format == BC_FORMAT_SEGMENT, n == segment.n);
			if (rc == 0)
				bc_input_close(input);
			close(fd);
		}
	}
	trace_free(&segment);
}

/* On request only: to any LZ4 reader, the records of a segment are plain BYU. */
TEST_F(a_segment_given_as_byu_is_read_as_plain_records)
{
	struct trace segment = make_segment(f);
	struct trace records = {f->plain[2].bytes, 36000};

	assert_gives(open_bytes(f, segment.bytes, segment.n), BC_FORMAT_BYU, BC_FORMAT_BYU, true,
		&records, 1000);
	struct trace packed[PACKED];
	pack_all(packed, &segment);
	for (unsigned i = 0; i < PACKED; i++) {
		struct bc_probe probe;
		struct bc_input *input;
		char err[100];
		int fd = open_bytes(f, packed[i].bytes, packed[i].n);
		assert_int_equal(
			bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				BC_FORMAT_BYU, BC_WINDOW_LOG, &probe),
			-EINVAL);
		snprintf(err, sizeof(err),
			"a segment compressed with %s, which can only be read as a segment",
			bc_packing_name(packings[i]));
		assert_string_equal(probe.err, err);
		close(fd);
		trace_free(&packed[i]);
	}
	trace_free(&segment);
}

struct opening {
	struct bc_input_stream stream;
	bool reads_on;
	ssize_t result;
};

static void *open_input(void *context)
{
	struct opening *opening = context;
	struct bc_probe probe;
	struct bc_input *input;
	uint8_t out[64];

	enum bc_format wanted = opening->reads_on ? BC_FORMAT_RAW6 : BC_FORMAT_UNKNOWN;
	opening->result = bc_input_open(&input, opening->stream, wanted, BC_WINDOW_LOG, &probe);
	if (opening->result != 0)
		return NULL;
	do
		opening->result = bc_input_read(input, out, sizeof(out));
	while (opening->result > 0);
	bc_input_close(input);
	return NULL;
}

TEST(a_wake_interrupts_opening_and_reading)
{
	for (int reads_on = 0; reads_on < 2; reads_on++) {
		for (size_t given = 0; given < 40; given += 3) {
			static const uint8_t bytes[40] = {1, 2, 3};
			uint64_t one = 1;
			int fds[2];
			int wake_fd = eventfd(0, EFD_CLOEXEC);
			pthread_t thread;
			assert_true(wake_fd >= 0);
			assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
			struct opening opening = {{.fd = fds[0], .wake_fd = wake_fd}, reads_on, 0};
			assert_int_equal(write(fds[1], bytes, given), given);
			assert_int_equal(pthread_create(&thread, NULL, open_input, &opening), 0);
			assert_int_equal(write(wake_fd, &one, sizeof(one)), sizeof(one));
			pthread_join(thread, NULL);
			assert_int_equal(opening.result, -ECANCELED);
			close(fds[0]);
			close(fds[1]);
			close(wake_fd);
		}
	}
}
