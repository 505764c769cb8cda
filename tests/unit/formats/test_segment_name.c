#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment_name.h"
#include "tests/support/test.h"

#define RECORDING "20261120T091500Z-3f9a2c"

TEST(a_label_is_letters_digits_dots_underscores_and_dashes)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	for (unsigned c = 1; c < 256; c++) {
		char label[3] = {(char)c};
		bool is_good = strchr(good, (int)c) != NULL;
		assert_int_equal(bc_word_is_valid(label), is_good);
		label[1] = 'x';
		assert_int_equal(bc_word_is_valid(label), is_good);
		label[1] = label[0];
		label[0] = 'x';
		assert_int_equal(bc_word_is_valid(label), is_good);
	}
}

TEST(a_label_has_1_to_64_characters)
{
	char label[BC_LABEL_MAX + 8];

	for (size_t n = 0; n < sizeof(label); n++) {
		memset(label, 'a', n);
		label[n] = '\0';
		assert_int_equal(bc_word_is_valid(label), n >= 1 && n <= 64);
	}
}

TEST(an_id_is_the_utc_start_six_hex_digits_and_the_label)
{
	static const struct {
		int64_t wall_ns;
		uint32_t random;
		const char *label;
		const char *id;
	} cases[] = {
		{INT64_C(1795166100000000000), 0x3F9A2C, "", RECORDING},
		{INT64_C(1795166100999999999), 0x3F9A2C, "boot", RECORDING "-boot"},
		{0, 0, "", "19700101T000000Z-000000"},
		{INT64_C(951782399) * 1000000000, 0xFFFFFF, "-._", "20000228T235959Z-ffffff--._"},
		{INT64_C(951782400) * 1000000000, 0xAB000001, "0", "20000229T000000Z-000001-0"},
		{INT64_MAX, 1, "", "22620411T234716Z-000001"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char id[BC_RECORDING_ID_MAX];
		bc_recording_id_write(id, cases[i].wall_ns, cases[i].random, cases[i].label);
		assert_string_equal(id, cases[i].id);
	}
}

/* In any local time zone. */
TEST(an_id_does_not_depend_on_the_time_zone)
{
	char id[BC_RECORDING_ID_MAX];

	setenv("TZ", "Pacific/Auckland", 1);
	bc_recording_id_write(id, INT64_C(1795166100000000000), 0x3F9A2C, "");
	assert_string_equal(id, RECORDING);
	unsetenv("TZ");
}

TEST(a_name_with_the_longest_label_is_read_back)
{
	char label[BC_LABEL_MAX + 1];
	struct bc_segment_name name = {.segment = 999999999, .is_partial = true};
	struct bc_segment_name back;
	char file[BC_SEGMENT_NAME_MAX];

	memset(label, '9', BC_LABEL_MAX);
	label[BC_LABEL_MAX] = '\0';
	bc_recording_id_write(name.recording, INT64_MAX, UINT32_MAX, label);
	assert_int_equal(strlen(name.recording), 16 + 1 + 6 + 1 + BC_LABEL_MAX);
	bc_segment_name_write(file, &name);
	assert_true(bc_segment_name_read(&back, file));
	assert_string_equal(back.recording, name.recording);
	assert_int_equal(back.segment, name.segment);
	assert_true(back.is_partial);
}

TEST(names_are_written_as_documented)
{
	static const struct {
		uint32_t segment;
		bool is_partial;
		const char *file;
		enum bc_frame_format frames;
	} cases[] = {
		{0, false, RECORDING "-00000.byu.lz4", BC_FRAMES_LZ4},
		{0, true, RECORDING "-00000.byu.lz4.partial", BC_FRAMES_LZ4},
		{7, false, RECORDING "-00007.byu.lz4", BC_FRAMES_LZ4},
		{99999, false, RECORDING "-99999.byu.lz4", BC_FRAMES_LZ4},
		{100000, false, RECORDING "-a100000.byu.lz4", BC_FRAMES_LZ4},
		{123456789, true, RECORDING "-d123456789.byu.lz4.partial", BC_FRAMES_LZ4},
		{UINT32_MAX, true, RECORDING "-e4294967295.byu.lz4.partial", BC_FRAMES_LZ4},
		{7, false, RECORDING "-00007.byu.zst", BC_FRAMES_ZSTD},
		{100000, true, RECORDING "-a100000.byu.zst.partial", BC_FRAMES_ZSTD},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct bc_segment_name name = {.segment = cases[i].segment,
			.is_partial = cases[i].is_partial,
			.frames = cases[i].frames};
		struct bc_segment_name back;
		char file[BC_SEGMENT_NAME_MAX];
		strcpy(name.recording, RECORDING);
		bc_segment_name_write(file, &name);
		assert_string_equal(file, cases[i].file);
		assert_true(bc_segment_name_read(&back, file));
		assert_string_equal(back.recording, RECORDING);
		assert_int_equal(back.segment, cases[i].segment);
		assert_int_equal(back.is_partial, cases[i].is_partial);
		assert_int_equal(back.frames, cases[i].frames);
	}
}

TEST(a_label_that_looks_like_a_number_stays_part_of_the_recording)
{
	struct bc_segment_name name;

	assert_true(bc_segment_name_read(&name, RECORDING "-12345-00003.byu.lz4"));
	assert_string_equal(name.recording, RECORDING "-12345");
	assert_int_equal(name.segment, 3);
	assert_true(bc_segment_name_read(&name, RECORDING "-00001.byu.lz4-00003.byu.lz4"));
	assert_string_equal(name.recording, RECORDING "-00001.byu.lz4");
	assert_int_equal(name.segment, 3);
}

TEST(other_names_are_refused)
{
	static const char *const others[] = {"", ".", "..", ".byu.lz4", ".partial",
		".byu.lz4.partial", "-00000.byu.lz4", "00000.byu.lz4", "x00000.byu.lz4",
		RECORDING ".byu.lz4", RECORDING "-.byu.lz4", RECORDING "-0.byu.lz4",
		RECORDING "-0000.byu.lz4", RECORDING "-0000x.byu.lz4", RECORDING "-0x000.byu.lz4",
		RECORDING "-00000.byu", RECORDING "-00000.lz4", RECORDING "-00000.BYU.LZ4",
		RECORDING "-00000.byu.lz4.", RECORDING "-00000.byu.lz4~",
		RECORDING "-00000.byu.lz4.part", RECORDING "-00000.byu.lz4.partial.partial",
		RECORDING "-00000.byu.lz4.partial.recovering", RECORDING "-00000byu.lz4",
		RECORDING "-00000.partial", RECORDING "-e4294967296.byu.lz4",
		RECORDING "-99999999999999999999.byu.lz4", RECORDING "_00000.byu.lz4",
		RECORDING "- 0000.byu.lz4", RECORDING "-+0000.byu.lz4",
		"x/" RECORDING "-00000.byu.lz4", RECORDING "-100000.byu.lz4",
		RECORDING "-b100000.byu.lz4", RECORDING "-a12345.byu.lz4",
		RECORDING "a100000.byu.lz4", "-a100000.byu.lz4", "a100000.byu.lz4",
		/* each segment has only one valid name */
		RECORDING "-a000000.byu.lz4", RECORDING "-a000001.byu.lz4",
		RECORDING "-a012345.byu.lz4.partial"};

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		struct bc_segment_name name;
		if (bc_segment_name_read(&name, others[i]))
			fail_msg("%s is accepted as a segment", others[i]);
	}
}

