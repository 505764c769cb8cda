/* The notice of a sealed file is delivered even if memory is exhausted when the file is sealed: its
 * command has to run. This program replaces malloc(). */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/open_segment.h"
#include "daemon/store/recording_info.h"
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

static void append_chunk(struct bc_segment_writer *writer, uint64_t tag)
{
	struct bc_chunk *chunk = calloc(1, sizeof(*chunk));

	assert_non_null(chunk);
	bc_chunk_reset(chunk, 0, 0);
	chunk->info.recording_tag = tag;
	chunk->info.records = 10;
	segment_append(writer, chunk, 0, 0);
	free(chunk);
}

static unsigned count(const struct bc_open_segment *open, enum bc_writer_notice_kind kind)
{
	unsigned n = 0;

	for (const struct bc_writer_notice *i = open->notices; i != NULL; i = i->next)
		n += i->kind == kind;
	return n;
}

TEST(the_notice_of_a_sealed_file_needs_no_memory)
{
	struct temp_dir dir;
	struct bc_recording_info info;
	struct bc_open_segment open;

	temp_dir_make(&dir);
	memset(&open, 0, sizeof(open));
	open.dir = dir.path;
	open.dir_fd = dir.fd;
	assert_int_equal(bc_catalogue_open(&open.catalogue, dir.fd), 0);
	open.segment.file.fd = -1;
	bc_thread_health_init(&open.health);
	bc_recording_info_init(&info);
	strcpy(info.header.recording, "20261120T091500Z-3f9a2c");
	info.tag = bc_recording_tag(info.header.recording);
	bc_open_segment_start(&open, &info);
	for (uint32_t i = 0; i < 2; i++) {
		struct bc_segment_header header = info.header;
		header.segment = i;
		assert_true(bc_open_segment_create(&open, &header));
		append_chunk(&open.segment, info.tag);
		is_exhausted = true;
		assert_true(bc_open_segment_cut(&open));
		is_exhausted = false;
		assert_int_equal(count(&open, BC_NOTICE_SEALED), i + 1);
	}
	/* Without memory for it, a segment is not created. */
	struct bc_segment_header header = info.header;
	header.segment = 2;
	is_exhausted = true;
	assert_false(bc_open_segment_create(&open, &header));
	is_exhausted = false;
	assert_true(bc_open_segment_create(&open, &header));
	bc_open_segment_abandon(&open);
	bc_writer_notices_free(open.notices);
	bc_open_segment_destroy(&open);
	bc_log_limits_end(&open.limits);
	bc_thread_health_destroy(&open.health);
	bc_recording_info_destroy(&info);
	bc_catalogue_stop(open.catalogue);
	temp_dir_remove(&dir);
}

#endif
