/* The kernel's id of the current boot, to distinguish a crash from a power cut. */
#ifndef BC_DAEMON_STORE_BOOT_ID_H
#define BC_DAEMON_STORE_BOOT_ID_H

#include "formats/segment/segment_header.h"

/* Writes 32 lower-case hexadecimal digits, or the empty string if it is unknown. The service sees
 * no /proc/sys, so its unit passes the id in BUSCAPD_BOOT_ID. */
void bc_boot_id_read(char out[BC_BOOT_ID_BYTES]);

#endif
