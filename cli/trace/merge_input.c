#include "cli/trace/merge_input.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000
#define SIGN     (UINT64_C(1) << 63)

void bc_merge_input_fill(struct bc_merge_input *in)
{
	struct bc_batch batch;

	while (in->left == 0 && !in->is_over) {
		in->is_over = !bc_trace_next(&in->trace, &batch);
		if (in->is_over)
			break;
		in->at = batch.entries;
		in->left = batch.count;
	}
}

/* Returns the time of day of a tick in ns, with the sign bit inverted so that unsigned comparison
 * orders it. */
static uint64_t wall_of(struct bc_merge_input *in, uint64_t tick)
{
	const struct bc_moment *m = &in->trace.moment;
	uint64_t clock_hz = m->clock_hz != 0 ? m->clock_hz : in->clock_hz;

	if (!m->is_known || clock_hz == 0) {
		in->no_clock = true;
		return SIGN;
	}
	__int128 ns = ((__int128)tick - (__int128)m->tick) * NS_PER_S;
	/* Round down, also for times before the moment. */
	__int128 whole = ns / (__int128)clock_hz;
	whole -= ns % (__int128)clock_hz < 0;
	ns = whole + m->wall_ns;
	if (ns > INT64_MAX)
		ns = INT64_MAX;
	if (ns < INT64_MIN)
		ns = INT64_MIN;
	return (uint64_t)(int64_t)ns ^ SIGN;
}

void bc_merge_input_peek(struct bc_merge_input *in, enum bc_merge_by by)
{
	const struct bc_entry *entry = in->at;
	bool is_event = entry->kind == BC_ENTRY_EVENT;
	struct bc_merge_key key = {.epoch = entry->epoch, .time = entry->tick};

	if ((entry->has & BC_HAS_TIME) == 0 && !(is_event && in->trace.format == BC_FORMAT_SEGMENT))
		return;
	if (by == BC_MERGE_BY_WALL)
		key = (struct bc_merge_key){.time = wall_of(in, entry->tick)};
	if (in->has_key && bc_merge_key_is_less(key, in->key)) {
		/* At the end of a chunk, an event has the tick of the previous entry: it is not out
		 * of order. */
		if (!is_event) {
			uint64_t early = key.epoch == in->key.epoch ? in->key.time - key.time : 0;
			in->disorders++;
			in->most_early = early > in->most_early ? early : in->most_early;
		}
		return;
	}
	in->has_key = true;
	in->key = key;
}

/* ---- all inputs */

bool bc_merge_inputs_make(struct bc_merge_inputs *inputs, const struct bc_console *console,
	const struct bc_files *files, uint64_t clock_hz)
{
	inputs->all = calloc((size_t)files->count + 1, sizeof(*inputs->all));
	inputs->count = 0;
	for (int i = 0; inputs->all != NULL && i < files->count; i++) {
		bool is_first = i == 0 || files->groups[i] != files->groups[i - 1];
		if (is_first)
			inputs->all[inputs->count++] = (struct bc_merge_input){.console = console,
				.clock_hz = clock_hz,
				.paths = (const char **)files->paths + i};
		inputs->all[inputs->count - 1].count++;
	}
	return inputs->all != NULL;
}

void bc_merge_inputs_close(struct bc_merge_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		bc_trace_close(&inputs->all[i].trace);
	free(inputs->all);
	*inputs = (struct bc_merge_inputs){0};
}

bool bc_merge_inputs_are_recordings(const struct bc_merge_inputs *inputs)
{
	bool is_different = inputs->count > 1;

	for (size_t i = 0; i < inputs->count; i++) {
		const struct bc_trace *a = &inputs->all[i].trace;
		is_different = is_different && a->format == BC_FORMAT_SEGMENT;
		for (size_t j = 0; j < i; j++) {
			const struct bc_trace *b = &inputs->all[j].trace;
			is_different = is_different && (!a->has_header || !b->has_header ||
							       strcmp(a->header.recording,
								       b->header.recording) != 0);
		}
	}
	return is_different;
}

bool bc_merge_inputs_have_clocks(const struct bc_merge_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		const struct bc_merge_input *in = &inputs->all[i];
		if (!in->no_clock)
			continue;
		bc_print_error(in->console, in->paths[0],
			"clock rate unknown, so times of day are too; give it with "
			"--clock-hz, or use --by tick if the inputs share a clock");
		return false;
	}
	return true;
}

size_t bc_merge_inputs_first(const struct bc_merge_inputs *inputs, size_t *rival)
{
	size_t none = inputs->count;
	size_t first = none;

	*rival = none;
	for (size_t i = 0; i < inputs->count; i++) {
		const struct bc_merge_input *in = &inputs->all[i];
		if (in->is_over)
			continue;
		if (first == none || bc_merge_key_is_less(in->key, inputs->all[first].key)) {
			*rival = first;
			first = i;
		} else if (*rival == none ||
			   bc_merge_key_is_less(in->key, inputs->all[*rival].key)) {
			*rival = i;
		}
	}
	return first;
}

bool bc_merge_inputs_stays_first(const struct bc_merge_inputs *inputs, size_t first, size_t rival)
{
	if (rival == inputs->count)
		return true;
	struct bc_merge_key a = inputs->all[first].key;
	struct bc_merge_key b = inputs->all[rival].key;
	return first < rival ? !bc_merge_key_is_less(b, a) : bc_merge_key_is_less(a, b);
}
