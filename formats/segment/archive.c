#include "formats/segment/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/free_space.h"
#include "formats/base/json.h"
#include "formats/segment/manifest.h"
#include "formats/segment/raw_capture.h"
#include "formats/segment/segment_name.h"
#include "formats/segment/segment_owner.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"

/* Written at a time: one sync of a whole segment would delay those of a recording. */
#define SYNC_BYTES (16u << 20)

/* A segment or its copy, while it is read. */
struct side {
	struct bc_input_stream file;
	XXH3_state_t *hash; /* of what was read; at the end that of the file */
	struct bc_segment_reader *reader;
	struct bc_chunk chunk;
};

struct archive {
	struct bc_archived *result;
	const struct bc_archive_options *options;
	int dir_fd;
	const char *name;
	char copy[BC_ATOMIC_FILE_NAME_MAX]; /* NAME.archiving */
	bool keeps_copy;                    /* the manifest may have its hash */
	int in;                             /* the segment, locked */
	struct stat st;
	struct bc_segment_header header;
	struct side segment;
	struct side other; /* the copy */
	struct bc_chunk_pages pages;
	uint8_t encoded[BC_CHUNK_ENCODED_MAX];
};

static int reject(struct archive *a, const char *why, const char *what)
{
	snprintf(a->result->why, sizeof(a->result->why), "%s%s", why, what);
	return -EBADMSG;
}

/* Says in which file an error was, if not in the segment. */
static int blame(struct archive *a, const char *file, int rc)
{
	snprintf(a->result->why, sizeof(a->result->why), "%s", file);
	return rc;
}

static void report_bytes(const struct archive *a, uint64_t bytes)
{
	if (a->options->on_bytes != NULL)
		a->options->on_bytes(a->options->context, bytes);
}

static ssize_t read_and_hash(void *context, void *out, size_t size)
{
	struct side *side = context;
	ssize_t n = bc_input_stream_read(side->file, out, size);

	if (n > 0)
		XXH3_128bits_update(side->hash, out, (size_t)n);
	return n;
}

static int open_side(struct archive *a, struct side *side, int fd)
{
	struct bc_input_stream stream = {.fd = fd, .wake_fd = a->options->wake_fd};

	side->file = stream;
	stream.read = read_and_hash;
	stream.context = side;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	side->hash = XXH3_createState();
	if (side->hash == NULL)
		return -ENOMEM;
	XXH3_128bits_reset(side->hash);
	return bc_segment_reader_open(&side->reader, stream, NULL, 0);
}

static void close_side(struct side *side)
{
	bc_segment_reader_close(side->reader);
	side->reader = NULL;
	XXH3_freeState(side->hash);
	side->hash = NULL;
}

/* The header that was read last. Returns NULL if out of memory. */
static json_t *header_json(const struct side *side)
{
	size_t bytes;
	const uint8_t *frame = bc_segment_reader_encoded(side->reader, &bytes);

	return bc_segment_header_json(frame, bytes);
}

/* The header may have members that this version doesn't know. */
static int create_copy(struct archive *a, struct bc_segment_writer *writer)
{
	const char *level = bc_level_names[BC_LEVEL_ARCHIVE];
	json_t *json = header_json(&a->segment);
	int rc = json_object_set_new(json, "compression", json_string(level)) == 0 ? 0 : -ENOMEM;

	if (rc == 0)
		rc = bc_segment_create_copy(writer, a->dir_fd, a->copy, BC_PARTIAL_SUFFIX,
			bc_segment_reader_header(a->segment.reader), BC_FORMAT_SEGMENT, json);
	json_decref(json);
	return rc;
}

