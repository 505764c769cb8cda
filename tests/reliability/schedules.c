/* Runs the recorder under many schedules of its threads: schedules FIRST COUNT [FAULTS] [-v].
 *
 * Each schedule has a seed, from FIRST on. It opens the daemon's own recorder, with its pool,
 * queues, encoder workers and writer, on a scripted source; starts, rotates and stops recordings
 * at random moments; lets the disk fill up, fail and hang (FAULTS: none, slow, full,
 * all); and stops, with or without giving up. The seed decides every turn of every thread
 * (tests/support/fibers.h).
 *
 * Record n of the source has address n. After each schedule, every sample that was sent while a
 * recording was in progress must be in its files, or in a gap at its position with the exact
 * count. The counts must add up at every moment, every recording and thread must end, and no memory
 * may be lost. The first schedule that breaks a rule is reported, with its seed, and ends the
 * program; -v prints its steps. */
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>

#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/config/config_keys.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/recorder/recorder.h"
#include "daemon/store/catalogue_listing.h"
#include "daemon/store/last_write.h"
#include "formats/base/bytes.h"
#include "formats/segment/segment_name.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/fake_disk.h"
#include "tests/support/fake_loop.h"
#include "tests/support/fibers.h"

#define BATCH_MAX      300u /* records per piece */
#define RECORDINGS_MAX 64u
#define FILES_MAX      1024u
#define MEMREAD        0xF0

/* Values of `to`. */
#define UNKNOWN       UINT32_MAX
#define UNTIL_STOPPED (UINT32_MAX - 1)

enum faults { FAULTS_NONE, FAULTS_SLOW, FAULTS_FULL, FAULTS_ALL };

/* A recording that was started. */
struct expected {
	char id[BC_RECORDING_ID_MAX];
	bool knows_start; /* false: it starts with an unknown part of the flight recorder */
	uint32_t from;    /* the first record that was sent to it, and the one after the last */
	uint32_t to;
	unsigned awaited; /* calls of its done() that must follow */
};

struct world {
	enum faults faults;
	char path[64];
	struct bc_config *config;
	struct bc_catalogue *catalogue;
	struct bc_recorder *recorder;
	struct bc_source source;
	uv_timer_t send;   /* the source */
	uv_timer_t act;    /* the user */
	uv_timer_t second; /* the daemon's timer while stopping */
	uv_timer_t close;
	unsigned open_handles;
	uint32_t sent; /* records */
	bool is_refused;
	uint32_t refused; /* records in the piece that is offered again */
	unsigned actions; /* left */
	bool is_ending;
	bool is_over;
	unsigned stop_seconds;
	uint64_t stop_written;
	bool is_given_up;
	uint64_t failed_before;  /* calls on the disk that had failed then */
	struct bc_counts counts; /* at the end */
	enum bc_exit code;
	unsigned recordings;
	struct expected of[RECORDINGS_MAX];
	bool is_deleting; /* the rules may delete files */
};

static struct world w;
static uint64_t unrecorded; /* recordings whose loss the disk did not accept */

static void check_counts(void)
{
	const struct bc_counts *c = bc_recorder_counts(w.recorder);

	fibers_check(bc_counts_add_up(c));
	fibers_check(c->durable <= c->written);
}

/* Memory: counts the allocations that are not freed. */

static int64_t allocated;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

void *malloc(size_t bytes)
{
	void *block = __libc_malloc(bytes);

	allocated += block != NULL;
	return block;
}

void *calloc(size_t count, size_t bytes)
{
	void *block = __libc_calloc(count, bytes);

	allocated += block != NULL;
	return block;
}

void *realloc(void *old, size_t bytes)
{
	void *block = __libc_realloc(old, bytes);

	allocated += block != NULL && old == NULL;
	return block;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	void *block = __libc_memalign(alignment, bytes);

	allocated += block != NULL;
	return block;
}

void free(void *block)
{
	allocated -= block != NULL;
	__libc_free(block);
}

/* The source */

