/* buscapd's main(): the options that print something and exit, or the daemon.
 *
 * First it makes sure that descriptors 0 to 2 are open: the next file to be opened would otherwise
 * get one of these numbers, and log lines would be written into it. The log runs from then on. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/usb/usb_find.h"
#include "daemon/base/log.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/options.h"
#include "daemon/main/daemon.h"

/* If a standard descriptor were closed, the next open file would get its number, and log lines
 * would be written into that file. */
static bool open_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

/* Returns the exit code after --help and the like. */
static enum bc_exit flush_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return BC_EXIT_OK;
	fprintf(stderr, "buscapd: can't write to standard output: %s\n", strerror(errno));
	return BC_EXIT_FAILED;
}

static void on_config_error(void *context, const char *text)
{
	(void)context;
	bc_log(BC_LOG_ERROR, "%s", text);
}

/* Returns NULL if the device may be opened, else the reason why not. */
static const char *why_denied(const struct bc_board_identity *id)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/bus/usb/%03u/%03u", id->bus, id->address);
	if (access(path, R_OK | W_OK) == 0)
		return NULL;
	if (errno == EACCES || errno == EPERM)
		return "permission denied: is the udev rule installed, and this user in "
		       "group buscap?";
	return "no node in /dev/bus/usb";
}

/* Prints one device. Returns whether it is a usable board. */
static bool print_device(const struct bc_usb_device *d)
{
	const struct bc_board_identity *id = &d->identity;
	const char *denied = d->reject_reason[0] == '\0' ? why_denied(id) : NULL;

	printf("%-8s %04x:%04x  %-10s  %-16s  %-32s  ", id->port, id->vid, id->pid, id->speed,
		id->serial[0] != '\0' ? id->serial : "-",
		id->product[0] != '\0' ? id->product : "-");
	if (d->reject_reason[0] != '\0')
		printf("no: %s\n", d->reject_reason);
	else if (denied != NULL)
		printf("board, but %s\n", denied);
	else
		printf("board: interface %u, endpoint %02x, %u-byte packets\n", id->interface,
			id->endpoint, id->packet_bytes);
	return d->reject_reason[0] == '\0' && denied == NULL;
}

static enum bc_exit print_devices(libusb_context *context, const struct bc_usb_match *match)
{
	struct bc_usb_list list;
	unsigned usable = 0;
	char text[BC_USB_MATCH_TEXT];
	int rc = bc_usb_list(&list, context, match);

	if (rc != 0) {
		bc_log(BC_LOG_ERROR, "can't list USB devices: %s", strerror(-rc));
		return BC_EXIT_FAILED;
	}
	bc_usb_match_write(text, match);
	if (list.count != 0)
		printf("%-8s %-9s  %-10s  %-16s  %-32s  %s\n", "PORT", "ID", "SPEED", "SERIAL",
			"PRODUCT", "BOARD?");
	for (size_t i = 0; i < list.count; i++)
		usable += print_device(&list.devices[i]);
	if (list.count == 0)
		printf("no USB devices found; is the board plugged in and powered?\n");
	else if (usable == 0)
		printf("no usable board %s; USB devices found: %zu\n", text, list.count);
	else if (usable > 1)
		printf("%u boards match: the first is used unless serial= or port= selects "
		       "another\n",
			usable);
	bc_usb_list_free(&list);
	return usable != 0 ? BC_EXIT_OK : BC_EXIT_NO_DEVICE;
}

/* --list-boards: which USB devices are capture boards, and why the others are not. */
static enum bc_exit list_boards(const struct bc_config *config)
{
	struct bc_usb_options usb = bc_config_usb(config);
	libusb_context *context;
	int rc = libusb_init(&context);

	if (rc != 0) {
		bc_log(BC_LOG_ERROR, "can't initialize libusb: %s; is AF_NETLINK allowed?",
			libusb_strerror((enum libusb_error)rc));
		return BC_EXIT_FAILED;
	}
	enum bc_exit code = print_devices(context, &usb.match);
	libusb_exit(context);
	if (fflush(stdout) != 0) {
		bc_log(BC_LOG_ERROR, "can't write the list: %s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	return code;
}

static enum bc_exit run(const struct bc_daemon_options *options, struct bc_config *config)
{
	if (options->check_config) {
		puts("configuration is valid");
		return BC_EXIT_OK;
	}
	if (options->print_config) {
		bc_config_print(stdout, config);
		return flush_output();
	}
	if (options->list_boards)
		return list_boards(config);
	return bc_daemon_run(options, config);
}

static enum bc_exit start(int argc, char **argv)
{
	struct bc_daemon_options options;
	struct bc_config_errors errors = {.on_error = on_config_error};

	switch (bc_daemon_options_read(&options, argc, argv)) {
	case BC_OPTIONS_EXIT:
		return flush_output();
	case BC_OPTIONS_WRONG:
		return BC_EXIT_USAGE;
	case BC_OPTIONS_RUN:
		break;
	}
	struct bc_config *config = calloc(1, sizeof(*config));
	if (config == NULL) {
		bc_log(BC_LOG_ERROR, "out of memory");
		return BC_EXIT_FAILED;
	}
	enum bc_exit code = BC_EXIT_USAGE;
	if (bc_daemon_options_config(&options, config, &errors)) {
		code = run(&options, config);
		bc_name_map_close(config->names);
	}
	free(config);
	return code;
}

int main(int argc, char **argv)
{
	if (!open_standard_fds()) {
		bc_log(BC_LOG_ERROR, "can't open /dev/null: %s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	enum bc_exit code = start(argc, argv);
	bc_log_stop();
	return (int)code;
}
