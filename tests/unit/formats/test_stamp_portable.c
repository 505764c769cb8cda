/* Stamping without SIMD instructions: the same tests. */
#define BC_NO_SIMD
#include "formats/bus/stamp.c" /* NOLINT(bugprone-suspicious-include) */
#ifdef HAS_AVX2
#error "these are the tests of the code without SIMD instructions"
#endif
#include "tests/unit/formats/test_stamp.c" /* NOLINT(bugprone-suspicious-include) */
