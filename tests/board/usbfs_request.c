#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "formats/base/bytes.h"
#include "tests/board/usbfs_kernel.h"
#include "tests/board/usbfs_state.h"

int usbfs_configure(struct usbfs_port *port, unsigned value)
{
	uint8_t setup[8] = {0x00, 9};

	bc_write_le16(setup + 2, (uint16_t)value);
	int n = usbfs_control_board(port, setup, NULL);
	if (n >= 0) {
		port->device.configuration = value;
		memset(port->device.alternates, 0, sizeof(port->device.alternates));
	}
	return n < 0 ? n : 0;
}

static bool is_interface(const struct usbfs_port *port, unsigned interface)
{
	return interface < USBFS_INTERFACES && port->device.settings[interface] != 0;
}

static int claim(struct usbfs_node *node, unsigned interface)
{
	struct usbfs_port *port = node->port;

	if (interface >= USBFS_INTERFACES)
		return -EINVAL;
	if (!is_interface(port, interface))
		return -ENOENT;
	if (port->owners[interface] == node)
		return 0;
	if (port->owners[interface] != NULL || (interface == 0 && port->has_driver))
		return -EBUSY;
	port->owners[interface] = node;
	return 0;
}

int usbfs_check_claim(struct usbfs_node *node, unsigned interface)
{
	if (node->port->device.configuration == 0)
		return -EHOSTUNREACH;
	if (interface < USBFS_INTERFACES && node->port->owners[interface] == node)
		return 0;
	usbfs_k.leaks.unclaimed++;
	return claim(node, interface);
}

static int choose_setting(struct usbfs_port *port, unsigned interface, unsigned setting)
{
	uint8_t setup[8] = {0x01, 11};

	bc_write_le16(setup + 2, (uint16_t)setting);
	bc_write_le16(setup + 4, (uint16_t)interface);
	int n = usbfs_control_board(port, setup, NULL);
	if (n < 0)
		return n;
	usbfs_finish_all(port, NULL, (int)interface, -ESHUTDOWN);
	port->device.alternates[interface] = (uint8_t)setting;
	return 0;
}

static int set_interface(struct usbfs_node *node, const struct usbdevfs_setinterface *set)
{
	struct usbfs_port *port = node->port;
	int error = usbfs_check_claim(node, set->interface);

	if (error != 0)
		return error;
	if (set->altsetting >= USBFS_SETTINGS ||
		(port->device.settings[set->interface] & (UINT32_C(1) << set->altsetting)) == 0)
		return -EINVAL;
	error = choose_setting(port, set->interface, set->altsetting);
	usbfs_serve(port);
	return error;
}

static int release(struct usbfs_node *node, unsigned interface)
{
	struct usbfs_port *port = node->port;

	if (interface >= USBFS_INTERFACES)
		return -EINVAL;
	if (!is_interface(port, interface))
		return -ENOENT;
	if (port->owners[interface] != node)
		return -EINVAL;
	port->owners[interface] = NULL;
	usbfs_finish_all(port, node, (int)interface, -ENOENT);
	if (port->device.alternates[interface] != 0)
		choose_setting(port, interface, 0);
	return 0;
}

static int clear_halt(struct usbfs_node *node, unsigned endpoint)
{
	const struct usbfs_endpoint *found = usbfs_device_endpoint(&node->port->device, endpoint);
	uint8_t setup[8] = {0x02, 1};

	if (endpoint > 255 || found == NULL)
		return -ENOENT;
	int error = usbfs_check_claim(node, found->interface);
	if (error != 0)
		return error;
	setup[4] = (uint8_t)endpoint;
	int n = usbfs_control_board(node->port, setup, NULL);
	usbfs_serve(node->port);
	return n < 0 ? n : 0;
}

/* Programs lose their claimed interfaces, because a reset unbinds the driver. libusb releases and
 * reclaims them around it. */
static int reset(struct usbfs_port *port)
{
	usbfs_finish_all(port, NULL, -1, -ENOENT);
	memset(port->owners, 0, sizeof(port->owners));
	return usbfs_configure(port, port->device.first_configuration);
}

static int disconnect_claim(struct usbfs_node *node, const struct usbdevfs_disconnect_claim *args)
{
	struct usbfs_port *port = node->port;
	unsigned interface = args->interface;

	if (!is_interface(port, interface))
		return -EINVAL;
	/* libusb asks for any driver but usbfs to be detached. */
	if (port->owners[interface] != NULL)
		return -EBUSY;
	if (interface == 0)
		port->has_driver = false;
	return claim(node, interface);
}

/* A detached driver is reattached on request. */
static int driver_ioctl(struct usbfs_port *port, const struct usbdevfs_ioctl *args)
{
	if ((unsigned)args->ioctl_code != USBDEVFS_CONNECT || args->ifno != 0 || port->owners[0])
		return -ENOTTY;
	port->has_driver = port->driver[0] != '\0';
	return port->has_driver;
}

enum usbfs_call usbfs_call_of(unsigned long request)
{
	switch (request) {
	case USBDEVFS_SUBMITURB:
		return USBFS_SUBMIT;
	case USBDEVFS_REAPURBNDELAY:
		return USBFS_REAP;
	case USBDEVFS_DISCARDURB:
		return USBFS_DISCARD;
	case USBDEVFS_CLAIMINTERFACE:
	case USBDEVFS_DISCONNECT_CLAIM:
		return USBFS_CLAIM;
	case USBDEVFS_RELEASEINTERFACE:
		return USBFS_RELEASE;
	case USBDEVFS_SETINTERFACE:
		return USBFS_SET_INTERFACE;
	case USBDEVFS_CLEAR_HALT:
		return USBFS_CLEAR_HALT;
	case USBDEVFS_RESET:
		return USBFS_RESET;
	case USBDEVFS_IOCTL:
		return USBFS_DRIVER;
	default:
		return USBFS_ASK;
	}
}

int usbfs_answer(struct usbfs_node *node, unsigned long request, void *argument)
{
	struct usbfs_port *port = node->port;

	if (request == USBDEVFS_REAPURBNDELAY)
		return usbfs_reap(node, argument);
	if (!port->is_plugged)
		return -ENODEV;
	switch (request) {
	case USBDEVFS_SUBMITURB:
		return usbfs_submit(node, argument);
	case USBDEVFS_DISCARDURB:
		return usbfs_discard(node, argument);
	case USBDEVFS_CLAIMINTERFACE:
		return claim(node, *(unsigned *)argument);
	case USBDEVFS_DISCONNECT_CLAIM:
		return disconnect_claim(node, argument);
	case USBDEVFS_RELEASEINTERFACE:
		return release(node, *(unsigned *)argument);
	case USBDEVFS_SETINTERFACE:
		return set_interface(node, argument);
	case USBDEVFS_CLEAR_HALT:
		return clear_halt(node, *(unsigned *)argument);
	case USBDEVFS_RESET:
		return reset(port);
	case USBDEVFS_IOCTL:
		return driver_ioctl(port, argument);
	case USBDEVFS_GET_CAPABILITIES:
		*(uint32_t *)argument = usbfs_k.caps;
		return 0;
	default:
		return -ENOTTY;
	}
}
