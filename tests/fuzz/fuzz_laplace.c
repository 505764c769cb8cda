/* Fuzz target: Laplace's records. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_LAPLACE)
