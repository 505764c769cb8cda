/* CSV: a header row, then one row per entry, for spreadsheets, pandas and similar tools.
 *
 * formats/codec/columns.h has the columns. Numbers are decimal. Addresses and other bit patterns
 * are hexadecimal with 0x, because many readers would take bare digits such as 1e5 for a number. An
 * unknown value is an empty cell. Text is quoted only if it contains a comma, a quote or a line
 * end; otherwise it is copied byte for byte. Rows end in a single newline. Source: RFC 4180. */
#include "formats/codec/codecs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/columns.h"

/* Columns of references that have a fast path, except Laplace's: others are empty but in Tarmac. */
#define PLAIN_COLUMNS                                                                          \
	(BC_COLUMN(BC_COLUMN_KIND) | BC_COLUMN(BC_COLUMN_NUMBER) | BC_COLUMN(BC_COLUMN_TICK) | \
		BC_COLUMN(BC_COLUMN_EPOCH) | BC_COLUMN(BC_COLUMN_TIME) |                       \
		BC_COLUMN(BC_COLUMN_TYPE) | BC_COLUMN(BC_COLUMN_ADDR) |                        \
		BC_COLUMN(BC_COLUMN_SIZE) | BC_COLUMN(BC_COLUMN_ATTR) |                        \
		BC_COLUMN(BC_COLUMN_PROC) | BC_COLUMN(BC_COLUMN_DELTA) | BC_COLUMNS_LAPLACE |  \
		BC_COLUMNS_SAMPLE)

struct csv {
	uint64_t columns;
	uint64_t kind_columns[BC_ENTRY_KINDS];
	bool is_plain;     /* references have only these columns */
	unsigned trailing; /* number of empty columns after them */
	char commas[16];
	struct bc_decimal_row numbers;
	struct bc_decimal_row ticks;
	struct bc_time_row times;
	struct bc_small_decimals small;
	struct bc_type_word types[BC_REF_TYPES];
};

static void csv_init(void *state, const struct bc_format_options *options)
{
	struct csv *csv = state;

	csv->columns = bc_columns_of_trace(options);
	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		csv->kind_columns[kind] = bc_columns_of_kind(kind);
	uint64_t references = csv->columns & csv->kind_columns[BC_ENTRY_REFERENCE];
	csv->trailing = (unsigned)__builtin_popcountll(csv->columns & ~PLAIN_COLUMNS);
	csv->is_plain = (references & BC_COLUMN(BC_COLUMN_TYPE)) != 0 &&
			(references & ~PLAIN_COLUMNS) == 0 && csv->trailing <= sizeof(csv->commas);
	memset(csv->commas, ',', sizeof(csv->commas));
	bc_small_decimals_init(&csv->small);
	bc_type_words(csv->types);
}

static void print_head(void *state, struct bc_print *p)
{
	const struct csv *csv = state;
	char *out = p->out + p->used;

	for (unsigned column = 0; column < BC_COLUMNS; column++)
		if ((csv->columns & BC_COLUMN(column)) != 0)
			out += sprintf(out, "%s,", bc_column_name(column));
	out[-1] = '\n';
	p->used = (size_t)(out - p->out);
}

static char *write_text(char *out, struct bc_text text)
{
	bool is_plain = true;

	for (uint32_t i = 0; i < text.bytes; i++) {
		char c = text.at[i];
		is_plain &= c != ',' && c != '"' && c != '\n' && c != '\r';
		out[i] = c;
	}
	if (is_plain)
		return out + text.bytes;
	*out++ = '"';
	for (uint32_t i = 0; i < text.bytes; i++) {
		if (text.at[i] == '"')
			*out++ = '"';
		*out++ = text.at[i];
	}
	*out++ = '"';
	return out;
}

/* Writes the cells of these columns, each with a comma. */
static char *write_cells(const struct csv *csv, char *out, const struct bc_entry *entry,
	const struct bc_moment *moment, uint64_t columns)
{
	uint64_t own = csv->kind_columns[entry->kind];

	for (uint64_t left = columns; left != 0; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		if ((own >> column & 1) != 0) {
			struct bc_cell cell = bc_column_cell((enum bc_column)column, entry, moment);
			out = cell.kind == BC_CELL_TEXT ? write_text(out, bc_cell_text(cell))
							: bc_cell_write(out, cell);
		}
		*out++ = ',';
	}
	return out;
}

