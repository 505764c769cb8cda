#include <inttypes.h>
#include <sys/socket.h>

#include "tests/support/compressor.h"
#include "tests/support/small_segment.h"

#include "formats/bus/record.h"
#include "formats/codec/reader.h"
#include "formats/trace/parser.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

static struct bc_chunk_pages chunk_pages;

/* Output of a reader as text: a line per entry, fault or record. The caller frees it. */
struct read_options {
	const char *format_options;
	bool as_records;
	bool as_runs;
	bool (*needs_chunk)(void *context, const struct bc_chunk_info *info);
	void *context;
	int index_fd; /* 0: none */
	struct bc_sequence_check *sequence;
	struct dice *skips; /* skip entries at random */
};

static void show_text(FILE *out, struct bc_text text)
{
	fprintf(out, " \"%.*s\"", (int)text.bytes, text.bytes != 0 ? text.at : "");
}

static void show_entry(FILE *out, const struct bc_entry *e)
{
	fprintf(out,
		"%" PRIu64 ": kind %u type %x addr %" PRIx64 " has %x size %u attr %u proc %u ",
		e->number, e->kind, e->type, e->addr, e->traits, e->size, e->attr, e->proc);
	fprintf(out, "tick %" PRIu64 " delta %" PRIx64 " epoch %u%s", e->tick, e->delta, e->epoch,
		e->is_inexact ? " inexact" : "");
	if (e->kind == BC_ENTRY_UOP) {
		show_text(out, e->uop.macro);
		show_text(out, e->uop.micro);
	}
	if (e->kind == BC_ENTRY_KERNEL)
		show_text(out, e->kernel.rest);
	if (e->kind == BC_ENTRY_EVENT) {
		fprintf(out, " event %u cause %u value %" PRIu64, e->note.event.kind,
			e->note.event.cause, e->note.event.value);
		show_text(out, e->note.text);
	}
	fprintf(out, "\n");
}

static void show_batch(FILE *out, const struct bc_batch *batch)
{
	struct bc_record_run run = batch->run;
	struct bc_entry entry;

	for (size_t i = 0; i < batch->count; i++)
		show_entry(out, &batch->entries[i]);
	/* Print single records, because runs end wherever the reads did. */
	while (bc_record_run_entries(&run, &entry, 1) != 0)
		show_entry(out, &entry);
	if (batch->fault == NULL)
		return;
	const struct bc_fault *f = batch->fault;
	fprintf(out, "! line %" PRIu64 " column %u offset %" PRIu64 " bytes %" PRIu64 ": %s\n",
		f->line, f->column, f->offset, f->bytes, f->what);
}

/* Skips part of a run that begins within the batch, which then ends there. Writes "skip N". */
static void skip_some(
	FILE *out, struct bc_reader *reader, struct bc_batch *batch, struct dice *dice)
{
	struct bc_reader_run run;
	size_t at = dice_below(dice, (uint32_t)batch->count);
	size_t rest = batch->count - at;

	if (!bc_reader_run(reader, &batch->entries[at], &run) || run.count <= rest)
		return;
	const struct bc_entry *entry = &batch->entries[at];
	bool is_sample = (entry->traits & BC_TRAIT_SAMPLE) != 0;
	assert_int_equal(run.each, is_sample ? BC_BCP1_SAMPLE_BYTES : BC_RECORD_BYTES);
	if (is_sample)
		assert_memory_equal(run.bytes, entry->sample, BC_SAMPLE_BYTES);
	else
		assert_true(bc_le32(run.bytes) == entry->addr &&
			    bc_le32(run.bytes + 8) == entry->delta);
	size_t n = dice_below(dice, 4) == 0
			   ? run.count
			   : rest + 1 + dice_below(dice, (uint32_t)(run.count - rest));
	bc_reader_skip(reader, entry, n);
	batch->count = at;
	show_batch(out, batch);
	fprintf(out, "skip %zu\n", n);
	batch->count = 0;
}

/* Reads everything from the descriptor and closes it. */
static char *read_all(int fd, enum bc_format format, const struct read_options *options)
{
	struct bc_reader_options reader_options = {.format = bc_format_options_default(),
		.as_records = options->as_records,
		.as_runs = options->as_runs,
		.needs_chunk = options->needs_chunk,
		.context = options->context,
		.index_fd = options->index_fd != 0 ? options->index_fd : -1,
		.sequence = options->sequence};
	struct bc_reader *reader;
	struct bc_input *input;
	struct bc_probe probe;
	struct bc_batch batch;
	char err[160];
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int rc;

	assert_non_null(out);
	if (options->format_options != NULL)
		assert_true(bc_format_options_read(&reader_options.format, options->format_options,
			bc_format_info(format)->read_options, err, sizeof(err)));
	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 format, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(bc_reader_open(&reader, input, format, &reader_options), 0);
	while ((rc = bc_reader_next(reader, &batch)) == 1) {
		assert_true(batch.count != 0 || batch.run.count != 0 || batch.fault != NULL);
		if (options->skips != NULL && batch.count != 0)
			skip_some(out, reader, &batch, options->skips);
		show_batch(out, &batch);
	}
	/* The end is permanent. */
	if (rc == 0)
		assert_int_equal(bc_reader_next(reader, &batch), 0);
	else
		fprintf(out, "error %d\n", rc);
	bc_reader_close(reader);
	bc_input_close(input);
	close(fd);
	fclose(out);
	return text;
}

