/* Private to tests/board/board_*.c; the interface is tests/board/board.h.
 *
 * board.c: power. board_descriptors.c: descriptors. board_request.c: control requests.
 * board_stream.c: the stream. board_transfer.c: bulk transfers. board_command.c: commands. */
#ifndef BC_TESTS_BOARD_BOARD_INTERNAL_H
#define BC_TESTS_BOARD_BOARD_INTERNAL_H

#include "capture/sim/sim.h"
#include "capture/sim/sim_bus.h"
#include "tests/board/board.h"
#include "tests/board/board_bus.h"
#include "tests/board/board_ledger.h"

/* For `send`: no limit. */
#define BOARD_ENDLESS UINT64_MAX

enum board_state {
	BOARD_IDLE, /* no START or STOP since power-on */
	BOARD_RUNNING,
	BOARD_STOPPING, /* sends what the FIFO holds, then the last frame */
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

/* A place where bytes of the stream were dropped, between the last byte sent and the next. */
struct board_seam {
	bool is_open;
	bool has_missing; /* it is within a frame, whose next byte was `missing` */
	uint8_t missing;
	uint8_t last; /* the last byte sent */
};

#define BOARD_FAULTS 16

/* Text that may hold any byte. */
#define BOARD_TEXT_MAX 126 /* maximum for a string descriptor */
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
	uint64_t resets;
	uint64_t purges;
	uint64_t last_packet_ns;
};

struct board {
	struct board_options options; /* without its strings; defaults filled in */
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

	/* The FIFO. Its samples are the next ones of the bus, so a count is enough. */
	struct board_bus bus;
	enum board_state state;
	uint64_t rate;
	uint64_t epoch_ns; /* `made` counts the samples since then */
	uint64_t made;
	uint64_t to_send; /* samples still to make, or BOARD_ENDLESS */
	uint64_t held;
	uint64_t held_most;
	uint64_t flush_ns;  /* when a partly filled frame is sent */
	uint64_t lost;      /* to be reported in the next header */
	uint64_t report_ns; /* when to report that without a sample */
	uint64_t last_tick; /* of the last sample sent */
	bool has_begun;     /* started since power-on: it was begin_tick at begin_ns */
	uint64_t begin_ns;
	uint64_t begin_tick;
	uint64_t last_frame_ns;
	uint64_t heartbeat_ns; /* 0: off */
	uint32_t frame_samples;
	uint32_t sequence;
	bool is_frozen;

	/* Pending faults. */
	bool is_trigger_due;
	bool is_corruption_due;
	bool is_short; /* transfers end early */
	uint64_t frames_to_lose;
	uint64_t garbage_bytes;
	uint64_t bytes_to_drop; /* of the stream, from the current position */
	struct board_fault faults[BOARD_FAULTS];
	unsigned fault_count;
	struct bc_sim_random dice;

	/* The current frame, or a piece of garbage or raw6. */
	uint8_t frame[BC_SIM_FRAME_MAX];
	size_t frame_bytes;
	size_t frame_at;  /* sent up to here */
	size_t frame_end; /* FTDI: the chip's buffer ends here; 0: the stream is not halted */

	struct board_seam seam;

	struct board_ledger ledger;
};

/* board.c: advances the time to now_ns, unless that is before the latest time. */
void board_advance(struct board *board, uint64_t now_ns);

/* board_descriptors.c: returns the number of the interface with the bulk endpoint. */
unsigned board_interface(const struct board *board);

/* Writes the serial number as the board reports it, at most `room` bytes. Returns its full length.
 */
size_t board_serial(const struct board *board, uint8_t *out, size_t room);

/* board_stream.c */

/* Ticks per second: 66 MHz, or more if the bus needs that for the rate of the options. */
uint64_t board_clock_hz(const struct board *board);

void board_stream_start(struct board *board);
void board_stream_stop(struct board *board);

/* Ends the stream immediately: drops the FIFO and the rest of the current frame. */
void board_stream_abort(struct board *board);

/* The FTDI chip stops reading from the board, within a frame: its FIFO is dropped, but the bytes
 * that are in the chip's buffer already, at most `bytes`, are sent until they are purged. */
void board_stream_halt(struct board *board, size_t bytes);

/* Drops the rest of the current frame, if any byte of it was sent or it is in the chip's buffer. */
void board_stream_cut(struct board *board);

/* Resets the tick counter, sequence number, counters and FIFO. */
void board_stream_power_on(struct board *board);

void board_stream_set_rate(struct board *board, uint64_t rate);
void board_stream_send(struct board *board, uint64_t samples);

/* Skips n samples of the bus: they are lost. */
void board_stream_lose(struct board *board, uint64_t n);

/* Makes the samples that are due. */
void board_stream_produce(struct board *board);

/* Prepares the next bytes at frame + frame_at, if any are due. Returns their number. */
size_t board_stream_fill(struct board *board);

/* Consumes n of them; if `out` is NULL they are dropped. */
void board_stream_read(struct board *board, uint8_t *out, size_t n);

/* Returns whether nothing is left to send until another command, apart from heartbeats. */
bool board_stream_is_idle(const struct board *board);

/* Returns when the stream will have data, if nothing else happens. */
uint64_t board_stream_due_ns(const struct board *board);

#endif
