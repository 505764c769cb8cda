/* The state of a capture board: identity, answers to requests, and counts since the source started.
 * The status, the segment headers and the log use it. The source owns it and updates it on the
 * loop's thread; everything else only reads it. Texts sent by the board are printable ASCII. */
#ifndef BC_CAPTURE_USB_BOARD_H
#define BC_CAPTURE_USB_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* A USB serial number string has at most 126 characters. */
#define BC_SERIAL_MAX 127

/* "255-255.255.255.255.255.255" */
#define BC_PORT_MAX 31

enum bc_board_state {
	BC_BOARD_DETACHED,  /* no board */
	BC_BOARD_OPENING,   /* found; being opened, queried and started */
	BC_BOARD_STREAMING, /* transfers are in flight */
	BC_BOARD_STOPPING,  /* stopping, or recovering from a fault: waiting for its transfers */
	BC_BOARD_BACK_OFF,  /* waiting before the next attempt */
};

/* From the board's descriptors and sysfs. */
struct bc_board_identity {
	uint16_t vid;
	uint16_t pid;
	uint8_t bus;
	uint8_t address;
	char port[BC_PORT_MAX + 1]; /* "1-2.3": bus and ports, as in sysfs */
	char speed[16];             /* "high", ... */
	char serial[BC_SERIAL_MAX + 1];
	char product[BC_SERIAL_MAX + 1];

	/* The endpoint of the stream. */
	uint8_t interface;
	uint8_t setting; /* alternate setting */
	uint8_t endpoint;
	uint16_t packet_bytes;
};

/* The answer to GET_COUNTERS. */
struct bc_board_counters {
	uint64_t samples;
	uint64_t lost;
	uint64_t fifo_high; /* samples */
};

struct bc_board {
	enum bc_board_state state;
	uint64_t since_ns; /* host's monotonic clock: when it entered that state */
	bool is_present;   /* a board is open. If not, the fields below describe the previous one */
	struct bc_board_identity identity;

	/* The answer to GET_INFO, if there was one. */
	bool has_info;
	uint32_t protocol_version;
	uint32_t clock_hz;
	uint32_t features;
	uint32_t fifo_samples;
	char firmware[17];
	char own_serial[33];

	bool has_counters; /* read when the stream was stopped */
	struct bc_board_counters counters;

	/* Transfers in flight, and their size; both may be less than configured. */
	unsigned transfers;
	uint32_t transfer_bytes;

	/* Counted since the source was started. */
	uint64_t bytes; /* of payload */
	uint64_t plugs; /* how often a board started to stream, resets included */
	uint64_t unplugs;
	uint64_t stalls;
	uint64_t overflows;
	uint64_t errors;   /* transfers that failed for another reason */
	uint64_t timeouts; /* transfers that timed out */
	uint64_t silences; /* how often the board sent nothing for silence_ns */
	uint64_t restarts; /* how often the board was reset and reopened */
	char last_error[256];
};

/* "detached", "opening", "streaming", "stopping", "back-off". */
const char *bc_board_state_name(enum bc_board_state state);

#endif