static int fd_of(const void *bytes, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* A descriptor whose read() returns the pieces between the cuts one at a time. */
static int fd_of_pieces(const uint8_t *bytes, size_t n, const size_t *cuts, size_t cut_count)
{
	int fds[2];
	size_t at = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	for (size_t i = 0; i <= cut_count; i++) {
		size_t end = i < cut_count ? cuts[i] : n;
		if (end != at)
			assert_int_equal(
				send(fds[1], bytes + at, end - at, MSG_DONTWAIT), end - at);
		at = end;
	}
	close(fds[1]);
	return fds[0];
}

static const struct read_options nothing_special;

/* Each format that is read in blocks, with malformed parts. */
static const struct {
	enum bc_format format;
	const char *options;
	const char *bytes;
	size_t n;
} samples[] = {
#define SAMPLE(format, options, text)                   \
	{                                               \
		format, options, text, sizeof(text) - 1 \
	}
	SAMPLE(BC_FORMAT_DIN, "size=4", "0 7ffe12\n\nx\n1 0x10 more\r\n2 fffffffffffffffff\n4 0"),
	SAMPLE(BC_FORMAT_XDIN, NULL, "r 7ffe12 4\nw 10\nm ffffffffffffffff ffffffff\nv 1 g"),
	SAMPLE(BC_FORMAT_LACKEY, NULL, "==1== x\nI  04016930,3\nhello\n L 4222cac,16\n==1== y"),
	SAMPLE(BC_FORMAT_LAPLACE_TEXT, NULL,
		"r 123456789abcdef0 4 9f8e7 9a8b7c6d\n\nr 1 1\n! 0 0 0 "
		"8888ffff3e456a21\nw 1 2 3 "),
	SAMPLE(BC_FORMAT_LAPLACE_EVENTS, NULL, "F 123456789abcdef7 100 77\n\nF\nFORK 0A x\r\nM 1"),
	SAMPLE(BC_FORMAT_CIS501, NULL,
		"1 40061e -1 -1 -1 R T -       -96            0       400620       4005c0 J        "
		"JMP_IMM\n1 1 1\n2 4005c0 44 -1 2 - - L 0 1 0 0 MOVSX SEXT\n1 2 3"),
	SAMPLE(BC_FORMAT_LAPLACE, NULL,
		"r\360\336\274\232\170\126\064\022\004\347\370\011\000\155\174\213\232"
		"\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
		"i\001\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000torn"),
	SAMPLE(BC_FORMAT_RAW6, NULL, "\000\000\020\000\376\300\000\000\020\010\000\200\001\002"),
	SAMPLE(BC_FORMAT_BYU, NULL,
		"\001\002\003\004\000\010\000\001\377\377\377\377\001\002\003\004\003\040\000\001"
		"\005\000\000\000\001\002\003"),
#undef SAMPLE
};

#define SAMPLES (COUNT_OF(samples))

TEST(every_split_of_the_input_gives_the_same)
{
	for (size_t s = 0; s < SAMPLES; s++) {
		const uint8_t *bytes = (const uint8_t *)samples[s].bytes;
		size_t n = samples[s].n;
		struct read_options options = {.format_options = samples[s].options};
		char *whole = read_all(fd_of(bytes, n), samples[s].format, &options);
		assert_non_null(strstr(whole, "! "));
		for (size_t a = 1; a < n; a++) {
			/* Two cuts close together, and single ones. */
			for (size_t b = a; b <= a + 3 && b < n; b++) {
				size_t cuts[] = {a, b};
				char *text = read_all(fd_of_pieces(bytes, n, cuts, 2),
					samples[s].format, &options);
				assert_string_equal(text, whole);
				free(text);
			}
		}
		size_t *cuts = calloc(n, sizeof(*cuts));
		assert_non_null(cuts);
		for (size_t i = 0; i + 1 < n; i++)
			cuts[i] = i + 1;
		char *text = read_all(
			fd_of_pieces(bytes, n, cuts, n - 1), samples[s].format, &options);
		assert_string_equal(text, whole);
		free(text);
		free(cuts);
		free(whole);
	}
}

/* Everything before and after is returned, and each fault is reported once, with its position. */
TEST(malformed_lines_are_reported_with_line_and_column_and_skipped)
{
	static const char trace[] = "0 1\n5 1\n1 2\n\n  2 xyz\n2 3\n0 4 \n0";
	char *text = read_all(fd_of(trace, sizeof(trace) - 1), BC_FORMAT_DIN, &nothing_special);
	static const char rest[] = " has 0 size 0 attr 0 proc 0 tick 0 delta 0 epoch 0\n";
	char expected[2000];

	snprintf(expected, sizeof(expected),
		"1: kind 0 type 1 addr 1%s"
		"! line 2 column 1 offset 0 bytes 0: type '5' is not in the table: "
		"{type:5=read|...}\n"
		"3: kind 0 type 3 addr 2%s"
		"! line 5 column 5 offset 0 bytes 0: expected {addr} (hexadecimal, at most 64 "
		"bits)\n"
		"6: kind 0 type 0 addr 3%s"
		"7: kind 0 type 1 addr 4%s"
		"! line 8 column 2 offset 0 bytes 0: expected a blank; the file ends "
		"in this line\n",
		rest, rest, rest, rest);
	assert_string_equal(text, expected);
	free(text);
}

/* Lines at and above the limit, anywhere in the reader's blocks: those above are reported once
 * each, and no other line is affected. */
TEST(a_line_over_the_limit_is_reported_and_skipped_anywhere)
{
	static const size_t lengths[] = {BC_LINE_MAX - 2, BC_LINE_MAX - 1, BC_LINE_MAX,
		BC_LINE_MAX + 1, 3 * BC_LINE_MAX, 300000, 600000};
	struct dice dice = {.state = 17};

	for (unsigned round = 0; round < 30; round += test_stride(7)) {
		size_t room = 4 << 20;
		char *trace = malloc(room);
		char *expected;
		size_t expected_bytes;
		FILE *out = open_memstream(&expected, &expected_bytes);
		size_t n = 0;
		uint64_t line = 1;
		assert_non_null(trace);
		for (unsigned i = 0; i < 6; i++) {
			for (uint32_t k = dice_below(&dice, 3) == 0 ? dice_below(&dice, 50000) : 0;
				k != 0; k--, line++) {
				n += (size_t)sprintf(trace + n, "2 %" PRIx64 "\n", line);
				fprintf(out, "%" PRIu64 " %" PRIx64 "\n", line, line);
			}
			size_t length = lengths[dice_below(&dice, 7)];
			memset(trace + n, 'z', length);
			memcpy(trace + n, "1 abc ", 6);
			n += length;
			if (i != 5 || round % 2 == 0)
				trace[n++] = '\n';
			if (length < BC_LINE_MAX)
				fprintf(out, "%" PRIu64 " abc\n", line);
			else
				fprintf(out, "! %" PRIu64 "\n", line);
			line++;
		}
		fclose(out);

		char *got;
		size_t got_bytes;
		struct bc_reader_options reader_options = {
			.format = bc_format_options_default(), .index_fd = -1};
		struct bc_reader *reader;
		struct bc_input *input;
		struct bc_probe probe;
		struct bc_batch batch;
		int fd = fd_of(trace, n);
		out = open_memstream(&got, &got_bytes);
		assert_int_equal(
			bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				BC_FORMAT_DIN, BC_WINDOW_LOG, &probe),
			0);
		assert_int_equal(bc_reader_open(&reader, input, BC_FORMAT_DIN, &reader_options), 0);
		while (bc_reader_next(reader, &batch) == 1) {
			for (size_t i = 0; i < batch.count; i++)
				fprintf(out, "%" PRIu64 " %" PRIx64 "\n", batch.entries[i].number,
					batch.entries[i].addr);
			if (batch.fault != NULL) {
				assert_non_null(strstr(batch.fault->what, "longer than"));
				fprintf(out, "! %" PRIu64 "\n", batch.fault->line);
			}
		}
		fclose(out);
		assert_string_equal(got, expected);
		bc_reader_close(reader);
		bc_input_close(input);
		close(fd);
		free(got);
		free(expected);
		free(trace);
	}
}

