/* Parses a filter from one line of text, as used in the configuration, in requests and in the
 * options of buscap:
 *
 *     addr=1000-1fff type=read,write proc=0
 *
 * Conditions are separated by blanks, and all must hold:
 *
 *     addr=FIRST-LAST   references that touch any byte of the range; hexadecimal. FIRST- and
 *                       -LAST are open ranges, FIRST is one byte
 *     type=NAME,...     any of these types: read, write and fetch, which are of memory; ioread and
 *                       iowrite; a name printed by dump (MEMREADINV) or a number (0xf2)
 *     proc=N,N-N,...    any of these processors
 *     port=FIRST-LAST   reads and writes of these I/O ports, instead of addr; hexadecimal
 *     region=NAME       references to the memory and the I/O ports with this name, instead of addr;
 *                       bc_name_map_region() has the rules
 *
 * Names are looked up in `names`. NULL: a region matches nothing, and must be parsed again.
 *
 * On failure, each function returns false and writes the reason to `err`. */
#ifndef BC_FORMATS_TRACE_FILTER_PARSE_H
#define BC_FORMATS_TRACE_FILTER_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/filter.h"
#include "formats/trace/name_map.h"

/* Initializes a filter and adds the conditions in `text`. An empty text is an error. The error
 * names the condition. */
bool bc_filter_parse(struct bc_filter *filter, const struct bc_name_map *names, const char *text,
	char *err, size_t errlen) BC_MUST_CHECK;

/* The words for types, for help texts. */
#define BC_TYPE_WORDS                                                                  \
	"read, write and fetch (of memory), ioread, iowrite, a name that dump prints " \
	"(MEMREADINV) or a number (0xf2)"

#define BC_NO_PORT_TYPES "matches nothing: the types of I/O ports are ioread and iowrite"

/* True if a filter selects I/O ports only, by types that are not those of ports. */
bool bc_filter_lacks_port_types(const struct bc_filter *filter);

/* Adds one condition to a filter. `name` is "addr", "type", "proc", "port" or "region". It is an
 * error if the filter already has such a one, or now lacks_port_types. It names the condition. */
bool bc_filter_parse_condition(struct bc_filter *filter, const struct bc_name_map *names,
	const char *name, const char *value, char *err, size_t errlen) BC_MUST_CHECK;

/* For help texts. */
#define BC_TIME_POINT_HELP                                                                    \
	"2026-11-20 03:14 (UTC), 2026-11-20T03:14:00+01:00, Unix seconds, -2h (before now), " \
	"+10s (after the start) or @tick"

/* Parse the bounds of time: from this time on, and before it. Users write times much as for
 * journalctl:
 *
 *     2026-11-20 03:14:15.5   the seconds, or the time of day, may be missing
 *     2026-11-20T03:14:15Z    with a time zone (Z, UTC, +01:00 or +0100); without one, it is UTC
 *     1795230855              seconds since 1970; at least 10 digits, and decimals
 *     03:14                   today
 *     now, today, yesterday   today and yesterday start at midnight, UTC
 *     -2h                     before now: d, h, min, s (the default), ms, us, ns
 *     +10s                    after the start of the trace
 *     @4178506193             a tick of the trace
 *
 * The spaces between the digits of a fraction, as the page prints them, are ignored. */
bool bc_filter_parse_from(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_to(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;

/* Parse only the value of a condition. Addresses, ports or a region replace the filter's;
 * types and processors are added to it. On failure the filter is unchanged. The error contains
 * neither the name of the condition nor the value. */
bool bc_filter_parse_addr(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_port(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_region(struct bc_filter *filter, const struct bc_name_map *names,
	const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_types(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_procs(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;

#endif
