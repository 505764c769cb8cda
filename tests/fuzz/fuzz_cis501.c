/* Fuzz target: CIS501 micro-ops. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_CIS501)
