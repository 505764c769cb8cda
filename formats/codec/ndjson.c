/* NDJSON: one JSON object per line for each entry.
 *
 * The keys are the columns of formats/codec/columns.h, in their order, and `kind` is always first.
 * Keys that are unknown or do not apply are left out. Numbers are JSON integers of up to 64 bits.
 * Addresses and other bit patterns are strings with 0x, because many readers keep only 53 bits of a
 * number. Text is copied if it is UTF-8. Control characters are escaped; a byte that is not part of
 * a UTF-8 sequence becomes \u0080 to \u00ff, the character with its number. Source: RFC 8259. */
#include "formats/codec/codecs.h"

#include <stdbool.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/columns.h"

/* Traits of references that have a fast path, except those of Laplace. */
#define PLAIN_TRAITS                                                                       \
	(BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_SAMPLE | \
		LAPLACE_TRAITS)
#define LAPLACE_TRAITS (BC_TRAIT_LETTER | BC_TRAIT_SPACE)

struct key {
	char text[23]; /* ,"name": */
	uint8_t bytes;
};

struct ndjson {
	uint64_t kind_columns[BC_ENTRY_KINDS]; /* columns of the trace, by kind */
	bool has_epoch;
	bool is_plain; /* references have only these traits */
	struct key keys[BC_COLUMNS];
	struct bc_decimal_row numbers;
	struct bc_decimal_row ticks;
	struct bc_time_row times;
	struct bc_small_decimals small;
	struct bc_type_word types[BC_REF_TYPES];
};

static void ndjson_init(void *state, const struct bc_format_options *options)
{
	const uint32_t not_plain = BC_FIELDS & ~(uint32_t)(PLAIN_TRAITS);
	struct ndjson *ndjson = state;
	uint64_t columns = bc_columns_of_trace(options) | BC_COLUMN(BC_COLUMN_KIND);
	const uint64_t of_text = BC_COLUMN(BC_COLUMN_UNIT) | BC_COLUMN(BC_COLUMN_LINE);

	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		ndjson->kind_columns[kind] = columns & bc_columns_of_kind(kind);
	ndjson->has_epoch = (columns & BC_COLUMN(BC_COLUMN_EPOCH)) != 0;
	ndjson->is_plain = (options->source_traits & not_plain) == 0 && (columns & of_text) == 0;
	for (unsigned column = 0; column < BC_COLUMNS; column++) {
		struct key *key = &ndjson->keys[column];
		char *end = stpcpy(key->text, column == BC_COLUMN_KIND ? "{\"" : ",\"");
		end = stpcpy(stpcpy(end, bc_column_name((enum bc_column)column)), "\":");
		key->bytes = (uint8_t)(end - key->text);
	}
	bc_small_decimals_init(&ndjson->small);
	bc_type_words(ndjson->types);
}

static char *write_cell(char *out, struct bc_cell cell)
{
	bool is_quoted = cell.kind == BC_CELL_HEX || cell.kind == BC_CELL_BITS ||
			 cell.kind == BC_CELL_WORD || cell.kind == BC_CELL_TIME;

	if (cell.kind == BC_CELL_TEXT)
		return bc_json_write_text(out, bc_cell_text(cell));
	if (is_quoted)
		*out++ = '"';
	out = bc_cell_write(out, cell);
	if (is_quoted)
		*out++ = '"';
	return out;
}

/* Writes the values of an entry in these columns. */
static char *write_members(const struct ndjson *ndjson, char *out, const struct bc_entry *entry,
	const struct bc_moment *moment, uint64_t columns)
{
	for (uint64_t left = columns; left != 0; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		struct bc_cell cell = bc_column_cell((enum bc_column)column, entry, moment);
		if (cell.kind == BC_CELL_EMPTY)
			continue;
		const struct key *key = &ndjson->keys[column];
		memcpy(out, key->text, sizeof(key->text));
		out = write_cell(out + key->bytes, cell);
	}
	return out;
}

/* Fast path for a reference if is_plain. */
static inline char *write_plain_object(struct ndjson *ndjson, char *out,
	const struct bc_entry *entry, const struct bc_moment *moment)
{
	int64_t wall_ns;
	const struct bc_type_word *type = &ndjson->types[entry->type];
	const struct bc_small_decimals *small = &ndjson->small;

	out = BC_WRITE_LITERAL(out, "{\"kind\":\"reference\",\"number\":");
	out = bc_write_decimal_row(out, &ndjson->numbers, entry->number);
	if ((entry->traits & BC_TRAIT_TIME) != 0)
		out = bc_write_decimal_row(
			BC_WRITE_LITERAL(out, ",\"tick\":"), &ndjson->ticks, entry->tick);
	if (ndjson->has_epoch)
		out = bc_write_small_decimal(
			BC_WRITE_LITERAL(out, ",\"epoch\":"), small, entry->epoch);
	if (bc_entry_wall(entry, moment, &wall_ns)) {
		out = bc_write_time_row(
			BC_WRITE_LITERAL(out, ",\"time\":\""), &ndjson->times, wall_ns);
		*out++ = '"';
	}
	out = BC_WRITE_LITERAL(out, ",\"type\":\"");
	memcpy(out, type, sizeof(*type));
	out += type->bytes;
	out = bc_write_hex(BC_WRITE_LITERAL(out, "\",\"addr\":\"0x"), entry->addr);
	*out++ = '"';
	if ((entry->traits & BC_TRAIT_SIZE) != 0)
		out = bc_write_small_decimal(
			BC_WRITE_LITERAL(out, ",\"size\":"), small, entry->size);
	if ((entry->traits & BC_TRAIT_ATTR) != 0)
		out = bc_write_small_decimal(
			BC_WRITE_LITERAL(out, ",\"attr\":"), small, entry->attr);
	if ((entry->traits & BC_TRAIT_PROC) != 0)
		out = bc_write_small_decimal(
			BC_WRITE_LITERAL(out, ",\"proc\":"), small, entry->proc);
	if (entry->has_delta && entry->delta != BC_TIME_NONE)
		out = bc_write_small_decimal(
			BC_WRITE_LITERAL(out, ",\"delta\":"), small, entry->delta);
	if ((entry->traits & LAPLACE_TRAITS) != 0)
		out = write_members(ndjson, out, entry, moment, BC_COLUMNS_LAPLACE);
	if ((entry->traits & BC_TRAIT_SAMPLE) == 0)
		return out;
	out = bc_write_hex(BC_WRITE_LITERAL(out, ",\"bus_addr\":\"0x"), bc_be32(entry->sample));
	out = bc_write_hex8(BC_WRITE_LITERAL(out, "\",\"byte_enables\":\"0x"), entry->sample[4]);
	out = bc_write_hex8(BC_WRITE_LITERAL(out, "\",\"control\":\"0x"), entry->sample[5]);
	*out++ = '"';
	return out;
}

static int print_ndjson(void *state, struct bc_print *p)
{
	struct ndjson *ndjson = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		if (ndjson->is_plain && entry->kind == BC_ENTRY_REFERENCE)
			out = write_plain_object(ndjson, out, entry, p->moment);
		else
			out = write_members(
				ndjson, out, entry, p->moment, ndjson->kind_columns[entry->kind]);
		out = BC_WRITE_LITERAL(out, "}\n");
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_ndjson_printer = {.state_bytes = sizeof(struct ndjson),
	.is_by_record = true,
	.init = ndjson_init,
	.print = print_ndjson,
	.begins = bc_columns_begin_ndjson};
