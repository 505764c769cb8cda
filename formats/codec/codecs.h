/* All parsers and printers, for formats/codec/format.c. Each .c file first describes its format. */
#ifndef BC_FORMATS_CODEC_CODECS_H
#define BC_FORMATS_CODEC_CODECS_H

#include "formats/base/format_id.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

/* bc_raw6_parser, bc_raw6_printer and so on. A format has those that format.c names. */
#define BC_DECLARE_CODEC(format, codec, name)              \
	extern const struct bc_parser bc_##codec##_parser; \
	extern const struct bc_printer bc_##codec##_printer;
BC_FORMAT_LIST(BC_DECLARE_CODEC)
#undef BC_DECLARE_CODEC

#define BC_LAPLACE_BYTES 18

/* Prints an instruction, reference or register write from its fields, ignoring `line`, with the
 * time `tick` and a newline. `out` has BC_PRINT_MAX bytes. Returns the end of the output, or NULL
 * for a reference that cannot be written. */
char *bc_tarmac_print_fields(char *out, const struct bc_entry *entry, uint64_t tick);

/* A logic analyser's csv, if the layout has "clock=". */
extern const struct bc_parser bc_csv_capture_parser;
bool bc_csv_capture_is(const char *layout);

/* True if a value change dump begins as ours do: it needs no description. */
bool bc_vcd_is_own(const uint8_t *head, size_t bytes);

#endif
