/* Fuzz target: csv, read back. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_CSV)
