#include "tests/board/board_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

/* Maximum samples per `lose`; the tick counter has room for them. */
#define LOSE_MAX (UINT64_C(1) << 40)

/* Maximum ticks per `rest`. */
#define REST_MAX (UINT64_C(1) << 48)

#define MANY (UINT64_C(1) << 62)

/* Returns an error message, or NULL on success. */
typedef const char *(*command_fn)(struct board *board, const char *value, char *answer);

static const char not_a_number[] = "not a number in range";
static const char not_on_off[] = "expected \"on\" or \"off\"";
static const char no_frames[] = "raw6 has no frames";

/* Parses a decimal number from `low` to `high`; the whole text must match. */
static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *number)
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
	return n >= low && n <= high;
}

static const char *set_switch(const char *value, bool *is_on)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return not_on_off;
	*is_on = strcmp(value, "on") == 0;
	return NULL;
}

static bool is_raw(const struct board *board)
{
	return board->options.form == BOARD_RAW6;
}

static const char *command_rate(struct board *board, const char *value, char *answer)
{
	uint64_t rate = 0;

	(void)answer;
	if (strcmp(value, "max") != 0 && !read_number(value, 1, BOARD_RATE_MAX, &rate))
		return not_a_number;
	board_stream_set_rate(board, rate);
	return NULL;
}

static const char *command_send(struct board *board, const char *value, char *answer)
{
	uint64_t samples = BOARD_ENDLESS;

	(void)answer;
	if (strcmp(value, "all") != 0 && !read_number(value, 0, MANY, &samples))
		return not_a_number;
	board_stream_send(board, samples);
	return NULL;
}

static const char *command_freeze(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	board->is_frozen = true;
	return NULL;
}

static const char *command_thaw(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	board->is_frozen = false;
	return NULL;
}

static const char *command_heartbeat(struct board *board, const char *value, char *answer)
{
	uint64_t ms = 0;

	(void)answer;
	if (strcmp(value, "off") != 0 && !read_number(value, 1, UINT32_MAX, &ms))
		return not_a_number;
	board->heartbeat_ns = ms * MS_NS;
	return NULL;
}

static const char *command_frame(struct board *board, const char *value, char *answer)
{
	uint64_t samples;

	(void)answer;
	if (!read_number(value, 1, BC_SIM_FRAME_SAMPLES, &samples))
		return not_a_number;
	board->frame_samples = (uint32_t)samples;
	return NULL;
}

static const char *command_short(struct board *board, const char *value, char *answer)
{
	(void)answer;
	return set_switch(value, &board->is_short);
}

static const char *add_fault(struct board *board, enum board_fault_kind kind, uint64_t bytes)
{
	if (board->fault_count == BOARD_FAULTS)
		return "too many pending faults";
	board->faults[board->fault_count++] = (struct board_fault){kind, bytes};
	return NULL;
}

static const char *command_stall(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	return add_fault(board, BOARD_STALL, 0);
}

static const char *command_protocol_error(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	return add_fault(board, BOARD_PROTOCOL_ERROR, 0);
}

static const char *command_overflow(struct board *board, const char *value, char *answer)
{
	uint64_t bytes;

	(void)answer;
	if (!read_number(value, 0, UINT32_MAX, &bytes))
		return not_a_number;
	return add_fault(board, BOARD_OVERFLOW, bytes);
}

static const char *command_timeout(struct board *board, const char *value, char *answer)
{
	uint64_t bytes;

	(void)answer;
	if (!read_number(value, 0, UINT32_MAX, &bytes))
		return not_a_number;
	return add_fault(board, BOARD_TIMEOUT, bytes);
}

static const char *command_lose(struct board *board, const char *value, char *answer)
{
	uint64_t samples;

	(void)answer;
	if (!read_number(value, 0, LOSE_MAX, &samples))
		return not_a_number;
	board_stream_lose(board, samples);
	return NULL;
}

static const char *command_rest(struct board *board, const char *value, char *answer)
{
	uint64_t ticks;

	(void)answer;
	if (!read_number(value, 1, REST_MAX, &ticks))
		return not_a_number;
	board_bus_rest(&board->bus, ticks);
	return NULL;
}

static const char *command_idle(struct board *board, const char *value, char *answer)
{
	(void)answer;
	return read_number(value, 0, REST_MAX, &board->bus.idle) ? NULL : not_a_number;
}

static const char *command_lose_frames(struct board *board, const char *value, char *answer)
{
	uint64_t frames;

	(void)answer;
	if (is_raw(board))
		return no_frames;
	if (!read_number(value, 0, 1000000, &frames))
		return not_a_number;
	board->frames_to_lose += frames;
	return NULL;
}

static const char *command_corrupt(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	if (is_raw(board))
		return no_frames;
	board->is_corruption_due = true;
	return NULL;
}

static const char *command_garbage(struct board *board, const char *value, char *answer)
{
	uint64_t bytes;

	(void)answer;
	if (is_raw(board))
		return no_frames;
	if (!read_number(value, 0, UINT32_MAX, &bytes))
		return not_a_number;
	board->garbage_bytes += bytes;
	return NULL;
}

