#include "tests/board/board_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static void set_text(struct board_text *text, const char *value)
{
	size_t length = value == NULL ? 0 : strlen(value);

	text->length = (uint8_t)(length < BOARD_TEXT_MAX ? length : BOARD_TEXT_MAX);
	if (length != 0)
		memcpy(text->bytes, value, text->length);
}

static void fill_in_defaults(struct board_options *o)
{
	if (o->vid == 0 && o->pid == 0) {
		o->vid = o->is_ftdi ? 0x0403 : 0x1209;
		o->pid = o->is_ftdi ? 0x6014 : 0x0001;
	}
	if (o->packet_bytes == 0)
		o->packet_bytes = 512;
	if (o->agents == 0)
		o->agents = 1;
	if (o->fifo_samples == 0)
		o->fifo_samples = 524288;
	o->serial = NULL;
	o->firmware = NULL;
}

static bool are_in_range(const struct board_options *o)
{
	return (o->packet_bytes == 64 || o->packet_bytes == 512 || o->packet_bytes == 1024) &&
	       o->rate <= BOARD_RATE_MAX;
}

/* A bus-powered board starts afresh; a self-powered one only reconnects. */
static void connect(struct board *board)
{
	board->is_plugged = true;
	board->is_halted = false;
	board->configuration = 0;
	board->alternate = 0;
	board->seam.is_open = false; /* the receiver starts afresh */
	board->serial = board->next_serial;
	board->firmware = board->next_firmware;
	board->ftdi.last_packet_ns = board->now_ns;
	board->ledger.sums.plugs++;
}

static void power_on(struct board *board)
{
	board->ftdi.latency_ms = BOARD_FTDI_LATENCY_MS;
	board->ftdi.bit_mode = 0;
	board->ftdi.bit_mask = 0;
	board_stream_power_on(board);
}

struct board *board_new(const struct board_options *options)
{
	struct board *board = calloc(1, sizeof(*board));

	if (board == NULL)
		return NULL;
	set_text(&board->next_serial, options->serial);
	set_text(&board->next_firmware, options->firmware == NULL ? "sim-1.0" : options->firmware);
	board->options = *options;
	fill_in_defaults(&board->options);
	if (!are_in_range(&board->options) ||
		!board_bus_init(&board->bus, options->seed, board->options.agents)) {
		free(board);
		return NULL;
	}
	board->dice.state = bc_sim_mix(options->seed + 1);
	board->rate = options->rate;
	board->to_send = BOARD_ENDLESS;
	board->heartbeat_ns = SECOND_NS;
	board->frame_samples = BC_SIM_FRAME_SAMPLES;
	power_on(board);
	connect(board);
	return board;
}

static bool set_option(struct board_options *options, const char *key, const char *value)
{
	unsigned long number = strtoul(value, NULL, 0);

	if (strcmp(key, "serial") == 0)
		options->serial = value;
	else if (strcmp(key, "firmware") == 0)
		options->firmware = value;
	else if (strcmp(key, "vid") == 0)
		options->vid = (uint16_t)number;
	else if (strcmp(key, "pid") == 0)
		options->pid = (uint16_t)number;
	else if (strcmp(key, "ftdi") == 0)
		options->is_ftdi = number != 0;
	else if (strcmp(key, "seed") == 0)
		options->seed = number;
	else if (strcmp(key, "agents") == 0)
		options->agents = (unsigned)number;
	else if (strcmp(key, "rate") == 0)
		options->rate = number;
	else if (strcmp(key, "fifo") == 0)
		options->fifo_samples = (uint32_t)number;
	else
		return false;
	return true;
}

struct board *board_new_of(char *text)
{
	struct board_options options = {0};
	char send[64] = "send all";
	char answer[BOARD_ANSWER];
	char *state = NULL;

	for (char *pair = strtok_r(text, ",", &state); pair; pair = strtok_r(NULL, ",", &state)) {
		char *value = strchr(pair, '=');
		if (value == NULL)
			return NULL;
		*value++ = '\0';
		if (strcmp(pair, "send") == 0)
			snprintf(send, sizeof(send), "send %s", value);
		else if (!set_option(&options, pair, value))
			return NULL;
	}
	struct board *board = board_new(&options);
	if (board != NULL && !board_command(board, send, answer, 0)) {
		board_free(board);
		return NULL;
	}
	return board;
}

void board_free(struct board *board)
{
	if (board == NULL)
		return;
	board_bus_free(&board->bus);
	free(board);
}

void board_advance(struct board *board, uint64_t now_ns)
{
	if (now_ns > board->now_ns)
		board->now_ns = now_ns;
	board_stream_produce(board);
}

void board_unplug(struct board *board)
{
	if (!board->is_plugged)
		return;
	board->is_plugged = false;
	if (board->is_self_powered) {
		board_stream_cut(board);
	} else {
		board_stream_abort(board);
		power_on(board);
	}
}

void board_plug(struct board *board, uint64_t now_ns)
{
	if (board->is_plugged)
		return;
	board_advance(board, now_ns);
	connect(board);
}

bool board_is_plugged(const struct board *board)
{
	return board->is_plugged;
}

struct board_sent board_sent(const struct board *board)
{
	return board->ledger.sums;
}
