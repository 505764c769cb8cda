#include "tests/board/board_internal.h"

#include <string.h>

#include "formats/bus/bcp1.h"
#include "formats/bus/sample.h"
#include "formats/bus/tick_time.h"

#define SECOND_NS UINT64_C(1000000000)

/* A partly filled frame is sent this long after its first sample. */
#define LATENCY_NS (SECOND_NS / 10)

/* Every recording sees the sequence number wrap. */
#define FIRST_SEQUENCE UINT32_C(0xFFFFFFF0)

static bool is_raw(const struct board *board)
{
	return board->options.form == BOARD_RAW6;
}

/* Returns when sample `number` since the epoch, counted from 1, is made: the first nanosecond in
 * which board_stream_produce() makes it. */
static uint64_t sample_time_ns(const struct board *board, uint64_t number)
{
	uint64_t rest = number % board->rate * SECOND_NS;

	return board->epoch_ns + number / board->rate * SECOND_NS +
	       (rest + board->rate - 1) / board->rate;
}

uint64_t board_clock_hz(const struct board *board)
{
	uint64_t ticks = BC_SIM_TICKS_PER_SAMPLE(board->options.agents);
	uint64_t needed = board->options.rate * ticks / 20 * 21;

	return needed > BC_SIM_CLOCK_HZ ? needed : BC_SIM_CLOCK_HZ;
}

/* Returns when the next sample to send was due. */
static uint64_t next_sample_ns(const struct board *board)
{
	int64_t number = (int64_t)(board->made + 1 - board->held);

	return board->epoch_ns + (uint64_t)(number * (int64_t)SECOND_NS / (int64_t)board->rate);
}

/* The bus is silent until `ns`, if its ticks have not come so far. */
static void rest_until(struct board *board, uint64_t ns)
{
	if (board->rate == 0 || ns < board->begin_ns)
		return;
	uint64_t due = board->begin_tick + board->bus.ahead +
		       bc_ticks_of_ns(ns - board->begin_ns, board_clock_hz(board));
	uint64_t next = board_bus_tick(&board->bus);
	if (due > next)
		board_bus_rest(&board->bus, due - next);
}

static void restart_epoch(struct board *board)
{
	board->epoch_ns = board->now_ns;
	board->made = 0;
}

void board_stream_start(struct board *board)
{
	if (board->state == BOARD_RUNNING)
		return;
	board->state = BOARD_RUNNING;
	board->last_frame_ns = board->now_ns;
	if (!board->has_begun) {
		board->has_begun = true;
		board->begin_ns = board->now_ns;
		board->begin_tick = board_bus_tick(&board->bus) - board->bus.ahead;
	}
	restart_epoch(board);
}

void board_stream_stop(struct board *board)
{
	if (board->state == BOARD_RUNNING)
		board->state = BOARD_STOPPING;
}

/* Records that the rest of the current frame, or part of it, will not be sent. */
static void open_seam(struct board *board)
{
	struct board_seam *seam = &board->seam;

	if (seam->is_open || is_raw(board) || board->frame_at == board->frame_bytes)
		return;
	seam->is_open = true;
	seam->has_missing = board->frame_at != 0;
	seam->missing = board->frame[board->frame_at];
}

void board_stream_cut(struct board *board)
{
	if (!board_ledger_is_begun(&board->ledger) && board->frame_end == 0)
		return;
	open_seam(board);
	board->frame_at = board->frame_bytes;
	board->frame_end = 0;
	board_ledger_close(&board->ledger);
}

static void drop_fifo(struct board *board)
{
	board->ledger.sums.dropped_samples += board->held;
	board_bus_skip(&board->bus, board->held);
	board->held = 0;
	board->lost = 0;
	if (board->state != BOARD_IDLE)
		board->state = BOARD_STOPPED;
}

void board_stream_halt(struct board *board, size_t bytes)
{
	size_t n = board_stream_fill(board);

	drop_fifo(board);
	if (n != 0)
		board->frame_end = board->frame_at + (n < bytes ? n : bytes);
}

void board_stream_abort(struct board *board)
{
	open_seam(board);
	board->frame_at = board->frame_bytes;
	board->frame_end = 0;
	board_ledger_close(&board->ledger);
	drop_fifo(board);
}

