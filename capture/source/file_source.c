/* Reads a file in a thread, as it can't be polled and its server may hang. Delivers it on the loop.
 *
 * The thread fills pieces in a ring; the loop passes them to the sink in order, and leaves a piece
 * that the sink refuses in the ring until it is offered again. A piece is bytes, a chunk of a
 * segment, damage, or the end, which is always the last.
 *
 * Invariant: a piece belongs to the thread until it is counted in `ready`, then to the loop. The
 * loop never waits for the thread: it is joined only after it has said that it has exited, and
 * until then neither the end nor the close is reported. */
#include "capture/source/file_source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/host.h"
#include "formats/base/text.h"
#include "formats/codec/input.h"
#include "formats/segment/sequence_check.h"

#define PIECES      3u
#define PIECE_BYTES (1u << 20)

/* Windows of zstd and dictionaries of xz are limited to 8 MiB, which their levels up to 19 and 6
 * need: a file must not make the daemon allocate as much as it asks for. */
#define WINDOW_LOG 23u

/* Pieces delivered before other handles of the loop get their turn. */
#define PIECES_PER_TURN 4

enum piece_kind { PIECE_BYTES_KIND, PIECE_CHUNK, PIECE_DAMAGE, PIECE_END };

struct piece {
	enum piece_kind kind;
	enum bc_format format;
	size_t count;
	struct bc_missing missing; /* before a chunk */
	int place;                 /* of a chunk: enum bc_sequence_place */
	bool has_header;
	struct bc_segment_header header;
	int status;
	char what[256];
	union {
		uint8_t bytes[PIECE_BYTES];
		struct bc_chunk chunk;
	} content;
};

struct file_source {
	struct bc_source source;
	uv_async_t wake_loop; /* a piece is ready, or the thread has ended */
	struct bc_input_stream stream;
	enum bc_format format;
	enum bc_packing packing; /* used by the thread */
	uv_thread_t thread;
	bool has_thread;
	bool is_over;                      /* the sink gets nothing more, except a pending end */
	bool end_pending;                  /* call sink.end() when the thread has ended */
	bool is_closing;                   /* close the handle when the thread has ended */
	struct bc_sequence_check sequence; /* of the chunks that the thread has read */

	/* Shared with the thread. */
	uv_mutex_t lock;
	uv_cond_t changed;
	unsigned first; /* ring: `ready` pieces starting at pieces[first] are filled */
	unsigned ready;
	bool is_stopping;
	bool has_exited; /* the thread has finished */
	struct piece *pieces;
};

/* Thread: waits for a free piece. Returns NULL if the thread has to stop. */
static struct piece *wait_free(struct file_source *f)
{
	struct piece *piece = NULL;

	uv_mutex_lock(&f->lock);
	while (f->ready == PIECES && !f->is_stopping)
		uv_cond_wait(&f->changed, &f->lock);
	if (!f->is_stopping)
		piece = &f->pieces[(f->first + f->ready) % PIECES];
	uv_mutex_unlock(&f->lock);
	return piece;
}

static void push_piece(struct file_source *f)
{
	uv_mutex_lock(&f->lock);
	f->ready++;
	uv_mutex_unlock(&f->lock);
	uv_async_send(&f->wake_loop);
}

static void push_end(struct file_source *f, int status, const char *what)
{
	struct piece *piece = wait_free(f);

	if (piece == NULL)
		return;
	piece->kind = PIECE_END;
	piece->status = status == -ECANCELED ? 0 : status; /* stopping is not a failure */
	snprintf(piece->what, sizeof(piece->what), "%s", what);
	push_piece(f);
}

static void push_read_error(struct file_source *f, int rc)
{
	char what[128];

	if (rc == -ENOBUFS)
		bc_unpack_too_large(what, sizeof(what), f->packing, WINDOW_LOG);
	else
		snprintf(what, sizeof(what), "%s", strerror(-rc));
	push_end(f, rc, what);
}

