/* Recordings that triggers and limits start and end, at every record of every batch, against a
 * model that applies the settings record by record. The recorder, session, channel and writer are
 * the daemon's own; the source is scripted. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/config/config_keys.h"
#include "daemon/recorder/recorder.h"
#include "daemon/store/catalogue_listing.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/dice.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define RECORDS_MAX    200000u
#define RECORDINGS_MAX 4096u
#define MEMREAD        0xF0

/* The actions that a record can trigger. */
enum { NOTHING, START, STOP, TOGGLE, MARK, SNAPSHOT, ACTIONS };

/* Those of the own triggers of a recording that a request starts. */
enum { OWN_STOP = ACTIONS, OWN_MARK };

/* A scripted stream: record n has address n, and its processor is the action it triggers. */
struct stream {
	uint32_t count;
	uint8_t *actions; /* of each record */
	uint8_t *bytes;
	uint64_t *ticks;
	bool is_requested; /* a request starts a recording at record 1, with own triggers */
};

struct script {
	struct bc_source source;
	uv_idle_t idle;
	struct dice dice;
	const struct stream *stream;
	struct bc_recorder *recorder;
	uint32_t at;
	uint32_t batch_max; /* records per piece */
	bool is_over;
};

static void set_own(struct bc_trigger *trigger, const char *name, const char *action, unsigned proc)
{
	char when[16];
	char err[200];

	snprintf(when, sizeof(when), "proc=%u", proc);
	assert_true(bc_trigger_init(trigger, name, err, sizeof(err)));
	assert_true(bc_trigger_set(trigger, "when", when, err, sizeof(err)));
	assert_true(bc_trigger_set(trigger, "action", action, err, sizeof(err)));
	trigger->is_requested = true;
}

static void request_recording(struct bc_recorder *recorder)
{
	struct bc_trigger own[2];
	struct bc_start start = {.triggers = own, .triggers_count = 2};
	char err[BC_REFUSAL_MAX];

	set_own(&own[0], "own-stop", "stop", OWN_STOP);
	set_own(&own[1], "own-mark", "mark", OWN_MARK);
	assert_int_equal(bc_recorder_start(recorder, &start, err), BC_GRANTED);
}

static void on_idle(uv_idle_t *idle)
{
	struct script *s = container_of(idle, struct script, idle);
	struct bc_counts *counts = bc_recorder_counts(s->recorder);
	uint32_t n = 1 + dice_below(&s->dice, s->batch_max);
	uint32_t left = s->stream->count - s->at;

	assert_true(bc_counts_add_up(counts));
	if (s->stream->is_requested && s->at == 1)
		request_recording(s->recorder);
	if (left == 0) {
		uv_idle_stop(idle);
		bc_recorder_end(s->recorder);
		return;
	}
	n = n < left ? n : left;
	n = s->stream->is_requested && s->at == 0 ? 1 : n;
	const struct bc_source_data data = {
		.format = BC_FORMAT_BYU,
		.bytes = s->stream->bytes + (size_t)s->at * BC_RECORD_BYTES,
		.count = (size_t)n * BC_RECORD_BYTES,
	};
	/* A refused piece is offered again in the next iteration. */
	if (s->source.sink.data(s->source.sink.context, &data))
		s->at += n;
	else
		fail_msg("the buffer never fills");
	assert_true(bc_counts_add_up(counts));
}

static int script_start(struct bc_source *source)
{
	return uv_idle_start(&container_of(source, struct script, source)->idle, on_idle);
}

static void script_resume(struct bc_source *source)
{
	(void)source;
}

static void script_stop(struct bc_source *source)
{
	if (!container_of(source, struct script, source)->is_over)
		source->sink.end(source->sink.context, 0, "");
	container_of(source, struct script, source)->is_over = true;
}

static void script_close(struct bc_source *source)
{
	uv_close((uv_handle_t *)&container_of(source, struct script, source)->idle, NULL);
}

static const struct bc_source_ops script_ops = {
	.start = script_start,
	.resume = script_resume,
	.stop = script_stop,
	.close = script_close,
};

/* An expected or actual recording: records first to end - 1 of the stream, and which of them have
 * events before them. */
