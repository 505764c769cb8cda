/* Stamping without SIMD instructions: the same tests. */
#define BC_NO_SIMD
#include "formats/bus/stamp.c"             /* NOLINT(bugprone-suspicious-include) */
#include "tests/unit/formats/test_stamp.c" /* NOLINT(bugprone-suspicious-include) */
