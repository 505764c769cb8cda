#include "tests/board/board_internal.h"

#include <errno.h>
#include <string.h>

#define STATUS_BYTES 2
static const uint8_t ftdi_status[STATUS_BYTES] = {0x32, 0x60};

#define MS_NS UINT64_C(1000000)

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Copies the available bytes, at most `room`. */
static size_t copy_stream(struct board *board, uint8_t *out, size_t room)
{
	size_t n = 0;

	while (n < room) {
		size_t piece = smaller(board_stream_fill(board), room - n);
		if (piece == 0)
			break;
		board_stream_read(board, out + n, piece);
		n += piece;
	}
	return n;
}

/* The same in FTDI's packets; a packet that is not full ends the transfer. */
static size_t copy_packets(struct board *board, uint8_t *out, size_t room)
{
	size_t bytes = 0;

	while (room - bytes >= STATUS_BYTES) {
		size_t packet = smaller(board->options.packet_bytes, room - bytes);
		memcpy(out + bytes, ftdi_status, STATUS_BYTES);
		size_t n = copy_stream(board, out + bytes + STATUS_BYTES, packet - STATUS_BYTES);
		bytes += STATUS_BYTES + n;
		if (STATUS_BYTES + n < board->options.packet_bytes)
			break;
	}
	board->ftdi.last_packet_ns = board->now_ns;
	return bytes;
}

static size_t fill(struct board *board, uint8_t *out, size_t room)
{
	return board->options.is_ftdi ? copy_packets(board, out, room)
				      : copy_stream(board, out, room);
}

static uint64_t status_due_ns(const struct board *board)
{
	if (!board->options.is_ftdi || board->is_frozen)
		return UINT64_MAX;
	return board->ftdi.last_packet_ns + board->ftdi.latency_ms * MS_NS;
}

/* Whether the endpoint belongs to the current alternate setting. */
static bool is_reachable(const struct board *board)
{
	return board->lie != BOARD_LIE_ALTERNATE || board->alternate == 1;
}

static int fail(struct board *board, uint8_t *out, size_t room, size_t *bytes)
{
	struct board_fault fault = board->faults[0];
	size_t half = room / 2 - room / 2 % board->options.packet_bytes;

	board->fault_count--;
	memmove(board->faults, board->faults + 1, board->fault_count * sizeof(board->faults[0]));
	switch (fault.kind) {
	case BOARD_STALL:
		*bytes = fill(board, out, half);
		board->is_halted = true;
		return -EPIPE;
	case BOARD_PROTOCOL_ERROR:
		*bytes = fill(board, out, half);
		return -EPROTO;
	case BOARD_TIMEOUT:
		*bytes = fill(board, out, fault.bytes < room ? (size_t)fault.bytes : room);
		return -ETIMEDOUT;
	case BOARD_OVERFLOW:
		break;
	}
	*bytes = fill(board, out, room);
	board->bytes_to_drop += fault.bytes;
	return -EOVERFLOW;
}

/* For a full buffer that is not a whole number of packets: drops the part of the last packet that
 * does not fit. Returns whether there was any. */
static bool drop_excess(struct board *board, size_t room)
{
	size_t packet = board->options.packet_bytes;
	size_t excess = room % packet == 0 ? 0 : packet - room % packet;
	bool is_spilt = false;

	while (excess != 0) {
		size_t n = smaller(board_stream_fill(board), excess);
		if (n == 0)
			break;
		board_stream_read(board, NULL, n);
		excess -= n;
		is_spilt = true;
	}
	return is_spilt;
}

/* Returns where a transfer ends that is to end early. */
static size_t shorten(struct board *board, size_t room)
{
	uint32_t packet = board->options.packet_bytes;
	uint32_t packets = room / packet < UINT16_MAX ? (uint32_t)(room / packet) : UINT16_MAX;
	size_t whole = (size_t)bc_sim_between(&board->dice, 0, packets) * packet;
	size_t rest = bc_sim_between(&board->dice, 0, packet - 1);

	return smaller(whole + rest, room);
}

int board_bulk_in(struct board *board, uint8_t *data, size_t room, size_t *bytes, uint64_t now_ns)
{
	*bytes = 0;
	if (!board->is_plugged)
		return -ENODEV;
	board_advance(board, now_ns);
	if (board->is_halted)
		return -EPIPE;
	if (!is_reachable(board))
		return BOARD_NAK;
	/* A board without answers to requests sends from power-on. */
	if (board->requests != BOARD_ANSWERS && board->state == BOARD_IDLE)
		board_stream_start(board);
	if (board->fault_count != 0)
		return fail(board, data, room, bytes);
	if (board_stream_fill(board) == 0 && board->now_ns < status_due_ns(board))
		return BOARD_NAK;

	size_t limit = board->is_short ? shorten(board, room) : room;
	*bytes = fill(board, data, limit);
	if (*bytes == room && limit == room && drop_excess(board, room))
		return -EOVERFLOW;
	return 0;
}

uint64_t board_due_ns(const struct board *board, uint64_t now_ns)
{
	if (!board->is_plugged || board->is_halted)
		return now_ns;
	if (!is_reachable(board))
		return UINT64_MAX;
	if (board->fault_count != 0 ||
		(board->requests != BOARD_ANSWERS && board->state == BOARD_IDLE))
		return now_ns;

	uint64_t due = board_stream_due_ns(board);
	uint64_t status = status_due_ns(board);
	if (status < due)
		due = status;
	return due > now_ns ? due : now_ns;
}
