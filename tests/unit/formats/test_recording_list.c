/* The listing of a directory, and what it leads to, against a model: 1,000 random directories with
 * copies, damaged, foreign and vanished files. */
#include <dlfcn.h>
#include <errno.h>

#include "formats/recording/recording_summary.h"
#include "formats/recording/segments.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define DIRECTORIES 1000u
#define FILES_MAX   24u
#define ID          "20261120T091500Z-3f9a2c"

static const char *const ids[] = {
	ID, ID "-boot", "20261120T091500Z-3f9a2d", "20261121T000000Z-000000"};
static const uint32_t numbers[] = {0, 1, 2, 99999, 100000};
static const unsigned forms[] = {0, 0, 0, 0, 1, 2, 10}; /* which ".damaged" */
static const char *const places[] = {"", "host1", "host2"};
/* With a segment each, which is not listed. */
static const char *const hidden[] = {".hidden", "lost+found", "host1/below"};
#define OTHER_NAMES "notes", ID "-00000.byu", ID "-00000.byu.lz4.gz", ID "-1.byu.lz4"

enum content { OURS, OTHERS, TEXT };

/* A file as the model knows it. */
struct made {
	struct bc_segment_name name;
	unsigned place;
	enum content content;
	char path[BC_RECORDING_PATH_MAX];
	bool is_listed;
	bool is_gone;
};

struct fixture {
	struct temp_dir dir;
	struct dice dice;
	struct made made[FILES_MAX];
	unsigned count;
	struct bc_recording_list list;
	struct bc_recording_summary summary;
	unsigned faults;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->dice.state = 1;
	assert_int_equal(mkdirat(f->dir.fd, "host1", 0700), 0);
	assert_int_equal(mkdirat(f->dir.fd, "host2", 0700), 0);
	for (size_t i = 0; i < COUNT_OF(hidden); i++) {
		char path[80];
		snprintf(path, sizeof(path), "%s/%s-00007.byu.lz4", hidden[i], ID);
		assert_int_equal(mkdirat(f->dir.fd, hidden[i], 0700), 0);
		temp_write(&f->dir, path, "", 0);
	}
	static const char *const others[] = {OTHER_NAMES};
	for (size_t i = 0; i < COUNT_OF(others); i++)
		temp_write(&f->dir, others[i], "", 0);
}

