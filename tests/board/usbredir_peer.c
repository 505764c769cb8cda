#include "tests/board/usbredir_peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <usbredirparser.h>

#include "formats/base/bytes.h"

#define HELD_MAX 4096u /* held transfers, of both kinds */
#define BULK_MAX                                                                        \
	(16u << 20) /* bytes per transfer; Linux's usbfs allows no more for all of them \
		     */

#define ENDPOINT_IN 0x80u

/* Descriptors. */
#define CONFIG_MAX 4096u
#define INTERFACE  4u
#define ENDPOINT   5u

/* Standard requests. */
#define GET_CONFIGURATION 8u
#define SET_CONFIGURATION 9u
#define GET_INTERFACE     10u
#define SET_INTERFACE     11u
#define TO_INTERFACE      1u

struct held {
	uint64_t id;
	bool is_bulk;
	union {
		struct usb_redir_bulk_packet_header bulk;
		struct usb_redir_control_packet_header control;
	};
};

struct peer {
	int fd;
	struct board *board;
	struct usbredirparser *parser;
	uint64_t now_ns; /* time of this turn */
	char err[128];

	struct held held[HELD_MAX]; /* in order of arrival */
	size_t held_count;
	bool is_waiting; /* the board returned BOARD_NAK */

	uint8_t *data; /* of BULK_MAX bytes */
	FILE *kept;    /* copy of the stream; NULL: none */
};

static void end_with_error(struct peer *peer, const char *err)
{
	if (peer->err[0] == '\0')
		snprintf(peer->err, sizeof(peer->err), "%s", err);
}

static uint8_t status_of(int rc)
{
	switch (rc) {
	case -EPIPE:
		return usb_redir_stall;
	case -EOVERFLOW:
		return usb_redir_babble;
	case -ETIMEDOUT:
		return usb_redir_timeout;
	default:
		return rc < 0 ? usb_redir_ioerror : usb_redir_success;
	}
}

/* ---- the socket */

static int on_read(void *priv, uint8_t *data, int count)
{
	struct peer *peer = priv;
	ssize_t n = recv(peer->fd, data, (size_t)count, 0);

	if (n > 0)
		return (int)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	end_with_error(peer, n == 0 ? "closed by the other side" : strerror(errno));
	return -1;
}

static int on_write(void *priv, uint8_t *data, int count)
{
	struct peer *peer = priv;
	ssize_t n = send(peer->fd, data, (size_t)count, MSG_NOSIGNAL);

	if (n >= 0)
		return (int)n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	end_with_error(peer, errno == EPIPE ? "closed by the other side" : strerror(errno));
	return -1;
}

/* A parser error ends the connection and becomes its reason. */
static void on_log(void *priv, int level, const char *text)
{
	if (level == usbredirparser_error)
		end_with_error(priv, text);
}

/* ---- what the device is */

static void add_interface(struct usb_redir_interface_info_header *info, const uint8_t *d)
{
	uint32_t i = info->interface_count;

	if (i == sizeof(info->interface))
		return;
	info->interface[i] = d[2];
	info->interface_class[i] = d[5];
	info->interface_subclass[i] = d[6];
	info->interface_protocol[i] = d[7];
	info->interface_count = i + 1;
}

/* The first 16 entries are the OUT endpoints. */
static void set_endpoint(
	struct usb_redir_ep_info_header *endpoints, const uint8_t *d, uint8_t interface)
{
	unsigned i = (d[2] & 0x80u) >> 3 | (d[2] & 15u);

	endpoints->type[i] = d[3] & 3u;
	endpoints->interval[i] = d[6];
	endpoints->interface[i] = interface;
	endpoints->max_packet_size[i] = bc_le16(d + 4) & 0x7FFu;
}

