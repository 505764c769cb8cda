/* A library for LD_PRELOAD that makes allocations of a program fail, those in libraries included.
 *
 * FAULTALLOC_CONTROL names a file of four 64-bit numbers that a test may read and change at any
 * time, because both map it: the calls from the first number to the second fail (0: none); the
 * third counts the calls, and the fourth those that failed. tests/support/harness.py has the other
 * side, FailingAllocations. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct control {
	_Atomic uint64_t first;
	_Atomic uint64_t last;
	_Atomic uint64_t calls;
	_Atomic uint64_t failed;
};

static struct control *control;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

__attribute__((constructor)) static void map_control(void)
{
	const char *path = getenv("FAULTALLOC_CONTROL");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	void *map = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		control = map;
}

static bool must_fail(void)
{
	if (control == NULL)
		return false;
	uint64_t number = atomic_fetch_add(&control->calls, 1) + 1;
	uint64_t first = atomic_load(&control->first);
	if (first == 0 || number < first || number > atomic_load(&control->last))
		return false;
	atomic_fetch_add(&control->failed, 1);
	errno = ENOMEM;
	return true;
}

EXPORT void *malloc(size_t size)
{
	return must_fail() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	return must_fail() ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
	return must_fail() ? NULL : __libc_realloc(old, size);
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, bytes);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	return must_fail() ? NULL : __libc_memalign(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	int saved = errno;

	*out = memalign(alignment, size);
	errno = saved;
	return *out != NULL ? 0 : ENOMEM;
}
