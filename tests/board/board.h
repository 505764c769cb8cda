/* A capture board in software: what it says of itself, how it answers requests, what it sends, and
 * how it misbehaves when told to. It knows no USB stack and no clock: an adapter hands it set-up
 * packets, room for bulk data and the time.
 *
 *     board_new()
 *     board_control()      a control transfer
 *     board_bulk_in()      a bulk IN transfer; BOARD_NAK: ask again at board_due_ns()
 *     board_command()      a line of text that changes it: rate, faults, lies
 *     board_unplug(), board_plug()   what it forgets when it loses its power
 *     board_undelivered()  takes back what was given and didn't arrive
 *     board_sent()         the truth that a receiver's counts are held against
 *
 * Its stream is the simulated bus (capture/sim/sim.h) as docs/board-protocol.md has it: bcp1 or
 * raw6, and with is_ftdi in packets with two status bytes at the head of each. It is made from a
 * loop of 131,072 samples of that bus, gone round for ever with rising ticks: a frame costs a copy
 * and its CRCs. A full frame has `frame` samples, or ends before a delta that is too long. The
 * first sequence number is 0xFFFFFFF0, so that every recording crosses the end of the numbers. The
 * tick of a heartbeat has gone on by the time since the frame before it; ticks don't follow the
 * time else.
 *
 * At a finite rate the samples are made by the times given, in any call. What the FIFO has no room
 * for pushes out its oldest samples: so a loss stands before the very next frame. At "rate max"
 * they are made as they are asked for. The simulated bus has an invalid cycle now and then: they
 * are samples as any, in board_sent() and in `received`.
 *
 * With is_ftdi the bulk endpoint behaves as an FT232H in front of a board: bit mode 0x40 (sync
 * FIFO) starts the stream and counts as a start; bit mode 0 ends it at once, in the midst of a
 * frame if need be, and counts as a stop; what is held is dropped. A reset or purge drops the rest
 * of the frame on its way. A packet of status alone is sent when no packet was for the latency
 * time, started or not. The requests of the board protocol are stalled.
 *
 * A board that doesn't answer vendor requests (the command `requests`) needs no START and no bit
 * mode: it sends from the first board_bulk_in() after its power came.
 *
 * Everything follows from the options, the calls and the times given: the same row is the same
 * stream. A time before the latest one given is taken for that one. One thread at a time. */
#ifndef BC_TESTS_BOARD_BOARD_H
#define BC_TESTS_BOARD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum board_form { BOARD_BCP1, BOARD_RAW6 };

#define BOARD_RATE_MAX 1000000000u

struct board_options {
	uint16_t vid; /* 0: 1209:0001, or 0403:6014 with is_ftdi */
	uint16_t pid;
	const char *serial;   /* NULL: it has no serial number string */
	const char *firmware; /* of GET_INFO, up to 16 characters; NULL: "sim-1.0" */
	enum board_form form;
	bool is_ftdi;
	uint16_t packet_bytes; /* 0: 512, high speed; 64: full speed; 1024: super speed */
	uint64_t seed;
	unsigned agents;       /* 1 .. 4; 0: 1 */
	uint64_t rate;         /* samples a second, up to BOARD_RATE_MAX; 0: as many as are taken */
	uint32_t fifo_samples; /* 0: 524,288; what doesn't fit is lost, and counted */
};

/* What left the board. A frame counts as delivered with its last byte, when that was in a transfer
 * that gave its data, with or without a fault behind it. Every sample that was captured is in one
 * of `samples`, `torn_samples` and `dropped_samples`, or still in the FIFO or the frame on its way.
 */
struct board_sent {
	uint64_t bytes;        /* of the stream (FTDI's status bytes aside) given to transfers */
	uint64_t frames;       /* bcp1: delivered whole and undamaged, empty ones too; raw6: 0 */
	uint64_t samples;      /* bcp1: in those frames; raw6: the bytes of each run, from start to
				* stop or unplug, divided by 6, as a receiver would */
	uint64_t torn_frames;  /* frames with samples that were begun, and cut off or damaged */
	uint64_t torn_samples; /* the samples in them */
	uint64_t dropped_samples; /* captured, and never given to a transfer, with no word of it in
				   * the stream: what stood in the FIFO when the power went, whole
				   * frames that an overflow cut off or lose-frames took; raw6:
				   * counted when a run ends */
	uint64_t lost;     /* the losses that headers told, those of torn frames that came undamaged
			    * included: what a receiver adds up (0xFFFFFFFF for more than fits) */
	uint64_t captured; /* as GET_COUNTERS says: since power-on */
	uint64_t captured_lost;
	uint64_t starts; /* START requests, or bit mode 0x40, that were taken */
	uint64_t stops;
	uint64_t plugs; /* the one of board_new() included */
};

struct board;

/* Makes a board, plugged in, not started. The options' texts are copied. NULL when memory ran out
 * or an option is out of range. */
struct board *board_new(const struct board_options *options);

/* NULL may be passed. */
void board_free(struct board *board);

/* The descriptors as the standard request GET_DESCRIPTOR gives them: type 1 device, 2 configuration
 * (with its interfaces and endpoints behind it), 3 string (`index`; 0: the languages), at high
 * speed 6 device qualifier and 7 other speed, at super speed 15 BOS. Returns the bytes written, at
 * most `room`, or 0 when there is none such. Lies (board_command) are in them. */
size_t board_descriptor(
	const struct board *board, unsigned type, unsigned index, uint8_t *out, size_t room);

