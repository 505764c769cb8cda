/* Decompresses LZ4 frames, gzip members, zstd frames and xz streams, one or several in a row.
 *
 * Call bc_unpack_open(), then bc_unpack() as bytes arrive. All output before damage is good. */
#ifndef BC_FORMATS_CODEC_UNPACK_H
#define BC_FORMATS_CODEC_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum bc_packing {
	BC_PACKING_NONE,
	BC_PACKING_LZ4,
	BC_PACKING_GZIP,
	BC_PACKING_ZSTD,
	BC_PACKING_XZ,
};

/* "LZ4", "gzip", "zstd", "xz"; "" for none. */
const char *bc_packing_name(enum bc_packing packing);

/* The compression format of a file, from the first magic after any skippable frames (pzstd writes
 * one before each frame). With skippable frames only: LZ4. */
enum bc_packing bc_packing_of(const uint8_t *head, size_t bytes);

/* True if more bytes would not change the result of bc_packing_of(). */
bool bc_packing_is_certain(const uint8_t *head, size_t bytes);

/* The window that zstd needs at most for data of any level or of --long, and more than the
 * dictionary of any level of xz, as a power of 2. */
#define BC_WINDOW_LOG 27u

/* Says, as a clause, that the data needs a window of more than 1 << window_log bytes (-ENOBUFS). */
void bc_unpack_too_large(char *err, size_t errlen, enum bc_packing packing, unsigned window_log);

struct bc_unpacker;

/* Returns NULL if out of memory. zstd frames may need windows, and xz streams dictionaries, of up
 * to 1 << window_log bytes; LZ4 and gzip need little. */
struct bc_unpacker *bc_unpack_open(enum bc_packing packing, unsigned window_log);
void bc_unpack_close(struct bc_unpacker *unpacker);

/* Decompresses some of the bytes at `in` and sets *consumed to the number used. With bytes 0,
 * returns output that it still holds. Returns the number of bytes written to `out`, -EBADMSG if the
 * next data is damaged, -ENOBUFS if its window is too large, or -ENOMEM. It may
 * return 0 and need more input. */
ssize_t bc_unpack(struct bc_unpacker *unpacker, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed);

/* Decompresses the start of a file, of which `bytes` are at `head`, up to damage. Returns the
 * number of bytes in `out`, -ENOMEM, or -ENOBUFS if a window is too large. */
ssize_t bc_unpack_head(uint8_t *out, size_t capacity, enum bc_packing packing, const uint8_t *head,
	size_t bytes, unsigned window_log);

/* True if the compressed data may end here: between two frames or members. */
bool bc_unpack_may_end(const struct bc_unpacker *unpacker);

/* ---- files that can't be read
 *
 * Names what a file is that buscap can't read, so that a message can say how to get at the trace in
 * it: other compressions, archives, UTF-16. */

/* Describes the content of a file, which may be compressed with `packing`, from the first bytes of
 * its content. Returns false if they are none of these; otherwise sets *err to a clause. Two bytes
 * are enough for some, so call it only if no format fits. `may_be_records`: several do; then at
 * least four bytes must be right. */
bool bc_describe_foreign(char *err, size_t errlen, enum bc_packing packing, const uint8_t *head,
	size_t bytes, bool may_be_records);

/* True for an ELF program, library or object file. Its tables of numbers may look like records. */
bool bc_is_elf(const uint8_t *head, size_t bytes);

#endif
