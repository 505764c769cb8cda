/* The FT2232H and FT232H send two bytes of modem and line status at the start of each packet. */
#ifndef BC_CAPTURE_USB_FTDI_H
#define BC_CAPTURE_USB_FTDI_H

#include <stddef.h>
#include <stdint.h>

#define BC_FTDI_STATUS_BYTES 2

/* Removes the status bytes from the data of one transfer, in place. The data starts with a packet;
 * all packets except the last have packet_bytes. Returns the number of bytes left at `bytes`. */
size_t bc_ftdi_strip(uint8_t *bytes, size_t count, size_t packet_bytes);

#endif
