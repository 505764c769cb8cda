/* A capture board in software: its descriptors, its answers to requests, its stream, and faults on
 * command. It depends on no USB stack and no clock: an adapter passes in setup packets, buffers for
 * bulk data and the time.
 *
 *     board_new()
 *     board_control()      a control transfer
 *     board_bulk_in()      a bulk IN transfer; after BOARD_NAK, try again at board_due_ns()
 *     board_command()      a line of text: sets the rate, causes faults and false descriptors
 *     board_unplug(), board_plug()   loss and return of power
 *     board_sent()         what left the board: the reference for a receiver's counts
 *
 * The stream is the simulated bus (capture/sim/sim.h) as in docs/board-protocol.md: bcp1 or raw6,
 * and with is_ftdi in packets that start with two status bytes. To keep it cheap (a copy and the
 * CRCs per frame), it repeats a loop of 131,072 samples of that bus, with increasing ticks. A full
 * frame has `frame` samples, or ends before a delta that is too long. The first sequence number is
 * 0xFFFFFFF0, so that every recording sees the number wrap.
 *
 * At a finite rate, ticks follow the time: the bus rests until the first sample of a frame was due,
 * and the tick of a heartbeat is that of its time. The clock has 66 MHz, or as many as the rate of
 * the options needs; at a higher rate set later, ticks are behind. At "rate max", only the tick of
 * a heartbeat is advanced, by the time since the previous frame.
 *
 * At a finite rate, any call makes the samples that are due at its time. When the FIFO is full, the
 * oldest samples are lost, so a loss is reported in the very next frame. At "rate max", samples are
 * made on demand. The simulated bus has occasional invalid cycles; they count as samples, in
 * board_sent() and in `received`.
 *
 * With is_ftdi the bulk endpoint behaves like an FT232H in front of a board. Bit mode 0x40 (sync
 * FIFO) starts the stream and counts as a start. Bit mode 0 ends it immediately, even within a
 * frame, and counts as a stop; the FIFO is dropped, but up to 1,024 bytes are in the chip already
 * and are sent until they are purged. A reset, or a purge of the buffer towards the host, drops the
 * rest of the current frame. If no packet was sent for the latency time, a packet with only the
 * status is sent, started or not. The requests of the board protocol are stalled.
 *
 * A board that does not answer vendor requests (the command `requests`) needs no START and no bit
 * mode: it sends from the first board_bulk_in() after power-on.
 *
 * The stream depends only on the options, the calls and the times passed in. A time before the
 * latest one counts as the latest. Not thread-safe. Boards with the same bus share its samples:
 * create and free all boards on one thread. Each may be used on another. */
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
	const char *serial;   /* NULL: no serial number string */
	const char *firmware; /* for GET_INFO, up to 16 characters; NULL: "sim-1.0" */
	enum board_form form;
	bool is_ftdi;
	uint16_t packet_bytes; /* 0: 512, high speed; 64: full speed; 1024: super speed */
	uint64_t seed;
	unsigned agents;       /* 1 .. 4; 0: 1 */
	uint64_t rate;         /* samples per second, up to BOARD_RATE_MAX; 0: on demand */
	uint32_t fifo_samples; /* 0: 524,288; samples that do not fit are lost and counted */
};

/* What left the board. A frame is delivered when a transfer has returned its last byte, whether or
 * not the transfer then failed. Every captured sample is in exactly one of `samples`,
 * `torn_samples` and `dropped_samples`, or still in the FIFO or the current frame. */
struct board_sent {
	uint64_t bytes;        /* of the stream, without FTDI's status bytes */
	uint64_t frames;       /* bcp1: delivered whole and undamaged, also empty ones; raw6: 0 */
	uint64_t samples;      /* bcp1: in those frames; raw6: the bytes of each run, from start to
				* stop or unplug, divided by 6, as a receiver counts them */
	uint64_t torn_frames;  /* frames with samples that were cut off or damaged */
	uint64_t torn_samples; /* the samples in them */
	uint64_t dropped_samples; /* captured but never sent or reported as lost: in the FIFO when
				   * the power was lost, or in whole frames dropped by an overflow
				   * or lose-frames; raw6: counted when a run ends */
	uint64_t lost;            /* losses reported in headers, including undamaged headers of torn
				   * frames: the sum that a receiver sees (0xFFFFFFFF if too large) */
	uint64_t captured;        /* as in GET_COUNTERS: since power-on */
	uint64_t captured_lost;
	uint64_t starts; /* accepted START requests, or bit mode 0x40 */
	uint64_t stops;
	uint64_t plugs; /* including board_new() */
};

struct board;

/* Creates a board, plugged in and not started. Copies the options' strings. Returns NULL if out of
 * memory or an option is out of range. */
struct board *board_new(const struct board_options *options);

/* The same from text, which is changed: KEY=VALUE,... with the keys vid, pid, serial, firmware,
 * ftdi, seed, agents, rate, fifo, and `send` as the command. Also returns NULL for other keys. */
struct board *board_new_of(char *text);

/* NULL may be passed. */
void board_free(struct board *board);

/* Writes a descriptor as GET_DESCRIPTOR returns it: type 1 device, 2 configuration (followed by its
 * interfaces and endpoints), 3 string (`index`; 0: languages). Returns the bytes written, at most
 * `size`, or 0 if there is no such descriptor. Includes false descriptors (board_command()). */
size_t board_descriptor(
	const struct board *board, unsigned type, unsigned index, uint8_t *out, size_t size);

