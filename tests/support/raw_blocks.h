/* A raw capture with several blocks (transfers, breaks, missing parts): the file, and the expected
 * result of reading it. */
#ifndef BC_TESTS_SUPPORT_RAW_BLOCKS_H
#define BC_TESTS_SUPPORT_RAW_BLOCKS_H

#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define RAW_RECORDING "20261120T091500Z-3f9a2c"
#define RAW_NAME      RAW_RECORDING "-00000.raw6.lz4"
#define RAW_BLOCKS    5u
#define RAW_CLOCK_HZ  123456789u

struct raw_blocks {
	struct bc_raw_block *blocks; /* RAW_BLOCKS */
	uint8_t *file;
	size_t file_bytes;
	size_t offset[RAW_BLOCKS + 1]; /* of each block, and of the end */
	uint8_t *stream;               /* the bytes of all blocks */
	size_t stream_bytes;
};

static inline struct bc_segment_header raw_header(uint32_t segment)
{
	return (struct bc_segment_header){
		.recording = RAW_RECORDING,
		.segment = segment,
		.source_kind = "usb",
		.source_name = "1209:0001",
		.clock_hz = RAW_CLOCK_HZ,
		.host = "lab",
		.program = "buscapd 0.0.0",
	};
}

static inline void raw_add_transfer(struct bc_raw_block *block, struct dice *dice, uint32_t bytes,
	uint64_t since, uint64_t until)
{
	struct bc_raw_entry entry = {
		.kind = BC_RAW_TRANSFER,
		.has_times = until != 0,
		.bytes = bytes,
		.since_ns = since,
		.until_ns = until,
	};
	uint8_t data[1024];

	/* Partly compressible. */
	memset(data, 0x55, sizeof(data));
	dice_fill(dice, data, bytes / 2);
	bc_raw_block_add(block, &entry, data);
}

static inline void raw_add_break(
	struct bc_raw_block *block, enum bc_gap_cause cause, bool is_restart, uint64_t lost_bytes)
{
	struct bc_raw_entry entry = {
		.kind = BC_RAW_BREAK,
		.cause = (uint8_t)cause,
		.is_restart = is_restart,
		.duration_ns = 1234567890123,
		.lost_bytes = lost_bytes,
		.lost = cause == BC_GAP_BOARD ? 77 : 0,
	};

	bc_raw_block_add(block, &entry, NULL);
}

static inline void raw_fill(struct raw_blocks *r)
{
	struct dice dice = {.state = 11};
	uint64_t offset = 0;

	for (unsigned i = 0; i < RAW_BLOCKS; i++) {
		struct bc_raw_block *b = &r->blocks[i];
		bc_raw_block_reset(b);
		b->form = BC_FORMAT_RAW6;
		b->recording_tag = bc_recording_tag(RAW_RECORDING);
		b->offset = offset;
		switch (i) {
		case 0:
			raw_add_transfer(b, &dice, 100, 10, 1000);
			raw_add_transfer(b, &dice, 62, 1000, 2000);
			break;
		case 1: /* only breaks */
			raw_add_break(b, BC_GAP_UNPLUGGED, true, 0);
			raw_add_break(b, BC_GAP_BUFFER, false, 600);
			break;
		case 2:
			raw_add_transfer(b, &dice, 512, 5000, 6000);
			raw_add_break(b, BC_GAP_BOARD, false, 0);
			break;
		case 3: /* 512 bytes end with 2 bytes of a sample: 4 follow */
			b->lead = 4;
			raw_add_transfer(b, &dice, 34, 7000, 7000);
			break;
		case 4:
			raw_add_transfer(b, &dice, 60, 0, 0);
			raw_add_transfer(b, &dice, 6, 0, 0); /* and one more sample */
			break;
		}
		offset += bc_raw_block_span(b);
	}
}

static inline void raw_make(struct raw_blocks *r, struct temp_dir *dir)
{
	struct bc_segment_header header = raw_header(0);
	struct bc_segment_writer writer;
	uint8_t *encoded = malloc(BC_RAW_ENCODED_MAX);

	r->blocks = calloc(RAW_BLOCKS, sizeof(*r->blocks));
	r->stream = malloc(4096);
	assert_non_null(encoded);
	assert_non_null(r->blocks);
	assert_non_null(r->stream);
	raw_fill(r);
	assert_int_equal(bc_raw_create(&writer, dir->fd, RAW_NAME, BC_PARTIAL_SUFFIX, &header,
				 BC_FORMAT_RAW6),
		0);
	for (unsigned i = 0; i < RAW_BLOCKS; i++) {
		size_t n = bc_raw_encode(encoded, &r->blocks[i]);
		r->offset[i] = writer.file.bytes;
		assert_int_equal(bc_raw_append(&writer, encoded, n), 0);
		memcpy(r->stream + r->stream_bytes, r->blocks[i].data, r->blocks[i].bytes);
		r->stream_bytes += r->blocks[i].bytes;
	}
	assert_true(temp_exists(dir, RAW_NAME ".partial"));
	assert_int_equal(bc_segment_seal(&writer), 0);
	assert_int_equal(writer.file.fd, -1);
	r->file = temp_read(dir, RAW_NAME, &r->file_bytes);
	r->offset[RAW_BLOCKS] = r->file_bytes - BC_RAW_END_BYTES;
	free(encoded);
}

/* Corrects the end of a capture made from parts of others: its last bytes. */
static inline void raw_set_end(uint8_t *capture, size_t bytes, uint32_t blocks)
{
	size_t at = bytes - BC_RAW_END_BYTES;

	bc_raw_end_write(capture + at, blocks, at);
}

static inline void raw_free(struct raw_blocks *r)
{
	free(r->blocks);
	free(r->file);
	free(r->stream);
}

/* Returns the number of a block that was read. Checks that it is identical to the original. */
static inline unsigned raw_which(const struct raw_blocks *r, const struct bc_raw_block *found)
{
	unsigned i = 0;

	while (i < RAW_BLOCKS &&
		(r->blocks[i].offset != found->offset || r->blocks[i].entries != found->entries))
		i++;
	assert_true(i < RAW_BLOCKS);
	const struct bc_raw_block *b = &r->blocks[i];
	assert_int_equal(found->form, b->form);
	assert_int_equal(found->lead, b->lead);
	assert_int_equal(found->recording_tag, b->recording_tag);
	assert_int_equal(found->bytes, b->bytes);
	assert_memory_equal(found->data, b->data, b->bytes);
	for (uint32_t e = 0; e < b->entries; e++) {
		const struct bc_raw_entry *x = &b->table[e];
		const struct bc_raw_entry *y = &found->table[e];
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->cause, y->cause);
		assert_int_equal(x->has_times, y->has_times);
		assert_int_equal(x->is_continued, y->is_continued);
		assert_int_equal(x->is_restart, y->is_restart);
		assert_int_equal(x->bytes, y->bytes);
		assert_int_equal(x->since_ns, y->since_ns);
		assert_int_equal(x->until_ns, y->until_ns);
		assert_int_equal(x->lost, y->lost);
	}
	return i;
}

#endif