/* Every endpoint and interface is in the first configuration; alternate settings are left out. */
static void send_info(struct peer *peer)
{
	struct usb_redir_interface_info_header info = {0};
	struct usb_redir_ep_info_header endpoints = {0};
	uint8_t config[CONFIG_MAX];
	size_t n = board_descriptor(peer->board, 2, 0, config, sizeof(config));
	bool is_first = false;
	uint8_t number = 0;

	memset(endpoints.type, usb_redir_type_invalid, sizeof(endpoints.type));
	endpoints.type[0] = endpoints.type[16] = usb_redir_type_control;
	for (size_t at = 0; at + 2 <= n; at += config[at]) {
		const uint8_t *d = config + at;
		if (d[0] < 2 || d[0] > n - at)
			break;
		if (d[1] == INTERFACE && d[0] >= 9) {
			number = d[2];
			is_first = d[3] == 0;
			if (is_first)
				add_interface(&info, d);
		} else if (d[1] == ENDPOINT && d[0] >= 7 && is_first) {
			set_endpoint(&endpoints, d, number);
		}
	}
	usbredirparser_send_interface_info(peer->parser, &info);
	usbredirparser_send_ep_info(peer->parser, &endpoints);
}

static void on_hello(void *priv, struct usb_redir_hello_header *hello)
{
	struct peer *peer = priv;
	struct usb_redir_device_connect_header device = {.speed = usb_redir_speed_high};
	uint8_t d[18] = {0};

	(void)hello;
	send_info(peer);
	board_descriptor(peer->board, 1, 0, d, sizeof(d));
	device.device_class = d[4];
	device.device_subclass = d[5];
	device.device_protocol = d[6];
	device.vendor_id = bc_le16(d + 8);
	device.product_id = bc_le16(d + 10);
	device.device_version_bcd = bc_le16(d + 12);
	usbredirparser_send_device_connect(peer->parser, &device);
}

/* ---- transfers that are held */

static void hold_transfer(struct peer *peer, struct held held)
{
	peer->held[peer->held_count++] = held;
}

static void answer_bulk(
	struct peer *peer, const struct held *held, uint8_t status, uint8_t *data, size_t bytes)
{
	struct usb_redir_bulk_packet_header header = held->bulk;

	header.status = status;
	header.length = (uint16_t)(bytes & 0xFFFF);
	header.length_high = (uint16_t)(bytes >> 16);
	usbredirparser_send_bulk_packet(peer->parser, held->id, &header, data, (int)bytes);
	if (peer->kept != NULL && bytes > 0)
		fwrite(data, 1, bytes, peer->kept);
}

static void answer_control(
	struct peer *peer, const struct held *held, uint8_t status, uint8_t *data, uint16_t bytes)
{
	struct usb_redir_control_packet_header header = held->control;
	bool has_data = (header.endpoint & ENDPOINT_IN) != 0 && bytes > 0;

	header.status = status;
	header.length = bytes;
	usbredirparser_send_control_packet(
		peer->parser, held->id, &header, has_data ? data : NULL, has_data ? bytes : 0);
}

static void answer_without_data(struct peer *peer, const struct held *held, uint8_t status)
{
	if (held->is_bulk)
		answer_bulk(peer, held, status, NULL, 0);
	else
		answer_control(peer, held, status, NULL, 0);
}

static void on_cancel(void *priv, uint64_t id)
{
	struct peer *peer = priv;

	for (size_t i = 0; i < peer->held_count; i++) {
		if (peer->held[i].id != id)
			continue;
		answer_without_data(peer, &peer->held[i], usb_redir_cancelled);
		peer->held_count--;
		memmove(peer->held + i, peer->held + i + 1,
			(peer->held_count - i) * sizeof(peer->held[0]));
		return;
	}
}

static void cancel_all(struct peer *peer)
{
	for (size_t i = 0; i < peer->held_count; i++)
		answer_without_data(peer, &peer->held[i], usb_redir_cancelled);
	peer->held_count = 0;
}

/* Fills the bulk transfers, in order, with the board's data. */
static void serve_bulk(struct peer *peer)
{
	size_t kept = 0;
	size_t i = 0;

	peer->is_waiting = false;
	for (; i < peer->held_count && !peer->is_waiting; i++) {
		struct held *held = &peer->held[i];
		if (!held->is_bulk) {
			peer->held[kept++] = *held;
			continue;
		}
		size_t room = (size_t)held->bulk.length_high << 16 | held->bulk.length;
		size_t bytes = 0;
		int rc = board_bulk_in(peer->board, peer->data, room, &bytes, peer->now_ns);
		if (rc == BOARD_NAK) {
			peer->is_waiting = true;
			break;
		}
		answer_bulk(peer, held, status_of(rc), peer->data, bytes);
	}
	memmove(peer->held + kept, peer->held + i, (peer->held_count - i) * sizeof(peer->held[0]));
	peer->held_count -= i - kept;
}

