#include "formats/trace/entry_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct line {
	char *out;
	size_t used;
	bool is_cut;
};

static void append_bytes(struct line *line, const char *text, size_t bytes)
{
	size_t capacity = BC_ENTRY_TEXT_MAX - 4 - line->used;

	if (line->is_cut)
		return;
	if (bytes > capacity) {
		bytes = capacity;
		line->is_cut = true;
	}
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_plain = c >= ' ' && c <= '~';
		line->out[line->used++] = (char)(is_plain ? c : c == '\t' ? ' ' : '?');
	}
}

static void append_text(struct line *line, struct bc_text text)
{
	append_bytes(line, text.at, text.bytes);
}

static void __attribute__((format(printf, 2, 3)))
append_format(struct line *line, const char *format, ...)
{
	char text[160];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	append_bytes(line, text, n > 0 ? (size_t)n : 0);
}

static void append_word(struct line *line, const char *before, struct bc_text text)
{
	if (text.bytes == 0)
		return;
	append_bytes(line, before, strlen(before));
	append_text(line, text);
}

static void append_instruction(struct line *line, const struct bc_entry *entry)
{
	static const char *const effects[] = {"", " (skipped)", " (not fetched)"};
	const struct bc_instruction *i = &entry->instruction;

	append_format(line, "instruction %08" PRIx64, entry->addr);
	if (i->digits != 0)
		append_format(line, " %0*" PRIx64, i->digits <= 16 ? i->digits : 16, i->opcode);
	append_word(line, " ", i->set);
	append_word(line, " ", i->mode);
	append_word(line, " : ", i->disassembly);
	append_format(line, "%s", i->effect <= BC_EFFECT_FETCHFAIL ? effects[i->effect] : "");
}

static void append_uop(struct line *line, const struct bc_entry *entry)
{
	const struct bc_uop *u = &entry->uop;

	append_format(line, "micro-op %" PRId32 " %08" PRIx64, u->step, entry->addr);
	append_word(line, " ", u->macro);
	append_word(line, " ", u->micro);
	append_format(line, " %" PRId32 ",%" PRId32 "->%" PRId32 " %c%c%c %" PRId64, u->src1,
		u->src2, u->dest, u->flags, u->branch, u->access, u->immediate);
	append_format(line, " mem %" PRIx64 " next %" PRIx64 " target %" PRIx64, u->mem_addr,
		u->fallthrough, u->target);
}

static void append_event(struct line *line, const struct bc_entry *entry)
{
	const struct bc_event *event = &entry->note.event;

	switch (event->kind) {
	case 0:
		append_format(line, "epoch %" PRIu32 " starts", entry->epoch);
		break;
	case BC_EVENT_GAP:
		if (event->value == 0 && !event->exact)
			append_format(line, "gap: an unknown number lost (%s)",
				bc_gap_cause_name(event->cause));
		else
			append_format(line, "gap: %s%" PRIu64 " lost (%s)",
				event->exact ? "" : "at least ", event->value,
				bc_gap_cause_name(event->cause));
		break;
	case BC_EVENT_MARK:
		append_bytes(line, "mark", 4);
		break;
	case BC_EVENT_TRIGGER:
		append_bytes(line, "trigger", 7);
		break;
	case BC_EVENT_NOTE:
		append_bytes(line, "note", 4);
		break;
	default:
		append_format(line, "event %u", event->kind);
	}
	append_word(line, ": ", entry->note.text);
}

static void append_reference(struct line *line, const struct bc_entry *entry)
{
	const char *name = bc_ref_type_name(entry->type);

	if (name != NULL)
		append_bytes(line, name, strlen(name));
	else
		append_format(line, "type %02x", entry->type);
	append_format(line, " %08" PRIx64, entry->addr);
	if ((entry->has & BC_HAS_LETTER) != 0)
		append_format(line, " letter %c", entry->letter);
}

static void append_fields(struct line *line, const struct bc_entry *entry)
{
	if ((entry->has & BC_HAS_SIZE) != 0 && entry->kind != BC_ENTRY_INSTRUCTION)
		append_format(line, " size %" PRIu32, entry->size);
	if ((entry->has & BC_HAS_ATTR) != 0)
		append_format(line, " attr %02x", entry->attr);
	if ((entry->has & BC_HAS_DATA) != 0)
		append_format(line, " data %0*" PRIx64,
			(int)((entry->size != 0 && entry->size < 8 ? entry->size : 8) * 2),
			entry->data);
	if ((entry->has & BC_HAS_PHYS) != 0)
		append_format(line, " phys %" PRIx64, entry->phys);
	if ((entry->has & BC_HAS_ATTRIB) != 0)
		append_word(line, " attrib ", entry->access.attrib);
	if ((entry->has & BC_HAS_SECURITY) != 0)
		append_word(line, " security ", entry->access.security);
	if ((entry->has & BC_HAS_SPACE) != 0)
		append_format(line, " space %" PRIx32, entry->space);
	if ((entry->has & BC_HAS_SAMPLE) != 0)
		append_format(
			line, " enables %02x control %02x", entry->sample[4], entry->sample[5]);
	if ((entry->has & BC_HAS_PROC) != 0)
		append_format(line, " proc %u", entry->proc);
	if ((entry->has & BC_HAS_TIME) != 0)
		append_format(line, " @%" PRIu64 "%s", entry->tick, bc_unit_name(entry->unit));
}

size_t bc_entry_text(char out[BC_ENTRY_TEXT_MAX], const struct bc_entry *entry)
{
	struct line line = {.out = out};

	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		append_reference(&line, entry);
		break;
	case BC_ENTRY_INSTRUCTION:
		append_instruction(&line, entry);
		break;
	case BC_ENTRY_UOP:
		append_uop(&line, entry);
		break;
	case BC_ENTRY_REGISTER:
		append_bytes(&line, "register ", 9);
		append_text(&line, entry->reg.name);
		append_bytes(&line, " = ", 3);
		append_text(&line, entry->reg.value);
		break;
	case BC_ENTRY_KERNEL:
		append_bytes(&line, "kernel event ", 13);
		append_text(&line, entry->kernel.tag);
		append_bytes(&line, " ", 1);
		append_text(&line, entry->kernel.rest);
		break;
	case BC_ENTRY_EVENT:
		append_event(&line, entry);
		break;
	default:
		append_bytes(&line, "line ", 5);
		append_text(&line, entry->line);
	}
	append_fields(&line, entry);
	if (line.is_cut) {
		memcpy(out + line.used, "...", 3);
		line.used += 3;
	}
	out[line.used] = '\0';
	return line.used;
}
