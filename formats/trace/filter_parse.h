/* What is wanted of a trace as one line of text, the same in the configuration, in requests and in
 * the hand tool's options:
 *
 *     addr=1000-1fff type=read,write proc=0
 *
 * Words with blanks between; all must hold.
 *
 *     addr=FIRST-LAST   what touches a byte of it; hexadecimal, FIRST- and -LAST are open, FIRST
 *                       alone is one byte
 *     type=NAME,...     any of these: read, write, fetch, the names that dump prints (MEMREADINV,
 *                       IO_WRITE), numbers (0xf2)
 *     proc=N,N-N,...    any of these processors
 *     port=FIRST-LAST   writes to these I/O ports: type=IO_WRITE addr=FIRST-LAST
 *
 * On failure each function returns false with a sentence in `err`. */
#ifndef BC_FORMATS_TRACE_FILTER_PARSE_H
#define BC_FORMATS_TRACE_FILTER_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/must_check.h"
#include "formats/trace/filter.h"

/* Reads all of a text into a filter that is made anew. A text without words is a mistake. The
 * sentence names the word. */
bool bc_filter_parse(
	struct bc_filter *filter, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Adds what one word says to a filter: `word` is "addr", "type", "proc" or "port". It is a mistake
 * when the filter asks for the same already. The sentence names the word. */
bool bc_filter_parse_word(struct bc_filter *filter, const char *word, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* The values alone. A range of addresses takes the place of the filter's; types and processors are
 * added to its. A filter is not changed on failure. The sentence names neither word nor value. */
bool bc_filter_parse_addr(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_types(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_filter_parse_procs(
	struct bc_filter *filter, const char *value, char *err, size_t errlen) BC_MUST_CHECK;

#endif
