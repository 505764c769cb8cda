#include "formats/codec/byu_printer.h"

#include "formats/bus/dialect.h"
#include "formats/codec/byu_row.h"

static void byu_init(void *state, const struct bc_format_options *options)
{
	struct bc_byu_clock *clock = state;

	bc_byu_clock_init(clock, options);
	clock->is_relative = true;
}

static int print_records(struct bc_byu_clock *clock, struct bc_print *p, enum bc_format format)
{
	uint64_t addr_max = format == BC_FORMAT_BYU16 || format == BC_FORMAT_BYU24 ? UINT64_MAX
										   : UINT32_MAX;
	uint64_t time_max = format == BC_FORMAT_BYU24 ? UINT64_MAX : UINT32_MAX;
	size_t bytes = bc_dialect_bytes(format);

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		struct bc_byu_row row;
		int rc = bc_byu_row(&row, clock, p, addr_max, time_max);
		if (rc != 0)
			return rc;
		bc_dialect_write((uint8_t *)p->out + p->used, format, row.addr, row.meta, row.time);
		p->used += bytes;
	}
	return 0;
}

/* One function per dialect, so that the dialect is a compile-time constant. */
#define DIALECT(name, format)                                                                      \
	static int print_##name(void *state, struct bc_print *p)                                   \
	{                                                                                          \
		return print_records(state, p, format);                                            \
	}                                                                                          \
	const struct bc_printer bc_##name##_printer = {.state_bytes = sizeof(struct bc_byu_clock), \
		.init = byu_init,                                                                  \
		.print = print_##name}

DIALECT(byu, BC_FORMAT_BYU);
DIALECT(byu16, BC_FORMAT_BYU16);
DIALECT(byu24, BC_FORMAT_BYU24);
DIALECT(byu_be, BC_FORMAT_BYU_BE);
