#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/bcp1.h"
#include "formats/bus/page_map.h"
#include "tests/support/dice.h"
#include "tests/support/print_run.h"
#include "tests/support/test.h"

static struct bc_mapping *default_mapping(void)
{
	struct bc_mapping_options options = bc_mapping_options_default();
	struct bc_mapping *mapping = malloc(sizeof(*mapping));

	assert_non_null(mapping);
	options.keep_invalid = true;
	bc_mapping_init(mapping, &options);
	return mapping;
}

TEST(random_samples_come_back_from_raw6_and_from_frames)
{
	struct dice dice = {.state = 31};

	for (size_t n = 0; n < 9000; n += 1 + n / 2) {
		struct trace in = {.bytes = malloc(n * 6 + 1), .n = n * 6};
		assert_non_null(in.bytes);
		dice_fill(&dice, in.bytes, in.n);
		struct printed raw6 = convert_trace(&in, BC_FORMAT_RAW6, BC_FORMAT_RAW6, NULL);
		assert_nothing_lost(&raw6);
		assert_int_equal(raw6.trace.n, in.n);
		assert_memory_equal(raw6.trace.bytes, in.bytes, in.n);
		struct printed bcp1 = convert_trace(&in, BC_FORMAT_RAW6, BC_FORMAT_BCP1, NULL);
		assert_nothing_lost(&bcp1);
		struct printed back = convert_trace(
			&bcp1.trace, BC_FORMAT_BCP1, BC_FORMAT_RAW6, NULL);
		assert_int_equal(back.trace.n, in.n);
		assert_memory_equal(back.trace.bytes, in.bytes, in.n);
		/* raw6 has no clock, so the frames have the sample's number as time. */
		assert_int_equal(reduced_of(&back, BC_TRAIT_TIME), n);
		trace_free(&in);
		printed_free(&raw6);
		printed_free(&bcp1);
		printed_free(&back);
	}
}

static size_t add_frame(uint8_t *out, struct dice *dice, struct bc_bcp1_header *header)
{
	uint8_t *p = out + BC_BCP1_HEADER_BYTES;

	for (uint32_t i = 0; i < header->samples; i++, p += BC_BCP1_SAMPLE_BYTES) {
		static const uint16_t deltas[] = {0, 1, 65535};
		uint32_t which = dice_below(dice, 30);
		dice_fill(dice, p, BC_SAMPLE_BYTES);
		if (which < 20) /* mostly one agent, as in real captures */
			p[5] &= 0xF0;
		uint16_t delta = which < 3 ? deltas[which] : (uint16_t)dice_below(dice, 100);
		bc_write_le16(p + BC_SAMPLE_BYTES, i != 0 ? delta : 0);
	}
	return bc_bcp1_write_frame(out, header);
}

/* Frames that cover the format: with and without agents, losses, missing frames, triggers, new
 * epochs, empty frames, ticks at their limits. */
static struct trace random_frames(uint64_t seed, unsigned frames)
{
	static const uint64_t ticks[] = {
		0, 1, 0xFFFFFFFF, BC_TICK_END - 1000 * UINT64_C(65536), 70000};
	static const uint32_t losses[] = {0, 1, 0xFFFFFFFE, 0xFFFFFFFF};
	struct dice dice = {.state = seed};
	struct trace trace = {.bytes = malloc((size_t)frames * bc_bcp1_frame_bytes(300))};
	struct bc_bcp1_header header = {.sequence = 0xFFFFFFF0};
	bool had_samples = false;

