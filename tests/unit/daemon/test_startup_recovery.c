/* Files that an earlier run left open: what can be read is sealed, and nothing that holds more than
 * a header is deleted unless the sealed copy has everything in it. */
#include "daemon/main/startup_recovery.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/store/manifest.h"
#include "formats/base/bytes.h"
#include "tests/support/log_capture.h"
#include "tests/support/raw_blocks.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define SEALED  SMALL_RECORDING "-00000.byu.lz4"
#define PARTIAL SEALED ".partial"
#define DAMAGED SEALED ".damaged"

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	struct raw_blocks raw;
	struct bc_startup_found found;
	struct log_capture log;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	small_make(&f->segment, f->dir.fd, 0, 0);
	raw_make(&f->raw, &f->dir);
	temp_dir_empty(&f->dir);
	bc_log_set_level(BC_LOG_INFO);
}

static void tear_down(struct fixture *f)
{
	free(f->segment.bytes);
	raw_free(&f->raw);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void on_progress(void *context, const char *file)
{
	(void)context;
	(void)file;
}

/* Starts a run. Returns its log. */
static const char *start(struct fixture *f, unsigned recovered)
{
	log_capture_start(&f->log);
	int rc = bc_startup_recover(&f->found, f->dir.path, f->dir.fd, on_progress, f);
	const char *log = log_capture_stop(&f->log);

	assert_int_equal(rc, 0);
	assert_int_equal(f->found.recovered, recovered);
	return log;
}

static void assert_same(struct fixture *f, const char *name, const uint8_t *bytes, size_t n)
{
	size_t size;
	uint8_t *found = temp_read(&f->dir, name, &size);

	assert_int_equal(size, n);
	assert_memory_equal(found, bytes, n);
	free(found);
}

/* Reads a segment or a raw capture. Returns its whole chunks or blocks; it must have no damage. */
static unsigned count_pieces(struct fixture *f, const char *name, bool is_raw)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_raw_block *block = malloc(sizeof(*block));
	int fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC);
	struct bc_segment_reader *reader;
	unsigned pieces = 0;
	int found;

	assert_true(fd >= 0);
	assert_int_equal(bc_segment_reader_open(&reader,
				 (struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0),
		0);
	while ((found = is_raw ? bc_raw_read(reader, block) : bc_segment_read(reader, chunk)) !=
		BC_FOUND_END) {
		assert_true(found > 0 && found != BC_FOUND_DAMAGE);
		pieces += found == BC_FOUND_CHUNK && (is_raw || chunk->info.records != 0);
	}
	bc_segment_reader_close(reader);
	close(fd);
	free(block);
	free(chunk);
	return pieces;
}

/* Chunks of the small segment that have records. */
#define CHUNKS_WITH_RECORDS (SMALL_CHUNKS - 1)

/* Changes the version in each chunk header, as a later program would write it. */
static void set_version(struct small_segment *s, uint32_t version)
{
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		uint8_t *header = s->bytes + s->chunks[i].begin;
		size_t bytes = bc_chunk_header_bytes(header);
		bc_write_le32(header + 8, version);
		bc_checksum_write(header + bytes - BC_HASH_BYTES, header);
	}
}

TEST_F(a_file_of_a_later_version_is_kept)
{
	set_version(&f->segment, 99);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	const char *log = start(f, 0);
	assert_same(f, DAMAGED, f->segment.bytes, f->segment.index_at);
	assert_false(temp_exists(&f->dir, PARTIAL));
	assert_false(temp_exists(&f->dir, SEALED));
	assert_non_null(strstr(log, "warning"));
	assert_non_null(strstr(log, "buscap recover --mode salvage "));
	assert_non_null(strstr(log, "/" DAMAGED " -o "));
	assert_string_equal(f->found.newest, "");
	assert_string_equal(start(f, 0), "");
	assert_true(temp_exists(&f->dir, DAMAGED));
}

TEST_F(after_damage_in_the_middle_the_original_is_kept)
{
	size_t size = f->segment.index_at;

	f->segment.bytes[f->segment.chunks[2].end - 20] ^= 1;
	temp_write(&f->dir, PARTIAL, f->segment.bytes, size);
	const char *log = start(f, 1);
	assert_same(f, DAMAGED, f->segment.bytes, size);
	assert_false(temp_exists(&f->dir, PARTIAL));
	assert_int_equal(count_pieces(f, SEALED, false), CHUNKS_WITH_RECORDS - 1);
	assert_true(bc_manifest_has(f->dir.fd, SMALL_RECORDING, SEALED));
	assert_null(strstr(log, "after the last whole chunk"));
	assert_non_null(strstr(log, "damaged; recovered 34 records"));
	assert_non_null(strstr(log, DAMAGED));
	assert_string_equal(f->found.newest, SMALL_RECORDING);
	assert_string_equal(start(f, 0), "");
}

