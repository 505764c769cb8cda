/* Two steps: bc_operands_open() finds out what each word is, which may ask the daemon; list_files()
 * makes the files of it, and may be called again. A row is a file and its key: rows of a directory
 * have the keys of their names, so that nothing is opened; keys of named files are read from the
 * file, from as little of it as is intact. Rows are sorted by key; other files stay in place. */
#include "cli/io/operands.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/file.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "formats/base/grow.h"
#include "formats/base/user_paths.h"
#include "formats/codec/input.h"
#include "formats/recording/segments.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"

/* ---- what the words are */

/* True if a word may be an id, or the beginning of one: 20261120T091500Z-3f9a2c-label. */
static bool may_be_id(const char *word)
{
	static const char pattern[] = "00000000T000000Z-xxxxxx";
	size_t i = 0;

	for (; word[i] != '\0' && pattern[i] != '\0'; i++) {
		unsigned char c = (unsigned char)word[i];
		if (pattern[i] == '0'       ? !isdigit(c)
			: pattern[i] == 'x' ? !isxdigit(c)
					    : word[i] != pattern[i])
			return false;
	}
	return i != 0 &&
	       (word[i] == '\0' || (word[i] == '-' && strlen(word) < BC_RECORDING_ID_MAX &&
					   strchr(word, '/') == NULL));
}

/* The directory where a daemon without options records, if it exists: the user's or the system's.
 * Returns NULL if there is none, or if a socket was named. */
static char *find_default_dir(const char *socket)
{
	static const char system_dir[] = BC_SYSTEM_DIR;
	char user_dir[4096];
	const char *dirs[] = {
		bc_user_dir(user_dir, sizeof(user_dir)) ? user_dir : system_dir, system_dir};

	if (socket != NULL || getenv("BUSCAP_SOCKET") != NULL)
		return NULL;
	for (unsigned i = 0; i < 2; i++) {
		int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		close(fd);
		return strdup(dirs[i]);
	}
	return NULL;
}

/* Asks the daemon for its directory: for a word that may be an id, or because no words were given.
 * Without a daemon, this is the directory where it would record. Returns NULL after an error. */
static char *find_daemon_dir(
	struct bc_operands *o, const char *word, const char *socket, enum bc_exit *code)
{
	struct bc_client *client;
	char *dir = NULL;

	*code = bc_client_open(&client, o->console, socket);
	if (*code != BC_EXIT_OK)
		return NULL;
	*code = bc_client_directory(client, &dir);
	if (*code == BC_EXIT_UNREACHABLE && (dir = find_default_dir(socket)) != NULL) {
		bc_print_error(o->console, NULL, "can't reach a daemon; reading %s", dir);
		*code = BC_EXIT_OK;
	}
	if (*code != BC_EXIT_OK)
		bc_print_error(o->console, word, "%s: %s: %s",
			word != NULL ? "no such file, and an id can't be looked up"
				     : "no files given, and the daemon's directory is not known",
			bc_client_path(client), bc_client_error(client));
	bc_client_close(client);
	return dir;
}

/* Prints the first few of several recordings whose ids begin with a word. */
static enum bc_exit print_ambiguous(const struct bc_operands *o, const char *word,
	const struct bc_recording *first, uint32_t count)
{
	char ids[3 * (BC_RECORDING_ID_MAX + 2)] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < count && i < 3; i++)
		used += (size_t)snprintf(
			ids + used, sizeof(ids) - used, "%s%s", i != 0 ? ", " : "", first[i].id);
	bc_print_error(o->console, word,
		"the ids of %" PRIu32 " recordings begin with this: %s%s; give more of one", count,
		ids, count > 3 ? ", ..." : "");
	return BC_EXIT_USAGE;
}

