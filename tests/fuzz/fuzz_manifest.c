/* Fuzz target: the manifest of a recording, as left by a crash, another program or a user. After a
 * line was added, the manifest has it, and the whole lines that it had before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/manifest.h"
#include "tests/fuzz/scratch.h"

#define RECORDING "20261120T091500Z-3f9a2c"
#define MANIFEST  RECORDING BC_MANIFEST_SUFFIX
#define FILE_NAME RECORDING "-00000.byu.lz4"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_manifest(int dir_fd, const uint8_t *data, size_t size)
{
	int fd = openat(dir_fd, MANIFEST, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static size_t read_manifest(int dir_fd, uint8_t *out, size_t room)
{
	int fd = openat(dir_fd, MANIFEST, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, room) : -1;

	if (n < 0)
		abort();
	close(fd);
	return (size_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char hash[BC_FILE_HASH_CHARS] = "0123456789abcdef0123456789abcdef";
	static int dir_fd = -1;
	static uint8_t after[1 << 16];

	if (dir_fd < 0)
		dir_fd = scratch_open();
	if (size > sizeof(after) / 2)
		return 0;
	write_manifest(dir_fd, data, size);
	int rc = bc_manifest_add(dir_fd, RECORDING, FILE_NAME, hash);
	size_t n = read_manifest(dir_fd, after, sizeof(after));
	size_t whole = size;
	while (whole != 0 && data[whole - 1] != '\n')
		whole--;
	if (rc != 0) {
		/* Not a manifest: unchanged. */
		if (rc != -EBADMSG || n != size || memcmp(after, data, n) != 0)
			abort();
	} else if (n <= whole || memcmp(after, data, whole) != 0 ||
		   bc_manifest_find(dir_fd, RECORDING, FILE_NAME, NULL) != 0) {
		abort();
	}
	bc_manifest_remove(dir_fd, RECORDING);
	if (faccessat(dir_fd, MANIFEST, F_OK, 0) == 0)
		abort();
	return 0;
}
