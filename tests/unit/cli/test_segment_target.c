/* Writing entries to a segment, and buscap cut on a small segment. */
#include "tests/support/small_segment.h"

#include "cli/io/segment_target.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
	char *err;
	size_t err_bytes;
	struct bc_console console;
	struct bc_trace source;
	const char *paths[1];
	struct bc_segment_target *target;
	char path[128];
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->console = (struct bc_console){.in = -1,
		.out = -1,
		.err = open_memstream(&f->err, &f->err_bytes),
		.command = "cut"};
	f->paths[0] = "trace.txt";
	f->source = (struct bc_trace){.console = &f->console, .paths = f->paths, .count = 1};
	snprintf(f->path, sizeof(f->path), "%s/out.byu.lz4", f->dir.path);
}

static void tear_down(struct fixture *f)
{
	temp_dir_remove(&f->dir);
	fclose(f->console.err);
	free(f->err);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void open_target(struct fixture *f)
{
	struct bc_origin origin = {.key = "converted_from"};

	assert_int_equal(bc_segment_target_open(
				 &f->target, &f->console, f->path, 0, BC_LEVEL_DEFAULT, &origin),
		0);
}

static void add_entry(struct fixture *f, const struct bc_entry *entry)
{
	char err[160];

	assert_int_equal(
		bc_segment_target_add(f->target, entry, 1, &f->source, &f->source.moment, err), 1);
}

static struct bc_entry read_at(uint64_t tick, uint32_t epoch)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x1000, 0);
	entry.traits = BC_TRAIT_TIME;
	entry.tick = tick;
	entry.epoch = epoch;
	return entry;
}

static struct bc_entry event_of(unsigned kind, const char *text)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 0);
	entry.kind = BC_ENTRY_EVENT;
	entry.note.event = (struct bc_event){.kind = (uint8_t)kind};
	entry.note.text = (struct bc_text){text, (uint32_t)strlen(text)};
	return entry;
}

/* Contents of the file, which must be intact and sealed. */
struct found {
	uint32_t chunks;
	uint64_t records;
	uint64_t events; /* without anchors */
	uint32_t last_epoch;
	uint64_t text_bytes;
	struct bc_segment_header header;
};

static struct found read_out(struct fixture *f)
{
	struct found found = {0};
	struct bc_segment_reader *reader;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	int what;

