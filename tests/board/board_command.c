#include "tests/board/board_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)
#define MANY  (UINT64_C(1) << 62)

enum command_id {
	RATE,
	SEND,
	FREEZE,
	THAW,
	HEARTBEAT,
	FRAME,
	SHORT,
	STALL,
	OVERFLOW,
	PROTOCOL_ERROR,
	TIMEOUT,
	LOSE,
	REST,
	IDLE,
	LOSE_FRAMES,
	CORRUPT,
	GARBAGE,
	TRIGGER,
	LAST,
	REQUESTS,
	SELF_POWERED,
	SERIAL,
	FIRMWARE,
	LIE,
	SENT,
	FTDI,
};

/* What follows the name: nothing, a number, one of some words, or text. */
enum command_value { NO_VALUE, NUMBER, WORDS, TEXT };

static const char *const switches[] = {"off", "on", NULL};

static const char *const requests[] = {
	[BOARD_ANSWERS] = "answer", [BOARD_STALLS] = "stall", [BOARD_HANGS] = "hang", NULL};

static const char *const lies[BOARD_LIES + 1] = {
	[BOARD_LIE_NONE] = "none",
	[BOARD_LIE_NO_ENDPOINT] = "no-endpoint",
	[BOARD_LIE_ISO_ENDPOINT] = "iso-endpoint",
	[BOARD_LIE_OUT_ENDPOINT] = "out-endpoint",
	[BOARD_LIE_ZERO_PACKET] = "zero-packet",
	[BOARD_LIE_HUGE_PACKET] = "huge-packet",
	[BOARD_LIE_TRUNCATED_CONFIG] = "truncated-config",
	[BOARD_LIE_LONG_CONFIG] = "long-config",
	[BOARD_LIE_WRONG_CLASS] = "wrong-class",
	[BOARD_LIE_MANY_INTERFACES] = "many-interfaces",
	[BOARD_LIE_ALTERNATE] = "alternate",
	[BOARD_LIE_SHORT_INFO] = "short-info",
	[BOARD_LIE_WILD_INFO] = "wild-info",
	[BOARD_LIE_WILD_SERIAL] = "wild-serial",
};

static const struct command {
	const char *name;
	enum command_value value;
	uint64_t low;
	uint64_t high;
	const char *word; /* in place of a number: it stands for `meaning` */
	uint64_t meaning;
	const char *const *words;
	bool needs_frames;
} commands[] = {
	[RATE] = {"rate", NUMBER, .low = 1, .high = BOARD_RATE_MAX, .word = "max", .meaning = 0},
	[SEND] = {"send", NUMBER, .low = 0, .high = MANY, .word = "all", .meaning = BOARD_ENDLESS},
	[FREEZE] = {"freeze", .value = NO_VALUE},
	[THAW] = {"thaw", .value = NO_VALUE},
	[HEARTBEAT] = {"heartbeat", NUMBER, .low = 1, .high = UINT32_MAX, .word = "off",
		.meaning = 0},
	[FRAME] = {"frame", NUMBER, .low = 1, .high = BC_SIM_FRAME_SAMPLES},
	[SHORT] = {"short", WORDS, .words = switches},
	[STALL] = {"stall", .value = NO_VALUE},
	[OVERFLOW] = {"overflow", NUMBER, .low = 0, .high = UINT32_MAX},
	[PROTOCOL_ERROR] = {"protocol-error", .value = NO_VALUE},
	[TIMEOUT] = {"timeout", NUMBER, .low = 0, .high = UINT32_MAX},
	/* The tick counter has room for these. */
	[LOSE] = {"lose", NUMBER, .low = 0, .high = UINT64_C(1) << 40},
	[REST] = {"rest", NUMBER, .low = 1, .high = UINT64_C(1) << 48},
	[IDLE] = {"idle", NUMBER, .low = 0, .high = UINT64_C(1) << 48},
	[LOSE_FRAMES] = {"lose-frames", NUMBER, .low = 0, .high = 1000000, .needs_frames = true},
	[CORRUPT] = {"corrupt", .value = NO_VALUE, .needs_frames = true},
	[GARBAGE] = {"garbage", NUMBER, .low = 0, .high = UINT32_MAX, .needs_frames = true},
	[TRIGGER] = {"trigger", .value = NO_VALUE, .needs_frames = true},
	[LAST] = {"last", .value = NO_VALUE},
	[REQUESTS] = {"requests", WORDS, .words = requests},
	[SELF_POWERED] = {"self-powered", WORDS, .words = switches},
	[SERIAL] = {"serial", .value = TEXT},
	[FIRMWARE] = {"firmware", .value = TEXT},
	[LIE] = {"lie", WORDS, .words = lies},
	[SENT] = {"sent", .value = NO_VALUE},
	[FTDI] = {"ftdi", .value = NO_VALUE},
};

