/* Fuzz target: Dinero's xdin. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_XDIN)