	assert_non_null(trace.bytes);
	for (unsigned i = 0; i < frames; i++) {
		uint32_t tick = dice_below(&dice, 20);
		header.flags = (uint16_t)(dice_below(&dice, 2) * BC_BCP1_AGENT +
					  (dice_below(&dice, 5) == 0 ? BC_BCP1_LOSS : 0) +
					  (dice_below(&dice, 5) == 0 ? BC_BCP1_TRIGGER : 0));
		header.proc = dice_below(&dice, 3) == 0 ? (uint8_t)dice_roll(&dice) : 0;
		header.samples = dice_below(&dice, 4) == 0 ? 0 : dice_below(&dice, 300);
		/* Several losses at one place are added, and the sum may not fit. */
		bool is_alone = i != 0 && had_samples && header.samples != 0;
		header.lost = (header.flags & BC_BCP1_LOSS) == 0 ? 0
			      : is_alone                         ? losses[dice_below(&dice, 4)]
								 : dice_below(&dice, 9999);
		had_samples = header.samples != 0;
		header.sequence += dice_below(&dice, 8) == 0 ? 2 : 1;
		if (tick < 5)
			header.tick = ticks[tick];
		else
			header.tick += dice_below(&dice, 100000);
		trace.n += add_frame(trace.bytes + trace.n, &dice, &header);
	}
	return trace;
}

/* Everything that a reader returns, except for the epoch numbers: an epoch without samples is
 * lost. */
static void assert_same_entries(const struct trace *a, const struct trace *b)
{
	size_t counts[2];
	struct bc_entry *at = entries_of(a, BC_FORMAT_BCP1, &counts[0]);
	struct bc_entry *bt = entries_of(b, BC_FORMAT_BCP1, &counts[1]);

	assert_int_equal(counts[0], counts[1]);
	for (size_t i = 0; i < counts[0]; i++) {
		const struct bc_entry *x = &at[i];
		const struct bc_entry *y = &bt[i];
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->number, y->number);
		if (x->kind == BC_ENTRY_EVENT) {
			assert_int_equal(x->note.event.kind, y->note.event.kind);
			assert_int_equal(x->note.event.cause, y->note.event.cause);
			assert_int_equal(x->note.event.exact, y->note.event.exact);
			assert_int_equal(x->note.event.value, y->note.event.value);
			continue;
		}
		assert_int_equal(x->traits, y->traits);
		assert_int_equal(x->type, y->type);
		assert_int_equal(x->addr, y->addr);
		assert_int_equal(x->proc, y->proc);
		assert_int_equal(x->tick, y->tick);
		assert_memory_equal(x->sample, y->sample, BC_SAMPLE_BYTES);
	}
	free(at);
	free(bt);
}

TEST(random_frames_come_back_with_the_same_content)
{
	for (uint64_t seed = 1; seed <= 60; seed += test_stride(5)) {
		struct trace in = random_frames(seed, 40);
		struct printed out = convert_trace(&in, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
		assert_nothing_lost(&out);
		assert_same_entries(&in, &out.trace);
		trace_free(&in);
		printed_free(&out);
	}
}

static struct bc_entry sample_entry(uint64_t tick, unsigned proc, uint8_t nibble)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x1000, tick);
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME |
		       BC_TRAIT_SAMPLE;
	entry.proc = (uint16_t)proc;
	entry.tick = tick;
	memcpy(entry.sample, (uint8_t[]){0, 0, 0x10, 0, 0xFE, (uint8_t)(0xD0 | nibble)}, 6);
	return entry;
}

/* The header of frame number `which`. */
static struct bc_bcp1_header header_at(const struct trace *trace, unsigned which)
{
	struct bc_bcp1_header header;

	for (size_t at = 0;; which--) {
		assert_true(at + BC_BCP1_HEADER_BYTES <= trace->n);
		assert_true(bc_bcp1_read_header(&header, trace->bytes + at));
		at += bc_bcp1_frame_bytes(header.samples);
		assert_true(at <= trace->n);
		if (which == 0)
			return header;
	}
}

