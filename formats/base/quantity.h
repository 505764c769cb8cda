/* Counts, sizes and times as users write and read them: in options, in the configuration and in
 * requests. A number may have decimals and an exponent: 1.5, 1e6. Each unit has one meaning, as
 * docs/configuration.md says:
 *
 *     count   K, M, G, T: powers of 1000. Of a rate also Hz, kHz, MHz, GHz
 *     size    B, and K, M, G, T or KB, MB, GB, TB: powers of 1000; Ki, Mi, Gi, Ti or KiB, MiB,
 *             GiB, TiB: powers of 1024. A bare number is in bytes.
 *     time    ns, us, ms, s, min (or m), h, d, or several, the largest first: 1m30s. A bare number
 *             is in seconds.
 *
 * A blank may precede the unit, and k is K. */
#ifndef BC_FORMATS_BASE_QUANTITY_H
#define BC_FORMATS_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

enum bc_quantity {
	BC_QUANTITY_COUNT,
	BC_QUANTITY_SIZE, /* bytes */
	BC_QUANTITY_TIME, /* ns, rounded; up to INT64_MAX, which is 292 years */
};

/* Room for every reason. */
#define BC_QUANTITY_ERROR_MAX 128

/* Reads a quantity, which is all of the text. On failure returns false with the reason in `err`, a
 * phrase without the text: "unknown unit XB; use ...". */
bool bc_quantity_read(uint64_t *value, enum bc_quantity quantity, const char *text, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Writes a text that is read as this value, in the largest unit that divides it: "1500ms". */
#define BC_QUANTITY_TEXT_MAX 40
void bc_quantity_write(char out[BC_QUANTITY_TEXT_MAX], enum bc_quantity quantity, uint64_t value);

#endif