TEST(a_malformed_record_is_reported_by_its_offset_and_skipped)
{
	char bytes[5 * 18];

	for (size_t bad = 0; bad < 5; bad++) {
		char expected[100];
		memset(bytes, 0, sizeof(bytes));
		for (size_t i = 0; i < 5; i++)
			bytes[i * 18] = i == bad ? '\n' : 'w';
		char *text = read_all(
			fd_of(bytes, sizeof(bytes)), BC_FORMAT_LAPLACE, &nothing_special);
		snprintf(expected, sizeof(expected),
			"! line 0 column 0 offset %zu bytes 18: record %zu: ", bad * 18, bad);
		assert_non_null(strstr(text, expected));
		for (size_t i = 0; i < 5; i++) {
			snprintf(expected, sizeof(expected), "%zu: kind 0 ", i);
			assert_int_equal(strstr(text, expected) != NULL, i != bad);
		}
		free(text);
	}
}

TEST(a_line_cut_by_damage_is_not_parsed_as_a_shorter_one)
{
	static const char line[] = "2 123456789a\n";
	struct trace plain = {.n = 20000 * (sizeof(line) - 1)};

	plain.bytes = malloc(plain.n);
	assert_non_null(plain.bytes);
	for (size_t at = 0; at < plain.n; at += sizeof(line) - 1)
		memcpy(plain.bytes + at, line, sizeof(line) - 1);
	struct trace packed = trace_to_lz4(&plain, 0);
	/* Its blocks have 64 KiB, which is not a multiple of the line length. */
	char *text = read_all(fd_of(packed.bytes, packed.n - 300), BC_FORMAT_DIN, &nothing_special);
	assert_non_null(strstr(text, ": the line is cut off; skipped\n"));
	assert_non_null(strstr(text, ": the compressed data is damaged or torn here"));
	for (const char *at = text; *at != '!'; at = strchr(at, '\n') + 1)
		assert_non_null(memmem(at, strcspn(at, "\n"), "addr 123456789a has", 19));
	free(text);
	trace_free(&plain);
	trace_free(&packed);
}

