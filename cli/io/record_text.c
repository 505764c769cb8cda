#include "cli/io/record_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/term/console.h"
#include "formats/base/fast_text.h"

_Static_assert(8 + 27 + 11 + 1 <= BC_RECORD_TEXT_MAX, "a line with the longest cached text");

void bc_record_text_init(struct bc_record_text *text, bool is_b2a)
{
	memset(text, 0, sizeof(*text));
	text->is_b2a = is_b2a;
}

/* The text between address and time of bc_record_print(). */
static int print_middle(char *out, const struct bc_record *record)
{
	char line[BC_RECORD_TEXT_MAX];
	size_t n = bc_record_print(line, record) - 8 - 8 - 1; /* nor the newline */

	memcpy(out, line + 8, n);
	return (int)n;
}

static int print_b2a_middle(char *out, const struct bc_record *record)
{
	const char *name = bc_reqtype_name(record->reqtype);
	const char *tabs = name == NULL ? "" : strlen(name) < 7 ? "\t\t" : "\t";

	if (record->reqtype == BC_REQ_STOPCLKACK)
		name = "STOPCLKAK";
	return sprintf(out, " %s%s%2d\t%02x\t%d\t", name != NULL ? name : "", tabs, record->size,
		record->attr, record->proc);
}

static void cache_text(struct bc_record_text *text, size_t slot, const uint8_t *in)
{
	struct bc_record record = bc_record_load(in);
	char *out = text->kept[slot].text;
	int n = text->is_b2a ? print_b2a_middle(out, &record) : print_middle(out, &record);

	text->kept[slot].meta = bc_le32(in + 4);
	text->kept[slot].bytes = (uint8_t)n;
}

static inline size_t slot_of(struct bc_record_text *text, const uint8_t *in)
{
	uint32_t meta = bc_le32(in + 4);
	size_t slot = meta * 0x9E3779B1u >> 24;

	if (text->kept[slot].meta != meta || text->kept[slot].bytes == 0)
		cache_text(text, slot, in);
	return slot;
}

struct bc_text bc_record_text_middle(struct bc_record_text *text, const uint8_t *record)
{
	size_t slot = slot_of(text, record);

	return (struct bc_text){text->kept[slot].text, text->kept[slot].bytes};
}

/* Each caller passes a constant `is_b2a`, so that each form has its own loop. */
static inline size_t print_records(
	struct bc_record_text *text, char *out, const uint8_t *records, size_t n, bool is_b2a)
{
	const uint8_t *end = records + n * BC_RECORD_BYTES;
	char *p = out;

	for (const uint8_t *in = records; in < end; in += BC_RECORD_BYTES) {
		size_t slot = slot_of(text, in);
		uint32_t time = bc_le32(in + 8);
		p = bc_write_hex32(p, bc_le32(in));
		/* A copy of constant length is faster; the time overwrites the excess. */
		memcpy(p, text->kept[slot].text, sizeof(text->kept[slot].text));
		p += text->kept[slot].bytes;
		p = is_b2a ? bc_write_signed(p, (int32_t)time) : bc_write_hex32(p, time);
		*p++ = '\n';
	}
	return (size_t)(p - out);
}

size_t bc_record_text_print(
	struct bc_record_text *text, char *out, const uint8_t *records, size_t n)
{
	return text->is_b2a ? print_records(text, out, records, n, true)
			    : print_records(text, out, records, n, false);
}

const char *bc_lost_text(char out[BC_LOST_TEXT_MAX], uint64_t lost, bool is_exact)
{
	if (lost == 0 && !is_exact)
		return "an unknown number of samples lost";
	snprintf(out, BC_LOST_TEXT_MAX, "%s%" PRIu64 " sample%s lost", is_exact ? "" : "at least ",
		lost, bc_plural(lost));
	return out;
}

const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap)
{
	const char *name = bc_gap_cause_name(gap->cause);
	char lasted[32] = "";
	char lost[BC_LOST_TEXT_MAX];

	if (gap->duration_ns != 0)
		snprintf(lasted, sizeof(lasted), ", %.6f s", (double)gap->duration_ns * 1e-9);
	snprintf(out, BC_GAP_TEXT_MAX, "%s (%s%s)", bc_lost_text(lost, gap->value, gap->exact),
		name, lasted);
	return out;
}
