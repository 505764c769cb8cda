#include "capture/usb/ftdi.h"

#include <string.h>

size_t bc_ftdi_strip(uint8_t *bytes, size_t count, size_t packet_bytes)
{
	size_t out = 0;

	for (size_t at = 0; at < count; at += packet_bytes) {
		size_t packet = count - at < packet_bytes ? count - at : packet_bytes;
		if (packet <= BC_FTDI_STATUS_BYTES)
			continue;
		memmove(bytes + out, bytes + at + BC_FTDI_STATUS_BYTES,
			packet - BC_FTDI_STATUS_BYTES);
		out += packet - BC_FTDI_STATUS_BYTES;
	}
	return out;
}