	assert_true(fd >= 0);
	struct bc_input_stream stream = {.fd = fd, .wake_fd = -1};
	assert_int_equal(bc_segment_reader_open(&reader, stream, NULL, 0), 0);
	while ((what = bc_segment_read(reader, chunk)) != BC_FOUND_END) {
		assert_int_not_equal(what, BC_FOUND_DAMAGE);
		if (what == BC_FOUND_SEGMENT)
			found.header = *bc_segment_reader_header(reader);
		if (what != BC_FOUND_CHUNK)
			continue;
		assert_int_equal(chunk->info.first_record, found.records);
		found.chunks++;
		found.records += chunk->info.records;
		found.last_epoch = chunk->info.epoch;
		found.text_bytes += chunk->text_bytes;
		for (uint32_t i = 0; i < chunk->info.events; i++)
			found.events += chunk->events[i].kind != BC_EVENT_ANCHOR;
	}
	assert_true(bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	close(fd);
	free(chunk);
	return found;
}

TEST_F(ticks_that_go_backwards_start_an_epoch)
{
	open_target(f);
	for (unsigned i = 0; i < 10; i++) {
		struct bc_entry entry = read_at(1000 - i * 10, 0);
		add_entry(f, &entry);
		entry.tick += 5;
		add_entry(f, &entry);
	}
	assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
	struct found found = read_out(f);
	assert_int_equal(found.records, 20);
	assert_int_equal(found.last_epoch, 9);
}

TEST_F(epoch_numbers_only_increase)
{
	static const struct {
		uint32_t in;
		uint32_t out;
	} epochs[] = {{3, 3}, {3, 3}, {7, 7}, {2, 8}, {3, 9}, {20, 20}, {0, 21}};

	for (size_t n = 1; n <= COUNT_OF(epochs); n++) {
		open_target(f);
		for (size_t i = 0; i < n; i++) {
			struct bc_entry entry = read_at(100 + i, epochs[i].in);
			add_entry(f, &entry);
		}
		assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
		assert_int_equal(read_out(f).last_epoch, epochs[n - 1].out);
		unlink(f->path);
	}
}

TEST_F(events_that_fill_a_chunk_continue_in_the_next)
{
	char text[4001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	open_target(f);
	struct bc_entry entry = read_at(1, 0);
	add_entry(f, &entry);
	for (unsigned i = 0; i < 600; i++) {
		entry = event_of(BC_EVENT_TRIGGER, "");
		add_entry(f, &entry);
	}
	for (unsigned i = 0; i < 3; i++) {
		entry = event_of(BC_EVENT_MARK, text);
		add_entry(f, &entry);
	}
	entry = read_at(9, 0);
	add_entry(f, &entry);
	assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
	struct found found = read_out(f);
	assert_int_equal(found.records, 2);
	assert_int_equal(found.events, 603);
	assert_int_equal(found.text_bytes, 12000);
}

TEST_F(gaps_of_one_cause_at_one_position_are_merged)
{
	struct bc_entry entry = read_at(1, 0);

	open_target(f);
	add_entry(f, &entry);
	for (unsigned i = 0; i < 12; i++) {
		entry = event_of(BC_EVENT_GAP, "");
		entry.note.event.cause = i % 2 == 0 ? BC_GAP_CRC : BC_GAP_UNPLUGGED;
		entry.note.event.value = 10;
		add_entry(f, &entry);
	}
	assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
	assert_int_equal(read_out(f).events, 1 + 6);
}

TEST_F(too_many_chunks_are_an_error)
{
	char err[160] = "";
	uint32_t n = 0;

	open_target(f);
	for (; n < BC_SEGMENT_CHUNKS + 10; n++) {
		struct bc_entry entry = read_at(1, n);
		if (bc_segment_target_add(
			    f->target, &entry, 1, &f->source, &f->source.moment, err) != 1)
			break;
	}
	/* A chunk is written when the next epoch starts, so the error comes one entry late. */
	assert_int_equal(n, BC_SEGMENT_CHUNKS + 1);
	assert_string_equal(err, "");
	bc_segment_target_abandon(f->target);
	fflush(f->console.err);
	assert_non_null(strstr(f->err, "a segment holds at most 65536 chunks"));
	assert_non_null(strstr(f->err, "; incomplete data (65,536 records) is in "));
	assert_int_not_equal(access(f->path, F_OK), 0);
}

TEST_F(a_tick_of_2_63_is_an_error)
{
	struct bc_entry entry = read_at(BC_TICK_END - 1, 0);
	char err[160];

	open_target(f);
	add_entry(f, &entry);
	entry.tick++;
	assert_int_equal(
		bc_segment_target_add(f->target, &entry, 1, &f->source, &f->source.moment, err), 0);
	assert_non_null(strstr(err, "2^63"));
	assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
	assert_int_equal(read_out(f).records, 1);
}

TEST_F(header_is_that_of_the_source_plus_the_origin)
{
	struct small_segment *s = malloc(sizeof(*s));

	small_make(s, &f->dir, 0, 0);
	struct command_run run = command_runf(
		"cut --records 3-12 %s/%s -o %s", f->dir.path, s->name, f->path);
	assert_int_equal(run.code, BC_EXIT_OK);
	struct found found = read_out(f);
	assert_int_equal(found.records, 10);
	assert_string_equal(found.header.label, "boot");
	assert_string_equal(found.header.host, "lab");
	assert_int_equal(found.header.clock_hz, 66000000);
	assert_string_equal(found.header.metadata,
		"{\"who\":\"me\",\"n\":[1,2],\"cut_from\":\"" SMALL_RECORDING
		"\",\"cut\":\"records=3-12\"}");
	assert_string_not_equal(found.header.recording, SMALL_RECORDING);
	assert_true(strlen(found.header.recording) == strlen(SMALL_RECORDING "-boot"));
	command_run_free(&run);
	free(s->bytes);
	free(s);
}

TEST_F(metadata_that_does_not_fit_is_dropped_and_reported)
{
	struct bc_entry entry = read_at(1, 0);
	char *metadata = f->source.header.metadata;

	f->source.has_header = true;
	strcpy(f->source.header.recording, SMALL_RECORDING);
	memset(metadata, 'x', BC_METADATA_MAX - 1);
	memcpy(metadata, "{\"k\":\"", 6);
	memcpy(metadata + BC_METADATA_MAX - 3, "\"}", 3);
	open_target(f);
	add_entry(f, &entry);
	assert_int_equal(bc_segment_target_seal(f->target, &f->source), BC_EXIT_OK);
	assert_string_equal(
		read_out(f).header.metadata, "{\"converted_from\":\"" SMALL_RECORDING "\"}");
	fflush(f->console.err);
	assert_non_null(strstr(f->err, "metadata of the source dropped"));
}

TEST_F(large_record_numbers_select_correctly)
{
	struct small_segment *s = malloc(sizeof(*s));
	const uint64_t base = UINT64_C(1) << 53;

	small_make(s, &f->dir, 7, base);
	struct command_run run = command_runf("cut --records %" PRIu64 "-%" PRIu64 " %s/%s -o %s",
		base + 15, base + 30, f->dir.path, s->name, f->path);
	assert_int_equal(run.code, BC_EXIT_OK);
	assert_int_equal(read_out(f).records, 16);
	command_run_free(&run);
	free(s->bytes);
	free(s);
}
