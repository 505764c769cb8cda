#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <stdio.h>
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

static int set_configuration(struct usbfs_port *port, unsigned value)
{
	for (unsigned i = 0; i < USBFS_INTERFACES; i++)
		if (port->owners[i] != NULL)
			return -EBUSY;
	if (port->has_driver)
		return -EBUSY;
	if (value > 255 || (value != 0 && value != port->device.first_configuration))
		return -EINVAL;
	return usbfs_configure(port, value);
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

static int get_driver(struct usbfs_port *port, struct usbdevfs_getdriver *get)
{
	if (!is_interface(port, get->interface))
		return -ENOENT;
	if (port->owners[get->interface] != NULL)
		snprintf(get->driver, sizeof(get->driver), "usbfs");
	else if (get->interface == 0 && port->has_driver)
		snprintf(get->driver, sizeof(get->driver), "%s", port->driver);
	else
		return -ENODATA;
	return 0;
}

static int disconnect_claim(struct usbfs_node *node, const struct usbdevfs_disconnect_claim *args)
{
	struct usbfs_port *port = node->port;
	unsigned interface = args->interface;

	if (!is_interface(port, interface))
		return -EINVAL;
	bool has_driver = interface == 0 && port->has_driver;
	const char *driver = port->owners[interface] != NULL ? "usbfs" : port->driver;
	if (has_driver || port->owners[interface] != NULL) {
		bool is_named = strncmp(args->driver, driver, sizeof(args->driver)) == 0;
		if ((args->flags & USBDEVFS_DISCONNECT_CLAIM_IF_DRIVER) != 0 && !is_named)
			return -EBUSY;
		if ((args->flags & USBDEVFS_DISCONNECT_CLAIM_EXCEPT_DRIVER) != 0 && is_named)
			return -EBUSY;
		port->has_driver = has_driver ? false : port->has_driver;
		port->owners[interface] = NULL;
	}
	return claim(node, interface);
}

/* A detached driver is reattached on request. */
static int driver_ioctl(struct usbfs_port *port, const struct usbdevfs_ioctl *args)
{
	if (args->ifno < 0 || !is_interface(port, (unsigned)args->ifno))
		return -EINVAL;
	bool is_bound = (args->ifno == 0 && port->has_driver) || port->owners[args->ifno];
	if ((unsigned)args->ioctl_code == USBDEVFS_DISCONNECT) {
		if (!is_bound)
			return -ENODATA;
		port->owners[args->ifno] = NULL;
		port->has_driver = false;
		return 0;
	}
	if ((unsigned)args->ioctl_code != USBDEVFS_CONNECT)
		return -ENOTTY;
	if (is_bound)
		return -EBUSY;
	port->has_driver = args->ifno == 0 && port->driver[0] != '\0';
	return port->has_driver;
}

static int control_and_wait(struct usbfs_node *node, const struct usbdevfs_ctrltransfer *args)
{
	uint8_t setup[8] = {args->bRequestType, args->bRequest};

	bc_write_le16(setup + 2, args->wValue);
	bc_write_le16(setup + 4, args->wIndex);
	bc_write_le16(setup + 6, args->wLength);
	int n = usbfs_control_board(node->port, setup, args->data);
	usbfs_serve(node->port);
	return n;
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
	case USBDEVFS_SETCONFIGURATION:
		return USBFS_SET_CONFIGURATION;
	case USBDEVFS_CLEAR_HALT:
		return USBFS_CLEAR_HALT;
	case USBDEVFS_RESET:
		return USBFS_RESET;
	case USBDEVFS_CONTROL:
		return USBFS_CONTROL;
	case USBDEVFS_GETDRIVER:
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
	case USBDEVFS_SETCONFIGURATION:
		return set_configuration(port, *(unsigned *)argument);
	case USBDEVFS_CLEAR_HALT:
		return clear_halt(node, *(unsigned *)argument);
	case USBDEVFS_RESET:
		return reset(port);
	case USBDEVFS_CONTROL:
		return control_and_wait(node, argument);
	case USBDEVFS_GETDRIVER:
		return get_driver(port, argument);
	case USBDEVFS_IOCTL:
		return driver_ioctl(port, argument);
	case USBDEVFS_GET_CAPABILITIES:
		*(uint32_t *)argument = usbfs_k.caps;
		return 0;
	case USBDEVFS_GET_SPEED:
		return usbfs_device_speed(&port->device);
	case USBDEVFS_CONNECTINFO:
		*(struct usbdevfs_connectinfo *)argument = (struct usbdevfs_connectinfo){
			.devnum = port->name.address};
		return 0;
	default:
		return -ENOTTY;
	}
}
