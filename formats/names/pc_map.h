/* Well-known addresses of a PC with a Pentium: memory below 1 MiB, the APICs, the ISA ports. */
#ifndef BC_FORMATS_NAMES_PC_MAP_H
#define BC_FORMATS_NAMES_PC_MAP_H

/* The text of a layer: formats/names/name_map.h. */
extern const char bc_pc_map[];

#endif
