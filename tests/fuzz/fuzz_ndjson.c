/* Fuzz target: ndjson, read back. */
#include "tests/fuzz/fuzz_parser.h"

FUZZ_FORMAT(BC_FORMAT_NDJSON)
