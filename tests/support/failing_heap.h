/* Makes allocations of a test program fail, those of the libraries included: it replaces malloc().
 * Include it in one file of the program.
 *
 *     failing_heap_start(n, false);
 *     ... the allocation after the next n fails, and the test runs what uses them
 *     failing_heap_stop();
 *
 * Works with AddressSanitizer too, which then sees the blocks. */
#ifndef BC_TESTS_SUPPORT_FAILING_HEAP_H
#define BC_TESTS_SUPPORT_FAILING_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The functions whose public names are defined here: the sanitizer's or glibc's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_FUNCTION(name) __interceptor_##name
#else
#define HEAP_FUNCTION(name) __libc_##name
#endif

void *HEAP_FUNCTION(malloc)(size_t bytes);
void *HEAP_FUNCTION(calloc)(size_t n, size_t bytes);
void *HEAP_FUNCTION(realloc)(void *p, size_t bytes);
void HEAP_FUNCTION(free)(void *p);

static struct {
	bool is_on;
	bool is_lasting;    /* all allocations after the first failing one fail, too */
	long until_failure; /* number of allocations that succeed; -1: all */
	long live;          /* blocks allocated while it was on, less those freed */
	bool has_failed;
} heap;

static inline void failing_heap_start(long until_failure, bool is_lasting)
{
	heap.until_failure = until_failure;
	heap.is_lasting = is_lasting;
	heap.live = 0;
	heap.has_failed = false;
	heap.is_on = true;
}

/* From now on no allocation fails, but live blocks are still counted. */
static inline void failing_heap_mend(void)
{
	heap.until_failure = -1;
}

static inline void failing_heap_stop(void)
{
	heap.is_on = false;
}

static inline bool heap_fails(void)
{
	if (!heap.is_on || heap.until_failure < 0)
		return false;
	if (heap.until_failure > 0) {
		heap.until_failure--;
		return false;
	}
	heap.until_failure = heap.is_lasting ? 0 : -1;
	heap.has_failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	void *p = heap_fails() ? NULL : HEAP_FUNCTION(malloc)(bytes);

	heap.live += heap.is_on && p != NULL;
	return p;
}

void *calloc(size_t n, size_t bytes)
{
	void *p = heap_fails() ? NULL : HEAP_FUNCTION(calloc)(n, bytes);

	heap.live += heap.is_on && p != NULL;
	return p;
}

void *realloc(void *old, size_t bytes)
{
	void *p = heap_fails() ? NULL : HEAP_FUNCTION(realloc)(old, bytes);

	heap.live += heap.is_on && p != NULL && old == NULL;
	return p;
}

/* The sanitizer's would not call the functions above. */
void *reallocarray(void *old, size_t n, size_t bytes)
{
	size_t all;

	if (!__builtin_mul_overflow(n, bytes, &all))
		return realloc(old, all);
	errno = ENOMEM;
	return NULL;
}

char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = malloc(bytes);

	return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void free(void *p)
{
	heap.live -= heap.is_on && p != NULL;
	HEAP_FUNCTION(free)(p);
}

#endif
