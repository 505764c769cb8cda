/* Raw captures: what is written is read back. From a damaged file a reader returns only original
 * blocks, and reports the damage. */
#include <errno.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/reader/input.h"
#include "formats/segment/recover.h"
#include "tests/support/packed.h"
#include "tests/support/raw_blocks.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
	struct raw_blocks raw;
	struct bc_raw_block *block;
	int copy; /* a file in memory */
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	raw_make(&f->raw, &f->dir);
	f->block = malloc(sizeof(*f->block));
	assert_non_null(f->block);
	f->copy = memfd_create("copy", MFD_CLOEXEC);
	assert_true(f->copy >= 0);
}

static void tear_down(struct fixture *f)
{
	close(f->copy);
	free(f->block);
	raw_free(&f->raw);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

struct findings {
	unsigned blocks;
	bool has[RAW_BLOCKS];
	enum bc_raw_follows follows[RAW_BLOCKS];
	unsigned files;
	unsigned damages;
	bool is_sealed;
	struct bc_segment_damage damage; /* the first */
	struct bc_segment_header header;
	bool has_header;
};

static void write_copy(struct fixture *f, const uint8_t *bytes, size_t n)
{
	assert_int_equal(ftruncate(f->copy, 0), 0);
	assert_int_equal(pwrite(f->copy, bytes, n, 0), n);
	assert_int_equal(lseek(f->copy, 0, SEEK_SET), 0);
}

/* Reads the file. Each block found must be one of those written. */
static struct findings read_all(struct fixture *f)
{
	struct findings found = {.blocks = 0};
	struct bc_segment_reader *reader;
	int what;

	assert_int_equal(bc_segment_reader_open(&reader,
				 (struct bc_input_stream){.fd = f->copy, .wake_fd = -1}, NULL, 0),
		0);
	while ((what = bc_raw_read(reader, f->block)) > BC_FOUND_END) {
		if (what == BC_FOUND_SEGMENT) {
			found.files++;
			found.has_header = bc_segment_reader_header(reader) != NULL;
			if (found.has_header)
				found.header = *bc_segment_reader_header(reader);
		} else if (what == BC_FOUND_CHUNK) {
			unsigned i = raw_which(&f->raw, f->block);
			found.has[i] = true;
			found.follows[i] = bc_segment_reader_follows(reader);
			found.blocks++;
		} else if (what != BC_FOUND_INDEX) {
			assert_int_equal(what, BC_FOUND_DAMAGE);
			const struct bc_segment_damage *damage = bc_segment_reader_damage(reader);
			assert_true(damage->bytes > 0);
			if (found.damages++ == 0)
				found.damage = *damage;
		}
	}
	assert_int_equal(what, BC_FOUND_END);
	assert_int_equal(bc_raw_read(reader, f->block), BC_FOUND_END);
	found.is_sealed = bc_segment_reader_is_sealed(reader);
	bc_segment_reader_close(reader);
	return found;
}

TEST_F(written_blocks_are_read_back)
{
	write_copy(f, f->raw.file, f->raw.file_bytes);
	struct findings found = read_all(f);
	assert_int_equal(found.blocks, RAW_BLOCKS);
	assert_int_equal(found.damages, 0);
	assert_true(found.is_sealed);
	assert_int_equal(found.files, 1);
	assert_true(found.has_header);
	assert_string_equal(found.header.recording, RAW_RECORDING);
	assert_int_equal(found.header.clock_hz, RAW_CLOCK_HZ);
	assert_int_equal(found.follows[0], BC_RAW_FIRST);
	for (unsigned i = 1; i < RAW_BLOCKS; i++)
		assert_int_equal(found.follows[i], BC_RAW_CONTIGUOUS);
	assert_int_equal(f->raw.blocks[4].entries, 1); /* transfers without times are merged */
}

TEST_F(the_lz4_program_prints_the_stream)
{
	struct bc_input *input;
	struct bc_probe probe;
	uint8_t out[4096];
	size_t n = 0;
	ssize_t now;

	write_copy(f, f->raw.file, f->raw.file_bytes);
	struct bc_input_stream stream = {.fd = f->copy, .wake_fd = -1};
	assert_int_equal(bc_input_open(&input, stream, BC_FORMAT_UNKNOWN, &probe), 0);
	assert_int_equal(probe.format, BC_FORMAT_RAW6);
	assert_int_equal(probe.packing, BC_PACKING_LZ4);
	assert_true(probe.is_capture);
	while ((now = bc_input_read(input, out + n, sizeof(out) - n)) > 0)
		n += (size_t)now;
	assert_int_equal(now, 0);
	assert_int_equal(n, f->raw.stream_bytes);
	assert_memory_equal(out, f->raw.stream, n);
	bc_input_close(input);
}

TEST_F(every_prefix_keeps_whole_blocks)
{
	for (size_t n = 0; n < f->raw.file_bytes; n += test_stride(7)) {
		unsigned whole = 0;
		bool is_border = n == 0 || n == BC_EMPTY_FRAME_BYTES;
		write_copy(f, f->raw.file, n);
		for (unsigned i = 0; i < RAW_BLOCKS; i++)
			whole += f->raw.offset[i + 1] <= n;
		for (unsigned i = 0; i <= RAW_BLOCKS; i++)
			is_border |= f->raw.offset[i] == n;
		struct findings found = read_all(f);
		assert_false(found.is_sealed);
		assert_int_equal(found.blocks, whole);
		assert_int_equal(found.damages, is_border ? 0 : 1);
	}
}

TEST_F(a_flipped_bit_costs_no_more_than_its_block)
{
	unsigned harmless = 0;

	for (size_t bit = 0; bit < f->raw.file_bytes * 8; bit += test_stride(15)) {
		size_t at = bit / 8;
		f->raw.file[at] ^= (uint8_t)(1u << bit % 8);
		write_copy(f, f->raw.file, f->raw.file_bytes);
		f->raw.file[at] ^= (uint8_t)(1u << bit % 8);
		struct findings found = read_all(f);
		if (found.damages == 0) {
			/* Another match offset in a run of equal bytes can give the same stream. */
			assert_int_equal(found.blocks, RAW_BLOCKS);
			harmless++;
			continue;
		}
		assert_int_equal(found.damages, 1);
		assert_true(found.damage.offset <= at);
		assert_true(found.damage.offset + found.damage.bytes > at);
		for (unsigned i = 0; i < RAW_BLOCKS; i++) {
			bool is_damaged = f->raw.offset[i] <= at && at < f->raw.offset[i + 1];
			assert_int_equal(found.has[i], !is_damaged);
			if (is_damaged && i != 0 && i + 1 < RAW_BLOCKS)
				assert_int_equal(found.follows[i + 1], BC_RAW_AFTER_HOLE);
		}
	}
	assert_true(harmless < 100);
}

/* Changes one field of a table and updates its hash. */
static bool reads_with(struct fixture *f, size_t at, unsigned bytes, uint64_t value)
{
	uint8_t table[BC_RAW_TABLE_MIN + 8 * BC_RAW_ENTRY_BYTES];
	size_t n = bc_raw_table_bytes(f->raw.file + f->raw.offset[0]);

	assert_true(n != 0 && n <= sizeof(table));
	memcpy(table, f->raw.file + f->raw.offset[0], n);
	if (bytes == 1)
		table[at] = (uint8_t)value;
	else if (bytes == 4)
		bc_write_le32(table + at, (uint32_t)value);
	else
		bc_write_le64(table + at, value);
	bc_write_le64(table + n - BC_HASH_BYTES, XXH3_64bits(table, n - BC_HASH_BYTES));
	return bc_raw_table_read(f->block, table, n);
}

TEST_F(a_table_out_of_range_is_refused)
{
	assert_true(reads_with(f, 32, 8, 12345)); /* any offset is valid */
	assert_int_equal(f->block->offset, 12345);
	assert_false(reads_with(f, 8, 4, BC_RAW_VERSION + 1));
	assert_false(reads_with(f, 12, 4, 0)); /* form */
	assert_false(reads_with(f, 12, 4, 3));
	assert_false(reads_with(f, 16, 4, BC_RAW_BLOCK_BYTES + 1)); /* bytes */
	assert_false(reads_with(f, 16, 4, 161));
	assert_false(reads_with(f, 16, 4, UINT32_MAX));
	assert_false(reads_with(f, 20, 4, BC_FRAME_MAX + 1)); /* length of the frame */
	assert_false(reads_with(f, 24, 4, 1));                /* entries */
	assert_false(reads_with(f, 24, 4, 3));
	assert_false(reads_with(f, 24, 4, UINT32_MAX));
	assert_false(reads_with(f, 28, 4, 6)); /* lead */
	assert_false(reads_with(f, 64, 1, 0)); /* kind of an entry */
	assert_false(reads_with(f, 64, 1, 3));
	assert_false(reads_with(f, 68, 4, UINT32_MAX)); /* bytes of an entry */
	assert_false(reads_with(f, 72, 8, 1001));       /* since after until */
	assert_true(reads_with(f, 72, 8, 1000));
}

TEST_F(impossible_table_lengths_are_refused)
{
	uint8_t in[BC_SKIPPABLE_BYTES];

	bc_write_le32(in, BC_MAGIC_RAW_TABLE);
	for (uint32_t n = 0; n < 4 * BC_RAW_TABLE_MIN; n++) {
		bc_write_le32(in + 4, n);
		bool is_possible = n + 8 >= BC_RAW_TABLE_MIN &&
				   (n + 8 - BC_RAW_TABLE_MIN) % BC_RAW_ENTRY_BYTES == 0;
		assert_int_equal(bc_raw_table_bytes(in), is_possible ? n + 8 : 0);
	}
	bc_write_le32(in + 4, BC_RAW_TABLE_MAX - 8);
	assert_int_equal(bc_raw_table_bytes(in), BC_RAW_TABLE_MAX);
	bc_write_le32(in + 4, BC_RAW_TABLE_MAX - 8 + BC_RAW_ENTRY_BYTES);
	assert_int_equal(bc_raw_table_bytes(in), 0);
	bc_write_le32(in + 4, UINT32_MAX);
	assert_int_equal(bc_raw_table_bytes(in), 0);
	bc_write_le32(in, BC_MAGIC_RAW_HEADER);
	bc_write_le32(in + 4, BC_RAW_TABLE_MIN - 8);
	assert_int_equal(bc_raw_table_bytes(in), 0);
}

TEST_F(a_full_block_is_read)
{
	struct bc_raw_block *full = malloc(sizeof(*full));
	uint8_t *encoded = malloc(BC_RAW_ENCODED_MAX);
	uint8_t *data = malloc(BC_RAW_BLOCK_BYTES);
	struct dice dice = {.state = 3};

	assert_non_null(full);
	assert_non_null(encoded);
	assert_non_null(data);
	dice_fill(&dice, data, BC_RAW_BLOCK_BYTES); /* incompressible */
	bc_raw_block_reset(full);
	full->form = BC_FORMAT_BCP1;
	for (uint32_t i = 0; i < BC_RAW_BLOCK_ENTRIES; i++) {
		uint32_t left = BC_RAW_BLOCK_BYTES - full->bytes;
		uint32_t n = i + 1 < BC_RAW_BLOCK_ENTRIES ? 512 : left;
		struct bc_raw_entry entry = {.kind = BC_RAW_TRANSFER,
			.has_times = true,
			.bytes = n,
			.since_ns = i,
			.until_ns = i + 1};
		assert_true(bc_raw_block_has_room(full, 1, n));
		bc_raw_block_add(full, &entry, data + full->bytes);
	}
	assert_false(bc_raw_block_has_room(full, 1, 0));
	assert_false(bc_raw_block_has_room(full, 0, 1));
	size_t n = bc_raw_encode(encoded, full);
	assert_true(n <= BC_RAW_ENCODED_MAX);
	size_t table_bytes = bc_raw_table_bytes(encoded);
	assert_int_equal(table_bytes, BC_RAW_TABLE_MAX);
	assert_true(bc_raw_table_read(f->block, encoded, table_bytes));
	assert_int_equal(table_bytes + f->block->frame_bytes, n);
	assert_int_equal(bc_raw_frame_read(f->block, encoded + table_bytes), 0);
	assert_memory_equal(f->block->data, data, BC_RAW_BLOCK_BYTES);
	free(data);
	free(encoded);
	free(full);
}

TEST_F(concatenated_files_are_one_stream)
{
	struct raw_blocks *r = &f->raw;
	size_t head = r->offset[0];
	size_t n = r->file_bytes + head;
	uint8_t *both = malloc(n);

	assert_non_null(both);
	/* The second file starts with block 2. */
	memcpy(both, r->file, r->offset[2]);
	memcpy(both + r->offset[2], r->file, head);
	memcpy(both + r->offset[2] + head, r->file + r->offset[2], r->file_bytes - r->offset[2]);
	raw_set_end(both + r->offset[2], n - r->offset[2], 3);
	write_copy(f, both, n);
	struct findings found = read_all(f);
	assert_int_equal(found.files, 2);
	assert_int_equal(found.blocks, RAW_BLOCKS);
	assert_int_equal(found.damages, 0);
	assert_true(found.is_sealed);
	assert_int_equal(found.follows[2], BC_RAW_CONTIGUOUS);

	/* A block is missing. */
	write_copy(f, r->file, r->offset[1]);
	assert_int_equal(
		pwrite(f->copy, both + r->offset[2], n - r->offset[2], (off_t)r->offset[1]),
		n - r->offset[2]);
	found = read_all(f);
	assert_int_equal(found.blocks, RAW_BLOCKS - 1);
	assert_int_equal(found.damages, 0);
	assert_int_equal(found.follows[2], BC_RAW_AFTER_HOLE);
	assert_int_equal(found.follows[3], BC_RAW_CONTIGUOUS);
	free(both);
}

TEST_F(the_end_shows_that_a_block_is_missing)
{
	struct raw_blocks *r = &f->raw;
	size_t cut = r->offset[1] - r->offset[0];

	memmove(r->file + r->offset[0], r->file + r->offset[1], r->file_bytes - r->offset[1]);
	write_copy(f, r->file, r->file_bytes - cut);
	struct findings found = read_all(f);
	assert_int_equal(found.blocks, RAW_BLOCKS - 1);
	assert_false(found.is_sealed);
	assert_int_equal(found.damages, 1);
	assert_int_equal(found.damage.offset, r->offset[RAW_BLOCKS] - cut);
	assert_string_equal(found.damage.what, "the end doesn't match the blocks");
}

static int recover_with(struct fixture *f, struct bc_recovered *recovered, const uint8_t *file,
	size_t n, const struct bc_recover_options *options)
{
	temp_write(&f->dir, "torn", file, n);
	int in = openat(f->dir.fd, "torn", O_RDONLY | O_CLOEXEC);
	int rc = bc_recover(recovered, in, f->dir.fd, "whole", options);
	close(in);
	return rc;
}

/* Recovers the first n bytes of a file. */
static int recover(struct fixture *f, struct bc_recovered *recovered, const uint8_t *file, size_t n,
	const struct bc_progress_cb *progress)
{
	return recover_with(f, recovered, file, n,
		&(struct bc_recover_options){.mode = BC_RECOVER_SALVAGE, .progress = progress});
}

TEST_F(strict_recovery_ignores_only_a_damaged_end)
{
	const struct bc_recover_options strict = {.mode = BC_RECOVER_STRICT};
	struct raw_blocks *r = &f->raw;
	size_t end = r->offset[RAW_BLOCKS];
	struct bc_recovered recovered;

	temp_dir_empty(&f->dir);
	for (size_t n = end + 1; n < r->file_bytes; n++) {
		assert_int_equal(recover_with(f, &recovered, r->file, n, &strict), 0);
		assert_int_equal(recovered.chunks, RAW_BLOCKS);
		assert_int_equal(recovered.damages, 1);
		temp_dir_empty(&f->dir);
	}
	/* A block that starts like the end. */
	bc_write_le32(r->file + r->offset[RAW_BLOCKS - 1], BC_MAGIC_RAW_END);
	assert_int_equal(recover_with(f, &recovered, r->file, end, &strict), -EBADMSG);
	assert_int_equal(recover_with(f, &recovered, r->file, r->file_bytes, &strict), -EBADMSG);
}

TEST_F(recovery_of_a_torn_file_copies_its_whole_blocks)
{
	struct raw_blocks *r = &f->raw;
	struct bc_recovered recovered;

	temp_dir_empty(&f->dir);
	/* Each recovery syncs, which is slow. */
	unsigned step = 5 * test_stride(5);
	for (size_t n = r->file_bytes % step; n <= r->file_bytes; n += step) {
		unsigned whole = 0;
		size_t end = 0;
		for (unsigned i = 0; i < RAW_BLOCKS; i++) {
			if (r->offset[i + 1] > n)
				break;
			whole++;
			end = r->offset[i + 1];
		}
		assert_int_equal(recover(f, &recovered, r->file, n, NULL), 0);
		assert_int_equal(recovered.has_content, n > r->offset[0]);
		assert_int_equal(temp_exists(&f->dir, "whole"), whole != 0);
		if (whole == 0)
			continue;
		assert_true(recovered.is_raw);
		assert_int_equal(recovered.chunks, whole);
		assert_int_equal(recovered.damaged_bytes, n == r->file_bytes ? 0 : n - end);
		assert_true(recovered.damages == 0 || recovered.is_only_torn);
		size_t size;
		uint8_t *bytes = temp_read(&f->dir, "whole", &size);
		assert_int_equal(size, end + BC_RAW_END_BYTES);
		assert_memory_equal(bytes, r->file, end);
		write_copy(f, bytes, size);
		struct findings found = read_all(f);
		assert_int_equal(found.damages, 0);
		assert_true(found.is_sealed);
		free(bytes);
		assert_int_equal(unlinkat(f->dir.fd, "whole", 0), 0);
	}
}

static void count_step(void *context)
{
	unsigned *steps = context;

	(*steps)++;
}

TEST_F(recovery_reports_progress)
{
	struct bc_recovered recovered;
	unsigned steps = 0;
	struct bc_progress_cb listener = {.on_progress = count_step, .context = &steps};

	assert_int_equal(
		recover(f, &recovered, f->raw.file, f->raw.offset[RAW_BLOCKS] - 1, &listener), 0);
	assert_true(steps >= 2); /* listing the blocks, and copying them */
}

TEST_F(recovery_replaces_no_file)
{
	struct bc_recovered recovered;

	temp_write(&f->dir, "whole", "x", 1);
	assert_int_equal(
		recover(f, &recovered, f->raw.file, f->raw.offset[RAW_BLOCKS] - 1, NULL), -EEXIST);
	assert_true(temp_exists(&f->dir, "torn"));
}

TEST_F(recovery_leaves_damaged_blocks_out)
{
	struct raw_blocks *r = &f->raw;
	struct bc_recovered recovered;
	size_t size;

	r->file[r->offset[2] + 20] ^= 1;
	assert_int_equal(recover(f, &recovered, r->file, r->offset[RAW_BLOCKS] - 1, NULL), 0);
	r->file[r->offset[2] + 20] ^= 1;
	assert_int_equal(recovered.chunks, RAW_BLOCKS - 2);
	assert_int_equal(recovered.damages, 2);
	assert_int_equal(recovered.missing, bc_raw_block_span(&r->blocks[2]));
	assert_false(recovered.is_only_torn);
	uint8_t *bytes = temp_read(&f->dir, "whole", &size);
	assert_int_equal(size, r->offset[2] + r->offset[4] - r->offset[3] + BC_RAW_END_BYTES);
	assert_memory_equal(
		bytes + r->offset[2], r->file + r->offset[3], r->offset[4] - r->offset[3]);
	free(bytes);
}

TEST_F(recovery_needs_no_header)
{
	struct raw_blocks *r = &f->raw;
	struct bc_recovered recovered;
	struct bc_probe probe;
	size_t size;

	r->file[30] ^= 1;
	assert_int_equal(recover(f, &recovered, r->file, r->file_bytes, NULL), 0);
	r->file[30] ^= 1;
	assert_int_equal(recovered.chunks, RAW_BLOCKS);
	uint8_t *bytes = temp_read(&f->dir, "whole", &size);
	assert_true(bc_probe(&probe, bytes, size, true, BC_WINDOW_LOG));
	assert_true(probe.is_capture && probe.format == BC_FORMAT_RAW6);
	free(bytes);
}

TEST_F(the_form_is_detected_without_a_header)
{
	struct bc_probe probe;

	for (size_t at = 0; at < f->raw.offset[0]; at++) {
		f->raw.file[at] ^= 0x10;
		assert_true(bc_probe(&probe, f->raw.file, f->raw.file_bytes, true, BC_WINDOW_LOG));
		f->raw.file[at] ^= 0x10;
		assert_int_equal(probe.format, BC_FORMAT_RAW6);
		assert_true(probe.is_capture);
	}
	/* With too few bytes, more are requested. */
	for (size_t n = BC_EMPTY_FRAME_BYTES; n < f->raw.offset[0]; n++)
		assert_false(bc_probe(&probe, f->raw.file, n, false, BC_WINDOW_LOG));
	assert_true(bc_probe(&probe, f->raw.file, f->raw.offset[0], false, BC_WINDOW_LOG));
	assert_true(probe.is_capture);
}

TEST_F(transfers_are_kept_if_the_given_format_matches)
{
	struct bc_input_stream stream = {.fd = f->copy, .wake_fd = -1};
	struct bc_input *input;
	struct bc_probe probe;

	write_copy(f, f->raw.file, f->raw.file_bytes);
	assert_int_equal(bc_input_open(&input, stream, BC_FORMAT_RAW6, &probe), 0);
	assert_true(probe.is_capture && probe.packing == BC_PACKING_LZ4);
	bc_input_close(input);
	write_copy(f, f->raw.file, f->raw.file_bytes);
	assert_int_equal(bc_input_open(&input, stream, BC_FORMAT_BYU, &probe), 0);
	assert_false(probe.is_capture);
	assert_int_equal(probe.packing, BC_PACKING_LZ4);
	assert_int_equal(probe.format, BC_FORMAT_BYU);
	bc_input_close(input);
}

TEST_F(a_compressed_raw_capture_is_refused_with_a_reason)
{
	const struct trace capture = {f->raw.file, f->raw.file_bytes};
	static const enum bc_format given[] = {BC_FORMAT_UNKNOWN, BC_FORMAT_RAW6};
	struct trace packed[PACKED];

	pack_all(packed, &capture);
	for (unsigned i = 0; i < PACKED; i++) {
		char err[100];
		snprintf(err, sizeof(err), "a raw capture compressed with %s; decompress it first",
			bc_packing_name(packings[i]));
		for (unsigned g = 0; g < 2; g++) {
			struct bc_input_stream stream = {.fd = f->copy, .wake_fd = -1};
			struct bc_input *input;
			struct bc_probe probe;
			write_copy(f, packed[i].bytes, packed[i].n);
			assert_int_equal(bc_input_open(&input, stream, given[g], &probe), -EINVAL);
			assert_string_equal(probe.err, err);
		}
		trace_free(&packed[i]);
	}
}

TEST_F(names_of_raw_captures_are_not_segment_names)
{
	static const struct {
		const char *file;
		enum bc_format form;
		bool is_partial;
	} names[] = {
		{RAW_RECORDING "-00000.bcp1.lz4", BC_FORMAT_BCP1, false},
		{RAW_RECORDING "-boot-12345.raw6.lz4.partial", BC_FORMAT_RAW6, true},
	};
	struct bc_segment_name name;
	enum bc_format form;
	char file[BC_SEGMENT_NAME_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(bc_segment_name_read(&name, names[i].file));
		assert_true(bc_raw_name_read(&name, &form, names[i].file));
		assert_int_equal(form, names[i].form);
		assert_int_equal(name.is_partial, names[i].is_partial);
		bc_raw_name_write(file, &name, form);
		assert_string_equal(file, names[i].file);
	}
	assert_false(bc_raw_name_read(&name, &form, RAW_RECORDING "-00000.byu.lz4"));
	assert_false(bc_raw_name_read(&name, &form, RAW_RECORDING "-00000.bcp1"));
	assert_false(bc_raw_name_read(&name, &form, RAW_RECORDING ".bcp1.lz4"));
}