void board_stream_power_on(struct board *board)
{
	board->state = BOARD_IDLE;
	board_bus_power_on(&board->bus);
	board->last_tick = board_bus_tick(&board->bus);
	board->has_begun = false;
	board->sequence = FIRST_SEQUENCE;
	board->held_most = 0;
	board->ledger.sums.captured = 0;
	board->ledger.sums.captured_lost = 0;
}

void board_stream_set_rate(struct board *board, uint64_t rate)
{
	board->rate = rate;
	restart_epoch(board);
}

void board_stream_send(struct board *board, uint64_t samples)
{
	board->to_send = samples;
	restart_epoch(board);
}

void board_stream_lose(struct board *board, uint64_t n)
{
	board_bus_skip(&board->bus, n);
	board->ledger.sums.captured_lost += n;
	if (is_raw(board) || n == 0)
		return;
	if (board->lost == 0)
		board->report_ns = board->now_ns + LATENCY_NS;
	board->lost += n;
}

/* Subtracts up to n samples from those still to be made. Returns their number. */
static uint64_t reserve_samples(struct board *board, uint64_t n)
{
	if (board->to_send == BOARD_ENDLESS)
		return n;
	if (n > board->to_send)
		n = board->to_send;
	board->to_send -= n;
	return n;
}

void board_stream_produce(struct board *board)
{
	if (board->state != BOARD_RUNNING || board->rate == 0)
		return;

	uint64_t elapsed = board->now_ns - board->epoch_ns;
	uint64_t seconds = elapsed / SECOND_NS;
	uint64_t due = seconds * board->rate + elapsed % SECOND_NS * board->rate / SECOND_NS;
	uint64_t fresh = reserve_samples(board, due - board->made);
	if (fresh != 0 && board->held == 0)
		board->flush_ns = sample_time_ns(board, board->made + 1) + LATENCY_NS;
	board->epoch_ns += seconds * SECOND_NS;
	board->made = due - seconds * board->rate;

	board->held += fresh;
	uint64_t excess = board->held > board->options.fifo_samples
				  ? board->held - board->options.fifo_samples
				  : 0;
	board->ledger.sums.captured += fresh - excess;
	board->held -= excess;
	if (board->held > board->held_most)
		board->held_most = board->held;
	board_stream_lose(board, excess);
}

/* Returns the number of samples that can be sent: those in the FIFO, or at "rate max" all that are
 * still to be made. */
static uint64_t count_available(const struct board *board)
{
	if (board->rate != 0 || board->state != BOARD_RUNNING)
		return board->held;
	return board->to_send > BOARD_ENDLESS - board->held ? BOARD_ENDLESS
							    : board->held + board->to_send;
}

/* Returns the number of samples in the next frame when it is full. */
static uint32_t full_frame_samples(const struct board *board)
{
	uint32_t run = board_bus_run(&board->bus);

	return run < board->frame_samples ? run : board->frame_samples;
}

/* Returns the number of samples needed to know that the frame is full: one more if the sample
 * after it is what ends it. */
static uint32_t count_needed(const struct board *board)
{
	uint32_t full = full_frame_samples(board);

	return full < board->frame_samples ? full + 1 : full;
}

/* Returns how many samples should be sent in a frame now. */
static uint32_t samples_due(const struct board *board)
{
	uint64_t n = count_available(board);
	uint32_t full = full_frame_samples(board);

	if (n == 0)
		return 0;
	if (board->rate != 0 && board->state == BOARD_RUNNING && n < count_needed(board) &&
		board->now_ns < board->flush_ns)
		return 0;
	return n < full ? (uint32_t)n : full;
}

/* Removes samples from the FIFO. Samples made on demand count as captured only now. */
static void remove_from_fifo(struct board *board, uint32_t n)
{
	uint64_t held = n < board->held ? n : board->held;

	board->ledger.sums.captured += reserve_samples(board, n - held);
	board->held -= held;
	if (n > board->held_most)
		board->held_most = n;
	board->flush_ns = board->now_ns + LATENCY_NS;
}

static void make_raw(struct board *board, uint32_t n)
{
	size_t bytes = (size_t)n * BC_SAMPLE_BYTES;

	remove_from_fifo(board, n);
	board_bus_read_raw(&board->bus, board->frame, n);
	board->frame_bytes = bytes;
	if (!board_ledger_is_open(&board->ledger)) {
		struct board_piece piece = {
			.kind = BOARD_PIECE_RAW, .flipped_at = BOARD_NOT_FLIPPED};
		board_ledger_open(&board->ledger, &piece);
	}
	board_ledger_extend(&board->ledger, bytes, n);
}