TEST_F(a_torn_end_needs_no_original)
{
	size_t last = f->segment.chunks[SMALL_CHUNKS - 1].end;

	temp_write(&f->dir, PARTIAL, f->segment.bytes, last - 1);
	assert_non_null(
		strstr(start(f, 1), "torn; recovered 37 records, lost 9 in the last chunk"));
	assert_int_equal(count_pieces(f, SEALED, false), CHUNKS_WITH_RECORDS - 1);
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));

	/* A power cut can leave zeros. */
	temp_dir_empty(&f->dir);
	memset(f->segment.bytes + last, 0, f->segment.size - last);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.size);
	assert_non_null(strstr(start(f, 1), "torn; recovered 46 records"));
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));
}

TEST_F(only_a_file_without_more_than_a_header_is_deleted)
{
	size_t header = f->segment.chunks[0].begin;

	for (size_t n = 0; n <= header; n += n + 7 < header ? 7 : 1) {
		temp_write(&f->dir, PARTIAL, f->segment.bytes, n);
		assert_non_null(strstr(start(f, 0), "empty, deleted"));
		assert_int_equal(temp_dir_empty(&f->dir), 0);
	}
	temp_write(&f->dir, PARTIAL, "some text that was never a segment", 34);
	assert_non_null(strstr(start(f, 0), "kept as " DAMAGED));
	assert_same(f, DAMAGED, (const uint8_t *)"some text that was never a segment", 34);
}

TEST_F(an_open_file_next_to_a_sealed_one_is_handled_once)
{
	size_t size = f->segment.index_at;

	/* The sealed file has everything: a run was killed before it deleted the original. */
	temp_write(&f->dir, SEALED, f->segment.bytes, f->segment.size);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, size);
	assert_non_null(strstr(start(f, 0), "already recovered by an earlier run; deleted"));
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));
	assert_true(bc_manifest_has(f->dir.fd, SMALL_RECORDING, SEALED));
	assert_same(f, SEALED, f->segment.bytes, f->segment.size);

	/* It has more records, but not these. Twice, so that .damaged exists already. */
	struct small_segment later;
	small_make(&later, f->dir.fd, 1, 100);
	for (unsigned i = 0; i < 2; i++) {
		temp_write(&f->dir, PARTIAL, later.bytes, later.index_at);
		assert_non_null(strstr(start(f, 0), "kept as " DAMAGED));
	}
	assert_same(f, SEALED, f->segment.bytes, f->segment.size);
	assert_same(f, DAMAGED, later.bytes, later.index_at);
	assert_same(f, DAMAGED ".2", later.bytes, later.index_at);
	assert_string_equal(start(f, 0), "");
	free(later.bytes);
}

#define RAW_PARTIAL RAW_NAME ".partial"
#define RAW_DAMAGED RAW_NAME ".damaged"

TEST_F(a_damaged_raw_capture_is_copied_and_kept)
{
	struct raw_blocks *r = &f->raw;

	r->file[r->offset[2] + 20] ^= 1;
	temp_write(&f->dir, RAW_PARTIAL, r->file, r->file_bytes);
	assert_non_null(strstr(start(f, 0), "damaged; recovered"));
	assert_same(f, RAW_DAMAGED, r->file, r->file_bytes);
	assert_int_equal(count_pieces(f, RAW_NAME, true), RAW_BLOCKS - 1);
	assert_true(bc_manifest_has(f->dir.fd, RAW_RECORDING, RAW_NAME));
	assert_string_equal(start(f, 0), "");
	assert_true(temp_exists(&f->dir, RAW_DAMAGED));
}

TEST_F(an_unreadable_raw_capture_is_kept)
{
	struct raw_blocks *r = &f->raw;

	for (unsigned i = 0; i < RAW_BLOCKS; i++)
		r->file[r->offset[i] + 20] ^= 1;
	temp_write(&f->dir, RAW_PARTIAL, r->file, r->file_bytes);
	assert_non_null(strstr(start(f, 0), "buscap recover --mode salvage "));
	assert_same(f, RAW_DAMAGED, r->file, r->file_bytes);
	assert_false(temp_exists(&f->dir, RAW_NAME));
	assert_string_equal(start(f, 0), "");
}

TEST_F(an_open_raw_capture_next_to_a_sealed_one_is_handled_once)
{
	struct raw_blocks *r = &f->raw;

	temp_write(&f->dir, RAW_NAME, r->file, r->file_bytes);
	temp_write(&f->dir, RAW_PARTIAL, r->file, r->file_bytes - 1);
	assert_non_null(strstr(start(f, 0), "already recovered by an earlier run; deleted"));
	assert_false(temp_exists(&f->dir, RAW_PARTIAL) || temp_exists(&f->dir, RAW_DAMAGED));

	temp_write(&f->dir, RAW_NAME, r->file, r->offset[3]);
	temp_write(&f->dir, RAW_PARTIAL, r->file, r->file_bytes);
	assert_non_null(strstr(start(f, 0), "kept as " RAW_DAMAGED));
	assert_same(f, RAW_DAMAGED, r->file, r->file_bytes);
	assert_same(f, RAW_NAME, r->file, r->offset[3]);
	assert_string_equal(start(f, 0), "");
}