TEST(a_whole_trace_has_the_documented_bytes)
{
	/* Two samples of agents 1 and 0, 0x0203 ticks apart, in frame 0; then the last frame. */
	struct bc_entry entries[] = {
		sample_entry(0x123456789A, 1, 1), sample_entry(0x1234567A9D, 0, 0)};
	static const uint8_t expected[] = {'B', 'C', 'P', '1', 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
		0x9A, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t samples[] = {0, 0, 0x10, 0, 0xFE, 0xD1, 0, 0, /**/
		0, 0, 0x10, 0, 0xFE, 0xD0, 0x03, 0x02};
	static const uint8_t last[] = {'B', 'C', 'P', '1', 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x9D,
		0x7A, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0};

	struct printed out = print_entries(entries, 2, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, 32 + 16 + 4 + 32);
	assert_memory_equal(out.trace.bytes, expected, sizeof(expected));
	assert_memory_equal(out.trace.bytes + 32, samples, sizeof(samples));
	assert_memory_equal(out.trace.bytes + 52, last, sizeof(last));
	printed_free(&out);
}

TEST(an_empty_trace_is_only_a_last_frame)
{
	struct printed out = print_entries(NULL, 0, BC_FORMAT_RAW6, BC_FORMAT_BCP1, NULL);
	assert_int_equal(out.trace.n, BC_BCP1_HEADER_BYTES);
	assert_int_equal(header_at(&out.trace, 0).flags, BC_BCP1_LAST);
	printed_free(&out);
}

/* The header of the first frame of two samples, which has their number. */
static struct bc_bcp1_header first_of_two(struct bc_entry a, struct bc_entry b)
{
	struct bc_entry entries[] = {a, b};
	struct printed out = print_entries(entries, 2, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);

	assert_int_equal(out.rc, 0);
	struct bc_bcp1_header header = header_at(&out.trace, 0);
	printed_free(&out);
	return header;
}

TEST(a_frame_ends_where_a_delta_is_too_long_or_processors_differ)
{
	struct bc_bcp1_header h = first_of_two(
		sample_entry(5, 0, 0), sample_entry(5 + 65535, 0, 0));
	assert_int_equal(h.samples, 2);
	assert_int_equal(h.flags, 0);
	h = first_of_two(sample_entry(5, 0, 0), sample_entry(5 + 65536, 0, 0));
	assert_int_equal(h.samples, 1);
	h = first_of_two(sample_entry(5, 200, 3), sample_entry(6, 200, 9));
	assert_int_equal(h.samples, 2);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.proc, 200);
	h = first_of_two(sample_entry(5, 2, 2), sample_entry(6, 15, 15));
	assert_int_equal(h.samples, 2);
	assert_int_equal(h.flags, BC_BCP1_AGENT);
	assert_int_equal(h.proc, 0);
	h = first_of_two(sample_entry(5, 2, 2), sample_entry(6, 2, 7));
	assert_int_equal(h.samples, 2);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.proc, 2);
	h = first_of_two(sample_entry(5, 2, 2), sample_entry(6, 3, 7));
	assert_int_equal(h.samples, 1);
	h = first_of_two(sample_entry(5, 16, 0), sample_entry(6, 0, 0));
	assert_int_equal(h.samples, 1);
}

static struct bc_entry event_entry(struct bc_event event)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 0);
	entry.kind = BC_ENTRY_EVENT;
	entry.note.event = event;
	entry.note.text = (struct bc_text){.at = "", .bytes = 0};
	return entry;
}