static void on_bulk(void *priv, uint64_t id, struct usb_redir_bulk_packet_header *header,
	uint8_t *data, int bytes)
{
	struct peer *peer = priv;
	struct held held = {.id = id, .is_bulk = true, .bulk = *header};
	size_t room = (size_t)header->length_high << 16 | header->length;

	(void)bytes;
	usbredirparser_free_packet_data(peer->parser, data);
	if (header->endpoint != BOARD_ENDPOINT || header->stream_id != 0 || room > BULK_MAX ||
		peer->held_count == HELD_MAX)
		answer_bulk(peer, &held, usb_redir_inval, NULL, 0);
	else
		hold_transfer(peer, held);
}

/* ---- control transfers */

static int control_board(struct peer *peer, uint8_t type, uint8_t request, uint16_t value,
	uint16_t index, uint16_t length, uint8_t *data)
{
	uint8_t setup[8] = {type, request};

	bc_write_le16(setup + 2, value);
	bc_write_le16(setup + 4, index);
	bc_write_le16(setup + 6, length);
	return board_control(peer->board, setup, data, peer->now_ns);
}

static void on_control(void *priv, uint64_t id, struct usb_redir_control_packet_header *header,
	uint8_t *data, int bytes)
{
	struct peer *peer = priv;
	struct held held = {.id = id, .control = *header};
	int rc;

	/* The parser has checked that OUT data is as long as the header says. */
	if (bytes > 0)
		memcpy(peer->data, data, (size_t)bytes);
	usbredirparser_free_packet_data(peer->parser, data);
	if ((header->endpoint & ~ENDPOINT_IN) != 0 ||
		(header->endpoint & ENDPOINT_IN) != (header->requesttype & ENDPOINT_IN) ||
		peer->held_count == HELD_MAX) {
		answer_control(peer, &held, usb_redir_inval, NULL, 0);
		return;
	}
	rc = control_board(peer, header->requesttype, header->request, header->value, header->index,
		header->length, peer->data);
	if (rc == -ETIMEDOUT)
		hold_transfer(peer, held);
	else
		answer_control(peer, &held, status_of(rc), peer->data,
			rc > 0 && rc <= header->length ? (uint16_t)rc : 0);
}

static void on_set_configuration(
	void *priv, uint64_t id, struct usb_redir_set_configuration_header *header)
{
	struct peer *peer = priv;

	cancel_all(peer);
	int rc = control_board(peer, 0, SET_CONFIGURATION, header->configuration, 0, 0, peer->data);
	send_info(peer);
	usbredirparser_send_configuration_status(peer->parser, id,
		&(struct usb_redir_configuration_status_header){
			.status = status_of(rc), .configuration = header->configuration});
}

static void on_get_configuration(void *priv, uint64_t id)
{
	struct peer *peer = priv;
	int rc = control_board(peer, ENDPOINT_IN, GET_CONFIGURATION, 0, 0, 1, peer->data);

	usbredirparser_send_configuration_status(peer->parser, id,
		&(struct usb_redir_configuration_status_header){
			.status = status_of(rc), .configuration = rc == 1 ? peer->data[0] : 0});
}

static void on_set_alt(void *priv, uint64_t id, struct usb_redir_set_alt_setting_header *header)
{
	struct peer *peer = priv;

	cancel_all(peer);
	int rc = control_board(
		peer, TO_INTERFACE, SET_INTERFACE, header->alt, header->interface, 0, peer->data);
	send_info(peer);
	usbredirparser_send_alt_setting_status(peer->parser, id,
		&(struct usb_redir_alt_setting_status_header){.status = status_of(rc),
			.interface = header->interface,
			.alt = header->alt});
}

static void on_get_alt(void *priv, uint64_t id, struct usb_redir_get_alt_setting_header *header)
{
	struct peer *peer = priv;
	int rc = control_board(peer, ENDPOINT_IN | TO_INTERFACE, GET_INTERFACE, 0,
		header->interface, 1, peer->data);

	usbredirparser_send_alt_setting_status(peer->parser, id,
		&(struct usb_redir_alt_setting_status_header){.status = status_of(rc),
			.interface = header->interface,
			.alt = rc == 1 ? peer->data[0] : 0});
}