static void read_bytes(struct file_source *f, struct bc_input *input, enum bc_format format)
{
	for (;;) {
		struct piece *piece = wait_free(f);
		if (piece == NULL)
			return;
		ssize_t n = bc_input_read(input, piece->content.bytes, PIECE_BYTES);
		if (n == -EBADMSG) {
			push_end(f, (int)n, "compressed data damaged or truncated here");
			return;
		}
		if (n < 0) {
			push_read_error(f, (int)n);
			return;
		}
		if (n == 0) {
			push_end(f, 0, "");
			return;
		}
		piece->kind = PIECE_BYTES_KIND;
		piece->format = format;
		piece->count = (size_t)n;
		push_piece(f);
	}
}

static void set_damage(struct piece *piece, uint64_t offset, uint64_t bytes, const char *what)
{
	piece->kind = PIECE_DAMAGE;
	snprintf(piece->what, sizeof(piece->what), "offset %" PRIu64 ", %" PRIu64 " bytes: %s",
		offset, bytes, what);
}

static void set_duplicate(struct piece *piece, uint64_t offset)
{
	const struct bc_chunk_info *info = &piece->content.chunk.info;
	char what[96];

	snprintf(what, sizeof(what),
		"chunk %" PRIu32 " (%" PRIu32 " record%s) is a duplicate; skipped", info->number,
		info->records, info->records == 1 ? "" : "s");
	set_damage(piece, offset, bc_chunk_encoded_bytes(info), what);
}

/* Reads one item of segments, and finds the place of a chunk. */
static int read_segment(
	struct file_source *f, struct bc_segment_reader *reader, struct piece *piece)
{
	struct bc_chunk *chunk = &piece->content.chunk;
	int found = bc_segment_read(reader, chunk);

	if (found == BC_FOUND_SEGMENT)
		bc_sequence_check_expect(&f->sequence, bc_segment_reader_header(reader));
	if (found != BC_FOUND_CHUNK)
		return found;
	piece->place = bc_sequence_check_chunk(&f->sequence, chunk, &piece->missing);
	return piece->place < 0 ? piece->place : found;
}

/* Reads one item into a piece. Returns false after the last. */
static bool read_piece(struct file_source *f, struct bc_segment_reader *reader)
{
	const struct bc_segment_damage *damage;
	struct piece *piece = wait_free(f);

	if (piece == NULL)
		return false;
	int found = read_segment(f, reader, piece);
	if (found < 0) {
		push_read_error(f, found);
		return false;
	}
	switch ((enum bc_segment_found)found) {
	case BC_FOUND_END:
		if (bc_segment_reader_is_sealed(reader))
			push_end(f, 0, "");
		else
			push_end(f, -EBADMSG, "the segment has no index: still open, or torn");
		return false;
	case BC_FOUND_SEGMENT:
	case BC_FOUND_INDEX:
		return true;
	case BC_FOUND_DAMAGE:
		damage = bc_segment_reader_damage(reader);
		set_damage(piece, damage->offset, damage->bytes, damage->what);
		break;
	case BC_FOUND_CHUNK:
		if (piece->place == BC_SEQUENCE_DUPLICATE) {
			set_duplicate(piece, bc_segment_reader_offset(reader));
			break;
		}
		piece->kind = PIECE_CHUNK;
		piece->format = BC_FORMAT_SEGMENT;
		const struct bc_segment_header *header = bc_segment_reader_header(reader);
		piece->has_header = header != NULL;
		if (header != NULL)
			piece->header = *header;
		break;
	}
	push_piece(f);
	return true;
}

static void read_segments(struct file_source *f, struct bc_input *input)
{
	struct bc_segment_reader *reader;
	int rc = bc_input_segments(input, &reader);

	if (rc != 0) {
		push_end(f, rc, strerror(-rc));
		return;
	}
	while (read_piece(f, reader))
		continue;
	bc_sequence_check_reset(&f->sequence);
	bc_segment_reader_close(reader);
}

