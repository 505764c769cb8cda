/* Arrow IPC stream, write only: references in record batches, for pyarrow, polars, DuckDB and such.
 *
 * The columns are those of csv (formats/codec/columns.h) that `fields` has. What csv leaves empty
 * is null. A type is an index into a dictionary of all names: the type itself.
 *
 * The stream is a schema, the dictionary, batches of BATCH_ROWS rows, the last with the rest, and
 * an end. Each is a message: FFFFFFFF, the length of its metadata, the metadata as a FlatBuffer,
 * and a body of buffers, all little-endian and padded to 8 bytes. A column without nulls in a batch
 * has no bitmap. Rows are held until their batch is full. Bodies aren't compressed: a pipe does it
 * better.
 *
 * Source: format/Schema.fbs and Message.fbs in Arrow's repository; FlatBuffers' "internals". */
#include "formats/codec/codecs.h"

#include <assert.h>

#include "formats/codec/columns.h"

#define BATCH_ROWS 2048u

/* In the order of print_arrow(). */
static const struct field {
	enum bc_column column;
	unsigned bytes; /* of a value */
	bool is_nullable;
} fields[] = {
	{BC_COLUMN_NUMBER, 8, false},
	{BC_COLUMN_TICK, 8, true},
	{BC_COLUMN_EPOCH, 4, false},
	{BC_COLUMN_TIME, 8, true},
	{BC_COLUMN_TYPE, 2, false},
	{BC_COLUMN_ADDR, 8, false},
	{BC_COLUMN_SIZE, 4, true},
	{BC_COLUMN_ATTR, 1, true},
	{BC_COLUMN_PROC, 2, true},
	{BC_COLUMN_DELTA, 8, true},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

struct arrow {
	uint64_t columns; /* of the trace */
	size_t rows;      /* held */
	uint64_t nulls[FIELDS];
	uint8_t known[FIELDS][BATCH_ROWS / 8]; /* bitmaps */
	uint8_t values[FIELDS][BATCH_ROWS * sizeof(uint64_t)];
};

/* ---- messages
 *
 * The metadata takes METADATA_BYTES in front of `body`. Its FlatBuffer is written from there back,
 * because an offset leads to what comes later; an object is known by its distance from `body`. */

#define METADATA_BYTES 1536u

struct message {
	uint8_t *body;
	size_t used; /* of the metadata, which begins as zeroes */
	size_t body_bytes;
	size_t columns;
	size_t buffers;
	uint64_t column[FIELDS][2];     /* rows and nulls, little-endian */
	uint64_t buffer[2 * FIELDS][2]; /* offset and bytes */
};

static struct message start_message(const struct bc_print *p)
{
	uint8_t *out = (uint8_t *)p->out + p->used;

	memset(out, 0, 8 + METADATA_BYTES);
	bc_write_le32(out, UINT32_MAX);
	bc_write_le32(out + 4, METADATA_BYTES);
	return (struct message){.body = out + 8 + METADATA_BYTES};
}

/* Makes room for an object that begins at a multiple of `align`. */
static uint8_t *put_object(struct message *m, size_t bytes, size_t align)
{
	m->used = (m->used + bytes + align - 1) & ~(align - 1);
	assert(m->used <= METADATA_BYTES - 4);
	return m->body - m->used;
}

/* Also strings, whose zero at the end isn't counted. */
static size_t put_vector(
	struct message *m, const void *elements, size_t bytes, size_t align, size_t length)
{
	memcpy(put_object(m, bytes, align), elements, bytes);
	bc_write_le32(put_object(m, 4, 4), (uint32_t)length);
	return m->used;
}

/* A slot of a table: a number, or the object that it leads to. */
struct slot {
	uint64_t n;
	size_t to;
};

#define TABLE(m, ...)                                    \
	put_table(m, (const struct slot[]){__VA_ARGS__}, \
		sizeof((const struct slot[]){__VA_ARGS__}) / sizeof(struct slot))

/* Each slot takes 8 bytes, of which readers look at as many as the field has. 0 is absent. */
static size_t put_table(struct message *m, const struct slot *slots, size_t count)
{
	uint8_t *at = put_object(m, 8 * count, 8);
	size_t first = m->used;
	uint8_t *table = put_object(m, 4, 4);
	uint8_t *vtable = put_object(m, 4 + 2 * count, 2);

	bc_write_le32(table, (uint32_t)(m->used - first - 4));
	bc_write_le16(vtable, (uint16_t)(4 + 2 * count));
	bc_write_le16(vtable + 2, (uint16_t)(4 + 8 * count));
	for (size_t i = 0; i < count; i++) {
		bool is_offset = slots[i].to != 0;
		bc_write_le64(at + 8 * i, is_offset ? first - 8 * i - slots[i].to : slots[i].n);
		if (is_offset || slots[i].n != 0)
			bc_write_le16(vtable + 4 + 2 * i, (uint16_t)(4 + 8 * i));
	}
	return first + 4;
}

static void put_buffer(struct message *m, const void *from, size_t bytes)
{
	m->buffer[m->buffers][0] = htole64(m->body_bytes);
	m->buffer[m->buffers++][1] = htole64(bytes);
	memcpy(m->body + m->body_bytes, from, bytes);
	m->body_bytes += bytes;
	for (; m->body_bytes % 8 != 0; m->body_bytes++)
		m->body[m->body_bytes] = 0;
}

/* Numbers of the unions and enums in Schema.fbs and Message.fbs. */
enum { VERSION_5 = 4, LITTLE = 0, UNIT_NS = 3, TYPE_INT = 2, TYPE_UTF8 = 5, TYPE_TIMESTAMP = 10 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };

static void end_message(struct message *m, struct bc_print *p, unsigned kind, size_t header)
{
	size_t message = TABLE(
		m, {.n = VERSION_5}, {.n = kind}, {.to = header}, {.n = m->body_bytes});

	bc_write_le32(m->body - METADATA_BYTES, (uint32_t)(METADATA_BYTES - message));
	p->used += 8 + METADATA_BYTES + m->body_bytes;
}

/* A column of a record batch, and its bitmap. The buffers of its values follow. */
static void put_column(struct message *m, size_t rows, uint64_t nulls, const void *known)
{
	m->column[m->columns][0] = htole64(rows);
	m->column[m->columns++][1] = htole64(nulls);
	put_buffer(m, known, nulls != 0 ? (rows + 7) / 8 : 0);
}

static size_t put_batch(struct message *m, size_t rows)
{
	size_t columns = put_vector(m, m->column, m->columns * sizeof(m->column[0]), 8, m->columns);
	size_t buffers = put_vector(m, m->buffer, m->buffers * sizeof(m->buffer[0]), 8, m->buffers);

	return TABLE(m, {.n = rows}, {.to = columns}, {.to = buffers});
}

/* ---- head: the schema and the dictionary */

static size_t put_field(struct message *m, const struct field *field)
{
	const char *text = bc_column_name(field->column);
	size_t name = put_vector(m, text, strlen(text) + 1, 4, strlen(text));
	size_t children = put_vector(m, "", 0, 4, 0);
	bool is_type = field->column == BC_COLUMN_TYPE;
	size_t dictionary = 0;
	unsigned kind = TYPE_INT;
	size_t type = TABLE(m, {.n = 8 * field->bytes /* bits */}, {.n = is_type /* signed */});

	if (is_type) {
		dictionary = TABLE(m, {.n = 0 /* its id */}, {.to = type});
		kind = TYPE_UTF8;
		type = put_table(m, NULL, 0);
	} else if (field->column == BC_COLUMN_TIME) {
		size_t zone = put_vector(m, "UTC", 4, 4, 3);
		kind = TYPE_TIMESTAMP;
		type = TABLE(m, {.n = UNIT_NS}, {.to = zone});
	}
	return TABLE(m, {.to = name}, {.n = field->is_nullable}, {.n = kind}, {.to = type},
		{.to = dictionary}, {.to = children});
}

static size_t put_schema(struct message *m, uint64_t columns)
{
	size_t at[FIELDS];
	size_t count = 0;

	for (size_t i = 0; i < FIELDS; i++)
		if ((columns & BC_COLUMN(fields[i].column)) != 0)
			at[count++] = put_field(m, &fields[i]);
	for (size_t i = count; i-- != 0;) {
		uint8_t *offset = put_object(m, 4, 4);
		bc_write_le32(offset, (uint32_t)(m->used - at[i]));
	}
	size_t list = put_vector(m, "", 0, 4, count);
	return TABLE(m, {.n = LITTLE}, {.to = list});
}

static size_t put_dictionary(struct message *m)
{
	struct bc_type_word words[BC_REF_TYPES];
	uint8_t ends[BC_REF_TYPES + 1][4] = {0};
	char text[sizeof(words)];
	uint32_t bytes = 0;

	bc_type_words(words);
	for (unsigned i = 0; i < BC_REF_TYPES; i++) {
		memcpy(text + bytes, words[i].text, words[i].bytes);
		bytes += words[i].bytes;
		bc_write_le32(ends[i + 1], bytes);
	}
	put_column(m, BC_REF_TYPES, 0, "");
	put_buffer(m, ends, sizeof(ends));
	put_buffer(m, text, bytes);
	size_t batch = put_batch(m, BC_REF_TYPES);
	return TABLE(m, {.n = 0 /* its id */}, {.to = batch});
}

static void print_head(void *state, struct bc_print *p)
{
	const struct arrow *a = state;
	struct message schema = start_message(p);

	end_message(&schema, p, HEADER_SCHEMA, put_schema(&schema, a->columns));
	struct message dictionary = start_message(p);
	end_message(&dictionary, p, HEADER_DICTIONARY, put_dictionary(&dictionary));
}

static void arrow_init(void *state, const struct bc_format_options *options)
{
	struct arrow *a = state;
	struct bc_format_options references = *options;

	/* An instruction or micro-op becomes fetches, which have a size. */
	if ((options->source_traits & (BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP)) != 0)
		references.source_traits |= BC_TRAIT_REFERENCE | BC_TRAIT_SIZE;
	a->columns = bc_columns_of_trace(&references);
}

/* ---- rows */

_Static_assert(sizeof(struct arrow) + METADATA_BYTES + 16 <= BC_PRINT_MAX, "a batch fits");

static void print_rows(struct arrow *a, struct bc_print *p)
{
	struct message m = start_message(p);

	for (size_t i = 0; i < FIELDS; i++) {
		if ((a->columns & BC_COLUMN(fields[i].column)) == 0)
			continue;
		put_column(&m, a->rows, a->nulls[i], a->known[i]);
		put_buffer(&m, a->values[i], a->rows * fields[i].bytes);
	}
	end_message(&m, p, HEADER_BATCH, put_batch(&m, a->rows));
	a->rows = 0;
	memset(a->nulls, 0, sizeof(a->nulls));
	memset(a->known, 0, sizeof(a->known));
}

static inline void hold(struct arrow *a, size_t i, uint64_t value, bool is_known)
{
	uint8_t number[8];

	bc_write_le64(number, is_known ? value : 0);
	memcpy(a->values[i] + a->rows * fields[i].bytes, number, fields[i].bytes);
	a->known[i][a->rows / 8] |= (uint8_t)(is_known << a->rows % 8);
	a->nulls[i] += !is_known;
}

static int print_arrow(void *state, struct bc_print *p)
{
	struct arrow *a = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *e = p->entries;
		int64_t wall_ns = 0;
		bool has_wall = bc_entry_wall(e, p->moment, &wall_ns);
		size_t i = 0;
		hold(a, i++, e->number, true);
		hold(a, i++, e->tick, (e->traits & BC_TRAIT_TIME) != 0);
		hold(a, i++, e->epoch, true);
		hold(a, i++, (uint64_t)wall_ns, has_wall);
		hold(a, i++, e->type, true);
		hold(a, i++, e->addr, true);
		hold(a, i++, e->size, (e->traits & BC_TRAIT_SIZE) != 0);
		hold(a, i++, e->attr, (e->traits & BC_TRAIT_ATTR) != 0);
		hold(a, i++, e->proc, (e->traits & BC_TRAIT_PROC) != 0);
		hold(a, i++, e->delta, e->has_delta && e->delta != BC_TIME_NONE);
		if (++a->rows == BATCH_ROWS)
			print_rows(a, p);
	}
	return 0;
}

static bool print_tail(void *state, struct bc_print *p)
{
	struct arrow *a = state;

	if (a->rows != 0)
		print_rows(a, p);
	bc_write_le64((uint8_t *)p->out + p->used, UINT32_MAX);
	p->used += 8;
	return true;
}

static bool arrow_begins(const uint8_t *head, size_t bytes)
{
	return bytes >= 8 && bc_le64(head) == ((uint64_t)METADATA_BYTES << 32 | UINT32_MAX);
}

const struct bc_printer bc_arrow_printer = {.state_bytes = sizeof(struct arrow),
	.init = arrow_init,
	.head = print_head,
	.print = print_arrow,
	.tail = print_tail,
	.begins = arrow_begins,
	.what = "buscap's arrow"};
