#include "cli/io/chunk_text.h"

#include <stdlib.h>

/* Room for the text of a chunk, of which only what is used is touched. Of longer lines, the
 * reader's thread prints the rest. */
#define TEXT_BYTES (16u << 20)
#define ENTRIES    64u

struct chunk_text {
	const struct bc_printer *printer;
	void *state;
	bool has_wall;
	uint64_t clock_hz;
	uint32_t records; /* that are printed */
	size_t used;
	char out[TEXT_BYTES];
};

static void close_text(void *result)
{
	struct chunk_text *t = result;

	free(t->state);
	free(t);
}

static void *open_text(void *context)
{
	const struct bc_target *target = context;
	const struct bc_printer *printer = target->info->printer;

	if (target->segment != NULL || target->is_strict || !printer->is_by_record)
		return NULL;
	struct chunk_text *t = malloc(sizeof(*t));
	if (t == NULL)
		return NULL;
	t->printer = printer;
	t->has_wall = target->source->has_wall;
	t->clock_hz = bc_trace_clock_hz(target->source);
	t->state = bc_printer_start(printer, &target->options);
	if (t->state != NULL)
		return t;
	free(t);
	return NULL;
}

static void print_chunk(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	struct chunk_text *t = result;
	struct bc_moment moment = bc_chunk_moment(info, t->has_wall, t->clock_hz);
	struct bc_record_run run = {.records = records,
		.count = info->records,
		.number = info->first_record,
		.tick = bc_chunk_tick_before(info, records),
		.epoch = info->epoch};
	struct bc_entry entries[ENTRIES];
	uint64_t losses[BC_TRAIT_BITS]; /* of none: see is_by_record */
	struct bc_print print = {.moment = &moment,
		.out = t->out,
		.capacity = sizeof(t->out),
		.trait_losses = losses};

	while (info->events == 0 && run.count != 0 && print.count == 0) {
		print.entries = entries;
		print.count = bc_record_run_entries(&run, entries, ENTRIES);
		if (t->printer->print(t->state, &print) != 0)
			break;
	}
	t->records = info->records - (uint32_t)(run.count + print.count);
	t->used = print.used;
}

struct bc_chunk_work bc_chunk_text_work(struct bc_target *target)
{
	return (struct bc_chunk_work){
		.open = open_text, .close = close_text, .run = print_chunk, .context = target};
}

void bc_chunk_text_write(void *result, struct bc_target *target, struct bc_record_run *run)
{
	const struct chunk_text *t = result;

	bc_output_text(target->output, t->out, t->used);
	bc_record_run_skip(run, t->records, bc_records_ticks(run->records, t->records, 0));
}
