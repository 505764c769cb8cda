/* A library is loaded when it is needed, by whichever name it has; without it, the error says what
 * is missing. */
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

static struct bc_late_library library_of(const char *name, const char *other)
{
	return (struct bc_late_library){
		.names = {name, other},
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

TEST(the_first_name_is_enough)
{
	struct bc_late_library library = library_of("libm.so.6", NULL);

	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_works();
}

TEST(the_other_name_is_tried)
{
	struct bc_late_library library = library_of("libbuscap-none.so.1", "libm.so.6");

	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_works();
}

TEST(a_library_is_loaded_once)
{
	struct bc_late_library library = library_of("libm.so.6", NULL);

	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_works();
	assert_true(bc_late_library_load(&library, err, sizeof(err)));
	assert_null(lib.cos);
}

TEST(without_the_library_the_error_names_it)
{
	struct bc_late_library library = library_of("libbuscap-none.so.1", NULL);

	assert_false(bc_late_library_load(&library, err, sizeof(err)));
	assert_string_equal(err,
		"libbuscap-none.so.1: cannot open shared object file: No such file or directory; "
		"install or update the package the-package");
	library.names[0] = "libm.so.6";
	assert_true(bc_late_library_load(&library, err, sizeof(err)));
}

TEST(a_library_without_a_function_is_an_error)
{
	static const char *const wrong[] = {"buscap_none", NULL};
	struct bc_late_library library = library_of("libm.so.6", NULL);
	library.functions = wrong;

	assert_false(bc_late_library_load(&library, err, sizeof(err)));
	assert_non_null(strstr(err, "undefined symbol: buscap_none"));
	assert_false(library.is_loaded);
}
