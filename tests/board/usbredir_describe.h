/* What usbredir tells a guest about a device, from the descriptors of a software board, which may
 * be false. */
#ifndef BC_TESTS_BOARD_USBREDIR_DESCRIBE_H
#define BC_TESTS_BOARD_USBREDIR_DESCRIBE_H

#include <stdint.h>

#include <usbredirproto.h>

#include "tests/board/board.h"

#define DESCRIBE_INTERFACES 32u

/* Describes the device. `packet_bytes`, as in the board's options, implies the speed. */
void describe_device(const struct board *board, uint16_t packet_bytes,
	struct usb_redir_device_connect_header *device);

/* Describes its interfaces and their endpoints for these alternate settings. */
void describe_interfaces(const struct board *board, const uint8_t alternates[DESCRIBE_INTERFACES],
	struct usb_redir_interface_info_header *info, struct usb_redir_ep_info_header *endpoints);

#endif