static void on_send(uv_timer_t *timer)
{
	static uint8_t bytes[BATCH_MAX * BC_RECORD_BYTES];
	uint32_t n = w.is_refused ? w.refused : 1 + dice_below(&fibers.dice, BATCH_MAX);
	static const unsigned pauses_ms[] = {0, 0, 0, 1, 2, 10};

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *record = bytes + (size_t)i * BC_RECORD_BYTES;
		bc_write_le32(record, w.sent + i);
		bc_write_le32(record + 4, MEMREAD | 4u << 8);
		bc_write_le32(record + 8, 1 + (w.sent + i) % 7);
	}
	const struct bc_source_data data = {
		.format = BC_FORMAT_BYU,
		.bytes = bytes,
		.count = (size_t)n * BC_RECORD_BYTES,
	};
	check_counts();
	w.is_refused = !w.source.sink.data(w.source.sink.context, &data);
	w.refused = n;
	if (w.is_refused) {
		fibers_check(!w.source.is_live);
		return; /* until resumed */
	}
	w.sent += n;
	check_counts();
	if (w.source.sink.end != NULL)
		uv_timer_start(timer, on_send, pauses_ms[dice_below(&fibers.dice, 6)], 0);
}

static int source_start(struct bc_source *source)
{
	(void)source;
	return uv_timer_start(&w.send, on_send, 0, 0);
}

static void source_resume(struct bc_source *source)
{
	(void)source;
	uv_timer_start(&w.send, on_send, 0, 0);
}

static void source_stop(struct bc_source *source)
{
	void (*end)(void *, int, const char *) = source->sink.end;

	source->sink.end = NULL;
	uv_timer_stop(&w.send);
	end(source->sink.context, 0, "");
}

static void on_closed(uv_handle_t *handle)
{
	(void)handle;
	w.open_handles--;
}

static void source_close(struct bc_source *source)
{
	(void)source;
	uv_close((uv_handle_t *)&w.send, on_closed);
}

static const struct bc_source_ops source_ops = {
	.start = source_start,
	.resume = source_resume,
	.stop = source_stop,
	.close = source_close,
};

/* Requests */

static struct expected *find(const char *id)
{
	for (unsigned i = 0; i < w.recordings; i++)
		if (strcmp(w.of[i].id, id) == 0)
			return &w.of[i];
	return NULL;
}

static void on_done(void *context, const struct bc_recording *ended)
{
	struct expected *e = context;

	(void)ended;
	fibers_check(e->awaited != 0);
	e->awaited--;
}

/* The recording in progress, or NULL. */
static struct expected *current(void)
{
	struct bc_status status = bc_recorder_status(w.recorder);

	return status.recording != NULL ? find(status.recording->header.recording) : NULL;
}

static void note_started(bool knows_start)
{
	struct bc_status status = bc_recorder_status(w.recorder);
	struct expected *e = &w.of[w.recordings++];

	fibers_check(w.recordings < RECORDINGS_MAX && status.recording != NULL);
	/* Part of a piece that was refused may have been consumed. */
	knows_start = knows_start && !w.is_refused;
	*e = (struct expected){.knows_start = knows_start, .from = w.sent, .to = UNTIL_STOPPED};
	memcpy(e->id, status.recording->header.recording, sizeof(e->id));
}

static void note_stopped(struct expected *e)
{
	if (e != NULL && e->to == UNTIL_STOPPED)
		e->to = w.is_refused ? UNKNOWN : w.sent;
}

static void start(void)
{
	struct bc_start what = {.label = NULL};
	bool has_pre = w.config->recording.mode == BC_RECORD_FLIGHT && fibers_chance(2);
	char err[BC_REFUSAL_MAX];

	if (w.recordings + 2 >= RECORDINGS_MAX)
		return;
	if (has_pre)
		what.pre = (struct bc_time_or_size){
			.unit = BC_TIME_OR_SIZE_BYTES, .value = dice_below(&fibers.dice, 20000)};
	if (fibers_chance(6))
		what.limits.file_bytes = 1 + dice_below(&fibers.dice, 20000);
	if (bc_recorder_start(w.recorder, &what, err) != BC_GRANTED)
		return;
	note_started(!has_pre);
	if (what.limits.file_bytes != 0)
		w.of[w.recordings - 1].to = UNKNOWN;
}