/* Lists an operand's directory. Returns 0 or a negative errno. */
static int read_operand_dir(const struct bc_operand *operand, struct bc_recording_list *list,
	const struct bc_recording **begin, const struct bc_recording **end)
{
	int fd = open(operand->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd >= 0 ? 0 : -errno;

	*list = (struct bc_recording_list){.count = 0};
	if (rc == 0) {
		rc = bc_recording_list_read(list, fd, true);
		close(fd);
	}
	*begin = list->recordings;
	*end = list->count != 0 ? list->recordings + list->count : NULL;
	if (operand->id != NULL) {
		*begin = bc_recording_find(list, operand->id);
		*end = *begin != NULL ? *begin + 1 : NULL;
	}
	return rc;
}

/* Looks up a recording in the daemon's directory. */
static enum bc_exit find_id(
	struct bc_operands *o, struct bc_operand *operand, const char *word, const char *socket)
{
	struct bc_recording_list list;
	const struct bc_recording *begin;
	const struct bc_recording *end;
	enum bc_exit code;

	*operand = (struct bc_operand){
		.path = find_daemon_dir(o, word, socket, &code), .is_dir = true};
	if (operand->path == NULL)
		return code;
	int rc = read_operand_dir(operand, &list, &begin, &end);
	if (rc != 0)
		return bc_print_error(o->console, operand->path, "can't open: %s", strerror(-rc));
	uint32_t count = bc_recording_find_all(&list, word, &begin);
	if (count > 1) {
		code = print_ambiguous(o, word, begin, count);
	} else if (count == 0) {
		code = bc_print_error(o->console, word,
			"no such file, and no recording with this id in %s; see buscap record list",
			operand->path);
	} else if ((operand->id = strdup(begin->id)) == NULL) {
		code = bc_print_no_memory(o->console);
	}
	bc_recording_list_free(&list);
	return code;
}

static enum bc_exit find_operand(
	struct bc_operands *o, struct bc_operand *operand, const char *word, const char *socket)
{
	struct stat st = {0};
	bool is_file = strcmp(word, "-") == 0 || stat(word, &st) == 0;

	if (!is_file && errno == ENOENT && may_be_id(word))
		return find_id(o, operand, word, socket);
	if (!is_file)
		return bc_print_error(o->console, word, "can't open: %s%s", strerror(errno),
			errno == ENOENT ? "; check the name" : "");
	*operand = (struct bc_operand){.path = strdup(word), .is_dir = S_ISDIR(st.st_mode)};
	return operand->path != NULL ? BC_EXIT_OK : bc_print_no_memory(o->console);
}

enum bc_exit bc_operands_open(struct bc_operands *o, const struct bc_console *console,
	const char *const *words, int count, const char *socket)
{
	struct stat in;

	*o = (struct bc_operands){
		.console = console, .all = calloc((size_t)count + 1, sizeof(*o->all))};
	if (o->all == NULL)
		return bc_print_no_memory(console);
	if (count == 0 && fstat(console->in, &in) == 0 &&
		(S_ISFIFO(in.st_mode) || S_ISREG(in.st_mode)))
		return bc_print_usage_error(
			console, "standard input is not read; use -, or name files");
	if (bc_check_inputs(console, words, count) != BC_EXIT_OK)
		return BC_EXIT_USAGE;
	if (count == 0) {
		o->all[0] = (struct bc_operand){
			.path = find_daemon_dir(o, NULL, socket, &o->exit), .is_dir = true};
		o->count = o->all[0].path != NULL;
	}
	for (int i = 0; i < count; i++) {
		struct bc_operand operand = {.path = NULL};
		enum bc_exit code = find_operand(o, &operand, words[i], socket);
		if (code == BC_EXIT_OK) {
			o->all[o->count++] = operand;
			continue;
		}
		free(operand.path);
		free(operand.id);
		o->exit = bc_exit_worse(o->exit, code);
	}
	return o->count != 0 && o->exit <= BC_EXIT_FAILED ? BC_EXIT_OK : o->exit;
}

void bc_operands_close(struct bc_operands *o)
{
	for (int i = 0; i < o->count; i++) {
		free(o->all[i].path);
		free(o->all[i].id);
		if (o->all[i].fd != 0)
			close(o->all[i].fd);
	}
	free(o->all);
	*o = (struct bc_operands){.all = NULL};
}

bool bc_operands_have_file(const struct bc_operands *o, const char *path)
{
	for (int i = 0; i < o->count; i++)
		if (!o->all[i].is_dir && strcmp(o->all[i].path, path) == 0)
			return true;
	return false;
}

/* ---- directories */

/* Returns whether a recording has a file that is read. */
static bool is_readable(const struct bc_recording_list *list, const struct bc_recording *recording)
{
	for (uint32_t i = 0; i < recording->count; i++)
		if (bc_recording_file_is_read(&list->files[recording->first + i]))
			return true;
	return false;
}

enum bc_exit bc_operand_list(const struct bc_operands *o, const struct bc_operand *operand,
	struct bc_recording_list *list, const struct bc_recording **begin,
	const struct bc_recording **end)
{
	int rc = read_operand_dir(operand, list, begin, end);
	enum bc_exit code = BC_EXIT_OK;
	char path[4096];
	bool is_empty = true;

	if (rc != 0)
		return bc_print_error(o->console, operand->path, "can't open: %s", strerror(-rc));
	bc_give_way(operand->path);
	for (uint16_t i = 1; i < list->dir_count; i++) {
		snprintf(path, sizeof(path), "%s/%s", operand->path, list->dirs[i].name);
		bc_give_way(path);
		if (list->dirs[i].error == 0)
			continue;
		code = bc_print_error(
			o->console, path, "can't open: %s", strerror(-list->dirs[i].error));
	}
	for (const struct bc_recording *r = *begin; is_empty && r != *end; r++)
		is_empty = !is_readable(list, r);
	if (!is_empty)
		return code;
	return bc_print_error(o->console, operand->path,
		"no segments in this directory; name the files if they have other names");
}

/* ---- keys */

/* What segments are sorted by: recording and number. */
struct key {
	bool is_segment; /* or can't be read, or is too damaged to tell */
	bool is_known;   /* tag and segment are */
	bool has_index;
	uint64_t tag;                /* of the recording */
	struct bc_segment_name name; /* the recording is empty while only its tag is known */
};

/* How far to search a file for an intact header or chunk. */
#define HEAD_BYTES (4u << 20)

static void name_by_header(struct key *key, const struct bc_segment_header *header)
{
	key->is_known = true;
	key->tag = bc_recording_tag(header->recording);
	key->name.segment = header->segment;
	strcpy(key->name.recording, header->recording);
}

/* Searches for the first header or chunk, which identifies the segment. */
static void find_identity(struct key *key, struct bc_input *input)
{
	static const uint64_t ends[] = {BC_PROBE_BYTES, HEAD_BYTES};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_reader *reader = NULL;
	int rc = chunk != NULL ? bc_input_segments(input, &reader) : -ENOMEM;

	for (int i = 0; rc == 0 && i < 2 && !key->is_known; i++) {
		rc = bc_segment_reader_range(reader, 0, ends[i]);
		int found = rc == 0 ? bc_segment_read(reader, chunk) : BC_FOUND_END;
		while (found == BC_FOUND_DAMAGE || found == BC_FOUND_INDEX)
			found = bc_segment_read(reader, chunk);
		if (found == BC_FOUND_SEGMENT) {
			name_by_header(key, bc_segment_reader_header(reader));
		} else if (found == BC_FOUND_CHUNK) {
			key->is_known = true;
			key->tag = chunk->info.recording_tag;
			key->name.segment = chunk->info.segment;
		}
	}
	bc_segment_reader_close(reader);
	free(chunk);
}

/* Takes the recording from the file's name, unless the chunks' tag contradicts it. */
static void name_by_file(struct key *key, const char *path)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(path)))
		return;
	key->name.is_partial = name.is_partial;
	if (key->name.recording[0] != '\0')
		return;
	if (!key->is_known || bc_recording_tag(name.recording) == key->tag) {
		strcpy(key->name.recording, name.recording);
		key->name.segment = key->is_known ? key->name.segment : name.segment;
		key->is_known = true;
		key->tag = bc_recording_tag(name.recording);
	}
}

