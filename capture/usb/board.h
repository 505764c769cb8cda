/* What is known of a capture board, and what it has been through: for the status, the headers of
 * the segments and the log. The source owns it and keeps it up to date on the loop's thread;
 * everybody else reads. Texts that came from the board hold printable ASCII only. */
#ifndef BC_CAPTURE_USB_BOARD_H
#define BC_CAPTURE_USB_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* A serial number string has at most 126 characters. */
#define BC_SERIAL_MAX 127

enum bc_board_state {
	BC_BOARD_DETACHED,  /* there is none */
	BC_BOARD_OPENING,   /* found; being opened, asked and started */
	BC_BOARD_STREAMING, /* transfers are in flight */
	BC_BOARD_STOPPING,  /* told to stop, or in trouble: transfers are coming back */
	BC_BOARD_BACK_OFF,  /* left alone for a while, to be tried again */
};

/* Which board: as its descriptors and the system say. */
struct bc_board_identity {
	uint16_t vid;
	uint16_t pid;
	uint8_t bus;
	uint8_t address;
	char port[32];  /* "1-2.3": bus and ports, as sysfs names it */
	char speed[16]; /* "high", ... */
	char serial[BC_SERIAL_MAX + 1];
	char product[BC_SERIAL_MAX + 1];

	/* Where its stream comes out. */
	uint8_t interface;
	uint8_t setting; /* alternate setting */
	uint8_t endpoint;
	uint16_t packet_bytes;
};

/* GET_COUNTERS. */
struct bc_board_counters {
	uint64_t samples;
	uint64_t lost;
	uint64_t fifo_high; /* samples */
};

struct bc_board {
	enum bc_board_state state;
	uint64_t since_ns; /* of the host's monotonic clock: when it came into that state */
	bool is_present;   /* a board is open; what stands below is its, or of the one before */
	struct bc_board_identity identity;

	/* GET_INFO, when the board answers it. */
	bool has_info;
	uint32_t protocol_version;
	uint32_t clock_hz;
	uint32_t features;
	uint32_t fifo_samples;
	char firmware[17];
	char own_serial[33];

	bool has_counters; /* as read at its end */
	struct bc_board_counters counters;

	/* The transfers as they are, after shrinking. */
	unsigned transfers;
	uint32_t transfer_bytes;

	/* Since the source was started. */
	uint64_t bytes; /* of payload */
	uint64_t plugs; /* times that a board began to stream */
	uint64_t unplugs;
	uint64_t stalls;
	uint64_t overflows;
	uint64_t errors;   /* transfers that failed otherwise */
	uint64_t timeouts; /* transfers that ended by their time-out */
	uint64_t silences; /* times that the watchdog had to say something */
	uint64_t restarts; /* times that the board was reset and opened anew */
	char last_error[256];
};

/* "detached", "opening", "streaming", "stopping", "back-off". */
const char *bc_board_state_name(enum bc_board_state state);

#endif