struct expected {
	uint32_t first;
	uint32_t end;
	uint32_t events;
	uint64_t sum; /* of the records that have events */
};

struct expected_list {
	uint32_t count;
	struct expected of[RECORDINGS_MAX];
};

/* The settings of a round. */
struct rules {
	bool is_flight;
	uint32_t limit; /* records per recording; 0: none */
	uint32_t start_pre;
	uint32_t start_post;
	uint32_t stop_post;
	uint32_t snapshot_pre; /* UINT32_MAX: all */
};

static bool has_event(const struct stream *stream, uint32_t n)
{
	return stream->actions[n] == MARK;
}

/* Adds an expected recording that starts at `first`. */
static struct expected *add_expected(struct expected_list *list, const struct stream *stream,
	const struct rules *rules, uint32_t first, uint32_t at)
{
	struct expected *e = &list->of[list->count++];

	assert_true(list->count < RECORDINGS_MAX);
	*e = (struct expected){.first = first, .end = first};
	for (uint32_t n = first; n < at && rules->is_flight; n++) {
		e->end = n + 1;
		if (has_event(stream, n)) {
			e->events++;
			e->sum += n;
		}
	}
	return e;
}

static uint32_t first_held(uint32_t free, uint32_t at, uint32_t pre)
{
	return at - free > pre ? at - pre : free;
}

/* Computes the expected recordings, record by record. */
static void compute_expected(
	struct expected_list *list, const struct stream *stream, const struct rules *rules)
{
	struct expected *now = NULL;
	uint64_t left = 0;
	uint32_t free = 0; /* the first record not recorded yet */

	list->count = 0;
	for (uint32_t n = 0; n < stream->count; n++) {
		uint8_t action = stream->actions[n];
		bool ends = false;
		if (stream->is_requested && n == 1) {
			now = add_expected(list, stream, rules, 1, 1);
			left = UINT64_MAX;
		}
		if (now != NULL && left == 0) {
			free = n;
			now = NULL;
		}
		bool is_own = stream->is_requested && now == list->of;
		bool is_start = now == NULL && (action == START || action == TOGGLE);
		bool is_snapshot = now == NULL && rules->is_flight && action == SNAPSHOT;
		bool is_stop = now != NULL && (action == STOP || action == TOGGLE ||
						      (is_own && action == OWN_STOP));
		bool is_mark = action == MARK || (is_own && action == OWN_MARK);
		if (is_start || is_snapshot) {
			uint32_t pre = is_snapshot       ? rules->snapshot_pre
				       : action == START ? rules->start_pre
							 : 0;
			pre = rules->is_flight ? pre : 0;
			now = add_expected(list, stream, rules, first_held(free, n, pre), n);
			left = rules->limit != 0 ? rules->limit : UINT64_MAX;
			left -= n -
				now->first; /* no limit is below the flight recorder's contents */
			ends = is_snapshot;
			if (action == START && rules->start_post != 0 &&
				left > 1 + (uint64_t)rules->start_post)
				left = 1 + (uint64_t)rules->start_post;
		} else if (is_stop) {
			if (action == STOP && rules->stop_post != 0)
				left = left < 1 + (uint64_t)rules->stop_post
					       ? left
					       : 1 + (uint64_t)rules->stop_post;
			else
				ends = true;
		}
		if (now == NULL)
			continue;
		if (is_start || is_snapshot || is_stop || is_mark) {
			now->events++;
			now->sum += n;
		}
		now->end = n + 1;
		left--;
		if (ends) {
			free = n + 1;
			now = NULL;
		}
	}
}