static void tear_down(struct fixture *f)
{
	char command[120];

	bc_recording_list_free(&f->list);
	snprintf(command, sizeof(command), "rm -r %s", f->dir.path);
	assert_int_equal(system(command), 0);
	close(f->dir.fd);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void write_file(struct fixture *f, const struct made *made)
{
	struct bc_segment_header header = {
		.segment = made->name.segment, .sequence = 1, .program = "buscapd 0"};
	uint8_t *bytes = NULL;
	size_t n = 0;

	if (made->content == TEXT) {
		temp_write(&f->dir, made->path, "text", 4);
		return;
	}
	strcpy(header.recording, made->name.recording);
	if (made->content == OTHERS)
		header.segment += 17;
	assert_int_equal(bc_segment_header_write(&bytes, &n, &header), 0);
	temp_write(&f->dir, made->path, bytes, n);
	free(bytes);
}

static struct made *find_made(struct fixture *f, const char *path)
{
	for (unsigned i = 0; i < f->count; i++)
		if (strcmp(f->made[i].path, path) == 0)
			return &f->made[i];
	return NULL;
}

static void set_path(struct made *made)
{
	char name[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(name, &made->name);
	snprintf(made->path, sizeof(made->path), "%s%s%s", places[made->place],
		made->place != 0 ? "/" : "", name);
}

static void make_files(struct fixture *f)
{
	unsigned count = dice_below(&f->dice, FILES_MAX + 1);

	f->count = 0;
	while (count-- != 0) {
		struct made made = {.place = dice_below(&f->dice, COUNT_OF(places)),
			.content = dice_below(&f->dice, 4) != 0 ? OURS
								: dice_below(&f->dice, 2) + 1};
		strcpy(made.name.recording, ids[dice_below(&f->dice, COUNT_OF(ids))]);
		made.name.segment = numbers[dice_below(&f->dice, COUNT_OF(numbers))];
		made.name.damaged = forms[dice_below(&f->dice, COUNT_OF(forms))];
		made.name.is_partial = made.name.damaged == 0 && dice_below(&f->dice, 3) == 0;
		set_path(&made);
		if (find_made(f, made.path) != NULL)
			continue;
		write_file(f, &made);
		f->made[f->count++] = made;
	}
}

static void remove_files(struct fixture *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (!f->made[i].is_gone)
			assert_int_equal(unlinkat(f->dir.fd, f->made[i].path, 0), 0);
}

/* The order of a recording's files, as text. */
static void rank(char out[80], const struct bc_recording_list *list, const struct made *made)
{
	unsigned place = 0;

	while (strcmp(list->dirs[place].name, places[made->place]) != 0)
		place++;
	snprintf(out, 80, "%010u %04u %u", made->name.segment,
		made->name.damaged != 0 ? 1 + made->name.damaged : made->name.is_partial, place);
}

static bool has_readable_before(const struct fixture *f, const char *place, const struct made *made)
{
	char other[80];

	for (unsigned i = 0; i < f->count; i++) {
		const struct made *one = &f->made[i];
		rank(other, &f->list, one);
		if (one->name.damaged == 0 && one->name.segment == made->name.segment &&
			strcmp(one->name.recording, made->name.recording) == 0 &&
			strcmp(other, place) < 0)
			return true;
	}
	return false;
}

static void check_file(struct fixture *f, const struct bc_recording *recording,
	const struct bc_recording_file *file, const char *place, struct made *made)
{
	enum bc_file_state state = made->name.damaged != 0               ? BC_FILE_DAMAGED
				   : has_readable_before(f, place, made) ? BC_FILE_COPY
				   : made->name.is_partial               ? BC_FILE_UNSEALED
									 : BC_FILE_SEALED;

	assert_false(made->is_listed);
	made->is_listed = true;
	assert_string_equal(recording->id, made->name.recording);
	assert_int_equal(file->state, state);
}

static void check_list(struct fixture *f)
{
	const struct bc_recording_list *list = &f->list;
	char path[BC_RECORDING_PATH_MAX];
	uint32_t next = 0;

	assert_int_equal(list->dir_count, COUNT_OF(places));
	assert_int_equal(list->file_count, f->count);
	for (uint32_t r = 0; r < list->count; r++) {
		const struct bc_recording *recording = &list->recordings[r];
		char before[80] = "";
		assert_true(r == 0 || strcmp(recording[-1].id, recording->id) < 0);
		assert_int_equal(recording->first, next);
		assert_true(recording->count != 0);
		next += recording->count;
		assert_ptr_equal(bc_recording_find(list, recording->id), recording);
		for (uint32_t i = recording->first; i < next; i++) {
			char place[80];
			bc_recording_file_path(path, list, recording, &list->files[i]);
			struct made *made = find_made(f, path);
			assert_non_null(made);
			rank(place, list, made);
			assert_true(strcmp(before, place) < 0);
			strcpy(before, place);
			check_file(f, recording, &list->files[i], place, made);
		}
	}
	assert_int_equal(next, f->count);
}

static void check_search(struct fixture *f)
{
	for (size_t bytes = 0; bytes <= sizeof(ID "-boot"); bytes += 3) {
		char text[sizeof(ID "-boot") + 1] = "";
		const struct bc_recording *first;
		uint32_t wanted = 0;
		strncat(text, ID "-boot", bytes);
		for (uint32_t r = 0; r < f->list.count; r++)
			wanted += strncmp(f->list.recordings[r].id, text, strlen(text)) == 0;
		bool is_exact = bc_recording_find(&f->list, text) != NULL;
		assert_int_equal(
			bc_recording_find_all(&f->list, text, &first), is_exact ? 1 : wanted);
		if (wanted != 0)
			assert_int_equal(strncmp(first->id, text, strlen(text)), 0);
	}
}

/* Deletes some files, and seals others. */
static void change_files(struct fixture *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct made *made = &f->made[i];
		struct made sealed = *made;
		unsigned what = dice_below(&f->dice, 4);
		if (what == 0) {
			assert_int_equal(unlinkat(f->dir.fd, made->path, 0), 0);
			made->is_gone = true;
		} else if (what == 1 && made->name.is_partial) {
			sealed.name.is_partial = false;
			set_path(&sealed);
			if (find_made(f, sealed.path) != NULL)
				continue;
			assert_int_equal(
				renameat(f->dir.fd, made->path, f->dir.fd, sealed.path), 0);
			*made = sealed;
		}
	}
}

static void on_fault(void *context, const char *path, int error)
{
	struct fixture *f = context;
	const struct made *made = find_made(f, path);

	assert_non_null(made);
	assert_int_equal(error, made->content == OTHERS ? -EXDEV : -EBADMSG);
	f->faults++;
}

/* Checks the summary of a recording whose files were listed as `paths`, and have changed since. */
static void check_summary(struct fixture *f, const struct bc_recording *recording)
{
	const struct bc_summary_io io = {.context = f, .fault = on_fault};
	struct bc_recording_summary *s = &f->summary;
	struct bc_recording_summary wanted = {.segments = 0};

	f->faults = 0;
	assert_int_equal(bc_recording_summarize(s, f->dir.fd, &f->list, recording, &io), 0);
	for (uint32_t i = recording->first; i < recording->first + recording->count; i++) {
		struct bc_recording_file file = f->list.files[i];
		char path[BC_RECORDING_PATH_MAX];
		if (!bc_recording_file_is_read(&file))
			continue;
		bc_recording_file_path(path, &f->list, recording, &file);
		const struct made *made = find_made(f, path);
		if (file.is_partial && (made == NULL || made->is_gone)) { /* may be sealed by now */
			file.is_partial = false;
			bc_recording_file_path(path, &f->list, recording, &file);
			made = find_made(f, path);
		}
		if (made == NULL || made->is_gone)
			continue;
		wanted.segments += made->content != OTHERS;
		wanted.unread += made->content == TEXT;
		wanted.foreign += made->content == OTHERS;
		if (made->content == OTHERS)
			continue;
		wanted.is_open = wanted.is_open || made->name.is_partial;
		strcpy(wanted.path, made->path);
	}
	assert_int_equal(s->segments, wanted.segments);
	assert_int_equal(s->unread, wanted.unread);
	assert_int_equal(s->foreign, wanted.foreign);
	assert_int_equal(f->faults, wanted.unread + wanted.foreign);
	assert_int_equal(s->is_open, wanted.is_open);
	assert_string_equal(s->path, wanted.path);
	assert_true(s->has_start);
	assert_false(s->has_end);
	assert_false(s->is_counted && s->segments != 0); /* no index */
}

TEST_F(a_directory_is_listed_as_its_names_say_whatever_happens_to_its_files)
{
	for (unsigned n = 0; n < DIRECTORIES; n++) {
		make_files(f);
		assert_int_equal(bc_recording_list_read(&f->list, f->dir.fd, true), 0);
		check_list(f);
		check_search(f);
		change_files(f);
		for (uint32_t r = 0; r < f->list.count; r++)
			check_summary(f, &f->list.recordings[r]);
		bc_recording_list_free(&f->list);
		remove_files(f);
	}
}

/* The directory in which the first file is sealed right after it was listed, or -1. */
static int sealing_fd = -1;

struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*next)(DIR *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "readdir");
	struct dirent *file = next(dir);
	if (file != NULL && sealing_fd >= 0 &&
		strcmp(file->d_name, ID "-00001.byu.lz4.partial") == 0)
		assert_int_equal(
			renameat(sealing_fd, file->d_name, sealing_fd, ID "-00001.byu.lz4"), 0);
	return file;
}