/* Answers a control transfer: standard requests a device must answer (GET_DESCRIPTOR, GET_STATUS,
 * GET_/SET_CONFIGURATION, GET_/SET_INTERFACE, CLEAR_FEATURE of ENDPOINT_HALT), those of the board
 * protocol or, with is_ftdi, FTDI's. `data` is wLength bytes, in or out. Returns bytes moved, or
 * -EPIPE for a stall, -ETIMEDOUT where it was told never to answer, -ENODEV when it is unplugged.
 * `data` may be NULL when wLength is 0. */
int board_control(struct board *board, const uint8_t setup[8], uint8_t *data, uint64_t now_ns);

#define BOARD_NAK (-11) /* -EAGAIN */

/* Fills a bulk IN transfer (one URB) of `room` bytes. Returns 0 with *bytes in it (a short packet,
 * also one of zero bytes, or a full buffer ended it); BOARD_NAK with nothing taken; or a fault with
 * *bytes of good data before it: -EPIPE (stall, until CLEAR_FEATURE), -EOVERFLOW, -EPROTO,
 * -ETIMEDOUT, -ENODEV (unplugged). Never sets *bytes above `room`.
 *
 * A packet goes out whole, as on a wire: where `room` is no multiple of packet_bytes and the board
 * has more than fits, it returns -EOVERFLOW, and what the last packet held beyond `room` is gone.
 */
int board_bulk_in(struct board *board, uint8_t *data, size_t room, size_t *bytes, uint64_t now_ns);

/* When a board that gave BOARD_NAK will have something, now_ns at the earliest; UINT64_MAX: only a
 * request or a command changes that. Once in a while it gives BOARD_NAK then all the same (what it
 * had was dropped): ask again. */
uint64_t board_due_ns(const struct board *board, uint64_t now_ns);

/* The endpoint that board_bulk_in() serves, as in the descriptors (0x81). */
#define BOARD_ENDPOINT 0x81

/* Loses and regains its power: FIFO, tick counter, sequence number, GET_COUNTERS and started state
 * begin anew; board_sent() goes on, but for what it takes from GET_COUNTERS. With the command
 * `self-powered` only the frame on its way is gone, if it was begun: a started board goes on to
 * fill its FIFO. */
void board_unplug(struct board *board);
void board_plug(struct board *board, uint64_t now_ns);
bool board_is_plugged(const struct board *board);

/* Takes a command; `answer` (room for BOARD_ANSWER) gets a line without its newline: "ok", the
 * answer, or "error: ...", then false is returned. What is to come ("next") waits for it, also over
 * an unplug.
 *
 *   rate N|max          samples a second from now on
 *   send N              make N samples more, then only heartbeats (if on) until told again
 *   send all            without end, as at the start
 *   freeze | thaw       sends nothing at all, not even heartbeats or FTDI's status; goes on. The
 *                       bus doesn't stop meanwhile
 *   heartbeat MS|off    a frame without samples when nothing else was sent for so long; 1000
 *   frame N             samples a frame at most (1 .. 2048)
 *   short on|off        transfers end at random whole packets, with a short or zero-length one
 *   stall | overflow N | protocol-error | timeout N
 *                       the next bulk transfer does that, data or none; up to 16 wait in a row.
 *                       stall and protocol-error come when half of the buffer is full, overflow
 *                       when all of it is; timeout gives up to N bytes and -ETIMEDOUT. overflow
 *                       drops the N bytes of the stream behind, and a few more where the two ends
 *                       would by chance fit together to a frame that was none
 *   lose N              N samples (up to 2^40) of the bus are lost now; told in the next header
 *                       (bcp1), after 100 ms in one without samples
 *   lose-frames N       the next N frames with samples are dropped, not told: a jump of the
 *                       sequence
 *   corrupt             a bit of the next frame with samples is flipped
 *   garbage N           N random bytes before the next frame, once it is started
 *   trigger             the next frame with samples has flag 4
 *   last                sends the last frame unasked, and stops
 *   requests answer|stall|hang      what becomes of vendor requests from now on
 *   self-powered on|off
 *   serial TEXT, firmware TEXT      from the next plug on; \xNN escapes, so that it can lie; up to
 *                       126 bytes, each a character; empty: none
 *   lie NAME|none       descriptors and answers that lie, one at a time, at once: no-endpoint,
 *                       iso-endpoint, out-endpoint, zero-packet, huge-packet (FFFF),
 *                       truncated-config (ends in the midst of the endpoint), long-config
 *                       (wTotalLength says 4096), wrong-class, many-interfaces (32; the board's is
 *                       the last, and wIndex of its requests is 31), alternate (the endpoint only
 *                       in alternate setting 1; BOARD_NAK until that is set), short-info (20
 *                       bytes), wild-info (GET_INFO full of FF), wild-serial
 *   sent                answers struct board_sent as one JSON object
 *   ftdi                answers what FTDI's requests have set, as one JSON object: latency_ms,
 *                       bit_mode, bit_mask, flow (wIndex without the port), resets, purges
 *
 * With raw6 those that need frames (corrupt, garbage, lose-frames, trigger) are errors. */
#define BOARD_ANSWER 1024
bool board_command(struct board *board, const char *line, char *answer, uint64_t now_ns);

struct board_sent board_sent(const struct board *board);

/* The last `bytes` bytes that board_bulk_in() gave, over any number of transfers, did not reach the
 * receiver: a transfer that was filled and then never reaped. They count as never given. Returns
 * false, with nothing changed, when that is further back than it remembers: 65,536 frames, and with
 * is_ftdi 4,096 transfers. */
bool board_undelivered(struct board *board, size_t bytes);

#endif