/* Prints a sample, the event and a sample, and returns the events that are read back. */
static size_t round_trip(struct bc_event event, struct bc_event out[4], uint64_t *lost)
{
	struct bc_entry entries[] = {
		sample_entry(5, 0, 0), event_entry(event), sample_entry(6, 0, 0)};
	struct printed printed = print_entries(entries, 3, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
	size_t count;
	size_t n = 0;
	struct bc_entry *read = entries_of(&printed.trace, BC_FORMAT_BCP1, &count);

	assert_int_equal(printed.rc, 0);
	assert_int_equal(read[0].kind, BC_ENTRY_REFERENCE);
	assert_int_equal(read[count - 1].kind, BC_ENTRY_REFERENCE);
	for (size_t i = 1; i + 1 < count; i++) {
		assert_int_equal(read[i].kind, BC_ENTRY_EVENT);
		assert_true(n < 4);
		out[n++] = read[i].note.event;
	}
	*lost = reduced_of(&printed, BC_TRAIT_EVENT);
	free(read);
	printed_free(&printed);
	return n;
}

TEST(a_gap_keeps_its_number_and_losses_are_counted)
{
	static const struct {
		struct bc_event gap;
		uint64_t board;    /* number of lost samples read back */
		bool is_exact;     /* of that number */
		bool has_board;    /* the board's gap was read back */
		bool has_sequence; /* a gap of unknown length was read back */
		unsigned lost;
	} rows[] = {
		{{.cause = BC_GAP_BOARD, .exact = true, .value = 7}, 7, true, true, false, 0},
		{{.cause = BC_GAP_BOARD, .exact = true, .value = 0}, 0, true, true, false, 0},
		{{.cause = BC_GAP_BOARD, .exact = true, .value = 0xFFFFFFFE}, 0xFFFFFFFE, true,
			true, false, 0},
		{{.cause = BC_GAP_BOARD, .exact = false, .value = 0xFFFFFFFF}, 0xFFFFFFFF, false,
			true, false, 0},
		{{.cause = BC_GAP_BOARD, .exact = true, .value = 0x123456789}, 0xFFFFFFFF, false,
			true, false, 1},
		{{.cause = BC_GAP_BOARD, .exact = false, .value = 0x100000000}, 0xFFFFFFFF, false,
			true, false, 1},
		{{.cause = BC_GAP_BOARD, .exact = false, .value = 7}, 7, true, true, true, 1},
		{{.cause = BC_GAP_BOARD, .exact = true, .value = 7, .duration_ns = 1}, 7, true,
			true, false, 1},
		{{.cause = BC_GAP_SEQUENCE, .exact = false, .value = 0}, 0, false, false, true, 0},
		{{.cause = BC_GAP_CRC, .exact = false, .value = 12}, 12, true, true, true, 1},
		{{.cause = BC_GAP_BUFFER, .exact = true, .value = 99}, 99, true, true, false, 1},
		{{.cause = BC_GAP_UNPLUGGED, .exact = false, .value = 0}, 0, false, false, true, 1},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bc_event gap = rows[i].gap;
		struct bc_event read[4];
		uint64_t lost;
		gap.kind = BC_EVENT_GAP;
		size_t n = round_trip(gap, read, &lost);
		assert_int_equal(lost, rows[i].lost);
		assert_int_equal(n, rows[i].has_board + rows[i].has_sequence);
		if (rows[i].has_board) {
			assert_int_equal(read[0].kind, BC_EVENT_GAP);
			assert_int_equal(read[0].cause, BC_GAP_BOARD);
			assert_int_equal(read[0].value, rows[i].board);
			assert_int_equal(read[0].exact, rows[i].is_exact);
		}
		if (rows[i].has_sequence) {
			assert_int_equal(read[n - 1].cause, BC_GAP_SEQUENCE);
			assert_int_equal(read[n - 1].value, 0);
		}
	}
}

TEST(triggers_are_kept_and_marks_are_counted)
{
	struct bc_event read[4];
	uint64_t lost;

	assert_int_equal(round_trip((struct bc_event){.kind = BC_EVENT_TRIGGER}, read, &lost), 1);
	assert_int_equal(read[0].kind, BC_EVENT_TRIGGER);
	assert_int_equal(lost, 0);
	assert_int_equal(round_trip((struct bc_event){.kind = BC_EVENT_MARK}, read, &lost), 0);
	assert_int_equal(lost, 1);
}

TEST(events_at_both_ends_of_a_trace_are_kept)
{
	static const struct bc_event gap = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_SEQUENCE, .exact = false};
	static const struct bc_event loss = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_BOARD, .exact = true, .value = 3};
	static const struct bc_event trigger = {.kind = BC_EVENT_TRIGGER};
	struct bc_entry entries[] = {event_entry(loss), event_entry(gap), event_entry(trigger),
		event_entry(trigger), sample_entry(9, 0, 0), event_entry(loss), event_entry(gap),
		event_entry(trigger), event_entry(trigger)};
	size_t count;

	struct printed out = print_entries(entries, 9, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
	assert_nothing_lost(&out);
	struct bc_entry *read = entries_of(&out.trace, BC_FORMAT_BCP1, &count);
	assert_int_equal(count, 9);
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(read[i].kind, entries[i].kind);
		if (read[i].kind != BC_ENTRY_EVENT)
			continue;
		assert_int_equal(read[i].note.event.kind, entries[i].note.event.kind);
		assert_int_equal(read[i].note.event.cause, entries[i].note.event.cause);
		assert_int_equal(read[i].note.event.value, entries[i].note.event.value);
	}
	free(read);
	printed_free(&out);
}

