#include "cli/trace/merge_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment_name.h"

/* Returns true if two files are segments of the same recording, according to their names. */
static bool is_same_recording(const char *a, const char *b)
{
	const char *paths[2] = {a, b};
	struct bc_segment_name names[2];

	for (int i = 0; i < 2; i++)
		if (!bc_segment_name_read(&names[i], basename(paths[i])))
			return false;
	return strcmp(names[0].recording, names[1].recording) == 0;
}

bool bc_merge_inputs_make(struct bc_merge_inputs *inputs, const struct bc_console *console,
	const char **paths, int count, uint64_t clock_hz)
{
	const char **grouped = calloc((size_t)count + 1, sizeof(*grouped));
	int used = 0;

	*inputs = (struct bc_merge_inputs){
		.all = calloc((size_t)count, sizeof(*inputs->all)), .paths = grouped};
	if (grouped == NULL || inputs->all == NULL)
		return false;
	for (int i = 0; i < count; i++) {
		const char *first = paths[i];
		if (first == NULL) /* already part of an input */
			continue;
		struct bc_merge_input *in = &inputs->all[inputs->count++];
		in->console = console;
		in->clock_hz = clock_hz;
		in->paths = grouped + used;
		for (int j = i; j < count; j++) {
			if (j != i && (paths[j] == NULL || !is_same_recording(first, paths[j])))
				continue;
			in->paths[in->count++] = paths[j];
			paths[j] = NULL;
		}
		used += in->count;
	}
	memcpy(paths, grouped, (size_t)count * sizeof(*grouped));
	return true;
}

void bc_merge_inputs_close(struct bc_merge_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		bc_trace_close(&inputs->all[i].trace);
	free(inputs->all);
	free(inputs->paths);
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
