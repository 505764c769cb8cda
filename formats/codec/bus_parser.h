/* Parsers of the bus formats without frames: raw6 (formats/bus/sample.h) and BYU in its dialects
 * (formats/bus/dialect.h). */
#ifndef BC_FORMATS_CODEC_BUS_PARSER_H
#define BC_FORMATS_CODEC_BUS_PARSER_H

#include "formats/trace/parser.h"

/* Each sample takes one tick; the first is at tick 1. */
extern const struct bc_parser bc_raw6_parser;

/* The absolute tick of a record is the sum of the times so far. BC_TIME_NONE adds nothing. */
extern const struct bc_parser bc_byu_parser;
extern const struct bc_parser bc_byu16_parser;
extern const struct bc_parser bc_byu24_parser;
extern const struct bc_parser bc_byu_be_parser;

#endif
