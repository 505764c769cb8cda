/* The notice of a sealed file is delivered even if memory is exhausted when the file is sealed: its
 * command has to run. This program replaces malloc(). */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/catalogue_listing.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/rotator.h"
#include "tests/support/compressor.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* Not with sanitizers, which replace malloc() themselves. */
TEST(the_notice_of_a_sealed_file_needs_no_memory)
{
	skip();
}

#else

/* glibc's function, whose public name is defined here. */
void *__libc_malloc(size_t bytes);

static bool is_exhausted;

void *malloc(size_t bytes)
{
	return is_exhausted && bytes == sizeof(struct bc_writer_notice) ? NULL
									: __libc_malloc(bytes);
}

/* Encodes a chunk of a recording. */
static struct bc_encoded *encode_chunk(const struct bc_recording_info *recording)
{
	struct bc_chunk *chunk = calloc(1, sizeof(*chunk));
	struct bc_encoded *e = calloc(1, sizeof(*e));

	assert_non_null(chunk);
	assert_non_null(e);
	bc_chunk_reset(chunk, 0, 0);
	chunk->info.recording_tag = recording->tag;
	chunk->info.records = 10;
	e->recording = recording;
	e->data = e->room;
	e->bytes = bc_chunk_encode(e->data, chunk, &test_compressor, &e->pages, &e->header_bytes);
	e->info = chunk->info;
	free(chunk);
	return e;
}

static unsigned count(const struct bc_rotator *r, enum bc_writer_notice_kind kind)
{
	unsigned n = 0;

	for (const struct bc_writer_notice *i = r->notices; i != NULL; i = i->next)
		n += i->kind == kind;
	return n;
}

TEST(the_notice_of_a_sealed_file_needs_no_memory)
{
	struct bc_queue encoded;
	struct bc_writer_options options = {
		.rules = {.sync_ns = 1}, .lag_bytes = 1 << 20, .encoded = &encoded};
	struct temp_dir dir;
	struct bc_recording_info info;
	struct bc_rotator r;

	temp_dir_make(&dir);
	assert_int_equal(bc_queue_init(&encoded, 1), 0);
	assert_int_equal(bc_catalogue_open(&options.catalogue, dir.fd), 0);
	options.dir = dir.path;
	options.dir_fd = dir.fd;
	assert_int_equal(bc_rotator_init(&r, &options), 0);
	bc_recording_info_init(&info);
	strcpy(info.header.recording, "20261120T091500Z-3f9a2c");
	info.tag = bc_recording_tag(info.header.recording);
	struct bc_encoded *e = encode_chunk(&info);
	assert_true(bc_rotator_start(&r, &info));
	for (uint32_t i = 0; i < 2; i++) {
		e->state = BC_ENCODED_CHUNK;
		assert_true(bc_rotator_write(&r, e));
		is_exhausted = true;
		assert_true(bc_rotator_cut(&r));
		while (r.sealing != 0) {
			usleep(100);
			bc_rotator_take(&r);
		}
		is_exhausted = false;
		assert_int_equal(count(&r, BC_NOTICE_SEALED), i + 1);
	}
	/* Without memory for it, a segment is not created. */
	e->state = BC_ENCODED_CHUNK;
	is_exhausted = true;
	assert_false(bc_rotator_write(&r, e));
	is_exhausted = false;
	assert_true(bc_rotator_write(&r, e));
	bc_rotator_close(&r);
	bc_rotator_destroy(&r);
	free(e);
	bc_recording_info_destroy(&info);
	bc_queue_destroy(&encoded);
	bc_catalogue_stop(options.catalogue);
	temp_dir_remove(&dir);
}

#endif