/* Writes the chunk that was read last, encoded again. */
static int copy_chunk(struct archive *a, struct bc_segment_writer *writer)
{
	struct side *from = &a->segment;
	uint64_t read_bytes = bc_chunk_encoded_bytes(&from->chunk.info);
	uint64_t gaps;
	uint64_t lost;
	size_t header_bytes;
	const uint8_t *encoded = bc_segment_reader_encoded(from->reader, &header_bytes);

	bc_chunk_encode_again(a->encoded, encoded, header_bytes, &from->chunk, BC_LEVEL_ARCHIVE);
	bc_chunk_gaps(&from->chunk, &gaps, &lost);
	bc_chunk_count(&from->chunk, &a->pages);
	int rc = bc_segment_append(
		writer, a->encoded, header_bytes, &from->chunk.info, gaps, lost, &a->pages.counts);
	if (rc == 0 && writer->file.bytes - writer->file.durable >= SYNC_BYTES)
		rc = bc_atomic_file_sync(&writer->file);
	report_bytes(a, read_bytes + bc_chunk_encoded_bytes(&from->chunk.info));
	return rc;
}

/* Encodes the segment's chunks again, into a writer that is open from the header on. Returns 0 at
 * the end of a sealed segment. */
static int copy_chunks(struct archive *a, struct bc_segment_writer *writer, bool *is_open)
{
	struct side *from = &a->segment;

	for (;;) {
		int rc = 0;
		int found = bc_segment_read(from->reader, &from->chunk);
		switch (found) {
		case BC_FOUND_SEGMENT:
			if (*is_open)
				return reject(a, "several segments in one file", "");
			rc = create_copy(a, writer);
			*is_open = rc == 0;
			break;
		case BC_FOUND_CHUNK:
			rc = *is_open ? copy_chunk(a, writer) : reject(a, "no header", "");
			break;
		case BC_FOUND_INDEX:
			break;
		case BC_FOUND_DAMAGE:
			return reject(a, "damaged: ", bc_segment_reader_damage(from->reader)->what);
		case BC_FOUND_END:
			if (!bc_segment_reader_is_sealed(from->reader))
				return reject(a, "not sealed", "");
			return 0;
		default:
			return found;
		}
		if (rc != 0)
			return rc;
	}
}

/* Checks that the segment, read to its end, has the hash that the manifest lists, if any. */
static int check_hash(struct archive *a)
{
	char listed[BC_FILE_HASH_CHARS];
	char own[BC_FILE_HASH_CHARS];

	int rc = bc_manifest_find(a->dir_fd, a->header.recording, a->name, listed);
	if (rc != 0)
		return rc == -ENOENT ? 0 : blame(a, "its manifest", rc);
	bc_file_hash_format(own, a->segment.hash);
	return strcmp(own, listed) == 0
		       ? 0
		       : reject(a, "it does not have the hash in its manifest", "");
}

static int write_copy(struct archive *a, char hash[BC_FILE_HASH_CHARS])
{
	struct bc_segment_writer writer;
	bool is_open = false;
	int rc = open_side(a, &a->segment, a->in);

	if (rc == 0)
		rc = copy_chunks(a, &writer, &is_open);
	if (rc == 0)
		rc = check_hash(a);
	if (rc == 0)
		rc = bc_segment_seal(&writer);
	if (rc == 0)
		memcpy(hash, writer.file.sealed_hash, BC_FILE_HASH_CHARS);
	else if (is_open) {
		unlinkat(a->dir_fd, writer.file.open_name, 0);
		bc_segment_abandon(&writer);
	}
	close_side(&a->segment);
	return rc;
}

/* Compares all members of the headers, except for the compression. */
static bool is_equal_header(const struct side *a, const struct side *b)
{
	json_t *a_json = header_json(a);
	json_t *b_json = header_json(b);

	json_object_del(a_json, "compression");
	json_object_del(b_json, "compression");
	bool is_equal = json_equal(a_json, b_json) != 0;
	json_decref(a_json);
	json_decref(b_json);
	return is_equal;
}

