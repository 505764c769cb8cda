/* All parsers and printers, for formats/codec/format.c. Each .c file first describes its format. */
#ifndef BC_FORMATS_CODEC_CODECS_H
#define BC_FORMATS_CODEC_CODECS_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

/* Each sample takes one tick; the first is at tick 1. */
extern const struct bc_parser bc_raw6_parser;

/* The absolute tick of a record is the sum of the times so far. BC_TIME_NONE adds nothing. */
extern const struct bc_parser bc_byu_parser;
extern const struct bc_parser bc_byu16_parser;
extern const struct bc_parser bc_byu24_parser;
extern const struct bc_parser bc_byu_be_parser;
extern const struct bc_printer bc_raw6_printer;
extern const struct bc_printer bc_bcp1_printer;
extern const struct bc_printer bc_byu_printer;
extern const struct bc_printer bc_byu16_printer;
extern const struct bc_printer bc_byu24_printer;
extern const struct bc_printer bc_byu_be_printer;

extern const struct bc_printer bc_rowbinary_printer;
extern const struct bc_parser bc_din_parser;
extern const struct bc_parser bc_xdin_parser;

/* All addresses and sizes fit. In xdin, an unknown size is printed as 0. */
extern const struct bc_printer bc_din_printer;
extern const struct bc_printer bc_xdin_printer;
extern const struct bc_parser bc_lackey_parser;

/* Lines that options->layout describes (formats/codec/layout.h). */
extern const struct bc_parser bc_lines_parser;

/* Prints lines in valgrind's form. */
extern const struct bc_printer bc_lackey_printer;

/* Option used: `size`, the bytes of every load and store. */
extern const struct bc_parser bc_cis501_parser;
extern const struct bc_printer bc_cis501_printer;

#define BC_LAPLACE_BYTES 18

/* A record whose type is not printable is malformed. */
extern const struct bc_parser bc_laplace_parser;
extern const struct bc_parser bc_laplace_text_parser;

/* Returns -ERANGE for an address above 32 bits or a size above 255 bytes. */
extern const struct bc_printer bc_laplace_printer;
extern const struct bc_printer bc_laplace_text_printer;
extern const struct bc_parser bc_laplace_events_parser;
extern const struct bc_printer bc_laplace_events_printer;
extern const struct bc_parser bc_tarmac_parser;

/* Returns -ERANGE for a reference of unknown size, or larger than BC_TARMAC_ACCESS_MAX. */
extern const struct bc_printer bc_tarmac_printer;

/* Prints an instruction, reference or register write from its fields, ignoring `line`, with the
 * time `tick` and a newline. `out` has BC_PRINT_MAX bytes. Returns the end of the output, or NULL
 * for a reference that cannot be written. */
char *bc_tarmac_print_fields(char *out, const struct bc_entry *entry, uint64_t tick);

/* Read back what buscap wrote. csv takes a layout: columns of other programs (csv_parser.c). */
extern const struct bc_parser bc_csv_parser;
extern const struct bc_parser bc_ndjson_parser;
/* A logic analyser's csv, if the layout has "clock=". */
extern const struct bc_parser bc_csv_capture_parser;
bool bc_csv_capture_is(const char *layout);
extern const struct bc_printer bc_csv_printer;
extern const struct bc_printer bc_ndjson_printer;
extern const struct bc_parser bc_vcd_parser;
extern const struct bc_printer bc_vcd_printer;

/* True if a value change dump begins as ours do: it needs no description. */
bool bc_vcd_is_own(const uint8_t *head, size_t bytes);
extern const struct bc_printer bc_perfetto_printer;
extern const struct bc_printer bc_arrow_printer;

#endif