/* The reader takes 256 KiB of the file at a time. */
TEST(a_whole_block_is_converted_to_records)
{
	const struct read_options options = {.as_records = true};
	struct trace bcp1 = trace_of_sim(1, 22000, 2);
	struct trace little = trace_to_byu(&bcp1, BC_FORMAT_BYU);
	struct trace big = trace_to_byu(&bcp1, BC_FORMAT_BYU_BE);
	char *expected = read_all(fd_of(little.bytes, little.n), BC_FORMAT_BYU, &options);
	char *text = read_all(fd_of(big.bytes, big.n), BC_FORMAT_BYU_BE, &options);

	assert_true(big.n > 256 << 10);
	assert_string_equal(text, expected);
	free(text);
	free(expected);
	trace_free(&big);
	trace_free(&little);
	trace_free(&bcp1);
}

TEST(a_record_too_large_for_byu_is_an_entry)
{
	for (int is_wide = 0; is_wide < 2; is_wide++) {
		size_t stride = is_wide ? 24 : 16;
		for (size_t large = 0; large < 4; large++) {
			uint8_t bytes[4 * 24] = {0};
			char expected[200];
			bytes[large * stride + 4] = 1; /* bit 32 of its address */
			int format = is_wide ? BC_FORMAT_BYU24 : BC_FORMAT_BYU16;
			for (int as_records = 0; as_records < 2; as_records++) {
				struct read_options options = {.as_records = as_records};
				char *text = read_all(
					fd_of(bytes, 4 * stride), (enum bc_format)format, &options);
				for (size_t i = 0; i < 4; i++) {
					snprintf(expected, sizeof(expected), "%zu: kind 0", i);
					assert_non_null(strstr(text, expected));
				}
				assert_null(strstr(text, "!"));
				assert_non_null(strstr(text, "addr 100000000 "));
				free(text);
			}
		}
	}
}

TEST(a_board_stream_is_read_completely)
{
	struct trace bcp1 = trace_of_sim(5, 4000, 2);
	struct trace byu = trace_to_byu(&bcp1, BC_FORMAT_BYU);
	struct bc_reader_options reader_options = {
		.format = bc_format_options_default(), .index_fd = -1};
	struct bc_reader *reader;
	struct bc_input *input;
	struct bc_probe probe;
	struct bc_batch batch;
	int fd = fd_of(bcp1.bytes, bcp1.n);
	size_t n = 0;
	uint64_t tick = 0;

	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 BC_FORMAT_BCP1, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(bc_reader_open(&reader, input, BC_FORMAT_BCP1, &reader_options), 0);
	while (bc_reader_next(reader, &batch) == 1) {
		assert_null(batch.fault);
		for (size_t i = 0; i < batch.count; i++) {
			const struct bc_entry *e = &batch.entries[i];
			if (e->type >= BC_REQ_INVALID && e->type < 0x100)
				continue; /* dropped by a recording */
			struct bc_record r = bc_record_load(byu.bytes + 12 * n);
			assert_int_equal(e->kind, BC_ENTRY_REFERENCE);
			assert_true(e->addr == r.addr);
			assert_int_equal(e->type, r.reqtype);
			assert_int_equal(e->size, r.size);
			assert_int_equal(e->attr, r.attr);
			assert_int_equal(e->proc, r.proc);
			assert_true((e->traits & BC_TRAIT_SAMPLE) != 0);
			if (n != 0)
				assert_true(e->tick - tick == r.time);
			tick = e->tick;
			n++;
		}
	}
	assert_int_equal(n * 12, byu.n);
	bc_reader_close(reader);
	bc_input_close(input);
	close(fd);
	trace_free(&byu);
	trace_free(&bcp1);
}