static const char *command_trigger(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	if (is_raw(board))
		return no_frames;
	board->is_trigger_due = true;
	return NULL;
}

static const char *command_last(struct board *board, const char *value, char *answer)
{
	(void)value;
	(void)answer;
	board_stream_stop(board);
	return NULL;
}

static const char *command_requests(struct board *board, const char *value, char *answer)
{
	static const char *const names[] = {
		[BOARD_ANSWERS] = "answer", [BOARD_STALLS] = "stall", [BOARD_HANGS] = "hang"};

	(void)answer;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			board->requests = (enum board_requests)i;
			return NULL;
		}
	}
	return "expected \"answer\", \"stall\" or \"hang\"";
}

static const char *command_self_powered(struct board *board, const char *value, char *answer)
{
	(void)answer;
	return set_switch(value, &board->is_self_powered);
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

static const char *command_serial(struct board *board, const char *value, char *answer)
{
	(void)answer;
	return read_text(value, &board->next_serial);
}

static const char *command_firmware(struct board *board, const char *value, char *answer)
{
	(void)answer;
	return read_text(value, &board->next_firmware);
}

static const char *command_lie(struct board *board, const char *value, char *answer)
{
	static const char *const names[BOARD_LIES] = {
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

	(void)answer;
	for (size_t i = 0; i < BOARD_LIES; i++) {
		if (strcmp(value, names[i]) == 0) {
			board->lie = (enum board_lie)i;
			return NULL;
		}
	}
	return "unknown lie";
}

static const char *command_sent(struct board *board, const char *value, char *answer)
{
	const struct board_sent *s = &board->ledger.sums;
	bool is_idle = board_stream_is_idle(board);

	(void)value;
	snprintf(answer, BOARD_ANSWER,
		"{\"bytes\":%" PRIu64 ",\"frames\":%" PRIu64 ",\"samples\":%" PRIu64
		",\"torn_frames\":%" PRIu64 ",\"torn_samples\":%" PRIu64
		",\"dropped_samples\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"captured\":%" PRIu64
		",\"captured_lost\":%" PRIu64 ",\"starts\":%" PRIu64 ",\"stops\":%" PRIu64
		",\"plugs\":%" PRIu64 ",\"idle\":%s}",
		s->bytes, s->frames, s->samples, s->torn_frames, s->torn_samples,
		s->dropped_samples, s->lost, s->captured, s->captured_lost, s->starts, s->stops,
		s->plugs, is_idle ? "true" : "false");
	return NULL;
}

static const char *command_ftdi(struct board *board, const char *value, char *answer)
{
	const struct board_ftdi *f = &board->ftdi;

	(void)value;
	if (!board->options.is_ftdi)
		return "not an FTDI board";
	snprintf(answer, BOARD_ANSWER,
		"{\"latency_ms\":%u,\"bit_mode\":%u,\"bit_mask\":%u"
		",\"resets\":%" PRIu64 ",\"purges\":%" PRIu64 "}",
		f->latency_ms, f->bit_mode, f->bit_mask, f->resets, f->purges);
	return NULL;
}

static const struct command {
	const char *name;
	bool has_value;
	command_fn run;
} commands[] = {
	{"rate", true, command_rate},
	{"send", true, command_send},
	{"freeze", false, command_freeze},
	{"thaw", false, command_thaw},
	{"heartbeat", true, command_heartbeat},
	{"frame", true, command_frame},
	{"short", true, command_short},
	{"stall", false, command_stall},
	{"overflow", true, command_overflow},
	{"protocol-error", false, command_protocol_error},
	{"timeout", true, command_timeout},
	{"lose", true, command_lose},
	{"rest", true, command_rest},
	{"idle", true, command_idle},
	{"lose-frames", true, command_lose_frames},
	{"corrupt", false, command_corrupt},
	{"garbage", true, command_garbage},
	{"trigger", false, command_trigger},
	{"last", false, command_last},
	{"requests", true, command_requests},
	{"self-powered", true, command_self_powered},
	{"serial", true, command_serial},
	{"firmware", true, command_firmware},
	{"lie", true, command_lie},
	{"sent", false, command_sent},
	{"ftdi", false, command_ftdi},
};

static const char *run_command(struct board *board, const char *line, char *answer)
{
	size_t length = strcspn(line, " ");
	const char *value = line[length] == ' ' ? line + length + 1 : "";

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];
		if (strlen(command->name) != length || strncmp(command->name, line, length) != 0)
			continue;
		if (!command->has_value && *value != '\0')
			return "the command takes no argument";
		return command->run(board, value, answer);
	}
	return "unknown command";
}

bool board_command(struct board *board, const char *line, char *answer, uint64_t now_ns)
{
	board_advance(board, now_ns);
	snprintf(answer, BOARD_ANSWER, "ok");
	const char *error = run_command(board, line, answer);
	if (error != NULL)
		snprintf(answer, BOARD_ANSWER, "error: %s", error);
	return error == NULL;
}