static inline bool has(const struct csv *csv, enum bc_column column)
{
	return (csv->columns & BC_COLUMN(column)) != 0;
}

/* Writes a decimal cell that is usually small, and a comma. */
static inline char *write_small(const struct csv *csv, char *out, uint64_t number, bool is_known)
{
	if (is_known)
		out = bc_write_small_decimal(out, &csv->small, number);
	*out++ = ',';
	return out;
}

/* Fast path for a reference if is_plain. Ends in a comma, as write_cells() does. */
static inline char *write_plain_row(
	struct csv *csv, char *out, const struct bc_entry *entry, const struct bc_moment *moment)
{
	const struct bc_type_word *type = &csv->types[entry->type];
	bc_traits known = entry->traits;
	int64_t wall_ns;

	if (has(csv, BC_COLUMN_KIND))
		out = BC_WRITE_LITERAL(out, "reference,");
	out = bc_write_decimal_row(out, &csv->numbers, entry->number);
	*out++ = ',';
	if (has(csv, BC_COLUMN_TICK)) {
		if ((known & BC_TRAIT_TIME) != 0)
			out = bc_write_decimal_row(out, &csv->ticks, entry->tick);
		*out++ = ',';
	}
	if (has(csv, BC_COLUMN_EPOCH))
		out = write_small(csv, out, entry->epoch, true);
	if (has(csv, BC_COLUMN_TIME)) {
		if (bc_entry_wall(entry, moment, &wall_ns))
			out = bc_write_time_row(out, &csv->times, wall_ns);
		*out++ = ',';
	}
	memcpy(out, type, sizeof(*type));
	out += type->bytes;
	out = BC_WRITE_LITERAL(out, ",0x");
	out = bc_write_hex(out, entry->addr);
	*out++ = ',';
	if (has(csv, BC_COLUMN_SIZE))
		out = write_small(csv, out, entry->size, (known & BC_TRAIT_SIZE) != 0);
	if (has(csv, BC_COLUMN_ATTR))
		out = write_small(csv, out, entry->attr, (known & BC_TRAIT_ATTR) != 0);
	if (has(csv, BC_COLUMN_PROC))
		out = write_small(csv, out, entry->proc, (known & BC_TRAIT_PROC) != 0);
	if (has(csv, BC_COLUMN_DELTA))
		out = write_small(
			csv, out, entry->delta, entry->has_delta && entry->delta != BC_TIME_NONE);
	if ((csv->columns & BC_COLUMNS_LAPLACE) != 0)
		out = write_cells(csv, out, entry, moment, csv->columns & BC_COLUMNS_LAPLACE);
	if (has(csv, BC_COLUMN_CONTROL) && (known & BC_TRAIT_SAMPLE) != 0) {
		out = bc_write_hex(BC_WRITE_LITERAL(out, "0x"), bc_be32(entry->sample));
		out = bc_write_hex8(BC_WRITE_LITERAL(out, ",0x"), entry->sample[4]);
		out = bc_write_hex8(BC_WRITE_LITERAL(out, ",0x"), entry->sample[5]);
		*out++ = ',';
	} else if (has(csv, BC_COLUMN_CONTROL)) {
		out = BC_WRITE_LITERAL(out, ",,,");
	}
	memcpy(out, csv->commas, sizeof(csv->commas));
	return out + csv->trailing;
}

static int print_csv(void *state, struct bc_print *p)
{
	struct csv *csv = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		if (csv->is_plain && entry->kind == BC_ENTRY_REFERENCE)
			out = write_plain_row(csv, out, entry, p->moment);
		else
			out = write_cells(csv, out, entry, p->moment, csv->columns);
		out[-1] = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_csv_printer = {.state_bytes = sizeof(struct csv),
	.is_by_record = true,
	.init = csv_init,
	.head = print_head,
	.print = print_csv,
	.begins = bc_columns_begin_csv};