TEST(missing_and_damaged_frames_are_gaps_and_faults)
{
	struct trace bcp1 = trace_of_sim(5, 4000, 1);
	struct bc_bcp1_header header;
	size_t second = 0;

	assert_true(bc_bcp1_read_header(&header, bcp1.bytes));
	second = bc_bcp1_frame_bytes(header.samples);
	assert_true(bc_bcp1_read_header(&header, bcp1.bytes + second));
	size_t third = second + bc_bcp1_frame_bytes(header.samples);
	char offset[60];

	bcp1.bytes[third - 10] ^= 1;
	char *text = read_all(fd_of(bcp1.bytes, bcp1.n), BC_FORMAT_BCP1, &nothing_special);
	snprintf(offset, sizeof(offset), "offset %zu bytes %zu: frame 1", second, third - second);
	assert_non_null(strstr(text, offset));
	assert_non_null(strstr(text, "event 1 cause 5 value 1000 \"\"\n"));
	free(text);

	memmove(bcp1.bytes + second, bcp1.bytes + third, bcp1.n - third);
	text = read_all(
		fd_of(bcp1.bytes, bcp1.n - (third - second)), BC_FORMAT_BCP1, &nothing_special);
	snprintf(offset, sizeof(offset), "offset %zu bytes 0: frames are missing here", second);
	assert_non_null(strstr(text, offset));
	assert_non_null(strstr(text, "event 1 cause 4 value 0 \"\"\n"));
	free(text);
	trace_free(&bcp1);
}

struct segments {
	struct temp_dir dir;
	struct small_segment one;
};

static void set_up(struct segments *s)
{
	temp_dir_make(&s->dir);
	small_make(&s->one, &s->dir, 0, 0);
}

static void tear_down(struct segments *s)
{
	free(s->one.bytes);
	temp_dir_remove(&s->dir);
}

TEST_FIXTURE(segments, set_up, tear_down)

/* The expected output for the chunks that are kept: records with absolute ticks, events at their
 * positions, a new epoch, and a gap for chunks that are lost rather than skipped. */
static char *expect_chunks(const struct small_segment *s, const bool *keep, bool is_lost)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	uint64_t tick = 0;
	bool has_epoch = false;
	uint32_t epoch = 0;
	uint32_t missing = 0;

	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		const struct small_chunk *chunk = &s->chunks[i];
		missing += keep[i] ? 0 : chunk->records;
		for (uint32_t k = 0; k <= chunk->records; k++) {
			const uint8_t *record = chunk->bytes + (size_t)k * BC_RECORD_BYTES;
			struct bc_entry e;
			bool is_new = k == 0 && (i == 0 || i == SMALL_CHUNKS - 1);
			uint64_t before = is_new ? 1000 : tick;
			if (k == 0 && keep[i] && has_epoch && epoch != chunk->epoch)
				fprintf(out, "epoch\n");
			if (k == 0 && keep[i] && is_lost && missing != 0)
				fprintf(out, "event 1 %u \n", missing);
			missing = keep[i] ? 0 : missing;
			if (k == small_plan[i].event.position && keep[i])
				fprintf(out, "event %u %" PRIu64 " %.*s\n",
					small_plan[i].event.kind, small_plan[i].event.value,
					(int)small_plan[i].event.text_bytes,
					small_plan[i].text != NULL ? small_plan[i].text : "");
			if (k == 0 && keep[i]) {
				has_epoch = true;
				epoch = chunk->epoch;
			}
			if (k == chunk->records)
				break;
			tick = bc_records_ticks(record, 1, before);
			if (!keep[i])
				continue;
			bc_entry_of_record(&e, record, chunk->first_record + k, tick);
			e.epoch = chunk->epoch;
			show_entry(out, &e);
		}
	}
	fclose(out);
	return text;
}

/* Reads a segment. The output has the form of expect_chunks(); faults are counted, and the last one
 * is kept. */
struct segment_run {
	char *text;
	unsigned faults;
	char fault[300];
};

static struct segment_run run_segment(int fd, const struct read_options *options)
{
	struct segment_run run = {0};
	size_t bytes;
	FILE *out = open_memstream(&run.text, &bytes);
	struct bc_reader_options reader_options = {.format = bc_format_options_default(),
		.needs_chunk = options->needs_chunk,
		.context = options->context,
		.index_fd = options->index_fd != 0 ? fd : -1,
		.sequence = options->sequence};
	struct bc_reader *reader;
	struct bc_input *input;
	struct bc_probe probe;
	struct bc_batch batch;

	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 BC_FORMAT_SEGMENT, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(bc_reader_open(&reader, input, BC_FORMAT_SEGMENT, &reader_options), 0);
	while (bc_reader_next(reader, &batch) == 1) {
		for (size_t i = 0; i < batch.count; i++) {
			const struct bc_entry *e = &batch.entries[i];
			const struct bc_event *event = &e->note.event;
			if (e->kind != BC_ENTRY_EVENT)
				show_entry(out, e);
			else if (event->kind == 0)
				fprintf(out, "epoch\n");
			else
				fprintf(out, "event %u %" PRIu64 " %.*s\n", event->kind,
					event->value, (int)e->note.text.bytes, e->note.text.at);
		}
		if (batch.fault != NULL) {
			run.faults++;
			snprintf(run.fault, sizeof(run.fault), "offset %" PRIu64 ": %s",
				batch.fault->offset, batch.fault->what);
		}
	}
	assert_non_null(bc_reader_header(reader));
	bc_reader_close(reader);
	bc_input_close(input);
	close(fd);
	fclose(out);
	return run;
}