/* Copies of a segment are equal, whatever their frames. */
static struct key key_of_name(const struct bc_segment_name *name)
{
	struct key key = {.is_segment = true,
		.is_known = true,
		.tag = bc_recording_tag(name->recording),
		.name = *name};

	key.name.frames = BC_FRAMES_LZ4;
	return key;
}

/* Reads the key of a regular file, under any name, from its header or, if that is damaged, its
 * first intact chunk. The rest comes from the file's name. Prints no errors. */
static struct key read_key(const char *path)
{
	struct key key = {.is_segment = true};
	struct bc_segment_header header;
	struct bc_index_head head;
	struct bc_probe probe;
	struct bc_input *input;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return key;
	if (bc_segment_header_load(&header, fd) == 0) {
		name_by_header(&key, &header);
		key.has_index = bc_segment_index_read_head(&head, fd) == 0;
	} else if (bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
			   BC_FORMAT_UNKNOWN, BC_WINDOW_LOG, &probe) == 0) {
		key.is_segment = probe.format == BC_FORMAT_SEGMENT;
		if (key.is_segment)
			find_identity(&key, input);
		bc_input_close(input);
	}
	close(fd);
	name_by_file(&key, path);
	return key;
}

/* Orders named recordings first, then unnamed ones by tag, then what is not known. Of copies of a
 * segment, those with an index come first, because they are whole. 0: neither. */
