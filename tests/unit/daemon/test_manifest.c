#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/retention.h"
#include "formats/segment/manifest.h"
#include "tests/support/header_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define REC      "20261120T091500Z-3f9a2c"
#define OTHER    "20261120T091501Z-3f9a2c"
#define MANIFEST REC ".xxh128"
#define FIRST    REC "-00000.byu.lz4"
#define SECOND   REC "-00001.byu.lz4"
#define HASH     "0123456789abcdef0123456789abcdef"
#define HASH2    "fedcba9876543210fedcba9876543210"
#define LINE     HASH "  " FIRST "\n"
#define LINE2    HASH2 "  " SECOND "\n"

static void set_up(struct temp_dir *dir)
{
	signal(SIGXFSZ, SIG_IGN);
	bc_log_set_level(BC_LOG_ERROR);
	temp_dir_make(dir);
}

TEST_FIXTURE(temp_dir, set_up, temp_dir_remove)

static void assert_file(const struct temp_dir *dir, const char *name, const char *text)
{
	size_t n;
	uint8_t *bytes = temp_read(dir, name, &n);

	bytes[n] = '\0';
	assert_string_equal((char *)bytes, text);
	free(bytes);
}

TEST_WITH(temp_dir, dir, each_file_gets_a_line)
{
	assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), -ENOENT);
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), 0);
	assert_file(dir, MANIFEST, LINE);
	assert_int_equal(bc_manifest_add(dir->fd, REC, SECOND, HASH2), 0);
	assert_file(dir, MANIFEST, LINE LINE2);
	assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), 0);
	assert_int_equal(bc_manifest_find(dir->fd, REC, SECOND, NULL), 0);
	assert_int_equal(bc_manifest_find(dir->fd, REC, "00001.byu.lz4", NULL), -ENOENT);
	assert_int_equal(bc_manifest_find(dir->fd, OTHER, FIRST, NULL), -ENOENT);
}

TEST_WITH(temp_dir, dir, add_truncates_a_last_line_torn_at_any_byte)
{
	for (size_t n = 0; n < strlen(LINE2); n++) {
		char torn[sizeof(LINE LINE2)];
		snprintf(torn, sizeof(torn), LINE "%.*s", (int)n, LINE2);
		temp_write(dir, MANIFEST, torn, strlen(torn));
		assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), 0);
		assert_int_equal(bc_manifest_find(dir->fd, REC, SECOND, NULL), -ENOENT);
		assert_int_equal(bc_manifest_add(dir->fd, REC, SECOND, HASH2), 0);
		assert_file(dir, MANIFEST, LINE LINE2);
	}
}

TEST_WITH(temp_dir, dir, add_truncates_an_only_line_torn_at_any_byte)
{
	for (size_t n = 0; n < strlen(LINE); n++) {
		temp_write(dir, MANIFEST, LINE, n);
		assert_int_equal(bc_manifest_add(dir->fd, REC, SECOND, HASH2), 0);
		assert_file(dir, MANIFEST, LINE2);
	}
}

TEST_WITH(temp_dir, dir, a_write_that_fails_at_any_byte_changes_nothing)
{
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), 0);
	for (size_t bytes = 0; bytes < strlen(LINE2); bytes++) {
		set_file_limit(strlen(LINE) + bytes);
		int rc = bc_manifest_add(dir->fd, REC, SECOND, HASH2);
		set_file_limit(RLIM_INFINITY);
		assert_int_equal(rc, -EFBIG);
		assert_file(dir, MANIFEST, LINE);
	}
}

TEST_WITH(temp_dir, dir, other_files_are_left_alone)
{
	char long_line[1000];

	memset(long_line, 'x', sizeof(long_line));
	temp_write(dir, MANIFEST, long_line, sizeof(long_line));
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), -EBADMSG);
	assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), -ENOENT);
	size_t n;
	free(temp_read(dir, MANIFEST, &n));
	assert_int_equal(n, sizeof(long_line));

	assert_int_equal(unlinkat(dir->fd, MANIFEST, 0), 0);
	temp_write(dir, "elsewhere", "", 0);
	assert_int_equal(symlinkat("elsewhere", dir->fd, MANIFEST), 0);
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), -ELOOP);
	assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), -ELOOP);
	assert_file(dir, "elsewhere", "");

	assert_int_equal(unlinkat(dir->fd, MANIFEST, 0), 0);
	assert_int_equal(mkfifoat(dir->fd, MANIFEST, 0600), 0);
	assert_true(bc_manifest_add(dir->fd, REC, FIRST, HASH) < 0); /* without blocking */
	assert_int_equal(bc_manifest_find(dir->fd, REC, FIRST, NULL), -ENOENT);
}

