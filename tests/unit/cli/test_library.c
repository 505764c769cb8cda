/* A library is loaded when it is needed, by whichever name it has; without it, the error says what
 * is missing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client/library.h"
#include "tests/support/test.h"

static struct {
	BC_LIBRARY_POINTER(cos)
	BC_LIBRARY_POINTER(pow)
} lib;

static struct bc_library_entry entries[] = {
	BC_LIBRARY_ENTRY(cos) BC_LIBRARY_ENTRY(pow){NULL, NULL}};

/* Returns what was printed, allocated; NULL: the library was loaded. */
static char *load(struct bc_library *library)
{
	struct bc_console console = {.command = "status"};
	char *text = NULL;
	size_t bytes;

	console.err = open_memstream(&text, &bytes);
	assert_non_null(console.err);
	enum bc_exit code = bc_library_load(library, &console);
	fclose(console.err);
	assert_int_equal(code, bytes == 0 ? BC_EXIT_OK : BC_EXIT_FAILED);
	assert_int_equal(library->is_loaded, bytes == 0);
	if (bytes == 0) {
		free(text);
		text = NULL;
	}
	return text;
}

static void assert_works(void)
{
	assert_ptr_equal(lib.cos, cos);
	assert_ptr_equal(lib.pow, pow);
	memset(&lib, 0, sizeof(lib));
}

TEST(the_first_name_is_enough)
{
	struct bc_library library = {{"libm.so.6"}, entries, false};

	assert_null(load(&library));
	assert_works();
}

TEST(the_other_name_is_tried)
{
	struct bc_library library = {{"libbuscap-none.so.1", "libm.so.6"}, entries, false};

	assert_null(load(&library));
	assert_works();
}

TEST(a_library_is_loaded_once)
{
	struct bc_library library = {{"libm.so.6"}, entries, false};

	assert_null(load(&library));
	assert_works();
	assert_null(load(&library));
	assert_null(lib.cos);
}

TEST(without_the_library_the_error_names_it)
{
	struct bc_library library = {{"libbuscap-none.so.1"}, entries, false};
	char *text = load(&library);

	assert_non_null(text);
	assert_string_equal(text,
		"buscap status: can't load a library; install or update it: libbuscap-none.so.1: "
		"cannot open shared object file: No such file or directory\n");
	free(text);
	library.names[0] = "libm.so.6";
	assert_null(load(&library));
}

TEST(a_library_without_a_function_is_an_error)
{
	struct bc_library_entry wrong[] = {{"buscap_none", &lib.cos}, {NULL, NULL}};
	struct bc_library library = {{"libm.so.6"}, wrong, false};
	char *text = load(&library);

	assert_non_null(text);
	assert_non_null(strstr(text, "undefined symbol: buscap_none"));
	free(text);
}