/* Reads the actual recordings from the files. */
static void check_chunk(
	struct expected *e, const struct stream *stream, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint32_t at = e->end;

	for (uint32_t i = 0; i < info->records; i++, at++) {
		const uint8_t *got = chunk->records + (size_t)i * BC_RECORD_BYTES;
		const uint8_t *sent = stream->bytes + (size_t)at * BC_RECORD_BYTES;
		/* The stamper keeps the time of a first record that is already in BYU format. */
		bool has_delta = at != e->first || (stream->is_requested && at == 1);
		assert_true(at < stream->count);
		assert_memory_equal(got, sent, 8);
		assert_int_equal(bc_le32(got + 8), has_delta ? bc_le32(sent + 8) : BC_TIME_NONE);
	}
	if (info->records != 0) {
		assert_int_equal(info->first_tick, stream->ticks[e->end]);
		assert_int_equal(info->last_tick, stream->ticks[at - 1]);
	}
	for (uint32_t i = 0; i < info->events; i++) {
		if (chunk->events[i].kind == BC_EVENT_ANCHOR ||
			chunk->events[i].kind == BC_EVENT_END)
			continue;
		assert_true(chunk->events[i].kind == BC_EVENT_MARK ||
			    chunk->events[i].kind == BC_EVENT_TRIGGER);
		e->events++;
		e->sum += e->end + chunk->events[i].position;
	}
	e->end = at;
}

static void read_recording(
	struct expected *e, const struct stream *stream, struct temp_dir *dir, const char *name)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC);
	bool is_begun = false;
	int found;

	assert_non_null(chunk);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	*e = (struct expected){.first = 0};
	while ((found = bc_segment_read(reader, chunk)) > BC_FOUND_END) {
		assert_int_not_equal(found, BC_FOUND_DAMAGE);
		if (found != BC_FOUND_CHUNK)
			continue;
		if (!is_begun && chunk->info.records != 0) {
			e->first = e->end = bc_le32(chunk->records);
			is_begun = true;
		}
		check_chunk(e, stream, chunk);
	}
	bc_segment_reader_close(reader);
	close(fd);
	free(chunk);
}

static int compare_expected(const void *a, const void *b)
{
	const struct expected *one = a;
	const struct expected *two = b;

	return (one->first > two->first) - (one->first < two->first);
}

static void read_all(struct expected_list *list, const struct stream *stream, struct temp_dir *dir)
{
	char *names[TEMP_NAMES];
	size_t count = temp_list(dir, "", ".byu.lz4", names);

	list->count = 0;
	for (size_t i = 0; i < count; i++) {
		assert_true(list->count < RECORDINGS_MAX);
		read_recording(&list->of[list->count++], stream, dir, names[i]);
		free(names[i]);
	}
	qsort(list->of, list->count, sizeof(list->of[0]), compare_expected);
}

/* The recorder's owner */

struct owner {
	uv_loop_t loop;
	uv_idle_t close;
	struct bc_recorder *recorder;
	struct bc_counts counts;
	enum bc_exit code;
};

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

static void on_close(uv_idle_t *idle)
{
	struct owner *o = idle->data;

	o->code = bc_recorder_exit(o->recorder);
	o->counts = *bc_recorder_counts(o->recorder);
	bc_recorder_close(o->recorder);
	uv_close((uv_handle_t *)idle, NULL);
}

static void on_over(void *context)
{
	struct owner *o = context;

	uv_idle_start(&o->close, on_close);
}

static void set(struct bc_config *config, const char *section, const char *key, const char *value)
{
	char err[200];

	if (!bc_config_set(config, section, key, value, err, sizeof(err)))
		fail_msg("%s", err);
}

static void set_length(struct bc_time_or_size *length, uint32_t records)
{
	*length = (struct bc_time_or_size){
		.unit = records != 0 ? BC_TIME_OR_SIZE_BYTES : BC_TIME_OR_SIZE_NONE,
		.value = (uint64_t)records * BC_RECORD_BYTES,
	};
}