TEST_WITH(temp_dir, dir, a_name_cannot_forge_a_line)
{
	assert_int_equal(bc_manifest_add(dir->fd, REC, "a\nb", HASH), -EINVAL);
	assert_int_equal(bc_manifest_add(dir->fd, "../x", FIRST, HASH), -EINVAL);
	assert_int_equal(temp_dir_empty(dir), 0);
}

static void enforce(const struct temp_dir *dir, uint64_t files, unsigned deleted)
{
	struct bc_retention_rules rules = {.max_use_bytes = 0};
	struct bc_retention_state space;
	struct bc_log_limits limits = {.count = 0};
	struct bc_retention retention = {.jump_ns = 0};
	struct bc_retention_check check = {
		.dir_fd = dir->fd, .rules = &rules, .files = files, .limits = &limits};

	assert_int_equal(bc_retention_enforce(&retention, &space, &check), 0);
	free(retention.known.files);
	assert_int_equal(space.deleted, deleted);
}

TEST_WITH(temp_dir, dir, retention_deletes_a_manifest_with_the_last_file)
{
	header_file_make(dir, FIRST, 0);
	header_file_make(dir, SECOND, 0);
	header_file_make(dir, REC "-00001.bcp1.lz4", 0);
	header_file_make(dir, OTHER "-00000.byu.lz4", 0);
	header_file_make(dir, OTHER "-00001.byu.lz4.partial", 0);
	header_file_make(dir, OTHER "-00002.byu.lz4", 0);
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), 0);
	assert_int_equal(bc_manifest_add(dir->fd, OTHER, "x", HASH), 0);
	enforce(dir, 4, 1); /* the first segment */
	assert_true(temp_exists(dir, MANIFEST));
	temp_write(dir, MANIFEST ".new", "", 0); /* left by a run that was killed */
	enforce(dir, 3, 2);                      /* the second, and its raw capture */
	assert_false(temp_exists(dir, MANIFEST) || temp_exists(dir, MANIFEST ".new"));
	assert_true(temp_exists(dir, OTHER ".xxh128"));
	enforce(dir, 1, 2);
	assert_true(temp_exists(dir, OTHER "-00001.byu.lz4.partial"));
	assert_true(temp_exists(dir, OTHER ".xxh128")); /* a file is still open */
}

TEST_WITH(temp_dir, dir, retention_removes_the_lines_of_deleted_files)
{
	header_file_make(dir, FIRST, 0);
	header_file_make(dir, REC "-00000.raw6.lz4", 0);
	header_file_make(dir, SECOND, 0);
	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), 0);
	assert_int_equal(bc_manifest_add(dir->fd, REC, REC "-00000.raw6.lz4", HASH), 0);
	assert_int_equal(bc_manifest_add(dir->fd, REC, SECOND, HASH2), 0);
	/* Moved away by a user, not deleted by a rule. */
	assert_int_equal(bc_manifest_add(dir->fd, REC, REC "-00002.byu.lz4", HASH), 0);
	enforce(dir, 1, 2);
	assert_file(dir, MANIFEST, LINE2 HASH "  " REC "-00002.byu.lz4\n");
	assert_false(temp_exists(dir, MANIFEST ".new"));
}

TEST_WITH(temp_dir, dir, a_listing_ignores_manifests)
{
	struct bc_segment_list list;

	assert_int_equal(bc_manifest_add(dir->fd, REC, FIRST, HASH), 0);
	assert_int_equal(bc_segments_list(&list, dir->fd, NULL), 0);
	assert_int_equal(list.count, 0);
	free(list.entries);
}
