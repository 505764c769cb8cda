/* Macros for C tests. A test program is one file of tests, linked with test_main.c:
 *
 *     TEST(a_queue_keeps_its_order)
 *     {
 *             assert_int_equal(...);
 *     }
 *
 * Tests run in the order of the file. Tests with a fixture, struct fixture, get it as `f`:
 *
 *     TEST_FIXTURE(fixture, set_up, tear_down)
 *
 *     TEST_F(a_full_queue_refuses)
 *     {
 *             assert_false(bc_queue_push(&f->queue, NULL));
 *     }
 *
 * TEST_FIXTURE() makes a new one for each test: it zeroes the memory, calls set_up(f) before the
 * test and tear_down(f) after it. TEST_SHARED_FIXTURE() makes one for the whole program. Pass
 * NOTHING if there is no set_up or tear_down. TEST_WITH() is for fixtures with another name.
 *
 * TEST_CASES() runs a test once for each row of a table, as `c`, and reports the row that failed:
 *
 *     static const struct { const char *text; int rc; } bad[] = {...};
 *
 *     TEST_CASES(bad_texts_are_refused, bad)
 *     {
 *             assert_int_equal(parse(c->text), c->rc);
 *     }
 */
#ifndef BC_TESTS_SUPPORT_TEST_H
#define BC_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Marks for the Makefile, which searches the files for these names. */
#define TEST_THREADS  _Static_assert(1, "runs under ThreadSanitizer too")
#define TEST_VALGRIND _Static_assert(1, "runs under valgrind too")

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define NOTHING(fixture) ((void)(fixture))

/* Called by the macros below, before main(). */
void test_register(int line, struct CMUnitTest test);
void test_register_shared(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* The number of open descriptors, except those without a file, as of signals and events: a program
 * may keep these. */
unsigned test_count_open(void);

/* Prints which descriptors are open and returns false, unless there are as few as `before`. Call it
 * once, at the end: libuv can't be used any more. */
bool test_has_closed_all(unsigned before);

/* Returns zeroed memory. If out of memory, the test fails. */
void *test_alloc(size_t bytes);

/* The step of a long sweep: n, or 1 at night (BUSCAP_LEVEL=nightly, without sanitizers). If n is
 * odd, the steps reach every bit of a byte. */
unsigned test_stride(unsigned n);

/* Where a sweep must not skip anything, for example where the parts of a file begin and end. */
#define TEST_EDGES_MAX 32
struct test_edges {
	size_t count;
	size_t at[TEST_EDGES_MAX];
};

void test_edges_add(struct test_edges *edges, size_t at);

/* The case of a long sweep after case `at`: every test_stride(n)-th is visited, and each edge with
 * the cases before and after it. */
size_t test_next(size_t at, unsigned n, const struct test_edges *edges);

/* The same for the bits of bytes. The edges are bytes: the last bit before each is visited, and its
 * first two. */
size_t test_next_bit(size_t bit, unsigned n, const struct test_edges *edges);

/* The current case of TEST_CASES(), or -1. If it is not -1 after a test, that case failed. */
extern int test_case;
int test_end_cases(void **state);

#define TEST_REGISTER_(name, set_up, tear_down)                                                \
	__attribute__((constructor)) static void test_register_##name(void)                    \
	{                                                                                      \
		test_register(__LINE__,                                                        \
			(struct CMUnitTest){#name, test_run_##name, set_up, tear_down, NULL}); \
	}

#define TEST(name)                                \
	static void test_##name(void);            \
	static void test_run_##name(void **state) \
	{                                         \
		(void)state;                      \
		test_##name();                    \
	}                                         \
	TEST_REGISTER_(name, NULL, NULL)          \
	static void test_##name(void)

#define TEST_F(name) TEST_WITH(fixture, f, name)

#define TEST_WITH(tag, variable, name)                         \
	static void test_##name(struct tag *variable);         \
	static void test_run_##name(void **state)              \
	{                                                      \
		test_##name(*state);                           \
	}                                                      \
	TEST_REGISTER_(name, test_begin_##tag, test_end_##tag) \
	static void test_##name(__attribute__((unused)) struct tag *variable)

#define TEST_CASES(name, table)                                                    \
	static void test_##name(const __typeof__((table)[0]) *c);                  \
	static void test_run_##name(void **state)                                  \
	{                                                                          \
		(void)state;                                                       \
		for (test_case = 0; test_case < (int)COUNT_OF(table); test_case++) \
			test_##name(&(table)[test_case]);                          \
		test_case = -1;                                                    \
	}                                                                          \
	TEST_REGISTER_(name, NULL, test_end_cases)                                 \
	static void test_##name(const __typeof__((table)[0]) *c)

#define TEST_FIXTURE(tag, set_up, tear_down) \
	TEST_FIXTURE_(test_begin_##tag, test_end_##tag, tag, set_up, tear_down)

#define TEST_SHARED_FIXTURE(tag, set_up, tear_down)                                     \
	__attribute__((unused)) static const CMFixtureFunction test_begin_##tag = NULL; \
	__attribute__((unused)) static const CMFixtureFunction test_end_##tag = NULL;   \
	TEST_FIXTURE_(test_begin_shared, test_end_shared, tag, set_up, tear_down)       \
	__attribute__((constructor)) static void test_register_fixture(void)            \
	{                                                                               \
		test_register_shared(test_begin_shared, test_end_shared);               \
	}

#define TEST_FIXTURE_(begin, end, tag, set_up, tear_down)           \
	__attribute__((unused)) static int begin(void **state)      \
	{                                                           \
		struct tag *fixture = test_alloc(sizeof(*fixture)); \
		*state = fixture;                                   \
		set_up(fixture);                                    \
		return 0;                                           \
	}                                                           \
	__attribute__((unused)) static int end(void **state)        \
	{                                                           \
		struct tag *fixture = *state;                       \
		tear_down(fixture);                                 \
		free(fixture);                                      \
		return 0;                                           \
	}

#endif