static void configure(struct bc_config *c, const struct rules *rules)
{
	static const struct {
		const char *section, *action, *when;
		uint32_t number;
	} triggers[] = {
		{"trigger start", "start", "proc=1", START},
		{"trigger stop", "stop", "proc=2", STOP},
		{"trigger toggle", "toggle", "proc=3", TOGGLE},
		{"trigger mark", "mark", "proc=4", MARK},
		{"trigger snapshot", "snapshot", "proc=5", SNAPSHOT},
	};

	bc_config_default(c);
	set(c, "recording", "record", rules->is_flight ? "flight" : "on-demand");
	set(c, "recording", "flight_time", "0");
	set(c, "pipeline", "workers", "1");
	set(c, "pipeline", "buffer", "64MiB");
	c->stop.records = rules->limit;
	for (size_t i = 0; i < COUNT_OF(triggers); i++) {
		if (triggers[i].number == SNAPSHOT && !rules->is_flight)
			continue;
		set(c, triggers[i].section, "when", triggers[i].when);
		set(c, triggers[i].section, "action", triggers[i].action);
	}
	set_length(&c->triggers[0].pre, rules->is_flight ? rules->start_pre : 0);
	set_length(&c->triggers[0].post, rules->start_post);
	set_length(&c->triggers[1].post, rules->stop_post);
	if (rules->is_flight && rules->snapshot_pre != UINT32_MAX)
		set_length(&c->triggers[4].pre, rules->snapshot_pre);
}

static void run_recorder(
	const struct stream *stream, const struct rules *rules, uint32_t batch_max, uint64_t seed)
{
	struct temp_dir dir;
	struct owner o = {.recorder = NULL};
	struct bc_config *config = calloc(1, sizeof(*config));
	struct expected_list *want = malloc(sizeof(*want));
	struct expected_list *got = malloc(sizeof(*got));
	struct script script = {
		.source = {.ops = &script_ops, .kind = "sim", .name = "a script", .is_live = true},
		.dice.state = seed,
		.stream = stream,
		.batch_max = batch_max,
	};
	const char *what;

	bc_log_set_level(BC_LOG_ERROR);
	assert_true(config != NULL && want != NULL && got != NULL);
	configure(config, rules);
	temp_dir_make(&dir);
	snprintf(config->dir, sizeof(config->dir), "%s", dir.path);
	assert_int_equal(uv_loop_init(&o.loop), 0);
	assert_int_equal(uv_idle_init(&o.loop, &script.idle), 0);
	assert_int_equal(uv_idle_init(&o.loop, &o.close), 0);
	o.close.data = &o;
	struct bc_catalogue *catalogue;
	assert_int_equal(bc_catalogue_open(&catalogue, dir.fd), 0);
	assert_int_equal(bc_catalogue_refresh(catalogue), 0);
	struct bc_log_limits limits = {.count = 0};
	const struct bc_recorder_options options = {
		.loop = &o.loop,
		.config = config,
		.dir_fd = dir.fd,
		.catalogue = catalogue,
		.limits = &limits,
		.before = "",
		.context = &o,
		.on_event = on_event,
		.has_readers = has_readers,
		.on_sealed = on_sealed,
		.on_over = on_over,
	};
	assert_int_equal(bc_recorder_open(&o.recorder, &options, &script.source, &what), 0);
	script.recorder = o.recorder;
	uv_run(&o.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&o.loop), 0);
	bc_catalogue_stop(catalogue);

	compute_expected(want, stream, rules);
	read_all(got, stream, &dir);
	uint64_t records = 0;
	for (uint32_t i = 0; i < want->count && i < got->count; i++) {
		assert_int_equal(got->of[i].first, want->of[i].first);
		assert_int_equal(got->of[i].end, want->of[i].end);
		assert_int_equal(got->of[i].events, want->of[i].events);
		assert_int_equal(got->of[i].sum, want->of[i].sum);
		records += got->of[i].end - got->of[i].first;
	}
	assert_int_equal(got->count, want->count);
	assert_int_equal(o.counts.received, stream->count);
	assert_int_equal(o.counts.written, records);
	assert_int_equal(o.code, BC_EXIT_OK);
	temp_dir_remove(&dir);
	free(config);
	free(want);
	free(got);
}

static struct stream make_stream(uint32_t count)
{
	struct stream s = {
		.count = count,
		.actions = calloc(count, 1),
		.bytes = malloc((size_t)count * BC_RECORD_BYTES),
		.ticks = malloc(count * sizeof(uint64_t)),
	};
	uint64_t tick = 0;

	assert_true(s.actions != NULL && s.bytes != NULL && s.ticks != NULL);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t time = 1 + n % 7;
		tick += time;
		s.ticks[n] = tick;
		bc_write_le32(s.bytes + (size_t)n * BC_RECORD_BYTES, n);
		bc_write_le32(s.bytes + (size_t)n * BC_RECORD_BYTES + 4, MEMREAD | 4u << 8);
		bc_write_le32(s.bytes + (size_t)n * BC_RECORD_BYTES + 8, time);
	}
	return s;
}