static void stop(void)
{
	struct expected *e = current();
	char err[BC_REFUSAL_MAX];

	if (e == NULL)
		return;
	bool is_awaited = fibers_chance(2);
	e->awaited += is_awaited;
	if (bc_recorder_stop(w.recorder, err, e, is_awaited ? on_done : NULL) != BC_GRANTED) {
		e->awaited -= is_awaited;
		return;
	}
	note_stopped(e);
}

/* Whether a loss could be recorded if the disk became full now. */
static bool has_reserve(void)
{
	struct stat st;

	return fstatat(disk.dir_fd, BC_RESERVE_NAME, &st, 0) == 0 &&
	       (uint64_t)st.st_size >= BC_RESERVE_BYTES;
}

static void break_disk(void)
{
	static const enum disk_state states[] = {
		[FAULTS_NONE] = DISK_FINE,
		[FAULTS_SLOW] = DISK_SLOW,
		[FAULTS_FULL] = DISK_FULL,
		[FAULTS_ALL] = DISK_FAILING,
	};
	enum faults faults = (enum faults)dice_below(&fibers.dice, w.faults + 1);

	if (fibers_chance(2))
		disk_set(DISK_FINE);
	else if (states[faults] != DISK_FULL || has_reserve())
		disk_set(states[faults]);
}

static void reload(void)
{
	struct bc_config *c = w.config;

	c->flush_ns = 1000000 * (1 + dice_below(&fibers.dice, 20));
	c->sync_ns = 1000000 * (1 + dice_below(&fibers.dice, 200));
	c->rotation.file_bytes = fibers_chance(2) ? 0 : 500 + dice_below(&fibers.dice, 20000);
	c->rotation.duration_ns = fibers_chance(2) ? 0
						   : 1000000 * (1 + dice_below(&fibers.dice, 50));
	if (w.is_deleting)
		c->rotation.files = 1 + dice_below(&fibers.dice, 4);
	bc_recorder_reload(w.recorder);
}

static void status(void)
{
	struct bc_status now = bc_recorder_status(w.recorder);
	char *text = bc_status_write(&now);

	fibers_check(text != NULL);
	free(text);
}

/* The end, as in daemon/main/daemon.c */

static void give_up(void)
{
	if (!w.is_given_up)
		w.failed_before = disk.failed;
	w.is_given_up = true;
	bc_recorder_abandon(w.recorder);
}

static void on_second(uv_timer_t *timer)
{
	const struct bc_counts *counts = bc_recorder_counts(w.recorder);
	uint64_t written = counts->written + counts->durable;

	(void)timer;
	w.stop_seconds = written != w.stop_written ? 0 : w.stop_seconds + 1;
	w.stop_written = written;
	if (w.stop_seconds == 10)
		give_up();
	/* The writer leaves nothing unfinished, except in a call that hangs. */
	fibers_check(w.stop_seconds < 20);
}

static void end(void)
{
	struct expected *e = current();

	note_stopped(e);
	w.is_ending = true;
	w.stop_written = 0;
	uv_timer_start(&w.second, on_second, 1000, 1000);
	bc_recorder_end(w.recorder);
}

static void on_act(uv_timer_t *timer)
{
	check_counts();
	bc_recorder_poll(w.recorder);
	if (w.is_ending) {
		/* A second signal. */
		if (!w.is_over && fibers_chance(40))
			give_up();
	} else if (w.actions-- == 0) {
		end();
	} else {
		char err[BC_REFUSAL_MAX];
		json_t *mark;
		switch (dice_below(&fibers.dice, 11)) {
		case 0:
		case 1:
			start();
			break;
		case 2:
			stop();
			break;
		case 3:
		case 4:
		case 5:
			(void)bc_recorder_rotate(w.recorder, err);
			break;
		case 6:
			if (bc_recorder_mark(w.recorder, "mark", &mark, err) == BC_GRANTED)
				json_decref(mark);
			break;
		case 7:
			(void)bc_recorder_note(w.recorder, "{\"operator\":\"x\"}", err);
			break;
		case 8:
			break_disk();
			break;
		case 9:
			reload();
			break;
		case 10:
			status();
			break;
		}
	}
	check_counts();
	if (!w.is_over)
		uv_timer_start(timer, on_act, dice_below(&fibers.dice, 12), 0);
}

