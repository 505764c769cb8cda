#include "formats/codec/laplace_events.h"

#include "formats/base/fast_format.h"
#include "formats/codec/block_parse.h"

/* Whether [at, end) is what the printer would write for this number. */
static bool is_canonical(const char *at, const char *end, uint64_t value)
{
	char digits[40];

	return bc_write_hex(digits, value) - digits == end - at &&
	       memcmp(digits, at, (size_t)(end - at)) == 0;
}

static enum bc_parse_end parse_events(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		uint64_t tick;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *tag = bc_skip_spaces(p->at);
		if (*tag == '\n') {
			p->at = tag + 1;
			continue;
		}
		if (*tag <= ' ' || *tag > '~')
			return bc_parse_bad(p, tag, "expected a tag: a printable character");
		const char *tag_end = bc_token_end(tag);
		const char *time = bc_skip_spaces(tag_end);
		const char *at = time;
		if (!bc_parse_hex_block(&at, &tick) || !bc_is_token_end(*at))
			return bc_parse_bad(p, at,
				"expected a timestamp: a hexadecimal number of at most 64 bits");
		const char *newline = bc_line_end(at);
		const char *end = newline[-1] == '\r' ? newline - 1 : newline;
		const char *rest = at < end ? at + 1 : at;

		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_reference(entry, 0, 0, p->number);
		entry->kind = BC_ENTRY_KERNEL;
		entry->has = BC_HAS_TIME | BC_HAS_LETTER;
		entry->letter = *tag;
		entry->tick = tick;
		entry->kernel.tag = (struct bc_text){.at = tag, .bytes = (uint32_t)(tag_end - tag)};
		entry->kernel.rest = (struct bc_text){
			.at = rest, .bytes = (uint32_t)(end > rest ? end - rest : 0)};
		/* Whether the printer would reproduce this line from its fields. */
		bool is_same = tag == p->at && time == tag_end + 1 && *tag_end == ' ' &&
			       is_canonical(time, at, tick) && end == newline &&
			       (at == end || (*at == ' ' && rest < end));
		if (!is_same)
			entry->line = (struct bc_text){
				.at = p->at, .bytes = (uint32_t)(newline - p->at)};
		p->at = newline + 1;
	}
	return BC_PARSE_DONE;
}

/* Whether the text consists of `numbers` hexadecimal numbers and then `words` words. */
static bool has_layout(struct bc_text text, unsigned numbers, unsigned words)
{
	const char *at = text.at;
	const char *end = text.at + text.bytes;

	for (unsigned i = 0; i < numbers + words; i++) {
		const char *word = at = bc_skip_spaces(at);
		uint64_t value;
		if (at >= end)
			return false;
		at = bc_token_end(at);
		if (i < numbers && (!bc_parse_hex(&word, &value) || word != at))
			return false;
	}
	return bc_skip_spaces(at) >= end;
}

/* Almost any text has lines of a word, a number and more. Only those of the two documented tags are
 * recognised. */
static bool is_typical_event(const char *line, const struct bc_entry *entry)
{
	const struct bc_kernel_event *event = &entry->kernel;

	(void)line;
	if (event->tag.bytes != 1)
		return false;
	return *event->tag.at == 'F'   ? has_layout(event->rest, 2, 0)
	       : *event->tag.at == 'M' ? has_layout(event->rest, 7, 1)
				       : false;
}

const struct bc_parser bc_laplace_events_parser = {
	.parse = parse_events, .is_typical = is_typical_event, .is_ordered = true};

static int print_events(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		if (entry->line.bytes != 0) {
			out = bc_write_text(out, entry->line);
		} else {
			out = bc_write_text(out, entry->kernel.tag);
			*out++ = ' ';
			out = bc_write_hex(out, entry->tick);
			if (entry->kernel.rest.bytes != 0) {
				*out++ = ' ';
				out = bc_write_text(out, entry->kernel.rest);
			}
		}
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_laplace_events_printer = {.print = print_events};
