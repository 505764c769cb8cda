#include "formats/base/file_hash.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#define PIECE_BYTES (1u << 18)

void bc_file_hash_format(char out[BC_FILE_HASH_CHARS], const struct XXH3_state_s *state)
{
	static const char digits[] = "0123456789abcdef";
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state));
	for (unsigned i = 0; i < sizeof(bytes.digest); i++) {
		out[2 * i] = digits[bytes.digest[i] >> 4];
		out[2 * i + 1] = digits[bytes.digest[i] & 15];
	}
	out[BC_FILE_HASH_CHARS - 1] = '\0';
}

int bc_file_hash_compute(
	char out[BC_FILE_HASH_CHARS], int fd, const struct bc_progress_cb *progress)
{
	XXH3_state_t *state = XXH3_createState();
	uint8_t *piece = malloc(PIECE_BYTES);
	off_t offset = 0;
	int rc = 0;

	if (state == NULL || piece == NULL) {
		rc = -ENOMEM;
		goto out;
	}
	XXH3_128bits_reset(state);
	for (;;) {
		ssize_t n = pread(fd, piece, PIECE_BYTES, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		XXH3_128bits_update(state, piece, (size_t)n);
		offset += n;
		bc_report_progress(progress);
	}
	if (rc == 0)
		bc_file_hash_format(out, state);
out:
	free(piece);
	XXH3_freeState(state);
	return rc;
}
