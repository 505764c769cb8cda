/* An overview as JSON. docs/report.md describes the members. */
#ifndef BC_CLI_OVERVIEW_OVERVIEW_JSON_H
#define BC_CLI_OVERVIEW_OVERVIEW_JSON_H

#include <stddef.h>

#include "cli/overview/overview.h"
#include "formats/base/must_check.h"
#include "formats/trace/name_map.h"

/* Receives pieces of the text, which is UTF-8 without line ends. Returns false to stop. */
typedef bool (*bc_overview_write_cb)(void *context, const char *text, size_t bytes);

/* Writes an object: the recordings and the picture that was drawn last. `names` may be NULL.
 * Returns 0; -ENOMEM; or -ECANCELED if `write` returned false. */
int bc_overview_json(const struct bc_overview *overview, const struct bc_name_map *names,
	bc_overview_write_cb write, void *context) BC_MUST_CHECK;

/* Writes an object with the events from a time to a time, at most `max`. Same results; also
 * -ECANCELED if io->pace() returned false. */
#define BC_OVERVIEW_EVENTS 10000u /* the usual limit */
int bc_overview_events_json(struct bc_overview *overview, int64_t from_ns, int64_t to_ns,
	uint32_t max, bc_overview_write_cb write, void *context) BC_MUST_CHECK;

/* The name of a row: "VGA graphics"; or those of its first and last address, "BIOS data area ...
 * option ROMs", of which one may be missing. Of a name of more than 63 bytes only the beginning.
 * Writes it to `out`, and returns it; NULL if both are missing. */
#define BC_ROW_NAME_MAX 136
const char *bc_overview_row_name(char out[BC_ROW_NAME_MAX], const struct bc_name_map *names,
	const struct bc_overview_row *row);

#endif