static uint64_t flip_a_bit(struct board *board)
{
	uint32_t bit = bc_sim_between(&board->dice, 0, (uint32_t)board->frame_bytes * 8 - 1);

	board->frame[bit / 8] = (uint8_t)(board->frame[bit / 8] ^ 1u << bit % 8);
	return bit / 8;
}

/* Makes a frame of n samples, or an empty one. `flags` are added to those that follow from the
 * board's state. */
static void make_frame(struct board *board, uint32_t n, uint16_t flags)
{
	bool is_dropped = n != 0 && board->frames_to_lose != 0;
	struct bc_bcp1_header header = {
		.flags = flags,
		.sequence = board->sequence++,
		.samples = n,
		.tick = board->last_tick,
	};

	if (board->options.agents > 1)
		header.flags |= BC_BCP1_AGENT;
	if (board->lost != 0) {
		header.flags |= BC_BCP1_LOSS;
		header.lost = board->lost < BC_BCP1_LOST_MANY ? (uint32_t)board->lost
							      : BC_BCP1_LOST_MANY;
		board->lost = 0;
	}
	if (n != 0 && board->is_trigger_due && !is_dropped) {
		header.flags |= BC_BCP1_TRIGGER;
		board->is_trigger_due = false;
	}
	if (n != 0) {
		if (board->rate != 0)
			rest_until(board, next_sample_ns(board));
		remove_from_fifo(board, n);
		header.tick = board_bus_tick(&board->bus);
		board->last_tick = board_bus_read(
			&board->bus, board->frame + BC_BCP1_HEADER_BYTES, n);
	}
	board->frame_bytes = bc_bcp1_write_frame(board->frame, &header);

	struct board_piece piece = {
		.kind = BOARD_PIECE_FRAME,
		.reported = header.lost,
		.bytes = board->frame_bytes,
		.samples = n,
		.flipped_at = BOARD_NOT_FLIPPED,
	};
	if (is_dropped) {
		board->frames_to_lose--;
		board->frame_at = board->frame_bytes;
	} else if (n != 0 && board->is_corruption_due) {
		board->is_corruption_due = false;
		piece.flipped_at = flip_a_bit(board);
	}
	board->last_frame_ns = board->now_ns;
	board_ledger_open(&board->ledger, &piece);
}

static void make_garbage(struct board *board)
{
	struct board_piece piece = {.kind = BOARD_PIECE_GARBAGE, .flipped_at = BOARD_NOT_FLIPPED};
	size_t n = board->garbage_bytes < sizeof(board->frame) ? (size_t)board->garbage_bytes
							       : sizeof(board->frame);

	for (size_t i = 0; i < n; i++)
		board->frame[i] = (uint8_t)bc_sim_random(&board->dice);
	board->garbage_bytes -= n;
	board->frame_bytes = n;
	piece.bytes = n;
	board_ledger_open(&board->ledger, &piece);
}

/* The tick of a heartbeat shows how far the clock has advanced: the bus was silent since the last
 * frame. No tick may be ahead of samples in the FIFO. */
static void make_heartbeat(struct board *board)
{
	if (board->held == 0 && board->rate != 0) {
		rest_until(board, board->now_ns);
		board->last_tick = board_bus_tick(&board->bus);
	} else if (board->held == 0) {
		uint64_t silence_ns = board->now_ns - board->last_frame_ns;
		uint64_t ticks = silence_ns / 1000 * (BC_SIM_CLOCK_HZ / 1000000);
		board_bus_rest(&board->bus, ticks);
		board->last_tick += ticks;
	}
	make_frame(board, 0, 0);
}

static bool is_heartbeat_due(const struct board *board)
{
	if (is_raw(board) || board->state != BOARD_RUNNING)
		return false;
	if (board->lost != 0 && board->held == 0 && board->now_ns >= board->report_ns)
		return true;
	return board->heartbeat_ns != 0 &&
	       board->now_ns - board->last_frame_ns >= board->heartbeat_ns;
}