static bool is_equal_chunk(const struct side *a, const struct side *b)
{
	size_t a_bytes;
	size_t b_bytes;
	const uint8_t *a_header = bc_segment_reader_encoded(a->reader, &a_bytes);
	const uint8_t *b_header = bc_segment_reader_encoded(b->reader, &b_bytes);

	return a_bytes == b_bytes && bc_chunk_header_equal(a_header, b_header, a_bytes) &&
	       memcmp(a->chunk.records, b->chunk.records,
		       (size_t)a->chunk.info.records * BC_RECORD_BYTES) == 0;
}

/* Sets *is_equal to whether the copy has everything that the segment has. */
static int compare_sides(struct archive *a, bool *is_equal)
{
	struct side *x = &a->segment;
	struct side *y = &a->other;

	*is_equal = false;
	for (;;) {
		int found = bc_segment_read(x->reader, &x->chunk);
		if (found < 0)
			return found;
		if (found == BC_FOUND_DAMAGE)
			return reject(a, "damaged: ", bc_segment_reader_damage(x->reader)->what);
		int copied = bc_segment_read(y->reader, &y->chunk);
		if (copied < 0)
			return copied;
		if (copied != found || (found == BC_FOUND_SEGMENT && !is_equal_header(x, y)) ||
			(found == BC_FOUND_CHUNK && !is_equal_chunk(x, y)))
			return 0;
		if (found == BC_FOUND_CHUNK)
			report_bytes(a, bc_chunk_encoded_bytes(&x->chunk.info) +
						bc_chunk_encoded_bytes(&y->chunk.info));
		if (found == BC_FOUND_END) {
			*is_equal = bc_segment_reader_is_sealed(x->reader) &&
				    bc_segment_reader_is_sealed(y->reader);
			return 0;
		}
	}
}

/* Also sets `hash` to that of the copy. */
static int compare_copy(struct archive *a, int copy, bool *is_equal, char hash[BC_FILE_HASH_CHARS])
{
	int rc = open_side(a, &a->segment, a->in);

	if (rc == 0)
		rc = open_side(a, &a->other, copy);
	if (rc == 0)
		rc = compare_sides(a, is_equal);
	if (rc == 0)
		bc_file_hash_format(hash, a->other.hash);
	close_side(&a->segment);
	close_side(&a->other);
	return rc;
}

/* The copy gets the owner, mode and times of the segment. */
static int copy_attributes(const struct archive *a, int copy)
{
	const struct timespec times[2] = {a->st.st_atim, a->st.st_mtim};
	struct stat own;

	if (fstat(copy, &own) != 0)
		return -errno;
	if ((own.st_uid != a->st.st_uid || own.st_gid != a->st.st_gid) &&
		fchown(copy, a->st.st_uid, a->st.st_gid) != 0)
		return -errno;
	if (fchmod(copy, a->st.st_mode & 07777) != 0 || futimens(copy, times) != 0 ||
		fsync(copy) != 0)
		return -errno;
	a->result->bytes_after = (uint64_t)own.st_size;
	return 0;
}