/* An epoch starts at the same place, whether the tick goes back, stays or increases. */
TEST(an_epoch_is_kept_whatever_its_ticks_are)
{
	static const uint64_t ticks[] = {0, 1, 2, 1000, BC_TICK_END - 1};

	for (size_t a = 0; a < 5; a++) {
		for (size_t b = 0; b < 5; b++) {
			struct bc_entry entries[] = {
				sample_entry(ticks[a], 0, 0), sample_entry(ticks[b], 0, 0)};
			size_t count;
			entries[1].epoch = 1;
			struct printed out = print_entries(
				entries, 2, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
			assert_nothing_lost(&out);
			struct bc_entry *read = entries_of(&out.trace, BC_FORMAT_BCP1, &count);
			assert_int_equal(count, 3);
			assert_int_equal(read[0].tick, ticks[a]);
			assert_int_equal(read[1].kind, BC_ENTRY_EVENT);
			assert_int_equal(read[1].note.event.kind, 0);
			assert_int_equal(read[2].tick, ticks[b]);
			assert_int_equal(read[2].epoch, 1);
			free(read);
			printed_free(&out);
		}
	}
}

TEST(a_tick_that_goes_back_within_an_epoch_is_a_lost_time)
{
	struct bc_entry entries[] = {sample_entry(9, 0, 0), sample_entry(8, 0, 0)};

	struct printed out = print_entries(entries, 2, BC_FORMAT_BCP1, BC_FORMAT_BCP1, NULL);
	assert_int_equal(reduced_of(&out, BC_TRAIT_TIME), 1);
	printed_free(&out);
}

/* The record of a sample. */
static struct bc_record record_of(const struct bc_mapping *mapping, const uint8_t *sample)
{
	uint8_t record[BC_RECORD_BYTES] = {0};

	bc_map_sample(record, bc_map_entry(mapping, sample), sample, 0);
	return bc_record_load(record);
}

static struct bc_entry reference_of(const struct bc_record *r)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, r->reqtype, r->addr, 0);
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME;
	entry.size = r->size;
	entry.attr = r->attr;
	entry.tick = 1;
	return entry;
}

/* The samples of a reference must cover each of its bytes exactly once, in order, with its type. */
static void assert_covered(
	const struct bc_mapping *mapping, const struct bc_entry *entry, const struct printed *out)
{
	uint64_t at = entry->addr;

	for (size_t i = 0; i < out->trace.n; i += BC_SAMPLE_BYTES) {
		struct bc_record r = record_of(mapping, out->trace.bytes + i);
		assert_int_equal(r.reqtype, entry->type);
		assert_int_equal(r.addr, at);
		assert_true(r.size <= 8 || r.size == 32);
		at += r.size;
		if (reduced_of(out, BC_TRAIT_ATTR) == 0 && (entry->traits & BC_TRAIT_ATTR) != 0)
			assert_int_equal(r.attr, entry->attr);
	}
	assert_int_equal(at, entry->addr + entry->size);
}

TEST(an_access_is_split_at_eight_bytes_and_complete)
{
	static const uint16_t types[] = {BC_REQ_FETCH, BC_REQ_MEMREAD, BC_REQ_MEMWRITE,
		BC_REQ_IOREAD, BC_REQ_IOWRITE, BC_REQ_INTA, 0xF0, 0xFB};
	struct bc_mapping *mapping = default_mapping();

	for (unsigned i = 0; i < 8 * 8 * 70 * 9; i += test_stride(5)) {
		unsigned type = i / 9 / 70 / 8;
		unsigned size = i / 9 % 70;
		struct bc_entry entry;
		bc_entry_reference(&entry, types[type], 0xFFF0 + i / 9 / 70 % 8, 0);
		entry.traits = size != 0 ? BC_TRAIT_SIZE : 0;
		entry.size = size;
		if (i % 9 != 8) {
			entry.traits |= BC_TRAIT_ATTR;
			entry.attr = (uint8_t)(i % 9);
		}
		struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
		assert_int_equal(out.rc, 0);
		assert_covered(mapping, &entry, &out);
		bool is_burst = out.trace.n == BC_SAMPLE_BYTES && size == 32;
		size_t quads = ((entry.addr & 7) + size + 7) / 8;
		size_t samples = is_burst || size == 0 ? 1 : quads;
		assert_int_equal(out.trace.n, samples * BC_SAMPLE_BYTES);
		/* An attr is lost exactly if the mapping has another. */
		uint8_t attr = is_burst ? 3 : types[type] == BC_REQ_MEMWRITE ? 1 : 0;
		assert_int_equal(reduced_of(&out, BC_TRAIT_ATTR),
			(entry.traits & BC_TRAIT_ATTR) != 0 && entry.attr != attr);
		printed_free(&out);
	}
	free(mapping);
}

