#include "capture/source/recording_stream.h"

#include <errno.h>
#include <stdio.h>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_FIXTURE(temp_dir, temp_dir_make, temp_dir_remove)

#define RECORDING "20261120T091500Z-3f9a2c"

static struct bc_recording_stream stream_in(char *path)
{
	return (struct bc_recording_stream){
		.path = path, .recording = RECORDING, .fd = -1, .segment = -1};
}

static void assert_reads(struct bc_recording_stream *s, const char *text)
{
	char out[8];

	assert_int_equal(bc_recording_stream_read(s, out, sizeof(out)), strlen(text));
	assert_memory_equal(out, text, strlen(text));
}

TEST_WITH(temp_dir, dir, a_directory_that_is_renamed_or_replaced_is_read_to_its_end)
{
	char moved[sizeof(dir->path) + 8];
	struct bc_recording_stream s = stream_in(dir->path);

	temp_write(dir, RECORDING "-00000.byu.lz4", "a", 1);
	temp_write(dir, RECORDING "-00001.byu.lz4", "b", 1);
	temp_write(dir, RECORDING "-00003.byu.lz4", "c", 1);
	snprintf(moved, sizeof(moved), "%s-moved", dir->path);
	assert_reads(&s, "a");
	assert_int_equal(rename(dir->path, moved), 0);
	assert_reads(&s, "b");
	assert_int_equal(mkdir(dir->path, 0700), 0);
	assert_reads(&s, "c");
	assert_reads(&s, "");
	bc_recording_stream_close(&s);
	assert_int_equal(rename(moved, dir->path), 0);
}

TEST_WITH(temp_dir, dir, a_stream_without_a_directory_or_a_segment_is_an_error)
{
	char path[TEMP_PATH_BYTES];
	char out[8];
	struct bc_recording_stream missing = stream_in(path);
	struct bc_recording_stream empty = stream_in(dir->path);

	temp_path(dir, "missing", path);
	assert_int_equal(bc_recording_stream_read(&missing, out, sizeof(out)), -ENOENT);
	bc_recording_stream_close(&missing);
	assert_int_equal(bc_recording_stream_read(&empty, out, sizeof(out)), -ENOENT);
	bc_recording_stream_close(&empty);
}