/* Answers a control transfer: the mandatory standard requests (GET_DESCRIPTOR, GET_STATUS,
 * GET_/SET_CONFIGURATION, GET_/SET_INTERFACE, CLEAR_FEATURE of ENDPOINT_HALT), and the requests of
 * the board protocol or, with is_ftdi, FTDI's. `data` is wLength bytes, in or out; it may be NULL
 * if wLength is 0. Returns the bytes moved, -EPIPE for a stall, -ETIMEDOUT for a request that will
 * never be answered (the command `requests hang`), or -ENODEV if unplugged. */
int board_control(struct board *board, const uint8_t setup[8], uint8_t *data, uint64_t now_ns);

#define BOARD_NAK (-11) /* -EAGAIN */

/* Fills a bulk IN transfer (one URB) of `size` bytes. Returns 0 with *bytes in it, when a short
 * packet (possibly empty) or a full buffer ended it; BOARD_NAK if there is no data; or a fault
 * after *bytes of good data: -EPIPE (stall, until CLEAR_FEATURE), -EOVERFLOW, -EPROTO, -ETIMEDOUT,
 * -ENODEV (unplugged). *bytes is never above `size`.
 *
 * Packets are sent whole, as on a wire: if `size` is not a multiple of packet_bytes and the board
 * has more data, it returns -EOVERFLOW, and the part of the last packet that does not fit is lost.
 */
int board_bulk_in(struct board *board, uint8_t *data, size_t size, size_t *bytes, uint64_t now_ns);

/* Returns when a board that returned BOARD_NAK will have data, at the earliest now_ns; UINT64_MAX:
 * only a request or command can change that. Occasionally it returns BOARD_NAK at that time too, if
 * its data was dropped: just try again. */
uint64_t board_due_ns(const struct board *board, uint64_t now_ns);

/* The endpoint that board_bulk_in() serves. */
#define BOARD_ENDPOINT 0x81

/* Loss and return of power: FIFO, tick counter, sequence number, GET_COUNTERS and the started state
 * are reset. board_sent() continues, except for its values from GET_COUNTERS. With the command
 * `self-powered`, only a partly sent frame is lost, and a started board continues to fill its FIFO.
 */
void board_unplug(struct board *board);
void board_plug(struct board *board, uint64_t now_ns);
bool board_is_plugged(const struct board *board);

/* Executes a command and writes one line without a newline to `answer` (BOARD_ANSWER bytes): "ok",
 * the answer, or "error: ...", in which case it returns false. Pending events ("next") persist
 * across an unplug.
 *
 *   rate N|max          samples per second from now on
 *   send N              make N more samples, then only heartbeats (if on) until the next `send`
 *   send all            make samples without end (default)
 *   freeze | thaw       stop sending anything, even heartbeats or FTDI's status; continue. The bus
 *                       keeps running
 *   heartbeat MS|off    send a frame without samples after this long without one (1000)
 *   frame N             maximum samples per frame (1 .. 2048)
 *   short on|off        end transfers after a random whole packet, with a short or empty packet
 *   stall | overflow N | protocol-error | timeout N
 *                       fault in the next bulk transfer, with or without data; up to 16 can be
 *                       queued. stall and protocol-error occur when half of the buffer is full,
 *                       overflow when it is full; timeout returns up to N bytes and -ETIMEDOUT.
 *                       overflow drops the next N bytes of the stream, and a few more if the two
 *                       ends would otherwise happen to form a valid frame
 *   lose N              lose N samples (up to 2^40) of the bus now; reported in the next header
 *                       (bcp1), after 100 ms in one without samples
 *   rest N              the bus is silent for N ticks (up to 2^48) before the next sample
 *   idle N              the bus is silent for N ticks (up to 2^48) after each 131,072 samples: its
 *                       time runs ahead of the clock
 *   lose-frames N       drop the next N frames with samples, unreported: the sequence has a jump
 *   corrupt             flip a bit of the next frame with samples
 *   garbage N           send N random bytes before the next frame, once started
 *   trigger             set flag 4 in the next frame with samples
 *   last                send the last frame and stop, without being asked
 *   requests answer|stall|hang      how to treat vendor requests from now on
 *   self-powered on|off
 *   serial TEXT, firmware TEXT      from the next plug on; \xNN escapes, to allow any byte; up to
 *                       126 bytes, each a character; empty: none
 *   lie NAME|none       one false descriptor or answer at a time, effective immediately:
 *                       no-endpoint, iso-endpoint, out-endpoint, zero-packet, huge-packet (FFFF),
 *                       truncated-config (ends within the endpoint), long-config (wTotalLength
 *                       4096), wrong-class, many-interfaces (32; the board's is the last, and
 *                       wIndex of its requests is 31), alternate (the endpoint is only in alternate
 *                       setting 1; BOARD_NAK until that is set), short-info (20 bytes), wild-info
 *                       (GET_INFO full of FF), wild-serial
 *   sent                answer struct board_sent as a JSON object, and `idle`: whether nothing,
 *                       not even a fault or a loss to report, is left to send
 *   ftdi                answer the state set by FTDI's requests as a JSON object: latency_ms,
 *                       bit_mode, bit_mask, resets, purges
 *
 * With raw6, commands that need frames (corrupt, garbage, lose-frames, trigger) are errors. */
#define BOARD_ANSWER 1024
bool board_command(struct board *board, const char *line, char *answer, uint64_t now_ns);

struct board_sent board_sent(const struct board *board);

#endif