TEST(a_line_fill_with_a_cached_attr_is_one_burst)
{
	struct bc_record r = {.addr = 0x1234567D, .reqtype = BC_REQ_MEMREAD, .size = 32, .attr = 7};
	static const uint8_t read[] = {0x12, 0x34, 0x56, 0x7D, 0x00, 0xC0};
	static const uint8_t write[] = {0x12, 0x34, 0x56, 0x7D, 0x00, 0xE0};
	struct bc_entry entry = reference_of(&r);

	struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
	assert_int_equal(out.trace.n, 6);
	assert_memory_equal(out.trace.bytes, read, 6);
	assert_int_equal(reduced_of(&out, BC_TRAIT_ATTR), 1);
	printed_free(&out);
	entry.type = BC_REQ_MEMWRITE;
	entry.attr = 3;
	out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
	assert_int_equal(out.trace.n, 6);
	assert_memory_equal(out.trace.bytes, write, 6);
	assert_int_equal(reduced_of(&out, BC_TRAIT_ATTR), 0);
	printed_free(&out);
	entry.attr = 1; /* the attr of single writes */
	out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
	assert_int_equal(out.trace.n, 5 * 6);
	assert_int_equal(reduced_of(&out, BC_TRAIT_ATTR), 0);
	printed_free(&out);
}

TEST(losses_of_a_special_cycle_are_counted)
{
	struct bc_record r = {.addr = 0x18, .reqtype = BC_REQ_HALT};
	static const uint8_t halt[] = {0, 0, 0, 0x08, 0xFB, 0x30};
	static const uint8_t grant[] = {0, 0, 0, 0x18, 0xFB, 0x30};
	struct bc_entry entry = reference_of(&r);

	struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
	assert_memory_equal(out.trace.bytes, halt, 6);
	assert_int_equal(reduced_of(&out, BC_TRAIT_CYCLE), 1);
	printed_free(&out);
	entry.type = BC_REQ_STOPCLKACK;
	entry.addr = 8;
	entry.size = 4;
	out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
	assert_memory_equal(out.trace.bytes, grant, 6);
	assert_int_equal(reduced_of(&out, BC_TRAIT_CYCLE), 1);
	assert_int_equal(reduced_of(&out, BC_TRAIT_SIZE), 1);
	printed_free(&out);
}

/* Not on a Pentium bus: F1 would be read as an interrupt acknowledge. */
TEST(a_type_without_a_cycle_is_left_out)
{
	unsigned held = 0;

	for (unsigned type = 0; type < 0x100; type++) {
		struct bc_entry entry;
		bc_entry_reference(&entry, type, 0x40, 0);
		struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_RAW6, NULL);
		bool is_plain = type == BC_REQ_MEMREADINV;
		if (out.trace.n != 0 && !is_plain) {
			struct bc_mapping *mapping = default_mapping();
			assert_int_equal(record_of(mapping, out.trace.bytes).reqtype,
				type == BC_REQ_STOPCLKACK ? BC_REQ_STOPCLKACK : type);
			free(mapping);
			held++;
		}
		printed_free(&out);
	}
	/* 3 of memory, 2 of I/O, INTA, 8 special cycles, 6 invalid ones. */
	assert_int_equal(held, 3 + 2 + 1 + 8 + 6);
}

