/* Runs a source on its own loop, with a sink that records everything. The sink can refuse data,
 * stop or close, at any point that the interface allows. */
#ifndef BC_TESTS_SUPPORT_SOURCE_RUN_H
#define BC_TESTS_SUPPORT_SOURCE_RUN_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "capture/source/source.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

enum source_act { ACT_NONE, ACT_STOP, ACT_CLOSE };

#define NEVER UINT32_MAX

struct source_run {
	uv_loop_t loop;
	uv_idle_t again; /* resumes, stops or closes on the loop's next turn */
	struct bc_source *source;
	int free_fd; /* the first free descriptor before the run */

	/* How the sink behaves. */
	unsigned refusals;   /* of each piece before it is consumed */
	enum source_act act; /* what it does ... */
	uint32_t act_at;     /* ... after this many pieces; 0: at the start */
	bool acts_in_call;   /* in the source's call instead of on the next turn */
	bool closes_in_end;  /* closes in sink.end() */

	/* Called for each consumed piece; may be NULL. */
	void (*on_piece)(void *context, const struct bc_source_data *data);
	void *context;

	/* What arrived. */
	uint8_t *bytes; /* concatenated: bytes of plain formats, records of chunks */
	size_t n;
	size_t size;
	enum bc_format format;
	uint32_t pieces;
	uint32_t chunks;
	uint32_t damages;
	uint64_t missing;
	char damage[256]; /* the latest */
	unsigned ends;
	int status;
	char what[256];
	bool is_closed; /* nothing may arrive after this */

	/* The refused piece. */
	unsigned refused;
	struct bc_source_data held;
};

static inline void source_run_act(struct source_run *run)
{
	enum source_act act = run->act;

	run->act = ACT_NONE;
	if (act == ACT_STOP) {
		bc_source_stop(run->source);
	} else if (act == ACT_CLOSE) {
		run->is_closed = true;
		bc_source_close(run->source);
		run->source = NULL;
	}
}

static inline void source_run_next_turn(uv_idle_t *idle)
{
	struct source_run *run = idle->data;

	uv_idle_stop(idle);
	if (run->is_closed)
		return;
	if (run->act != ACT_NONE && run->pieces >= run->act_at)
		source_run_act(run);
	if (!run->is_closed && run->refused != 0)
		bc_source_resume(run->source);
}

static inline void source_run_append(struct source_run *run, const void *bytes, size_t n)
{
	if (run->n + n > run->size) {
		run->size = 2 * (run->n + n);
		run->bytes = realloc(run->bytes, run->size);
		assert_non_null(run->bytes);
	}
	if (n != 0)
		memcpy(run->bytes + run->n, bytes, n);
	run->n += n;
}

static inline bool source_run_data(void *context, const struct bc_source_data *data)
{
	struct source_run *run = context;

	assert_false(run->is_closed);
	assert_int_equal(run->ends, 0);
	if (run->refused != 0) { /* the same piece again */
		assert_ptr_equal(data->bytes, run->held.bytes);
		assert_int_equal(data->count, run->held.count);
		assert_ptr_equal(data->chunk, run->held.chunk);
		assert_ptr_equal(data->missing, run->held.missing);
	}
	if (run->refused < run->refusals) {
		run->refused++;
		run->held = *data;
		uv_idle_start(&run->again, source_run_next_turn);
		return false;
	}
	run->refused = 0;
	run->pieces++;
	run->format = data->format;
	run->missing += data->missing != NULL ? data->missing->place.records : 0;
	if (run->on_piece != NULL)
		run->on_piece(run->context, data);
	assert_null(data->broken);
	if (data->format == BC_FORMAT_SEGMENT) {
		assert_non_null(data->chunk);
		run->chunks++;
		source_run_append(run, data->chunk->records,
			(size_t)data->chunk->info.records * BC_RECORD_BYTES);
	} else {
		assert_true(data->count > 0);
		source_run_append(run, data->bytes, data->count);
	}
	if (run->act != ACT_NONE && run->pieces == run->act_at) {
		if (run->acts_in_call)
			source_run_act(run);
		else
			uv_idle_start(&run->again, source_run_next_turn);
	}
	return true;
}

static inline void source_run_damage(void *context, const char *what)
{
	struct source_run *run = context;

	assert_false(run->is_closed);
	assert_int_equal(run->ends, 0);
	run->damages++;
	snprintf(run->damage, sizeof(run->damage), "%s", what);
}

static inline void source_run_end(void *context, int status, const char *what)
{
	struct source_run *run = context;

	assert_false(run->is_closed);
	run->ends++;
	run->status = status;
	snprintf(run->what, sizeof(run->what), "%s", what);
	if (run->closes_in_end) {
		run->act = ACT_CLOSE;
		source_run_act(run);
	}
}

static inline void source_run_init(struct source_run *run)
{
	memset(run, 0, sizeof(*run));
	run->free_fd = first_free_fd();
	run->act_at = NEVER;
	assert_int_equal(uv_loop_init(&run->loop), 0);
	assert_int_equal(uv_idle_init(&run->loop, &run->again), 0);
	run->again.data = run;
}

/* Starts run->source and runs it to its end. */
static inline void source_run_all(struct source_run *run)
{
	struct bc_source_sink sink = {
		.context = run,
		.data = source_run_data,
		.damage = source_run_damage,
		.end = source_run_end,
	};

	assert_int_equal(bc_source_start(run->source, &sink), 0);
	if (run->act != ACT_NONE && run->act_at == 0)
		source_run_act(run);
	bool is_alive = true;
	while (run->ends == 0 && !run->is_closed) {
		assert_true(is_alive); /* the loop must not run dry before the end */
		is_alive = uv_run(&run->loop, UV_RUN_ONCE) != 0;
	}
}

/* Closes everything. Checks that the loop is then empty and that no descriptor leaked. */
static inline void source_run_close(struct source_run *run)
{
	if (!run->is_closed) {
		/* Nothing may arrive after the end or before the start. */
		if (run->ends != 0)
			bc_source_resume(run->source);
		bc_source_stop(run->source);
		uv_run(&run->loop, UV_RUN_NOWAIT);
		assert_true(run->ends <= 1);
		run->is_closed = true;
		bc_source_close(run->source);
	}
	uv_close((uv_handle_t *)&run->again, NULL);
	uv_run(&run->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&run->loop), 0);
	assert_int_equal(first_free_fd(), run->free_fd);
	free(run->bytes);
}

#endif
