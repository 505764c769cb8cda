/* Fuzz target: valgrind's lackey. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_LACKEY)