static int compare_segment_keys(const struct key *a, const struct key *b)
{
	bool has_name = a->name.recording[0] != '\0';

	if (a->is_known != b->is_known)
		return a->is_known ? -1 : 1;
	if (!a->is_known)
		return 0;
	if (has_name != (b->name.recording[0] != '\0'))
		return has_name ? -1 : 1;
	if (!has_name && a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	int order = bc_segment_name_compare(&a->name, &b->name);
	if (order == 0 && a->has_index != b->has_index)
		return a->has_index ? -1 : 1;
	return order;
}

/* ---- files */

struct row {
	char *path;
	struct key key;
	bool is_listed; /* by its directory */
	int given;      /* its place among the operands' files */
	int first;      /* place of the first row of its recording */
};

struct rows {
	struct row *rows;
	size_t count;
	size_t capacity;
};

static char *join(const char *dir, const char *file)
{
	size_t bytes = strlen(dir);
	const char *slash = bytes != 0 && dir[bytes - 1] == '/' ? "" : "/";
	char *path;

	return asprintf(&path, "%s%s%s", dir, slash, file) >= 0 ? path : NULL;
}

/* Adds a row without a path. Returns NULL if out of memory. */
static struct row *add_row(struct rows *rows)
{
	struct row *grown = bc_grow(rows->rows, &rows->capacity, rows->count, sizeof(*grown));

	if (grown == NULL)
		return NULL;
	rows->rows = grown;
	grown[rows->count] = (struct row){.path = NULL};
	return &grown[rows->count++];
}

static int add_recording(struct rows *rows, const struct bc_operand *operand,
	const struct bc_recording_list *list, const struct bc_recording *recording)
{
	char path[BC_RECORDING_PATH_MAX];

	for (uint32_t i = 0; i < recording->count; i++) {
		const struct bc_recording_file *file = &list->files[recording->first + i];
		if (!bc_recording_file_is_read(file))
			continue;
		bc_recording_file_path(path, list, recording, file);
		struct row *row = add_row(rows);
		if (row == NULL || (row->path = join(operand->path, path)) == NULL)
			return -ENOMEM;
		const struct bc_segment_name name = bc_recording_file_name(recording, file);
		row->key = key_of_name(&name);
		row->is_listed = true;
	}
	return 0;
}

/* Adds the files of an operand. `exit` is NULL if nothing is printed. */
static int add_operand(struct rows *rows, const struct bc_operands *o,
	const struct bc_operand *operand, enum bc_exit *exit)
{
	struct bc_recording_list list;
	const struct bc_recording *at;
	const struct bc_recording *end;
	int rc = 0;

	if (!operand->is_dir) {
		if (exit != NULL)
			bc_give_way(operand->path);
		struct row *row = add_row(rows);
		return row != NULL && (row->path = strdup(operand->path)) != NULL ? 0 : -ENOMEM;
	}
	if (exit != NULL)
		*exit = bc_exit_worse(*exit, bc_operand_list(o, operand, &list, &at, &end));
	else
		rc = read_operand_dir(operand, &list, &at, &end);
	for (; rc == 0 && at != end; at++)
		rc = add_recording(rows, operand, &list, at);
	bc_recording_list_free(&list);
	return rc;
}

/* ---- checks */

/* True if a file with this header is to be read. If the file is from a directory and has the name
 * of another segment, prints that it is skipped. */
static bool accept_header(
	const struct bc_operands *o, const char *path, const struct bc_segment_header *header)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(path)) ||
		(strcmp(name.recording, header->recording) == 0 &&
			name.segment == header->segment) ||
		bc_operands_have_file(o, path))
		return true;
	bc_print_error(o->console, path,
		"skipped: by its header it is segment %" PRIu32 " of %s; name the file to read it",
		header->segment, header->recording);
	return false;
}

