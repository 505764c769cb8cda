/* Fuzz target: valgrind's lackey. */
#include "tests/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_LACKEY)
