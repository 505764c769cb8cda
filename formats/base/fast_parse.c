#include "formats/base/fast_parse.h"

/* clang-format off */
#define NO4    99, 99, 99, 99
#define NO16   NO4, NO4, NO4, NO4
#define DIGITS 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99, NO4
#define A_TO_F 99, 10, 11, 12, 13, 14, 15, 99, NO4, NO4

const uint8_t bc_hex_value[256] = {
	NO16, NO16, NO16, DIGITS,
	A_TO_F, NO16, A_TO_F, NO16,
	NO16, NO16, NO16, NO16,
	NO16, NO16, NO16, NO16,
};
/* clang-format on */