int bc_operands_open_picture(const struct bc_operands *o, const char *path)
{
	for (int i = 0; i < o->count; i++)
		if (o->all[i].fd != 0 && strcmp(o->all[i].path, path) == 0)
			return fcntl(o->all[i].fd, F_DUPFD_CLOEXEC, 0);
	return -1;
}

int bc_operands_open_segment(const struct bc_operands *o, const char *path, bool *has_header)
{
	struct bc_segment_header header;
	struct stat st;
	int fd = bc_operands_open_picture(o, path);
	int error;

	*has_header = fd >= 0;
	if (fd >= 0)
		return fd;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		error = EINVAL;
	} else {
		*has_header = bc_segment_header_load(&header, fd) == 0;
		if (!*has_header || accept_header(o, path, &header))
			return fd;
		error = EXDEV;
	}
	close(fd);
	errno = error;
	return -1;
}

/* Returns false if a file of a directory is to be left out. */
static bool check_row(const struct bc_operands *o, const struct row *row, enum bc_exit *exit)
{
	bool has_header;

	if (!row->is_listed)
		return true;
	if (!bc_segment_path_find(row->path))
		return false; /* deleted since it was listed */
	int fd = bc_operands_open_segment(o, row->path, &has_header);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || (error != EINVAL && error != EXDEV))
		return true; /* reading it reports why it can't be */
	if (error == EINVAL)
		bc_print_error(o->console, row->path, "skipped: not a file");
	*exit = bc_exit_worse(*exit, BC_EXIT_DAMAGED);
	return false;
}

static void check_rows(const struct bc_operands *o, struct rows *rows, enum bc_exit *exit)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (check_row(o, &rows->rows[i], exit))
			rows->rows[kept++] = rows->rows[i];
		else
			free(rows->rows[i].path);
	}
	rows->count = kept;
}

/* ---- order */

/* Reads the keys of the files that were named. */
static void read_keys(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->rows[i];
		const char *path = row->path;
		if (row->is_listed || !bc_are_regular_files(&path, 1))
			continue;
		row->key = read_key(path);
	}
}

/* If only the tag of a recording is known, another of the files may have its name. */
static void share_names(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct key *key = &rows->rows[i].key;
		for (size_t j = 0;
			key->is_known && key->name.recording[0] == '\0' && j < rows->count; j++)
			if (rows->rows[j].key.is_known && rows->rows[j].key.tag == key->tag)
				strcpy(key->name.recording, rows->rows[j].key.name.recording);
	}
}

/* Segments by their keys, then the others as given. */
static int compare_keys(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;
	int order = 0;

	if (x->key.is_segment != y->key.is_segment)
		return x->key.is_segment ? -1 : 1;
	if (x->key.is_segment)
		order = compare_segment_keys(&x->key, &y->key);
	return order != 0 ? order : (x->given > y->given) - (x->given < y->given);
}

static int compare_groups(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
				    : compare_keys(a, b);
}

static bool is_same_recording(const struct row *a, const struct row *b)
{
	return a->key.is_known && b->key.is_known && a->key.tag == b->key.tag;
}

/* Sets `first` of the rows, which are sorted by their keys. */
static void find_groups(struct rows *rows)
{
	size_t end;

	for (size_t i = 0; i < rows->count; i = end) {
		int first = rows->rows[i].given;
		for (end = i + 1;
			end < rows->count && is_same_recording(&rows->rows[i], &rows->rows[end]);
			end++)
			if (rows->rows[end].given < first)
				first = rows->rows[end].given;
		for (size_t at = i; at < end; at++)
			rows->rows[at].first = first;
	}
}

/* Damaged files whose recording is not known are taken for one of the others'. */
static bool is_one_recording(const struct rows *rows)
{
	const struct row *known = NULL;

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->rows[i];
		if (!row->key.is_segment ||
			(known != NULL && row->key.is_known && !is_same_recording(row, known)))
			return false;
		known = row->key.is_known ? row : known;
	}
	return true;
}