/* Parses a decimal number; the whole text must match. */
static bool read_number(const char *text, uint64_t *number)
{
	uint64_t n = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (!isdigit((unsigned char)*text) || n > (UINT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
	}
	*number = n;
	return true;
}

/* Parses the value of a command that is not text. Returns an error message, or NULL on success. */
static const char *read_value(const struct command *command, const char *value, uint64_t *n)
{
	*n = 0;
	if (command->value == NO_VALUE)
		return *value != '\0' ? "the command takes no argument" : NULL;
	if (command->value == WORDS) {
		while (command->words[*n] != NULL && strcmp(value, command->words[*n]) != 0)
			++*n;
		return command->words[*n] == NULL ? "unknown word" : NULL;
	}
	if (command->word != NULL && strcmp(value, command->word) == 0) {
		*n = command->meaning;
		return NULL;
	}
	bool is_number = read_number(value, n) && *n >= command->low && *n <= command->high;
	return is_number ? NULL : "not a number in range";
}

static const char *add_fault(struct board *board, enum board_fault_kind kind, uint64_t bytes)
{
	if (board->fault_count == BOARD_FAULTS)
		return "too many pending faults";
	board->faults[board->fault_count++] = (struct board_fault){kind, bytes};
	return NULL;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c == '\0' ? NULL : strchr(digits, tolower((unsigned char)c));

	return at == NULL ? -1 : (int)(at - digits);
}

/* Parses text in which \xNN stands for a byte. */
static const char *read_text(const char *value, struct board_text *text)
{
	struct board_text out = {0};

	while (*value != '\0') {
		int byte = (unsigned char)*value++;
		if (byte == '\\') {
			int high = *value == 'x' ? hex_digit(value[1]) : -1;
			int low = high < 0 ? -1 : hex_digit(value[2]);
			if (low < 0)
				return "a backslash must be followed by xNN";
			byte = high * 16 + low;
			value += 3;
		}
		if (out.length == BOARD_TEXT_MAX)
			return "text too long";
		out.bytes[out.length++] = (uint8_t)byte;
	}
	*text = out;
	return NULL;
}

static void answer_sent(const struct board *board, char *answer)
{
	const struct board_sent *s = &board->ledger.sums;
	bool is_idle = board_stream_is_idle(board);

	snprintf(answer, BOARD_ANSWER,
		"{\"bytes\":%" PRIu64 ",\"frames\":%" PRIu64 ",\"samples\":%" PRIu64
		",\"torn_frames\":%" PRIu64 ",\"torn_samples\":%" PRIu64
		",\"dropped_samples\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"captured\":%" PRIu64
		",\"captured_lost\":%" PRIu64 ",\"starts\":%" PRIu64 ",\"stops\":%" PRIu64
		",\"plugs\":%" PRIu64 ",\"idle\":%s}",
		s->bytes, s->frames, s->samples, s->torn_frames, s->torn_samples,
		s->dropped_samples, s->lost, s->captured, s->captured_lost, s->starts, s->stops,
		s->plugs, is_idle ? "true" : "false");
}

static void answer_ftdi(const struct board *board, char *answer)
{
	const struct board_ftdi *f = &board->ftdi;

	snprintf(answer, BOARD_ANSWER,
		"{\"latency_ms\":%u,\"bit_mode\":%u,\"bit_mask\":%u"
		",\"resets\":%" PRIu64 ",\"purges\":%" PRIu64 "}",
		f->latency_ms, f->bit_mode, f->bit_mask, f->resets, f->purges);
}

/* Returns an error message, or NULL on success. */
static const char *run_command(
	struct board *board, enum command_id id, uint64_t n, const char *value, char *answer)
{
	switch (id) {
	case RATE:
		board_stream_set_rate(board, n);
		break;
	case SEND:
		board_stream_send(board, n);
		break;
	case FREEZE:
	case THAW:
		board->is_frozen = id == FREEZE;
		break;
	case HEARTBEAT:
		board->heartbeat_ns = n * MS_NS;
		break;
	case FRAME:
		board->frame_samples = (uint32_t)n;
		break;
	case SHORT:
		board->is_short = n != 0;
		break;
	case STALL:
		return add_fault(board, BOARD_STALL, 0);
	case OVERFLOW:
		return add_fault(board, BOARD_OVERFLOW, n);
	case PROTOCOL_ERROR:
		return add_fault(board, BOARD_PROTOCOL_ERROR, 0);
	case TIMEOUT:
		return add_fault(board, BOARD_TIMEOUT, n);
	case LOSE:
		board_stream_lose(board, n);
		break;
	case REST:
		board_bus_rest(&board->bus, n);
		board->bus.ahead += n;
		break;
	case IDLE:
		board->bus.idle = n;
		break;
	case LOSE_FRAMES:
		board->frames_to_lose += n;
		break;
	case CORRUPT:
		board->is_corruption_due = true;
		break;
	case GARBAGE:
		board->garbage_bytes += n;
		break;
	case TRIGGER:
		board->is_trigger_due = true;
		break;
	case LAST:
		board_stream_stop(board);
		break;
	case REQUESTS:
		board->requests = (enum board_requests)n;
		break;
	case SELF_POWERED:
		board->is_self_powered = n != 0;
		break;
	case SERIAL:
		return read_text(value, &board->next_serial);
	case FIRMWARE:
		return read_text(value, &board->next_firmware);
	case LIE:
		board->lie = (enum board_lie)n;
		break;
	case SENT:
		answer_sent(board, answer);
		break;
	case FTDI:
		answer_ftdi(board, answer);
		break;
	}
	return NULL;
}

static const char *run_line(struct board *board, const char *line, char *answer)
{
	size_t length = strcspn(line, " ");
	const char *value = line[length] == ' ' ? line + length + 1 : "";
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];
		if (strlen(command->name) != length || strncmp(command->name, line, length) != 0)
			continue;
		if (command->needs_frames && board->options.form == BOARD_RAW6)
			return "raw6 has no frames";
		const char *error = command->value == TEXT ? NULL : read_value(command, value, &n);
		return error != NULL ? error
				     : run_command(board, (enum command_id)i, n, value, answer);
	}
	return "unknown command";
}

bool board_command(struct board *board, const char *line, char *answer, uint64_t now_ns)
{
	board_advance(board, now_ns);
	snprintf(answer, BOARD_ANSWER, "ok");
	const char *error = run_line(board, line, answer);
	if (error != NULL)
		snprintf(answer, BOARD_ANSWER, "error: %s", error);
	return error == NULL;
}
