/* The variables of our own value change dumps (formats/codec/vcd.c) and their ids. */
#ifndef BC_FORMATS_CODEC_VCD_IDS_H
#define BC_FORMATS_CODEC_VCD_IDS_H

#include <stdint.h>

enum { SEQ, ADDR, TYPE, SIZE, ATTR, PROC, VARIABLES };

/* As vectors, and as signals of one bit each, with consecutive ids from bit 0 on. */
static const struct variable {
	const char *name;
	uint8_t bits;
	uint8_t signals;
	char signal_id;
} variables[VARIABLES] = {
	[SEQ] = {"seq", 64, 1, '!'},
	[ADDR] = {"addr", 64, 32, '"'},
	[TYPE] = {"type", 9, 9, 'B'},
	[SIZE] = {"size", 32, 8, 'K'},
	[ATTR] = {"attr", 8, 8, 'S'},
	[PROC] = {"proc", 16, 8, '['},
};

/* Scopes: one for each of the first processors, and one for the others or for all. */
#define SHARED 4u
#define SCOPES (SHARED + 1)

/* Ids of vectors: VARIABLES and the name of the type for each scope. */
#define NAME           VARIABLES
#define ID(scope, v)   ((char)('!' + (scope) * (VARIABLES + 1) + (v)))
#define ID_EVENT(kind) ("?x?yz"[kind]) /* toggles with each gap, mark and trigger */
#define ID_LOST        'w'
#define ID_TEXT        'v'

_Static_assert('!' + SCOPES * (VARIABLES + 1) <= ID_TEXT && '[' + 8 <= ID_TEXT, "ids are distinct");

#endif