/* Moves the rows that are no segments, which are sorted last, back to their places. Each is at or
 * before the place where it is now. */
static void restore_others(struct rows *rows)
{
	size_t first = rows->count;

	while (first != 0 && !rows->rows[first - 1].key.is_segment)
		first--;
	for (; first < rows->count; first++) {
		struct row other = rows->rows[first];
		size_t to = (size_t)other.given;
		memmove(&rows->rows[to + 1], &rows->rows[to], (first - to) * sizeof(other));
		rows->rows[to] = other;
	}
}

static void sort_rows(struct rows *rows, unsigned how, struct bc_files *files)
{
	if ((how & (BC_FILES_SORTED | BC_FILES_GROUPED)) == 0 || rows->count < 2)
		return;
	for (size_t i = 0; i < rows->count; i++)
		rows->rows[i].given = (int)i;
	read_keys(rows);
	share_names(rows);
	qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_keys);
	files->is_one_recording = is_one_recording(rows);
	if ((how & BC_FILES_GROUPED) != 0) {
		find_groups(rows);
		qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_groups);
	} else {
		restore_others(rows);
	}
}

/* ---- lists */

/* Makes the list of the rows, and takes their paths. */
static int make_files(struct bc_files *files, const struct rows *rows)
{
	files->paths = calloc(rows->count + 1, sizeof(*files->paths));
	files->groups = calloc(rows->count + 1, sizeof(*files->groups));
	if (files->paths == NULL || files->groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++) {
		files->paths[i] = rows->rows[i].path;
		if (i != 0)
			files->groups[i] = files->groups[i - 1] +
					   (rows->rows[i].first != rows->rows[i - 1].first);
	}
	files->count = (int)rows->count;
	return 0;
}

/* `exit` is NULL if nothing is printed. */
static int list_files(
	const struct bc_operands *o, unsigned how, struct bc_files *files, enum bc_exit *exit)
{
	struct rows rows = {.rows = NULL};
	int rc = 0;

	*files = (struct bc_files){.is_one_recording = true};
	for (int i = 0; rc == 0 && i < o->count; i++)
		if (!o->all[i].is_dir || (how & BC_FILES_NAMED) == 0)
			rc = add_operand(&rows, o, &o->all[i], exit);
	if (rc == 0 && (how & BC_FILES_CHECKED) != 0)
		check_rows(o, &rows, exit);
	if (rc == 0) {
		sort_rows(&rows, how, files);
		rc = make_files(files, &rows);
	}
	for (size_t i = 0; rc != 0 && i < rows.count; i++)
		free(rows.rows[i].path);
	free(rows.rows);
	return rc;
}

enum bc_exit bc_operands_read(struct bc_operands *o, struct bc_files *files,
	const struct bc_console *console, const char *const *words, int count, unsigned how)
{
	static const char *const standard_input[] = {"-"};
	bool is_stdin = count == 0 && (how & BC_FILES_STDIN) != 0;
	enum bc_exit code;

	*o = (struct bc_operands){.all = NULL};
	*files = (struct bc_files){.exit = BC_EXIT_USAGE};
	if (is_stdin && isatty(console->in))
		return bc_print_usage_error(console, "no file given");
	code = bc_operands_open(
		o, console, is_stdin ? standard_input : words, is_stdin ? 1 : count, NULL);
	files->exit = code;
	if (code != BC_EXIT_OK)
		return code;
	code = o->exit;
	if (list_files(o, how, files, &code) != 0)
		return bc_print_no_memory(console);
	files->exit = code;
	if (files->count != 0 || (how & BC_FILES_NAMED) != 0)
		return BC_EXIT_OK;
	if (code == BC_EXIT_OK)
		bc_print_error(console, NULL, "nothing to read: the files were deleted");
	return bc_exit_worse(code, BC_EXIT_FAILED);
}

int bc_operands_list_again(const struct bc_operands *o, struct bc_files *files)
{
	return list_files(o, 0, files, NULL);
}

void bc_files_free(struct bc_files *files)
{
	for (int i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	free(files->groups);
	*files = (struct bc_files){.paths = NULL};
}