static void on_close(uv_timer_t *timer)
{
	/* Joining a thread that hangs in the disk would block the loop. */
	if (bc_recorder_longest_activity(w.recorder).since_ns != 0) {
		uv_timer_start(timer, on_close, 20, 0);
		return;
	}
	check_counts();
	w.counts = *bc_recorder_counts(w.recorder);
	w.code = bc_recorder_exit(w.recorder);
	bc_recorder_close(w.recorder);
	uv_close((uv_handle_t *)&w.act, on_closed);
	uv_close((uv_handle_t *)&w.second, on_closed);
	uv_close((uv_handle_t *)&w.close, on_closed);
}

static void on_over(void *context)
{
	(void)context;
	fibers_check(!w.is_over);
	w.is_over = true;
	uv_timer_stop(&w.second);
	uv_timer_stop(&w.act);
	uv_timer_start(&w.close, on_close, 0, 0);
}

static void on_event(void *context, const char *name, json_t *members)
{
	(void)context;
	(void)name;
	json_decref(members);
}

static bool has_readers(void *context)
{
	(void)context;
	return true;
}

static void on_sealed(void *context, const struct bc_writer_notice *notice)
{
	(void)context;
	(void)notice;
}

/* What the files must contain */

struct found {
	struct bc_segment_name name;
	char file[256];
};

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;

	return bc_segment_name_compare(&x->name, &y->name);
}

/* A recording's records, read from its files in order. */
struct walk {
	const struct expected *expected;
	bool has_first;
	uint64_t next; /* the address that must follow */
	uint64_t records;
	bool is_inexact; /* a gap of unknown length precedes */
};

static void walk_chunk(struct walk *walk, const struct bc_chunk *chunk)
{
	const struct expected *e = walk->expected;
	uint32_t event = 0;

	for (uint32_t i = 0; i <= chunk->info.records; i++) {
		for (; event < chunk->info.events && chunk->events[event].position == i; event++)
			if (chunk->events[event].kind == BC_EVENT_GAP) {
				walk->next += chunk->events[event].value;
				walk->is_inexact |= !chunk->events[event].exact;
			}
		if (i == chunk->info.records)
			break;
		uint64_t address = bc_le32(chunk->records + (size_t)i * BC_RECORD_BYTES);
		if (!walk->has_first && !e->knows_start)
			walk->next = address;
		walk->has_first = true;
		if (address != walk->next && !(walk->is_inexact && address > walk->next))
			fibers_fail("%s: record %" PRIu64 " follows where %" PRIu64
				    " must: lost without a gap, or twice",
				e->id, address, walk->next);
		walk->next = address + 1;
		walk->is_inexact = false;
	}
	walk->records += chunk->info.records;
}