static void end_stream(struct board *board)
{
	board->state = BOARD_STOPPED;
	if (is_raw(board))
		board_ledger_close(&board->ledger);
	else
		make_frame(board, 0, BC_BCP1_LAST);
}

/* Makes the next piece to send. Returns false if there is none for now. */
static bool make_next(struct board *board)
{
	if (board->state != BOARD_RUNNING && board->state != BOARD_STOPPING)
		return false;
	board->frame_at = 0;
	board->frame_bytes = 0;
	if (board->garbage_bytes != 0) {
		make_garbage(board);
		return true;
	}
	uint32_t n = samples_due(board);
	if (n != 0) {
		if (is_raw(board))
			make_raw(board, n);
		else
			make_frame(board, n, 0);
		return true;
	}
	if (board->state == BOARD_STOPPING) {
		end_stream(board);
		return true;
	}
	if (is_heartbeat_due(board)) {
		make_heartbeat(board);
		return true;
	}
	return false;
}

/* Whether the next byte could by chance continue what was sent before the seam: it completes the
 * frame that was cut off, or it follows bytes that look like the start of its own frame, or its
 * samples follow another frame's header, which no field would reveal. The ledger could then not
 * predict what a receiver finds. */
static bool may_fit_by_chance(const struct board *board)
{
	const struct board_seam *seam = &board->seam;
	size_t at = board->frame_at;

	return (seam->has_missing && board->frame[at] == seam->missing) ||
	       (at != 0 && board->frame[at - 1] == seam->last) || at == BC_BCP1_HEADER_BYTES;
}

size_t board_stream_fill(struct board *board)
{
	if (board->is_frozen)
		return 0;
	for (;;) {
		size_t end = board->frame_end != 0 ? board->frame_end : board->frame_bytes;
		size_t n = end - board->frame_at;
		if (n == 0) {
			if (!make_next(board))
				return 0;
			continue;
		}
		if (board->bytes_to_drop == 0 && board->seam.is_open && may_fit_by_chance(board))
			board->bytes_to_drop = 1;
		if (board->bytes_to_drop == 0)
			return n;
		if (n > board->bytes_to_drop)
			n = (size_t)board->bytes_to_drop;
		board->bytes_to_drop -= n;
		board_stream_read(board, NULL, n);
	}
}

void board_stream_read(struct board *board, uint8_t *out, size_t n)
{
	if (out != NULL) {
		memcpy(out, board->frame + board->frame_at, n);
		board->seam.last = out[n - 1];
		board->seam.is_open = false;
		board_ledger_give(&board->ledger, n);
	} else {
		open_seam(board);
		board_ledger_swallow(&board->ledger, n);
	}
	board->frame_at += n;
	if (board->frame_at == board->frame_end)
		board_stream_cut(board);
}

bool board_stream_is_idle(const struct board *board)
{
	bool reports_loss = !is_raw(board) && board->lost != 0;

	return board->to_send == 0 && board->held == 0 && board->frame_at == board->frame_bytes &&
	       board->garbage_bytes == 0 && board->fault_count == 0 && !reports_loss;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t board_stream_due_ns(const struct board *board)
{
	bool is_active = board->state == BOARD_RUNNING || board->state == BOARD_STOPPING;

	if (board->is_frozen)
		return UINT64_MAX;
	if (board->frame_at != board->frame_bytes || board->state == BOARD_STOPPING ||
		(is_active && (board->garbage_bytes != 0 || samples_due(board) != 0)))
		return board->now_ns;
	if (!is_active)
		return UINT64_MAX;

	uint64_t due = UINT64_MAX;
	if (board->held != 0)
		due = board->flush_ns;
	if (board->rate != 0 && board->to_send != 0) {
		uint64_t missing = count_needed(board) - board->held;
		if (board->held == 0)
			due = sample_time_ns(board, board->made + 1) + LATENCY_NS;
		if (missing <= board->to_send && count_needed(board) <= board->options.fifo_samples)
			due = earlier(due, sample_time_ns(board, board->made + missing));
	}
	if (!is_raw(board) && board->lost != 0 && board->held == 0)
		due = earlier(due, board->report_ns);
	if (!is_raw(board) && board->heartbeat_ns != 0)
		due = earlier(due, board->last_frame_ns + board->heartbeat_ns);
	return due > board->now_ns ? due : board->now_ns;
}
