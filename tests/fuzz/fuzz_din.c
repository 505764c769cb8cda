/* Fuzz target: Dinero's din. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_DIN)
