/* main() of every C test program:
 *
 *     PROGRAM          runs all of its tests
 *     PROGRAM NAME...  runs these tests
 *     PROGRAM --list   prints their names, one per line
 *
 * The exit code is 1 if a test failed, 2 if a name is unknown. A hanging program is killed after
 * TEST_SECONDS; the last line of its output names the test. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

#define TEST_SECONDS 900
#define TESTS_MAX    200
#define KEPT_BYTES   (32 << 20)

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t count;
static CMFixtureFunction shared_set_up;
static CMFixtureFunction shared_tear_down;

int test_case = -1;

/* Freed blocks are kept to find their use. The default is 256 MB, and a sweep fills it: pages that
 * are touched for the first time are most of its costs. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16";
}

#ifdef __SANITIZE_ADDRESS__
/* On a busy machine, rarely, a device that libusb lists while its context closes is not freed. The
 * sanitizer sees no stack beyond libusb's own frame; all tests in tests/unit/usb run under
 * Valgrind, which does. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libusb-1.0.so\n";
}
#endif

#ifdef __SANITIZE_THREAD__
/* libusb counts references with atomic operations, which the sanitizer does not see in a library
 * that is built without it. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:libusb_unref_device\n";
}
#endif

/* Constructors run in any order: sort the tests by line. */
void test_register(int line, struct CMUnitTest test)
{
	size_t i = count++;

	if (count > TESTS_MAX)
		abort();
	for (; i > 0 && lines[i - 1] > line; i--) {
		tests[i] = tests[i - 1];
		lines[i] = lines[i - 1];
	}
	tests[i] = test;
	lines[i] = line;
}

void test_register_shared(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	shared_set_up = set_up;
	shared_tear_down = tear_down;
}

void *test_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes);

	assert_non_null(memory);
	return memory;
}

unsigned test_stride(unsigned n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return n;
#else
	const char *level = getenv("BUSCAP_LEVEL");

	return level != NULL && strcmp(level, "nightly") == 0 ? 1 : n;
#endif
}

void test_edges_add(struct test_edges *edges, size_t at)
{
	assert_true(edges->count < TEST_EDGES_MAX);
	edges->at[edges->count++] = at;
}

static size_t next_case(size_t at, unsigned n, const struct test_edges *edges, size_t unit)
{
	unsigned step = test_stride(n);
	size_t next = at + step - at % step;

	for (size_t i = 0; i < edges->count; i++) {
		size_t edge = edges->at[i] * unit;
		for (size_t near = edge == 0 ? 0 : edge - 1; near <= edge + 1; near++)
			if (near > at && near < next)
				next = near;
	}
	return next;
}

size_t test_next(size_t at, unsigned n, const struct test_edges *edges)
{
	return next_case(at, n, edges, 1);
}

size_t test_next_bit(size_t bit, unsigned n, const struct test_edges *edges)
{
	return next_case(bit, n, edges, 8);
}

int test_end_cases(void **state)
{
	(void)state;
	if (test_case >= 0)
		print_error("failed: case %d of the table, the first is 0\n", test_case);
	test_case = -1;
	return 0;
}

/* Moves the named tests to the front, in the order of the file. */
static int select_tests(char **names, int n)
{
	size_t selected = 0;

	for (int i = 0; i < n; i++) {
		size_t at = 0;
		while (at < count && strcmp(tests[at].name, names[i]) != 0)
			at++;
		if (at == count) {
			fprintf(stderr, "%s: no such test\n", names[i]);
			return -1;
		}
		lines[at] = 0; /* selected */
	}
	for (size_t at = 0; at < count; at++)
		if (lines[at] == 0)
			tests[selected++] = tests[at];
	count = selected;
	return 0;
}

int main(int argc, char **argv)
{
	unsigned open_before = test_count_open();

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < count; i++)
			printf("%s\n", tests[i].name);
		return 0;
	}
	if (argc > 1 && select_tests(argv + 1, argc - 1) != 0)
		return 2;
	/* Large blocks are used again: a sweep would spend most of its time on mapping them. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, 8 * KEPT_BYTES);
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(TEST_SECONDS);
	int failed = _cmocka_run_group_tests(
		program_invocation_short_name, tests, count, shared_set_up, shared_tear_down);
	return failed != 0 || !test_has_closed_all(open_before);
}