static int open_in(void *context, const char *path)
{
	const struct fixture *f = context;

	return openat(f->dir.fd, path, O_RDONLY | O_CLOEXEC);
}

TEST_F(a_segment_that_is_sealed_while_the_directory_is_read_is_read_once)
{
	const struct bc_segment_io io = {.context = f, .open = open_in};
	char path[BC_RECORDING_PATH_MAX];
	unsigned read = 0;

	temp_write(&f->dir, ID "-00001.byu.lz4.partial", "", 0);
	sealing_fd = f->dir.fd;
	assert_int_equal(bc_recording_list_read(&f->list, f->dir.fd, false), 0);
	sealing_fd = -1;
	assert_int_equal(f->list.count, 1);
	for (uint32_t i = 0; i < f->list.file_count; i++) {
		struct bc_segment_file file = {.io = &io};
		if (!bc_recording_file_is_read(&f->list.files[i]))
			continue;
		bc_recording_file_path(path, &f->list, f->list.recordings, &f->list.files[i]);
		assert_true(bc_segment_file_open(&file, path));
		bc_segment_file_close(&file);
		assert_string_equal(path, ID "-00001.byu.lz4");
		read++;
	}
	assert_int_equal(read, 1);
}

TEST_F(a_subdirectory_that_can_not_be_read_does_not_hide_the_others)
{
	uid_t user = geteuid();

	temp_write(&f->dir, "host1/" ID "-00000.byu.lz4", "", 0);
	temp_write(&f->dir, "host2/" ID "-00001.byu.lz4", "", 0);
	assert_int_equal(fchmod(f->dir.fd, 0755), 0);
	assert_int_equal(fchmodat(f->dir.fd, "host1", 0755, 0), 0);
	assert_int_equal(fchmodat(f->dir.fd, "host2", 0, 0), 0);
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(bc_recording_list_read(&f->list, f->dir.fd, true), 0);
	if (user == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(fchmodat(f->dir.fd, "host2", 0700, 0), 0);
	assert_int_equal(f->list.dir_count, COUNT_OF(places));
	for (uint16_t i = 0; i < f->list.dir_count; i++)
		assert_int_equal(f->list.dirs[i].error,
			strcmp(f->list.dirs[i].name, "host2") == 0 ? -EACCES : 0);
	assert_int_equal(f->list.file_count, 1);
}