static void set_action(struct stream *s, uint32_t n, uint8_t action)
{
	s->actions[n] = action;
	s->bytes[(size_t)n * BC_RECORD_BYTES + 7] = action;
}

static void free_stream(struct stream *s)
{
	free(s->actions);
	free(s->bytes);
	free(s->ticks);
}

TEST(recordings_start_and_end_at_every_record_of_a_batch)
{
	for (uint32_t first = 0; first < 12; first++) {
		const struct test_edges edges = {2, {first, 12}};
		for (uint32_t last = first; last < 12;
			last = (uint32_t)test_next(last, 5, &edges)) {
			struct stream s = make_stream(14);
			set_action(&s, last, first == last ? TOGGLE : STOP);
			set_action(&s, first, START);
			for (uint32_t flight = 0; flight < 2; flight++) {
				const struct rules rules = {
					.is_flight = flight != 0, .start_pre = 3};
				run_recorder(&s, &rules, 14, 1 + first);
			}
			free_stream(&s);
		}
	}
}

TEST(limits_and_lengths_hold_within_a_batch)
{
	struct dice dice = {.state = 77};

	for (unsigned round = 0; round < 200; round += test_stride(15)) {
		uint32_t count = 200 + dice_below(&dice, 400);
		struct stream s = make_stream(count);
		const struct rules rules = {
			.is_flight = round % 2 != 0,
			.limit = round % 4 < 2 ? 0 : 20 + dice_below(&dice, 60),
			.start_pre = dice_below(&dice, 20),
			.start_post = dice_below(&dice, 3) != 0 ? dice_below(&dice, 50) : 0,
			.stop_post = dice_below(&dice, 3) != 0 ? dice_below(&dice, 20) : 0,
			.snapshot_pre = 1 + dice_below(&dice, 19), /* 0 would be all */
		};
		for (uint32_t n = 0; n < 20; n++)
			set_action(
				&s, dice_below(&dice, count), (uint8_t)dice_below(&dice, ACTIONS));
		run_recorder(
			&s, &rules, 1 + dice_below(&dice, round % 3 == 0 ? 8 : 400), 1 + round);
		free_stream(&s);
	}
}

TEST(recordings_start_and_end_around_chunk_boundaries)
{
	for (int at = -2; at <= 2; at++)
		for (int flight = 0; flight < 2; flight++) {
			struct stream s = make_stream(RECORDS_MAX);
			const struct rules rules = {
				.is_flight = flight != 0, .snapshot_pre = UINT32_MAX};
			uint32_t border = (uint32_t)((int)BC_CHUNK_RECORDS + at);
			set_action(&s, flight != 0 ? border : 0, flight != 0 ? SNAPSHOT : START);
			set_action(&s, border + 1, flight != 0 ? START : MARK);
			set_action(&s, border + 2, STOP);
			set_action(&s, border + 3, START);
			set_action(&s, border + 3 + BC_CHUNK_RECORDS, STOP);
			run_recorder(&s, &rules, 2048, 5);
			free_stream(&s);
		}
}

TEST(triggers_of_a_recording_do_not_act_in_the_next)
{
	/* In one piece, and in many: the search and the writer may come to the end in between. */
	for (uint32_t batch_max = 1; batch_max < 100; batch_max += 49)
		for (int flight = 0; flight < 2; flight++) {
			struct stream s = make_stream(100);
			s.is_requested = true;
			const struct rules rules = {
				.is_flight = flight != 0,
				.start_pre = 5,
			};
			set_action(&s, 10, OWN_MARK);
			set_action(&s, 20, OWN_STOP);
			set_action(&s, 25, OWN_MARK);
			set_action(&s, 30, START);
			set_action(&s, 30 + 1, OWN_STOP);
			set_action(&s, 40, OWN_MARK);
			set_action(&s, 50, STOP);
			run_recorder(&s, &rules, batch_max, 9);
			free_stream(&s);
		}
}
