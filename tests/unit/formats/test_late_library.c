/* A library is loaded when it is needed; without it, the error says what is missing. */
#include <math.h>
#include <string.h>

#include "formats/base/late_library.h"
#include "tests/support/test.h"

static struct {
	BC_LATE_POINTER(cos)
	BC_LATE_POINTER(pow)
} lib;

static const char *const functions[] = {BC_LATE_NAME(cos) BC_LATE_NAME(pow) NULL};

static char err[256];

static struct bc_late_library library_of(const char *name)
{
	return (struct bc_late_library){
		.name = name,
		.package = "the-package",
		.functions = functions,
		.pointers = &lib,
	};
}

static void assert_works(void)
{
	assert_ptr_equal(lib.cos, cos);
	assert_ptr_equal(lib.pow, pow);
	memset(&lib, 0, sizeof(lib));
}

TEST(its_functions_can_be_called)
{
	struct bc_late_library library = library_of("libm.so.6");

	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_works();
}

TEST(a_library_is_loaded_once)
{
	struct bc_late_library library = library_of("libm.so.6");

	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_works();
	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_null(lib.cos);
}

TEST(without_the_library_the_error_names_it)
{
	struct bc_late_library library = library_of("libbuscap-none.so.1");

	assert_false(bc_late_library_load(&library, err, sizeof(err)));
	assert_string_equal(err,
		"libbuscap-none.so.1: cannot open shared object file: No such file or directory; "
		"install or update the package the-package");
	library.name = "libm.so.6";
	assert_true(bc_late_library_load(&library, err, sizeof(err)));
}

TEST(a_library_without_a_function_is_an_error)
{
	static const char *const wrong[] = {"buscap_none", NULL};
	struct bc_late_library library = library_of("libm.so.6");
	library.functions = wrong;

	assert_false(bc_late_library_load(&library, err, sizeof(err)));
	assert_non_null(strstr(err, "undefined symbol: buscap_none"));
	assert_false(library.is_loaded);
}
