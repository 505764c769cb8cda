/* Fuzz target: Laplace's text. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_LAPLACE_TEXT)