TEST_WITH(segments, s, a_segment_gives_records_events_and_epochs_in_order)
{
	const bool keep[SMALL_CHUNKS] = {true, true, true, true, true, true};
	char *expected = expect_chunks(&s->one, keep, false);
	struct segment_run run = run_segment(fd_of(s->one.bytes, s->one.size), &nothing_special);

	assert_int_equal(run.faults, 0);
	assert_string_equal(run.text, expected);
	free(run.text);
	free(expected);
}

static bool needs_even_chunk(void *context, const struct bc_chunk_info *info)
{
	(void)context;
	return info->number % 2 == 0;
}

/* Reads with and without runs, all chunks or some. */
static void assert_same_in_runs(const uint8_t *bytes, size_t n)
{
	for (int is_some = 0; is_some < 2; is_some++) {
		struct read_options options = {.needs_chunk = is_some ? needs_even_chunk : NULL};
		char *expected = read_all(fd_of(bytes, n), BC_FORMAT_SEGMENT, &options);
		options.as_runs = true;
		char *text = read_all(fd_of(bytes, n), BC_FORMAT_SEGMENT, &options);
		assert_string_equal(text, expected);
		free(text);
		free(expected);
	}
}

TEST_WITH(segments, s, runs_have_the_same_entries_and_faults_also_after_damage)
{
	size_t bits = 8 * s->one.size;

	for (size_t n = 0; n <= s->one.size; n = test_next(n, 37, &s->one.edges))
		assert_same_in_runs(s->one.bytes, n);
	for (size_t bit = 0; bit < bits; bit = test_next_bit(bit, 331, &s->one.edges)) {
		s->one.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_same_in_runs(s->one.bytes, s->one.size);
		s->one.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Compares with a text in which each "skip N" stands for N references. Returns their number.
 * (Checked string functions would look for the end of the text at each line.) */
static size_t check_skipped(const char *whole, const char *text)
{
	size_t skipped = 0;

	while (*text != '\0') {
		const char *next = (const char *)rawmemchr(text, '\n') + 1;
		if (*text != 's') {
			assert_memory_equal(whole, text, (size_t)(next - text));
			whole += next - text;
		} else {
			for (size_t n = strtoul(text + 5, NULL, 10); n != 0; n--, skipped++) {
				whole = rawmemchr(whole, ':');
				assert_memory_equal(whole, ": kind 0 ", 9);
				whole = (const char *)rawmemchr(whole, '\n') + 1;
			}
		}
		text = next;
	}
	assert_string_equal(whole, "");
	return skipped;
}

/* A chunk with marks, anchors where a delta is unknown, and plain records between them. */
static size_t make_eventful_chunk(uint8_t *out, struct dice *dice)
{
	static struct bc_chunk chunk;
	size_t header_bytes;

	bc_chunk_reset(&chunk, 1000, 0);
	for (uint32_t i = 0; i < 20000; i++) {
		bool has_event = dice_below(dice, 2000) == 0;
		bool has_time = !has_event && dice_below(dice, 500) != 0;
		struct bc_record record = {.addr = dice_below(dice, 1 << 20),
			.reqtype = BC_REQ_MEMREAD,
			.time = has_time ? dice_below(dice, 100) : BC_TIME_NONE};
		struct bc_event event = {.position = i,
			.kind = dice_below(dice, 2) == 0 ? BC_EVENT_MARK : BC_EVENT_ANCHOR,
			.exact = true,
			.value = UINT64_C(1) << 40 | i << 20};
		bc_record_store(bc_chunk_record(&chunk, i), &record);
		if (has_event)
			assert_true(bc_chunk_add_event(&chunk, &event, NULL));
	}
	chunk.info.records = 20000;
	return bc_chunk_encode(out, &chunk, &test_compressor, &chunk_pages, &header_bytes);
}

TEST(skipped_entries_change_nothing_of_those_that_follow)
{
	static uint8_t segment[BC_CHUNK_ENCODED_MAX];
	struct dice dice = {.state = 35};
	struct trace bcp1 = trace_of_sim(3, 30000, 2);
	struct trace byu = trace_to_byu(&bcp1, BC_FORMAT_BYU);
	size_t n = make_eventful_chunk(segment, &dice);
	const struct {
		enum bc_format format;
		const uint8_t *bytes;
		size_t n;
	} traces[] = {{BC_FORMAT_SEGMENT, segment, n}, {BC_FORMAT_BCP1, bcp1.bytes, bcp1.n},
		{BC_FORMAT_BYU, byu.bytes, byu.n}};

	/* A frame and a record in the middle that say something else. */
	memset(bcp1.bytes + bcp1.n / 2, 0, 4);
	memset(byu.bytes + byu.n / 24 * 12 + 8, 0xFF, 4);
	for (size_t i = 0; i < COUNT_OF(traces); i++) {
		size_t skipped = 0;
		char *whole = read_all(
			fd_of(traces[i].bytes, traces[i].n), traces[i].format, &nothing_special);
		for (unsigned round = 0; round < 5; round++) {
			struct read_options options = {.skips = &dice};
			char *text = read_all(
				fd_of(traces[i].bytes, traces[i].n), traces[i].format, &options);
			skipped += check_skipped(whole, text);
			free(text);
		}
		assert_true(skipped > 5 * 10000);
		free(whole);
	}
	trace_free(&byu);
	trace_free(&bcp1);
}

/* docs/segment-format.md, section 7. */
TEST(an_anchor_is_the_tick_of_a_record_without_a_delta)
{
	static const uint32_t times[] = {BC_TIME_NONE, 7, BC_TIME_NONE, 5};
	static const uint64_t ticks[] = {1000, 1007, 9000, 9005};
	static struct bc_chunk chunk;
	static uint8_t encoded[BC_CHUNK_ENCODED_MAX];
	size_t header_bytes;

	bc_chunk_reset(&chunk, 1000, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct bc_record record = {.reqtype = BC_REQ_MEMREAD, .time = times[i]};
		/* Anchors of records other than the third have no effect. */
		struct bc_event anchor = {.position = i,
			.kind = BC_EVENT_ANCHOR,
			.exact = i != 2,
			.value = i == 2 ? 9000 : 5000};
		bc_record_store(chunk.records + (size_t)i * BC_RECORD_BYTES, &record);
		if (i != 0)
			assert_true(bc_chunk_add_event(&chunk, &anchor, NULL));
	}
	chunk.info.records = 4;
	chunk.info.last_tick = 9005;
	size_t n = bc_chunk_encode(encoded, &chunk, &test_compressor, &chunk_pages, &header_bytes);
	char *text = read_all(fd_of(encoded, n), BC_FORMAT_SEGMENT, &nothing_special);
	const char *at = text;
	assert_same_in_runs(encoded, n);
	for (unsigned i = 0; i < 4; i++) {
		at = strstr(at, " tick ");
		assert_non_null(at);
		assert_int_equal(strtoull(at += 6, NULL, 10), ticks[i]);
		const char *inexact = strstr(at, " inexact");
		assert_int_equal(inexact != NULL && inexact < strchr(at, '\n'), i >= 2);
	}
	free(text);
}

/* A removed chunk is reported before the next one. Only the index shows that the last one is
 * missing. */
TEST_WITH(segments, s, each_missing_chunk_is_reported_before_the_next)
{
	for (unsigned gone = 0; gone + 1 < SMALL_CHUNKS; gone++) {
		const struct small_chunk *chunk = &s->one.chunks[gone];
		bool keep[SMALL_CHUNKS];
		for (unsigned i = 0; i < SMALL_CHUNKS; i++)
			keep[i] = i != gone;
		uint8_t *bytes = malloc(s->one.size);
		assert_non_null(bytes);
		memcpy(bytes, s->one.bytes, chunk->begin);
		memcpy(bytes + chunk->begin, s->one.bytes + chunk->end,
			s->one.index_at - chunk->end);
		size_t n = s->one.index_at - (chunk->end - chunk->begin);
		char *expected = expect_chunks(&s->one, keep, true);
		char *all = read_all(fd_of(bytes, n), BC_FORMAT_SEGMENT, &nothing_special);
		struct segment_run run = run_segment(fd_of(bytes, n), &nothing_special);
		char missing[120];
		snprintf(missing, sizeof(missing),
			"offset %zu bytes 0: %u record%s missing from record %u on", chunk->begin,
			chunk->records, chunk->records == 1 ? "" : "s",
			(unsigned)chunk->first_record);
		assert_int_equal(strstr(all, missing) != NULL, chunk->records != 0);
		assert_non_null(strstr(run.fault, "no index: the segment"));
		assert_string_equal(run.text, expected);
		free(all);
		free(run.text);
		free(expected);
		free(bytes);
	}
}

/* Chunks [from, to) twice in a row: one fault for all, and one for the missing index. */
static void assert_returned_once(
	const struct small_segment *one, unsigned from, unsigned to, const char *expected)
{
	size_t begin = one->chunks[from].begin;
	size_t end = one->chunks[to - 1].end;
	size_t n = end - begin;
	uint8_t *bytes = malloc(one->size + n);
	unsigned records = 0;
	char fault[200];

	assert_non_null(bytes);
	memcpy(bytes, one->bytes, end);
	memcpy(bytes + end, one->bytes + begin, one->index_at - begin);
	for (unsigned i = from; i < to; i++)
		records += one->chunks[i].records;
	if (to - from == 1)
		snprintf(fault, sizeof(fault),
			"offset %zu bytes %zu: chunk %u (%u record%s) is a duplicate; skipped", end,
			n, from, records, records == 1 ? "" : "s");
	else
		snprintf(fault, sizeof(fault),
			"offset %zu bytes %zu: %u chunks from chunk %u on (%u record%s) are "
			"duplicates; skipped",
			end, n, to - from, from, records, records == 1 ? "" : "s");
	char *all = read_all(fd_of(bytes, one->index_at + n), BC_FORMAT_SEGMENT, &nothing_special);
	assert_non_null(strstr(all, fault));
	free(all);
	struct segment_run run = run_segment(fd_of(bytes, one->index_at + n), &nothing_special);
	assert_int_equal(run.faults, 2);
	assert_string_equal(run.text, expected);
	free(run.text);
	free(bytes);
}

TEST_WITH(segments, s, duplicate_chunks_are_returned_once_and_reported_together)
{
	const bool keep[SMALL_CHUNKS] = {true, true, true, true, true, true};
	char *expected = expect_chunks(&s->one, keep, false);

	for (unsigned from = 0; from < SMALL_CHUNKS; from++)
		for (unsigned to = from + 1; to <= SMALL_CHUNKS; to++)
			assert_returned_once(&s->one, from, to, expected);
	free(expected);
}

struct choice {
	bool keep[SMALL_CHUNKS];
};

static bool is_chosen(void *context, const struct bc_chunk_info *info)
{
	const struct choice *choice = context;

	return info->number < SMALL_CHUNKS && choice->keep[info->number];
}

/* Every selection of chunks. Chunks that are not needed must not be read, so their damage is not
 * seen. */
TEST_WITH(segments, s, with_an_index_only_needed_chunks_are_read)
{
	for (unsigned mask = 0; mask < 1u << SMALL_CHUNKS; mask++) {
		struct choice choice;
		int fd = fd_of(s->one.bytes, s->one.size);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
			static const uint8_t zeros[8];
			choice.keep[i] = (mask >> i & 1) != 0;
			if (!choice.keep[i])
				assert_int_equal(pwrite(fd, zeros, sizeof(zeros),
							 (off_t)s->one.chunks[i].end - 20),
					sizeof(zeros));
		}
		struct read_options options = {
			.needs_chunk = is_chosen, .context = &choice, .index_fd = 1};
		char *expected = expect_chunks(&s->one, choice.keep, false);
		struct segment_run run = run_segment(fd, &options);
		if (run.faults != 0)
			print_error("mask %x: %s\n", mask, run.fault);
		assert_int_equal(run.faults, 0);
		assert_string_equal(run.text, expected);
		free(run.text);
		/* Without an index, everything is read, and chunks that are not needed are
		 * dropped. */
		options.index_fd = 0;
		run = run_segment(fd_of(s->one.bytes, s->one.size), &options);
		assert_int_equal(run.faults, 0);
		assert_string_equal(run.text, expected);
		free(run.text);
		free(expected);
	}
}

/* Segments of one recording: a skipped chunk of the first is not missing before the second. */
TEST_WITH(segments, s, the_sequence_continues_across_files_and_skipped_chunks)
{
	struct bc_sequence_check sequence = {0};
	struct small_segment two;
	struct small_segment three;
	struct read_options all = {.sequence = &sequence};
	struct segment_run run;

	small_make(&two, &s->dir, 1, SMALL_RECORDS);
	small_make(&three, &s->dir, 2, 2 * (uint64_t)SMALL_RECORDS);
	for (unsigned mask = 0; mask < 1u << SMALL_CHUNKS; mask++) {
		struct choice choice;
		for (unsigned i = 0; i < SMALL_CHUNKS; i++)
			choice.keep[i] = (mask >> i & 1) != 0;
		struct read_options some = {.needs_chunk = is_chosen,
			.context = &choice,
			.index_fd = 1,
			.sequence = &sequence};
		run = run_segment(fd_of(s->one.bytes, s->one.size), &some);
		assert_int_equal(run.faults, 0);
		free(run.text);
		run = run_segment(fd_of(two.bytes, two.size), &all);
		assert_int_equal(run.faults, 0);
		free(run.text);
		bc_sequence_check_reset(&sequence);
	}
	/* A whole file that is left out is missing. */
	run = run_segment(fd_of(s->one.bytes, s->one.size), &all);
	assert_int_equal(run.faults, 0);
	free(run.text);
	run = run_segment(fd_of(three.bytes, three.size), &all);
	assert_int_equal(run.faults, 1);
	assert_non_null(strstr(run.fault, "46 records missing: segment 1 is not here"));
	free(run.text);
	bc_sequence_check_reset(&sequence);
	free(two.bytes);
	free(three.bytes);
}

TEST(a_format_that_can_only_be_written_is_refused)
{
	struct bc_reader_options reader_options = {
		.format = bc_format_options_default(), .index_fd = -1};
	struct bc_reader *reader;
	struct bc_input *input;
	struct bc_probe probe;
	int fd = fd_of("0 1\n", 4);

	assert_int_equal(bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
				 BC_FORMAT_DIN, BC_WINDOW_LOG, &probe),
		0);
	assert_int_equal(bc_reader_open(&reader, input, BC_FORMAT_PERFETTO, &reader_options), -95);
	bc_reader_close(NULL);
	bc_input_close(input);
	close(fd);
}