/* A bus reset: the device keeps its power but is no longer configured. */
static void on_reset(void *priv)
{
	struct peer *peer = priv;

	cancel_all(peer);
	(void)control_board(peer, 0, SET_CONFIGURATION, 0, 0, 0, peer->data);
}

/* ---- a connection */

static void set_callbacks(struct usbredirparser *parser)
{
	parser->log_func = on_log;
	parser->read_func = on_read;
	parser->write_func = on_write;
	parser->hello_func = on_hello;
	parser->reset_func = on_reset;
	parser->set_configuration_func = on_set_configuration;
	parser->get_configuration_func = on_get_configuration;
	parser->set_alt_setting_func = on_set_alt;
	parser->get_alt_setting_func = on_get_alt;
	parser->cancel_data_packet_func = on_cancel;
	parser->control_packet_func = on_control;
	parser->bulk_packet_func = on_bulk;
}

struct peer *peer_new(int fd, struct board *board)
{
	uint32_t caps[USB_REDIR_CAPS_SIZE] = {0};
	struct peer *peer = calloc(1, sizeof(*peer));

	if (peer == NULL)
		return NULL;
	peer->fd = -1;
	peer->board = board;
	peer->data = malloc(BULK_MAX);
	peer->parser = usbredirparser_create();
	if (peer->data == NULL || peer->parser == NULL) {
		peer_free(peer);
		return NULL;
	}
	peer->parser->priv = peer;
	set_callbacks(peer->parser);
	usbredirparser_caps_set_cap(caps, usb_redir_cap_connect_device_version);
	/* QEMU's xHCI requires these three. */
	usbredirparser_caps_set_cap(caps, usb_redir_cap_ep_info_max_packet_size);
	usbredirparser_caps_set_cap(caps, usb_redir_cap_64bits_ids);
	usbredirparser_caps_set_cap(caps, usb_redir_cap_32bits_bulk_length);
	usbredirparser_init(peer->parser, "buscapd test board " BC_VERSION, caps,
		USB_REDIR_CAPS_SIZE, usbredirparser_fl_usb_host);
	peer->fd = fd;
	return peer;
}

void peer_keep(struct peer *peer, FILE *kept)
{
	peer->kept = kept;
}

bool peer_turn(struct peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (usbredirparser_do_read(peer->parser) < 0) {
		end_with_error(peer, "invalid usbredir data");
		return false;
	}
	serve_bulk(peer);
	if (usbredirparser_do_write(peer->parser) < 0)
		return false;
	return peer->err[0] == '\0';
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Reads and discards. Returns false when the other side has closed the connection. */
static bool discard(struct peer *peer)
{
	ssize_t n = recv(peer->fd, peer->data, BULK_MAX, 0);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* QEMU does not read what is in the socket when the socket is closed, unless it finds the end of
 * the stream first: so shut down the sending direction first. */
void peer_finish(struct peer *peer, unsigned limit_ms)
{
	uint64_t end_ms = now_ms() + limit_ms;
	bool is_written = false;

	do {
		if (!is_written) {
			if (usbredirparser_do_write(peer->parser) < 0)
				return;
			is_written = usbredirparser_has_data_to_write(peer->parser) == 0;
			if (is_written && shutdown(peer->fd, SHUT_WR) != 0)
				return;
		}
		struct pollfd fd = {.fd = peer->fd, .events = POLLIN};
		if (poll(&fd, 1, 1) > 0 && !discard(peer))
			return;
	} while (now_ms() < end_ms);
}

int peer_fd(const struct peer *peer)
{
	return peer->fd;
}

short peer_events(const struct peer *peer)
{
	bool has_output = usbredirparser_has_data_to_write(peer->parser) > 0;

	return (short)(POLLIN | (has_output ? POLLOUT : 0));
}

uint64_t peer_due_ns(const struct peer *peer, uint64_t now_ns)
{
	if (peer->is_waiting)
		return board_due_ns(peer->board, now_ns);
	for (size_t i = 0; i < peer->held_count; i++) {
		if (peer->held[i].is_bulk)
			return now_ns;
	}
	return UINT64_MAX;
}

const char *peer_error(const struct peer *peer)
{
	return peer->err;
}

void peer_free(struct peer *peer)
{
	if (peer == NULL)
		return;
	if (peer->parser != NULL)
		usbredirparser_destroy(peer->parser);
	if (peer->fd >= 0)
		close(peer->fd);
	free(peer->data);
	free(peer);
}