/* Puts the copy, which is equal to the segment, in its place. */
static int replace_segment(struct archive *a, int copy, const char hash[BC_FILE_HASH_CHARS])
{
	bool is_touched;
	int rc = copy_attributes(a, copy);

	if (rc != 0)
		return rc;
	/* The retention rules may just have deleted it. (If they do so between this and the
	 * renaming, they will find it again.) */
	if (faccessat(a->dir_fd, a->name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	rc = bc_manifest_change(a->dir_fd, a->header.recording, a->name, hash, &is_touched);
	a->keeps_copy = a->keeps_copy || is_touched;
	if (rc != 0 && rc != -ENOENT)
		return blame(a, "its manifest", rc);
	if (renameat(a->dir_fd, a->copy, a->dir_fd, a->name) != 0)
		return -errno;
	a->result->is_replaced = true;
	/* If this fails, both names are good after a power cut, too. */
	(void)!fsync(a->dir_fd);
	return 0;
}

/* Compares the copy with the segment and puts it in its place. Deletes it if that fails, unless the
 * manifest may have its hash. `hash` is NULL if an earlier process made the copy. */
static int use_copy(struct archive *a, int copy, const char *hash)
{
	char computed[BC_FILE_HASH_CHARS];
	bool is_equal = false;

	a->keeps_copy = hash == NULL;
	/* Read it from the disk, if the file system allows. */
	posix_fadvise(copy, 0, 0, POSIX_FADV_DONTNEED);
	int rc = compare_copy(a, copy, &is_equal, computed);
	a->keeps_copy = a->keeps_copy && (is_equal || rc != 0);
	if (rc == 0 && !is_equal)
		rc = blame(a, "the copy is different", -EIO);
	if (rc == 0)
		rc = replace_segment(a, copy, hash != NULL ? hash : computed);
	if (rc != 0 && !a->keeps_copy)
		unlinkat(a->dir_fd, a->copy, 0);
	return rc;
}

static int open_copy(const struct archive *a)
{
	return openat(a->dir_fd, a->copy, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Continues with a copy that an earlier process has left. Returns false if there is none, or it was
 * no good. */
static bool use_leftover(struct archive *a, int *rc)
{
	int copy = open_copy(a);

	if (copy < 0)
		return false;
	*rc = use_copy(a, copy, NULL);
	close(copy);
	return *rc == 0 || a->keeps_copy;
}

static bool has_room(const struct archive *a)
{
	struct bc_free_space space = bc_free_space(a->dir_fd);

	return !space.is_known ||
	       space.bytes > (uint64_t)a->st.st_size + a->options->keep_free_bytes;
}

/* Deletes an incomplete copy, left by a process that was killed: this one has the lock. */
static void delete_incomplete(const struct archive *a)
{
	char name[BC_ATOMIC_FILE_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];

	snprintf(name, sizeof(name), "%s%s", a->copy, BC_PARTIAL_SUFFIX);
	unlinkat(a->dir_fd, name, 0);
}

static int make_copy(struct archive *a)
{
	char hash[BC_FILE_HASH_CHARS];

	if (!has_room(a))
		return -ENOSPC;
	int rc = write_copy(a, hash);
	int copy = rc == 0 ? open_copy(a) : -1;
	if (rc == 0 && copy < 0)
		rc = -errno;
	if (rc == 0)
		rc = use_copy(a, copy, hash);
	if (copy >= 0)
		close(copy);
	return rc;
}

/* Loads the segment's header. Returns -ENOTSUP if the file starts like a raw capture. */
static int load_header(struct archive *a)
{
	int rc = bc_segment_header_load(&a->header, a->in);

	if (bc_is_raw_capture(a->in))
		return -ENOTSUP;
	return rc == -EBADMSG ? reject(a, "not a segment, or its header is damaged", "") : rc;
}

/* Opens and locks the segment. */
static int open_segment(struct archive *a)
{
	struct stat now;

	a->in = openat(
		a->dir_fd, a->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (a->in < 0)
		return -errno;
	/* Some network file systems have no such locks. Two copies of a segment are then made at a
	 * time, and one of them is refused. */
	if (flock(a->in, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	if (fstat(a->in, &a->st) != 0 ||
		fstatat(a->dir_fd, a->name, &now, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	if (now.st_ino != a->st.st_ino)
		return -EBUSY; /* another process has just replaced it */
	if (!S_ISREG(a->st.st_mode))
		return reject(a, "not a regular file", "");
	int n = snprintf(a->copy, sizeof(a->copy), "%s%s", a->name, BC_ARCHIVE_SUFFIX);
	if (n < 0 || (size_t)n >= sizeof(a->copy))
		return -ENAMETOOLONG;
	a->result->bytes_before = a->result->bytes_after = (uint64_t)a->st.st_size;
	return load_header(a);
}

static bool is_archived(const struct archive *a)
{
	return strcmp(a->header.compression, bc_level_names[BC_LEVEL_ARCHIVE]) == 0;
}

/* `makes_copy`: not only continues with a copy that was left. */
static int archive_segment(struct bc_archived *archived, int dir_fd, const char *name,
	const struct bc_archive_options *options, bool makes_copy)
{
	struct archive *a = calloc(1, sizeof(*a));

	*archived = (struct bc_archived){.is_replaced = false};
	if (a == NULL)
		return -ENOMEM;
	a->result = archived;
	a->options = options;
	a->dir_fd = dir_fd;
	a->name = name;
	a->in = -1;
	int rc = open_segment(a);
	/* Only they can give the copy the same owner. */
	if (rc == 0 && geteuid() != 0 && geteuid() != a->st.st_uid)
		rc = -EPERM;
	if (rc == 0) {
		delete_incomplete(a);
		if (!is_archived(a) && !use_leftover(a, &rc) && makes_copy)
			rc = make_copy(a);
	}
	if (a->in >= 0)
		close(a->in);
	free(a);
	return rc;
}

int bc_segment_archive(struct bc_archived *archived, int dir_fd, const char *name,
	const struct bc_archive_options *options)
{
	return archive_segment(archived, dir_fd, name, options, true);
}

int bc_segment_archive_prevent(int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own >= 0)
		(void)!flock(own, LOCK_EX | LOCK_NB);
	return own;
}

/* Sets `name` to that of the sealed segment of which `file` is a copy, and `read` to its parts. */
static bool is_copy(char name[BC_SEGMENT_NAME_MAX], struct bc_segment_name *read, const char *file)
{
	const char *suffix = strstr(file, BC_SEGMENT_SUFFIX BC_ARCHIVE_SUFFIX);

	if (suffix == NULL)
		return false;
	size_t n = (size_t)(suffix - file) + strlen(BC_SEGMENT_SUFFIX);
	const char *rest = file + n + strlen(BC_ARCHIVE_SUFFIX);
	if (n >= BC_SEGMENT_NAME_MAX || (rest[0] != '\0' && strcmp(rest, BC_PARTIAL_SUFFIX) != 0))
		return false;
	memcpy(name, file, n);
	name[n] = '\0';
	return bc_segment_name_read(read, name);
}

static bool is_gone(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

/* Deletes a copy of a segment of ours that is gone. A complete one may be all that is left, unless
 * there is a manifest that does not list the segment: then the space rules have deleted it. */
static void delete_orphan(
	int dir_fd, const char *copy, const char *name, const struct bc_segment_name *segment)
{
	bool is_complete = strlen(copy) == strlen(name) + strlen(BC_ARCHIVE_SUFFIX);
	char manifest[BC_RECORDING_ID_MAX + sizeof(BC_MANIFEST_SUFFIX)];
	struct bc_segment_header header;

	if (bc_segment_owner_check(&header, dir_fd, copy, segment, BC_FORMAT_SEGMENT) != 0)
		return;
	snprintf(manifest, sizeof(manifest), "%s" BC_MANIFEST_SUFFIX, segment->recording);
	if (!is_complete ||
		(!is_gone(dir_fd, manifest) &&
			bc_manifest_find(dir_fd, segment->recording, name, NULL) == -ENOENT))
		unlinkat(dir_fd, copy, 0);
}

void bc_segment_archive_recover(int dir_fd, const struct bc_archive_options *options)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *item; (item = readdir(dir)) != NULL;) {
		struct bc_archived archived;
		struct bc_segment_name segment;
		char name[BC_SEGMENT_NAME_MAX];
		if (!is_copy(name, &segment, item->d_name))
			continue;
		if (is_gone(dir_fd, name))
			delete_orphan(dir_fd, item->d_name, name, &segment);
		else
			(void)!archive_segment(&archived, dir_fd, name, options, false);
	}
	closedir(dir);
}
