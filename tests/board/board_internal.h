/* What the modules of the board share; tests/board/board.h is what it offers.
 *
 * board.c holds its power, board_descriptors.c what it says of itself, board_request.c how it
 * answers, board_stream.c what it has to send, board_transfer.c how that goes into transfers,
 * board_command.c how it is told to misbehave. */
#ifndef BC_TESTS_BOARD_BOARD_INTERNAL_H
#define BC_TESTS_BOARD_BOARD_INTERNAL_H

#include "capture/sim/sim.h"
#include "capture/sim/sim_random.h"
#include "tests/board/board.h"
#include "tests/board/board_bus.h"
#include "tests/board/board_ledger.h"

/* Of `send`: without end. */
#define BOARD_ENDLESS UINT64_MAX

enum board_state {
	BOARD_IDLE, /* not told anything since its power came */
	BOARD_RUNNING,
	BOARD_STOPPING, /* what is held goes out, then the last frame */
	BOARD_STOPPED,
};

enum board_requests { BOARD_ANSWERS, BOARD_STALLS, BOARD_HANGS };

enum board_lie {
	BOARD_LIE_NONE,
	BOARD_LIE_NO_ENDPOINT,
	BOARD_LIE_ISO_ENDPOINT,
	BOARD_LIE_OUT_ENDPOINT,
	BOARD_LIE_ZERO_PACKET,
	BOARD_LIE_HUGE_PACKET,
	BOARD_LIE_TRUNCATED_CONFIG,
	BOARD_LIE_LONG_CONFIG,
	BOARD_LIE_WRONG_CLASS,
	BOARD_LIE_MANY_INTERFACES,
	BOARD_LIE_ALTERNATE,
	BOARD_LIE_SHORT_INFO,
	BOARD_LIE_WILD_INFO,
	BOARD_LIE_WILD_SERIAL,
	BOARD_LIES,
};

enum board_fault_kind { BOARD_STALL, BOARD_OVERFLOW, BOARD_PROTOCOL_ERROR, BOARD_TIMEOUT };

struct board_fault {
	enum board_fault_kind kind;
	uint64_t bytes;
};

/* Where bytes of the stream were dropped, between what was given before and what is given next. */
struct board_seam {
	bool is_open;
	bool has_missing; /* it began in the midst of a frame, whose next byte was `missing` */
	uint8_t missing;
	uint8_t last; /* the last byte given */
};

#define BOARD_FAULTS 16

/* Text that may hold any byte. */
#define BOARD_TEXT_MAX 126 /* what a string descriptor has room for */
struct board_text {
	uint8_t length; /* 0: none */
	uint8_t bytes[BOARD_TEXT_MAX];
};

#define BOARD_FTDI_LATENCY_MS 16
#define BOARD_FTDI_SYNC_FIFO  0x40

struct board_ftdi {
	uint8_t latency_ms;
	uint8_t bit_mode;
	uint8_t bit_mask;
	uint16_t flow; /* wIndex of SET_FLOW_CTRL without the port */
	uint64_t resets;
	uint64_t purges;
	uint64_t last_packet_ns;
};

/* The last transfers, where a transfer's bytes are not the stream's. */
#define BOARD_TRANSFERS 4096

struct board_transfer {
	size_t bytes;
	size_t stream_bytes;
};

struct board {
	struct board_options options; /* without its texts; defaults filled in */
	struct board_text serial, next_serial;
	struct board_text firmware, next_firmware;
	enum board_lie lie;
	enum board_requests requests;

	bool is_plugged;
	bool is_self_powered;
	bool is_halted; /* the endpoint stalls until CLEAR_FEATURE */
	uint8_t configuration;
	uint8_t alternate;
	struct board_ftdi ftdi;
	uint64_t now_ns;

	/* The FIFO. Its samples are the next ones of the bus: a count is enough. */
	struct board_bus bus;
	enum board_state state;
	uint64_t rate;
	uint64_t epoch_ns; /* `made` samples were made since then */
	uint64_t made;
	uint64_t to_send; /* samples left to make, or BOARD_ENDLESS */
	uint64_t held;
	uint64_t held_most;
	uint64_t flush_ns;  /* when what is held goes out, though it fills no frame */
	uint64_t lost;      /* to be told in the next header */
	uint64_t tell_ns;   /* when that is told without a sample */
	uint64_t last_tick; /* of what was sent */
	uint64_t last_frame_ns;
	uint64_t heartbeat_ns; /* 0: off */
	uint32_t frame_samples;
	uint32_t sequence;
	bool is_frozen;

	/* Faults to come. */
	bool is_trigger_due;
	bool is_corruption_due;
	bool is_short; /* transfers end early */
	uint64_t frames_to_lose;
	uint64_t garbage_bytes;
	uint64_t bytes_to_drop; /* of the stream, from here on */
	struct board_fault faults[BOARD_FAULTS];
	unsigned fault_count;
	struct bc_sim_random dice;

	/* The frame on its way, or a piece of garbage or of raw6. */
	uint8_t frame[BC_SIM_FRAME_MAX];
	size_t frame_bytes;
	size_t frame_at; /* given up to here */

	struct board_seam seam;

	struct board_ledger ledger;
	struct board_transfer transfers[BOARD_TRANSFERS];
	uint64_t transfer_count;
};

/* board.c: lets the time pass up to now_ns; what is earlier than the last is taken for the last. */
void board_advance(struct board *board, uint64_t now_ns);

/* board_descriptors.c: the number of the interface with the bulk endpoint. */
unsigned board_interface(const struct board *board);

/* Fills `out` up to `room` bytes with the serial number as the board tells it. Returns its length,
 * which may be more. */
size_t board_serial(const struct board *board, uint8_t *out, size_t room);

/* board_stream.c */

void board_stream_start(struct board *board);
void board_stream_stop(struct board *board);

/* Ends it at once: what is held and the rest of the frame on its way are gone. */
void board_stream_abort(struct board *board);

/* The rest of the frame on its way is gone, if any byte of it was given. */
void board_stream_cut(struct board *board);

/* Tick counter, sequence number, counters and FIFO begin anew. */
void board_stream_power_on(struct board *board);

void board_stream_set_rate(struct board *board, uint64_t rate);
void board_stream_send(struct board *board, uint64_t samples);

/* The bus goes on by n samples that nobody gets. */
void board_stream_lose(struct board *board, uint64_t n);

/* Makes the samples that are due by now. */
void board_stream_produce(struct board *board);

/* Makes sure that bytes are at hand, at frame + frame_at, if any are due. Returns how many. */
size_t board_stream_fill(struct board *board);

/* Takes n of them; with `out` NULL they are gone. */
void board_stream_take(struct board *board, uint8_t *out, size_t n);

/* When the stream will have something, if nothing else happens. */
uint64_t board_stream_due_ns(const struct board *board);

#endif
