/* Traces as recordings: a picture of any trace that buscap reads. */
#ifndef BC_CLI_IO_PICTURE_H
#define BC_CLI_IO_PICTURE_H

#include "cli/io/operands.h"
#include "formats/trace/parser.h"

/* The longest trace that is converted. */
#define BC_PICTURE_RECORDS 4000000u

/* If the operands are traces, converts all of them, in order, to one segment in a file without a
 * name, and makes the first operand this segment and the only operand. Its axis (formats/segment)
 * is ticks; or record numbers if all records are at one tick, or time often goes back. `from` and
 * `format` are the traces' format, or BC_FORMAT_UNKNOWN. Does nothing if all are recordings.
 * Returns BC_EXIT_OK, BC_EXIT_DAMAGED if part of a trace could not be read, or another code;
 * printed why. */
enum bc_exit bc_picture_open(
	struct bc_operands *operands, enum bc_format from, const struct bc_format_options *format);

#endif