static void push_not_bus(struct file_source *f, enum bc_format format)
{
	char what[128];

	snprintf(what, sizeof(what),
		"%s is not a bus trace: convert it to bcp1 or byu with buscap convert",
		bc_format_name(format));
	push_end(f, -EINVAL, what);
}

static void read_all(struct file_source *f)
{
	struct bc_input *input;
	struct bc_probe probe;
	int rc = bc_input_open(&input, f->stream, f->format, WINDOW_LOG, &probe);

	f->packing = probe.packing;
	if (rc == -EINVAL) {
		char what[320];
		bool is_known = f->format != BC_FORMAT_UNKNOWN || probe.is_foreign;
		snprintf(what, sizeof(what), "%s%s%s",
			is_known ? "" : "unknown format: ", probe.err,
			is_known ? "" : "; specify it with file:PATH,format=F");
		push_end(f, rc, what);
		return;
	}
	if (rc != 0) {
		push_end(f, rc, strerror(-rc));
		return;
	}
	if (!bc_format_is_bus(probe.format))
		push_not_bus(f, probe.format);
	else if (probe.format == BC_FORMAT_SEGMENT)
		read_segments(f, input);
	else
		read_bytes(f, input, probe.format);
	bc_input_close(input);
}

static void read_thread(void *context)
{
	struct file_source *f = context;

	read_all(f);
	uv_mutex_lock(&f->lock);
	f->has_exited = true;
	uv_mutex_unlock(&f->lock);
	uv_async_send(&f->wake_loop);
}

/* Passes a piece to the sink. Returns false if the sink is full. */
static bool deliver_piece(struct file_source *f, struct piece *piece)
{
	const struct bc_source_sink *sink = &f->source.sink;
	struct bc_source_data data = {.format = piece->format};

	switch (piece->kind) {
	case PIECE_BYTES_KIND:
		data.bytes = piece->content.bytes;
		data.count = piece->count;
		return sink->data(sink->context, &data);
	case PIECE_CHUNK:
		data.chunk = &piece->content.chunk;
		data.missing = &piece->missing;
		data.is_late = piece->place == BC_SEQUENCE_LATE;
		data.header = piece->has_header ? &piece->header : NULL;
		return sink->data(sink->context, &data);
	case PIECE_DAMAGE:
		sink->damage(sink->context, piece->what);
		return true;
	case PIECE_END:
		f->is_over = true;
		sink->end(sink->context, piece->status, piece->what);
		return true;
	}
	return true;
}

static void deliver(struct file_source *f)
{
	for (int count = 0; !f->is_over; count++) {
		uv_mutex_lock(&f->lock);
		struct piece *piece = f->ready != 0 ? &f->pieces[f->first] : NULL;
		uv_mutex_unlock(&f->lock);
		if (piece == NULL)
			return;
		if (count == PIECES_PER_TURN) {
			uv_async_send(&f->wake_loop);
			return;
		}
		if (!deliver_piece(f, piece))
			return;
		uv_mutex_lock(&f->lock);
		f->first = (f->first + 1) % PIECES;
		f->ready--;
		uv_mutex_unlock(&f->lock);
		uv_cond_signal(&f->changed);
	}
}

static void on_closed(uv_handle_t *handle);

/* If the thread has ended, joins it and does the work that had to wait for this. */
static void check_exit(struct file_source *f)
{
	uv_mutex_lock(&f->lock);
	bool has_exited = f->has_exited;
	uv_mutex_unlock(&f->lock);
	if (!f->has_thread || !has_exited)
		return;
	uv_thread_join(&f->thread);
	f->has_thread = false;
	if (f->is_closing) {
		uv_close((uv_handle_t *)&f->wake_loop, on_closed);
	} else if (f->end_pending) {
		f->end_pending = false;
		f->source.sink.end(f->source.sink.context, 0, "");
	}
}

static void on_wake_loop(uv_async_t *async)
{
	struct file_source *f = container_of(async, struct file_source, wake_loop);

	deliver(f);
	check_exit(f);
}

static int file_start(struct bc_source *source)
{
	struct file_source *f = container_of(source, struct file_source, source);
	int rc = uv_thread_create(&f->thread, read_thread, f);

	f->has_thread = rc == 0;
	return rc;
}

