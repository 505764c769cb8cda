#include "tests/board/usbredir_refuse.h"

#include "tests/board/usbredir_peer.h"

static void refuse_iso(void *priv, uint64_t id, uint8_t endpoint)
{
	usbredirparser_send_iso_stream_status(peer_parser(priv), id,
		&(struct usb_redir_iso_stream_status_header){
			.status = usb_redir_inval, .endpoint = endpoint});
}

static void on_start_iso(void *priv, uint64_t id, struct usb_redir_start_iso_stream_header *header)
{
	refuse_iso(priv, id, header->endpoint);
}

static void on_stop_iso(void *priv, uint64_t id, struct usb_redir_stop_iso_stream_header *header)
{
	refuse_iso(priv, id, header->endpoint);
}

static void refuse_interrupt(void *priv, uint64_t id, uint8_t endpoint)
{
	usbredirparser_send_interrupt_receiving_status(peer_parser(priv), id,
		&(struct usb_redir_interrupt_receiving_status_header){
			.status = usb_redir_inval, .endpoint = endpoint});
}

static void on_start_interrupt(
	void *priv, uint64_t id, struct usb_redir_start_interrupt_receiving_header *header)
{
	refuse_interrupt(priv, id, header->endpoint);
}

static void on_stop_interrupt(
	void *priv, uint64_t id, struct usb_redir_stop_interrupt_receiving_header *header)
{
	refuse_interrupt(priv, id, header->endpoint);
}

static void refuse_streams(void *priv, uint64_t id, uint32_t endpoints, uint32_t streams)
{
	usbredirparser_send_bulk_streams_status(peer_parser(priv), id,
		&(struct usb_redir_bulk_streams_status_header){
			.status = usb_redir_inval, .endpoints = endpoints, .no_streams = streams});
}

static void on_alloc_streams(
	void *priv, uint64_t id, struct usb_redir_alloc_bulk_streams_header *header)
{
	refuse_streams(priv, id, header->endpoints, header->no_streams);
}

static void on_free_streams(
	void *priv, uint64_t id, struct usb_redir_free_bulk_streams_header *header)
{
	refuse_streams(priv, id, header->endpoints, 0);
}

static void on_iso(void *priv, uint64_t id, struct usb_redir_iso_packet_header *header,
	uint8_t *data, int bytes)
{
	(void)bytes;
	usbredirparser_free_packet_data(peer_parser(priv), data);
	refuse_iso(priv, id, header->endpoint);
}

static void on_interrupt(void *priv, uint64_t id, struct usb_redir_interrupt_packet_header *header,
	uint8_t *data, int bytes)
{
	struct usb_redir_interrupt_packet_header answer = *header;

	(void)bytes;
	usbredirparser_free_packet_data(peer_parser(priv), data);
	answer.status = usb_redir_inval;
	answer.length = 0;
	usbredirparser_send_interrupt_packet(peer_parser(priv), id, &answer, NULL, 0);
}

void refuse_callbacks(struct usbredirparser *parser)
{
	parser->start_iso_stream_func = on_start_iso;
	parser->stop_iso_stream_func = on_stop_iso;
	parser->start_interrupt_receiving_func = on_start_interrupt;
	parser->stop_interrupt_receiving_func = on_stop_interrupt;
	parser->alloc_bulk_streams_func = on_alloc_streams;
	parser->free_bulk_streams_func = on_free_streams;
	parser->iso_packet_func = on_iso;
	parser->interrupt_packet_func = on_interrupt;
}