TEST(without_a_clock_each_sample_takes_one_tick)
{
	struct bc_entry entries[2];
	size_t count;

	for (unsigned i = 0; i < 2; i++) {
		bc_entry_reference(&entries[i], BC_REQ_FETCH, 0x1004, i + 1);
		entries[i].traits = BC_TRAIT_SIZE;
		entries[i].size = 16;
	}
	struct printed out = print_entries(entries, 2, BC_FORMAT_XDIN, BC_FORMAT_BCP1, NULL);
	struct bc_entry *read = entries_of(&out.trace, BC_FORMAT_BCP1, &count);
	assert_int_equal(count, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(read[i].tick, i + 1);
	free(read);
	printed_free(&out);
}

TEST(with_a_clock_all_samples_of_an_access_have_its_tick)
{
	struct bc_entry entry;
	size_t count;

	bc_entry_reference(&entry, BC_REQ_FETCH, 0x1004, 0);
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_TIME | BC_TRAIT_PROC;
	entry.size = 16;
	entry.proc = 11;
	entry.tick = 500;
	struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_BCP1, NULL);
	assert_int_equal(header_at(&out.trace, 0).flags, BC_BCP1_AGENT);
	struct bc_entry *read = entries_of(&out.trace, BC_FORMAT_BCP1, &count);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read[i].tick, 500);
		assert_int_equal(read[i].proc, 11);
	}
	free(read);
	printed_free(&out);
}

static void assert_refused(struct bc_entry bad, enum bc_format to, bool has_map, const char *words)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[2];

	bc_entry_reference(&entries[0], BC_REQ_FETCH, 0, 0);
	bad.number = 17;
	entries[1] = bad;
	options.map_pages = has_map;
	struct printed out = print_entries(entries, 2, BC_FORMAT_BYU, to, &options);
	assert_int_equal(out.rc, -ERANGE);
	assert_int_equal(out.refused, 17);
	if (strstr(out.err, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, out.err);
	/* Everything before it must be there, and a frame that ends it. */
	assert_int_equal(out.trace.n, to == BC_FORMAT_RAW6 ? 6 : 32 + 8 + 4 + 32);
	printed_free(&out);
}

TEST(an_access_beyond_32_bits_is_an_error)
{
	struct bc_entry entry;

	for (unsigned i = 0; i < 2; i++) {
		enum bc_format to = i == 0 ? BC_FORMAT_RAW6 : BC_FORMAT_BCP1;
		bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x123456789, 0);
		assert_refused(entry, to, false,
			"address 0x123456789 doesn't fit in the 32 bits of the bus; try "
			"map=pages");
		entry.addr = 0xFFFFFFFC;
		entry.traits = BC_TRAIT_SIZE;
		entry.size = 5;
		assert_refused(entry, to, false, "end address 0x100000000 ");
		bc_entry_reference(&entry, BC_REQ_IOREAD, 0x100000000, 0);
		assert_refused(entry, to, true, "address 0x100000000 doesn't fit");
		bc_entry_reference(&entry, BC_REQ_MEMREAD, UINT64_MAX, 0);
		entry.traits = BC_TRAIT_SIZE;
		entry.size = 2;
		assert_refused(entry, to, true, "extend beyond 64 bits");
	}
	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0, 0);
	entry.traits = BC_TRAIT_PROC;
	entry.proc = 256;
	assert_refused(entry, BC_FORMAT_BCP1, false, "processor 0x100 ");
	entry.traits = BC_TRAIT_TIME;
	entry.proc = 0;
	entry.tick = BC_TICK_END;
	assert_refused(entry, BC_FORMAT_BCP1, false, "time 0x8000000000000000 ");
}

TEST(the_last_byte_of_32_bits_is_accepted)
{
	static const uint8_t expected[] = {0xFF, 0xFF, 0xFF, 0xF8, 0x0F, 0xD0};
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0xFFFFFFFC, 0);
	entry.traits = BC_TRAIT_SIZE;
	entry.size = 4;
	struct printed out = print_entries(&entry, 1, BC_FORMAT_XDIN, BC_FORMAT_RAW6, NULL);
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, 6);
	assert_memory_equal(out.trace.bytes, expected, 6);
	printed_free(&out);
}

