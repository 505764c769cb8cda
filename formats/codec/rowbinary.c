#include "formats/codec/rowbinary.h"

#include "formats/base/bytes.h"
#include "formats/bus/dialect.h"
#include "formats/codec/byu_row.h"

struct rowbinary {
	struct bc_byu_clock clock;
	uint32_t session;
	bool is_segment;
	uint64_t seq;  /* of the next row */
	uint64_t base; /* segments: what is added to the number of a record */
};

static void rowbinary_init(void *state, const struct bc_format_options *options)
{
	struct rowbinary *r = state;

	bc_byu_clock_init(&r->clock, options);
	r->session = options->session;
	r->is_segment = options->source_is_segment;
}

/* The number of a record is the same however its recording is converted. If it doesn't go up, as
 * where a second recording begins, the rows count on from there: no two have the same number. */
static uint64_t next_seq(struct rowbinary *r, const struct bc_entry *entry)
{
	uint64_t seq = r->is_segment ? r->base + entry->number : r->seq;

	if (seq < r->seq) {
		r->base = r->seq - entry->number;
		seq = r->seq;
	}
	r->seq = seq + 1;
	return seq;
}

static int print_rows(void *state, struct bc_print *p)
{
	struct rowbinary *r = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		struct bc_byu_row row;
		int rc = bc_byu_row(&row, &r->clock, p, UINT32_MAX, UINT32_MAX);
		if (rc != 0)
			return rc;
		uint8_t *out = (uint8_t *)p->out + p->used;
		bc_write_le32(out, r->session);
		bc_write_le64(out + 4, next_seq(r, p->entries));
		bc_write_le64(out + 12, row.tick);
		bc_dialect_write(out + 20, BC_FORMAT_BYU, row.addr, row.meta, row.time);
		p->used += BC_ROWBINARY_BYTES;
	}
	return 0;
}

const struct bc_printer bc_rowbinary_printer = {
	.state_bytes = sizeof(struct rowbinary), .init = rowbinary_init, .print = print_rows};
