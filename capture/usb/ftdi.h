/* What FTDI's FT2232H and FT232H put into the stream: two bytes of modem and line status at the
 * head of each packet. */
#ifndef BC_CAPTURE_USB_FTDI_H
#define BC_CAPTURE_USB_FTDI_H

#include <stddef.h>
#include <stdint.h>

#define BC_FTDI_STATUS_BYTES 2

/* Takes the status bytes out of what one transfer brought, which begins with a packet; packets are
 * of packet_bytes but for the last. The bytes left are moved together at `bytes`. Returns their
 * number. */
size_t bc_ftdi_strip(uint8_t *bytes, size_t count, size_t packet_bytes);

#endif