/* Longer than one call of the printer can write. */
TEST(a_huge_access_is_split_over_several_calls)
{
	struct bc_mapping *mapping = default_mapping();
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMWRITE, 0x10000003, 0);
	entry.traits = BC_TRAIT_SIZE;
	entry.size = 300000; /* more than one call can write */
	struct printed out = print_entries(&entry, 1, BC_FORMAT_XDIN, BC_FORMAT_RAW6, NULL);
	assert_nothing_lost(&out);
	assert_covered(mapping, &entry, &out);
	struct printed framed = print_entries(&entry, 1, BC_FORMAT_XDIN, BC_FORMAT_BCP1, NULL);
	struct printed back = convert_trace(&framed.trace, BC_FORMAT_BCP1, BC_FORMAT_RAW6, NULL);
	assert_int_equal(back.trace.n, out.trace.n);
	assert_memory_equal(back.trace.bytes, out.trace.bytes, out.trace.n);
	printed_free(&out);
	printed_free(&framed);
	printed_free(&back);
	free(mapping);
}

TEST(pages_get_frames_in_the_order_of_first_touch)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[3];

	/* Across a page boundary: two pages at once. Then one of them again, and a third. */
	bc_entry_reference(&entries[0], BC_REQ_MEMREAD, UINT64_C(0x7FFE12345FFE), 1);
	bc_entry_reference(&entries[1], BC_REQ_FETCH, UINT64_C(0x7FFE12346123), 2);
	bc_entry_reference(&entries[2], BC_REQ_MEMWRITE, 0, 3);
	entries[0].traits = entries[1].traits = entries[2].traits = BC_TRAIT_SIZE;
	entries[0].size = 4;
	entries[1].size = entries[2].size = 1;
	options.map_pages = true;
	struct printed out = print_entries(entries, 3, BC_FORMAT_XDIN, BC_FORMAT_RAW6, &options);
	/* With seed 1 the first frames are 10181, 65C03 and 21753. */
	static const uint8_t expected[] = {0x10, 0x18, 0x1F, 0xF8, 0x3F, 0xD0, /**/
		0x65, 0xC0, 0x30, 0x00, 0xFC, 0xD0,                            /**/
		0x65, 0xC0, 0x31, 0x20, 0xF7, 0x90,                            /**/
		0x21, 0x75, 0x30, 0x00, 0xFE, 0xF0};
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, sizeof(expected));
	assert_memory_equal(out.trace.bytes, expected, sizeof(expected));
	printed_free(&out);
}

TEST(more_pages_than_32_bits_have_is_an_error)
{
	struct bc_entry entry;
	struct bc_format_options options = bc_format_options_default();

	bc_entry_reference(&entry, BC_REQ_MEMREAD, UINT64_C(0x100000000001), 0);
	entry.traits = BC_TRAIT_SIZE;
	entry.size = UINT32_MAX; /* 2^20 pages, plus one that is in use */
	assert_refused(entry, BC_FORMAT_RAW6, true,
		"address 0x100000000001 needs a page, and all 1048576 pages of 32 bits are "
		"in use");
	/* All pages; then the same again; then one more. */
	options.map_pages = true;
	struct print_run run;
	struct printed out;
	print_run_start(&run, &out, BC_FORMAT_RAW6, &options, 0);
	for (uint64_t page = 0; page < 2 * BC_PAGES_MAX;
		page += page < BC_PAGES_MAX ? 1 : test_stride(9)) {
		bc_entry_reference(&entry, BC_REQ_MEMREAD, page % BC_PAGES_MAX * 0x1001000, page);
		print_run_add(&run, &entry, 1);
		assert_int_equal(out.rc, 0);
		assert_int_equal(out.trace.n, BC_SAMPLE_BYTES);
		out.trace.n = 0;
	}
	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x1000, 5);
	print_run_add(&run, &entry, 1);
	assert_int_equal(out.rc, -ERANGE);
	print_run_finish(&run);
	printed_free(&out);
}