static void walk_file(struct walk *walk, const char *file)
{
	static struct bc_chunk chunk;
	struct bc_segment_reader *reader;
	int fd = openat(disk.dir_fd, file, O_RDONLY | O_CLOEXEC);
	int found;

	fibers_check(fd >= 0);
	fibers_check(bc_segment_reader_open(&reader,
			     (struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0) == 0);
	while ((found = bc_segment_read(reader, &chunk)) > BC_FOUND_END) {
		if (found == BC_FOUND_DAMAGE && strstr(file, BC_PARTIAL_SUFFIX) == NULL)
			fibers_fail(
				"%s: damaged: %s", file, bc_segment_reader_damage(reader)->what);
		if (found == BC_FOUND_CHUNK)
			walk_chunk(walk, &chunk);
	}
	bc_segment_reader_close(reader);
	close(fd);
}

static unsigned list(struct found *files)
{
	DIR *dir = opendir(w.path);
	unsigned count = 0;

	for (struct dirent *item; (item = readdir(dir)) != NULL;) {
		struct found *f = &files[count];
		snprintf(f->file, sizeof(f->file), "%s", item->d_name);
		count += bc_segment_name_read(&f->name, item->d_name);
		fibers_check(count < FILES_MAX);
	}
	closedir(dir);
	qsort(files, count, sizeof(*files), compare_found);
	return count;
}

/* Returns the number of records in the recording's files. */
static uint64_t check_recording(const struct expected *e, const struct found *files, unsigned count)
{
	struct walk walk = {.expected = e, .next = e->from};
	uint32_t number = 0;

	for (unsigned i = 0; i < count; i++) {
		if (strcmp(files[i].name.recording, e->id) != 0)
			continue;
		if (files[i].name.segment != number) {
			/* The oldest sealed files were deleted, but none that is left open. */
			fibers_check(w.is_deleting && files[i].name.segment > number);
			walk.next = walk.has_first ? walk.next : 0;
			walk.is_inexact = true;
		}
		number = files[i].name.segment + 1;
		walk_file(&walk, files[i].file);
	}
	if (e->to >= UNTIL_STOPPED || w.is_deleting || (!e->knows_start && !walk.has_first))
		return walk.records;
	if (walk.next < e->to && w.is_given_up && disk.failed > w.failed_before) {
		/* The disk has refused even the record of the loss. */
		fibers_check(w.code != BC_EXIT_OK);
		unrecorded++;
		return walk.records;
	}
	if (walk.next != e->to && !walk.is_inexact)
		fibers_fail("%s: ends at %" PRIu64 ", but %" PRIu32 " were sent: %s without a gap",
			e->id, walk.next, e->to, walk.next < e->to ? "lost" : "too many");
	return walk.records;
}

static void check_files(void)
{
	static struct found files[FILES_MAX];
	unsigned count = list(files);
	uint64_t records = 0;

	for (unsigned i = 0; i < w.recordings; i++) {
		fibers_check(w.of[i].awaited == 0);
		records += check_recording(&w.of[i], files, count);
	}
	if (!w.is_deleting && records != w.counts.written)
		fibers_fail("%" PRIu64 " records in the files, %" PRIu64 " written", records,
			w.counts.written);
	fibers_check(records <= w.counts.written);
	for (unsigned i = 0; i < count; i++)
		fibers_check(find(files[i].name.recording) != NULL);
	/* What the flight recorder holds at the end stays in flight. */
	fibers_check(w.counts.in_flight == 0 || w.config->recording.mode == BC_RECORD_FLIGHT);
}

/* A schedule */

static void configure(void)
{
	static const enum bc_record_mode modes[] = {
		BC_RECORD_ALWAYS, BC_RECORD_ON_DEMAND, BC_RECORD_FLIGHT};
	struct bc_config *c = w.config;

	memset(c, 0, sizeof(*c));
	bc_config_default(c);
	snprintf(c->dir, sizeof(c->dir), "%s", w.path);
	c->recording.mode = modes[dice_below(&fibers.dice, 3)];
	c->recording.flight_ns = 0;
	c->workers = 1 + dice_below(&fibers.dice, 4);
	c->buffer_bytes = bc_pipeline_min_bytes(c->workers) +
			  dice_below(&fibers.dice, 4) * sizeof(struct bc_slot);
	c->flush_ns = 1000000 * (1 + dice_below(&fibers.dice, 20));
	c->sync_ns = 1000000 * (1 + dice_below(&fibers.dice, 200));
	w.is_deleting = fibers_chance(4);
	if (w.is_deleting)
		c->rotation.files = 1 + dice_below(&fibers.dice, 4);
}

static void open_all(void)
{
	static uv_loop_t loop;
	static struct bc_log_limits limits;
	const char *what;
	const struct bc_recorder_options options = {
		.loop = &loop,
		.config = w.config,
		.dir_fd = disk.dir_fd,
		.catalogue = w.catalogue,
		.limits = &limits,
		.before = "",
		.on_event = on_event,
		.has_readers = has_readers,
		.on_sealed = on_sealed,
		.on_over = on_over,
	};

	w.source = (struct bc_source){
		.ops = &source_ops,
		.kind = "sim",
		.name = "a script",
		.is_live = !fibers_chance(4),
	};
	w.actions = 5 + dice_below(&fibers.dice, 40);
	w.open_handles = 4;
	uv_timer_init(&loop, &w.send);
	uv_timer_init(&loop, &w.act);
	uv_timer_init(&loop, &w.second);
	uv_timer_init(&loop, &w.close);
	uv_timer_start(&w.act, on_act, 0, 0);
	fibers_check(bc_recorder_open(&w.recorder, &options, &w.source, &what) == 0);
	if (w.config->recording.mode == BC_RECORD_ALWAYS)
		note_started(true);
}

static void empty_dir(void)
{
	DIR *dir = opendir(w.path);

	for (struct dirent *item; (item = readdir(dir)) != NULL;)
		if (item->d_name[0] != '.' || strlen(item->d_name) > 2)
			unlinkat(disk.dir_fd, item->d_name, 0);
	closedir(dir);
}

/* Returns the number of allocations that are not freed. */
static int64_t run_schedule(uint64_t seed)
{
	struct bc_config *config = w.config;
	enum faults faults = w.faults;
	char path[sizeof(w.path)];
	int64_t blocks = allocated;

	memcpy(path, w.path, sizeof(path));
	memset(&w, 0, sizeof(w));
	memcpy(w.path, path, sizeof(path));
	w.config = config;
	w.faults = faults;
	fibers_start(seed);
	fake_loop_start();
	disk_set(DISK_FINE);
	configure();
	/* It is complete, and has no thread: fibers can't wait for one. */
	fibers_check(bc_catalogue_open(&w.catalogue, disk.dir_fd) == 0 &&
		     bc_catalogue_refresh(w.catalogue) == 0);
	open_all();
	fake_loop_run();
	fibers_check(w.open_handles == 0);
	bc_catalogue_stop(w.catalogue);
	fibers_end();
	check_files();
	empty_dir();
	return allocated - blocks;
}

static void on_abort(int number)
{
	signal(number, SIG_DFL);
	fprintf(stderr, "schedule %" PRIu64 ": signal %d\n", fibers.seed, number);
	fibers_print();
	raise(number);
}

static void make_dir(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(w.path, sizeof(w.path), "%.40s/schedules-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm"
		: base != NULL                ? base
					      : "/tmp");
	if (mkdtemp(w.path) == NULL)
		abort();
	disk.dir_fd = open(w.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_dir(void)
{
	fibers.count = 0;
	empty_dir();
	rmdir(w.path);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"none", "slow", "full", "all"};
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	uint64_t steps = 0;

	for (unsigned i = 0; argc > 3 && i < 4; i++)
		w.faults = strcmp(argv[3], names[i]) == 0 ? (enum faults)i : w.faults;
	fibers.is_verbose = argc > 4 && strcmp(argv[4], "-v") == 0;
	/* The pool's memory is used again without a system call. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 64 << 20);
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	signal(SIGBUS, on_abort);
	bc_log_set_level(fibers.is_verbose ? BC_LOG_DEBUG : (enum bc_log_level)0);
	json_object_seed(1);
	w.config = calloc(1, sizeof(*w.config));
	make_dir();
	atexit(remove_dir);
	for (uint64_t i = 0; i < count; i++) {
		/* Libraries allocate some memory once. */
		if (run_schedule(first + i) != 0 && run_schedule(first + i) != 0)
			fibers_fail("allocations are not freed");
		steps += fibers.steps;
	}
	printf("%" PRIu64 " schedules, %" PRIu64 " steps, %" PRIu64 " unrecorded losses\n", count,
		steps, unrecorded);
	return 0;
}
