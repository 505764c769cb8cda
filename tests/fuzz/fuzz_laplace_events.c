/* Fuzz target: Laplace's kernel events. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_LAPLACE_EVENTS)
