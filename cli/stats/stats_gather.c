#include "cli/stats/stats_gather.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/host.h"
#include "formats/bus/record.h"

/* ---- A second thread, for part of the work on each batch of a trace.
 *
 *     second_thread_open()
 *     second_thread_start(), second_thread_wait() ...   for each batch
 *     second_thread_close()
 *
 * Without a core or a thread for it, second_thread_start() does the work itself. */

static void *run_thread(void *context)
{
	struct bc_second_thread *s = context;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		while (s->work == NULL && !s->is_over)
			pthread_cond_wait(&s->changed, &s->mutex);
		if (s->work == NULL)
			break;
		pthread_mutex_unlock(&s->mutex);
		s->work(s->context);
		pthread_mutex_lock(&s->mutex);
		s->work = NULL;
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

static void second_thread_open(struct bc_second_thread *s)
{
	*s = (struct bc_second_thread){.is_started = false};
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (bc_cores() > 1)
		s->is_started = pthread_create(&s->thread, NULL, run_thread, s) == 0;
}

static void second_thread_close(struct bc_second_thread *s)
{
	if (s->is_started) {
		pthread_mutex_lock(&s->mutex);
		s->is_over = true;
		pthread_cond_signal(&s->changed);
		pthread_mutex_unlock(&s->mutex);
		pthread_join(s->thread, NULL);
	}
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
}

/* Runs work() in the thread. Wait for its end before starting the next. */
static void second_thread_start(
	struct bc_second_thread *s, void (*work)(void *context), void *context)
{
	if (!s->is_started) {
		work(context);
		return;
	}
	pthread_mutex_lock(&s->mutex);
	s->work = work;
	s->context = context;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static void second_thread_wait(struct bc_second_thread *s)
{
	pthread_mutex_lock(&s->mutex);
	while (s->work != NULL)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

struct bc_stats *bc_stats_new(const struct bc_stats_options *options)
{
	struct bc_stats *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->options = *options;
	bc_interval_stats_init(&s->intervals, options->idle_ticks, options->burst_ticks);
	second_thread_open(&s->second);
	if (bc_footprint_open(&s->footprint, &options->footprint) == 0)
		return s;
	bc_stats_free(s);
	return NULL;
}

void bc_stats_free(struct bc_stats *s)
{
	if (s == NULL)
		return;
	second_thread_close(&s->second);
	bc_entry_counts_free(&s->counts);
	bc_string_counter_free(&s->names);
	bc_footprint_close(&s->footprint);
	free(s);
}

static void set_hz(struct bc_stats *s, uint64_t hz)
{
	if (s->options.clock_hz != 0)
		hz = s->options.clock_hz;
	if (s->intervals.references != 0 && hz != s->clock_hz)
		s->is_hz_mixed = true;
	s->clock_hz = s->is_hz_mixed ? 0 : hz;
}

static void set_unit(struct bc_stats *s, uint8_t unit)
{
	s->is_unit_mixed |= s->intervals.references != 0 && unit != s->unit;
	s->unit = unit;
}

/* Continues the clock from the previous chunk of the recording, also across files; starts a new one
 * for a new recording or epoch. */
static void follow_chunk(struct bc_stats *s, const struct bc_chunk_info *info)
{
	if (!s->has_clock || info->recording_tag != s->tag || info->epoch != s->epoch)
		bc_interval_stats_start(&s->intervals);
	else if (info->first_record != s->next_record)
		bc_interval_stats_break(&s->intervals);
	s->has_clock = true;
	s->tag = info->recording_tag;
	s->epoch = info->epoch;
	s->next_record = info->first_record + info->records;
}

/* Adds the pair of host time and tick of the chunk's first record, unless that tick is only a lower
 * bound (inexact anchor). */
static void add_drift(struct bc_stats *s, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;

	for (uint32_t i = 0; i < info->events && chunk->events[i].position == 0; i++)
		if (chunk->events[i].kind == BC_EVENT_ANCHOR && !chunk->events[i].exact)
			return;
	bc_drift_add(&s->drift, info->recording_tag, info->epoch, s->clock_hz, info->first_tick,
		info->wall_ns);
}

static void add_chunk(struct bc_stats *s, const struct bc_chunk *chunk, uint64_t hz)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (info->records != 0) {
		set_hz(s, hz);
		follow_chunk(s, info);
		add_drift(s, chunk);
	}
	if (s->options.is_totals)
		bc_interval_stats_skip(
			&s->intervals, info->first_tick, info->last_tick, info->records);
	else
		bc_interval_stats_chunk(&s->intervals, chunk);
	for (uint32_t i = 0; i < info->events; i++)
		bc_entry_counts_event(&s->counts, &chunk->events[i]);
}

static void add_plain(struct bc_stats *s, const struct bc_batch *batch)
{
	uint32_t time = bc_le32(batch->records + 8);
	uint64_t tick = batch->tick + (time != BC_TIME_NONE ? time : 0);

	set_hz(s, 0);
	if (!s->options.is_totals)
		bc_interval_stats_records(&s->intervals, batch->records, batch->record_count, tick);
	else
		bc_interval_stats_skip(&s->intervals, tick,
			bc_records_ticks(batch->records, batch->record_count, batch->tick),
			batch->record_count);
}

/* Records whose footprint the second thread counts. */
struct footprint_work {
	struct bc_footprint *footprint;
	const struct bc_batch *batch;
};

static void count_footprint(void *context)
{
	const struct footprint_work *work = context;

	bc_footprint_records(work->footprint, work->batch->records, work->batch->record_count);
}

/* The footprint takes as long as everything else. */
static void add_records(
	struct bc_stats *s, const struct bc_trace *trace, const struct bc_batch *batch)
{
	struct footprint_work work = {&s->footprint, batch};
	const struct bc_segment_header *header;

	if (!s->options.is_totals && batch->record_count != 0)
		second_thread_start(&s->second, count_footprint, &work);
	if (batch->chunk != NULL) {
		header = bc_reader_header(trace->reader);
		add_chunk(s, batch->chunk, header != NULL ? header->clock_hz : 0);
	} else if (batch->record_count != 0) {
		add_plain(s, batch);
	}
	s->counts.kinds[BC_ENTRY_REFERENCE] += batch->record_count;
	bc_tally_records(&s->tally, batch->records, batch->record_count);
	second_thread_wait(&s->second);
}

/* Counts a reference by the name of its address. */
static int add_name(struct bc_stats *s, unsigned type, uint64_t addr)
{
	struct bc_name name;

	if (bc_name_map_find(s->options.names, bc_is_port_access(type), addr, &name))
		return bc_string_counter_add(&s->names,
			(struct bc_text){.at = name.text, .bytes = (uint32_t)strlen(name.text)});
	s->unnamed++;
	return 0;
}

static int add_names(struct bc_stats *s, const struct bc_batch *batch)
{
	int rc = 0;

	for (size_t i = 0; s->options.names != NULL && i < batch->record_count && rc == 0; i++) {
		const uint8_t *record = batch->records + i * BC_RECORD_BYTES;
		rc = add_name(s, record[4], bc_le32(record));
	}
	return rc;
}

static void add_time(struct bc_stats *s, const struct bc_entry *entry)
{
	if (s->has_clock && entry->epoch != s->epoch)
		bc_interval_stats_start(&s->intervals);
	s->has_clock = true;
	s->epoch = entry->epoch;
	set_hz(s, 0);
	set_unit(s, entry->unit);
	if (entry->has_delta && entry->delta == BC_TIME_NONE)
		bc_interval_stats_break(&s->intervals);
	if (s->options.is_totals)
		bc_interval_stats_skip(&s->intervals, entry->tick, entry->tick, 1);
	else
		bc_interval_stats_tick(&s->intervals, entry->tick);
}

static int add_entry(struct bc_stats *s, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	size_t n = bc_entry_references(references, entry);

	for (size_t i = 0; i < n; i++) {
		bc_tally_reference(&s->tally, &references[i]);
		if ((references[i].has & BC_HAS_TIME) != 0)
			add_time(s, &references[i]);
		if (!s->options.is_totals)
			bc_footprint_reference(&s->footprint, &references[i]);
		if (s->options.names != NULL &&
			add_name(s, references[i].type, references[i].addr) != 0)
			return -ENOMEM;
	}
	if (entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == BC_EVENT_GAP)
		bc_interval_stats_break(&s->intervals);
	return bc_entry_counts_add(&s->counts, entry);
}

int bc_stats_gather(struct bc_stats *s, struct bc_trace *trace)
{
	struct bc_batch batch;

	s->format = trace->format;
	s->files = trace->count;
	s->file = trace->next;
	while (bc_trace_next(trace, &batch)) {
		/* Each file that is not a segment has its own clock. */
		if (trace->next != s->file && trace->format != BC_FORMAT_SEGMENT) {
			bc_interval_stats_start(&s->intervals);
			s->has_clock = false;
		}
		s->file = trace->next;
		add_records(s, trace, &batch);
		if (add_names(s, &batch) != 0)
			return -ENOMEM;
		for (size_t i = 0; i < batch.count; i++)
			if (add_entry(s, &batch.entries[i]) != 0)
				return -ENOMEM;
	}
	bc_tally_settle(&s->tally);
	bc_interval_stats_end(&s->intervals);
	bc_entry_counts_sort(&s->counts);
	bc_string_counter_sort(&s->names);
	return 0;
}

uint64_t bc_stats_entries(const struct bc_stats *s)
{
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		sum += kind != BC_ENTRY_EVENT ? s->counts.kinds[kind] : 0;
	return sum;
}

double bc_stats_hz(const struct bc_stats *s)
{
	static const double units[BC_UNITS] = {
		[BC_UNIT_NS] = 1e9, [BC_UNIT_PS] = 1e12, [BC_UNIT_US] = 1e6};

	if (s->intervals.references == 0 || s->is_unit_mixed || s->is_hz_mixed)
		return 0;
	return units[s->unit] != 0 ? units[s->unit] : (double)s->clock_hz;
}

const char *bc_stats_no_drift_reason(const struct bc_drift_result *drift)
{
	switch (drift->state) {
	case BC_DRIFT_NO_PAIRS:
		return "no host times, or the clock rate is unknown";
	case BC_DRIFT_SHORT:
		return "the recording is too short";
	case BC_DRIFT_REPLAY:
		return "the times are not the host's, as in a replay";
	case BC_DRIFT_KNOWN:
		break;
	}
	return NULL;
}