TEST(a_recording_id_that_is_too_long_is_refused)
{
	char file[2 * BC_RECORDING_ID_MAX + 32];

	for (size_t n = 1; n < 2 * BC_RECORDING_ID_MAX; n++) {
		struct bc_segment_name name;
		memset(file, 'r', n);
		strcpy(file + n, "-00000.byu.lz4");
		assert_int_equal(bc_segment_name_read(&name, file), n < BC_RECORDING_ID_MAX);
	}
}

TEST(names_sort_by_recording_then_number_then_sealed_first)
{
	static const char *const sorted[] = {
		"20261120T091500Z-3f9a2c-00000.byu.lz4",
		"20261120T091500Z-3f9a2c-00000.byu.lz4.partial",
		"20261120T091500Z-3f9a2c-00001.byu.lz4",
		"20261120T091500Z-3f9a2c-00001.byu.zst",
		"20261120T091500Z-3f9a2c-00002.byu.lz4.partial",
		"20261120T091500Z-3f9a2c-99999.byu.lz4",
		"20261120T091500Z-3f9a2c-a100000.byu.lz4",
		"20261120T091500Z-3f9a2c-e4000000000.byu.lz4",
		"20261120T091500Z-3f9a2c-boot-00000.byu.lz4",
		"20261120T091501Z-000000-00000.byu.lz4",
		"20271120T091500Z-3f9a2c-00000.byu.lz4",
	};
	enum { N = COUNT_OF(sorted) };
	struct bc_segment_name names[N];

	for (int i = 0; i < N; i++)
		assert_true(bc_segment_name_read(&names[i], sorted[i]));
	for (int a = 0; a < N; a++) {
		for (int b = 0; b < N; b++) {
			/* As ls and cat RECORDING-* see them. */
			if (strcmp(names[a].recording, names[b].recording) == 0)
				assert_true((strcmp(sorted[a], sorted[b]) > 0) == (a > b));
			int order = bc_segment_name_compare(&names[a], &names[b]);
			assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
		}
	}
}

TEST(damaged_files_are_numbered)
{
	static const struct {
		const char *file;
		unsigned damaged; /* 0: not a segment's name */
	} cases[] = {
		{RECORDING "-00000.byu.lz4.damaged", 1},
		{RECORDING "-00000.byu.lz4.damaged.2", 2},
		{RECORDING "-00000.byu.lz4.damaged.999", 999},
		{RECORDING "-00000.byu.lz4.damaged.1", 0},
		{RECORDING "-00000.byu.lz4.damaged.02", 0},
		{RECORDING "-00000.byu.lz4.damaged.1000", 0},
		{RECORDING "-00000.byu.lz4.damaged.", 0},
		{RECORDING "-00000.byu.lz4.2", 0},
		{RECORDING "-00000.byu.lz4.partial.damaged", 0},
		{".damaged.2", 0},
		{"2", 0},
	};
	struct bc_segment_name name;
	char file[BC_SEGMENT_NAME_MAX];

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(bc_segment_name_read(&name, cases[i].file), cases[i].damaged != 0);
		if (cases[i].damaged == 0)
			continue;
		assert_false(name.is_partial);
		assert_int_equal(name.damaged, cases[i].damaged);
		bc_segment_name_write(file, &name);
		assert_string_equal(file, cases[i].file);
	}
}