static void file_resume(struct bc_source *source)
{
	deliver(container_of(source, struct file_source, source));
}

/* Interrupts a blocked read. */
static void wake_thread(struct file_source *f)
{
	uint64_t one = 1;

	if (write(f->stream.wake_fd, &one, sizeof(one)) < 0)
		assert(false && "writing 1 to an eventfd never fails");
}

/* Does not wait for the thread: a read may hang on a dead file server. */
static void stop_thread(struct file_source *f)
{
	uv_mutex_lock(&f->lock);
	f->is_stopping = true;
	uv_cond_signal(&f->changed);
	uv_mutex_unlock(&f->lock);
	wake_thread(f);
}

/* A pipe can't be read again, so the thread first delivers what it has already read. */
static void file_stop(struct bc_source *source)
{
	struct file_source *f = container_of(source, struct file_source, source);

	if (f->is_over)
		return;
	if (source->is_stream) {
		wake_thread(f);
		return;
	}
	f->is_over = true;
	f->end_pending = f->has_thread;
	if (f->has_thread)
		stop_thread(f);
	else
		source->sink.end(source->sink.context, 0, "");
}

static void on_closed(uv_handle_t *handle)
{
	struct file_source *f = container_of(handle, struct file_source, wake_loop);

	if (f->stream.fd > STDIN_FILENO)
		close(f->stream.fd);
	close(f->stream.wake_fd);
	uv_cond_destroy(&f->changed);
	uv_mutex_destroy(&f->lock);
	free(f->pieces);
	free(f);
}

static void file_close(struct bc_source *source)
{
	struct file_source *f = container_of(source, struct file_source, source);

	f->is_over = true;
	f->is_closing = true;
	if (f->has_thread)
		stop_thread(f);
	else
		uv_close((uv_handle_t *)&f->wake_loop, on_closed);
}

static const struct bc_source_ops file_ops = {
	.start = file_start,
	.resume = file_resume,
	.stop = file_stop,
	.close = file_close,
};

static int open_path(const char *path)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return STDIN_FILENO;
	/* Opening a FIFO must not wait for a writer. The reading thread waits; it can be woken. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
		close(fd);
		return -EISDIR;
	}
	return fd;
}

int bc_file_source_open(struct bc_source **source, uv_loop_t *loop, const char *path,
	enum bc_format format, uint64_t clock_hz)
{
	int fd = open_path(path);
	if (fd < 0)
		return fd;
	struct file_source *f = calloc(1, sizeof(*f));
	int wake_fd = eventfd(0, EFD_CLOEXEC);
	struct piece *pieces = bc_huge_alloc(PIECES * sizeof(*pieces));
	int rc = wake_fd < 0 ? -errno : -ENOMEM;
	if (f == NULL || pieces == NULL || wake_fd < 0)
		goto fail;
	if ((rc = uv_mutex_init(&f->lock)) != 0)
		goto fail;
	if ((rc = uv_cond_init(&f->changed)) != 0)
		goto fail_lock;
	if ((rc = uv_async_init(loop, &f->wake_loop, on_wake_loop)) != 0)
		goto fail_cond;
	f->source.ops = &file_ops;
	f->source.kind = "file";
	f->source.is_replay = true;
	f->source.is_stream = lseek(fd, 0, SEEK_CUR) < 0;
	f->source.clock_hz = clock_hz;
	bc_message(f->source.name, sizeof(f->source.name), "%s", path);
	f->format = format;
	f->stream = (struct bc_input_stream){.fd = fd, .wake_fd = wake_fd};
	f->pieces = pieces;
	*source = &f->source;
	return 0;

fail_cond:
	uv_cond_destroy(&f->changed);
fail_lock:
	uv_mutex_destroy(&f->lock);
fail:
	if (wake_fd >= 0)
		close(wake_fd);
	if (fd > STDIN_FILENO)
		close(fd);
	free(pieces);
	free(f);
	return rc;
}
