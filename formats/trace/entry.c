/* What entries are in any format: names of types, kinds, traits and units, the references that an
 * instruction or micro-op implies, conversion from records and samples, and a line of text.
 *
 * A line of text is cut at BC_ENTRY_TEXT_MAX and is printable ASCII: its parts come from files. */
#include "formats/trace/entry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Names of the types from BC_REF_MODIFY on. */
static const char *const own_names[] = {
	[BC_REF_MODIFY - 0x100] = "MODIFY",
	[BC_REF_MISC - 0x100] = "MISC",
	[BC_REF_FLUSH - 0x100] = "CACHEFLUSH",
	[BC_REF_COPYBACK - 0x100] = "COPYBACK",
	[BC_REF_INVALIDATE - 0x100] = "INVALIDATE",
	[BC_REF_LETTER - 0x100] = "OTHER",
};

const char *bc_ref_type_name(unsigned type)
{
	if (type < 0x100)
		return bc_reqtype_name((uint8_t)type);
	return type < BC_REF_TYPES ? own_names[type - 0x100] : NULL;
}

int bc_ref_type_by_name(const char *name)
{
	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *known = bc_ref_type_name(type);
		if (known != NULL && strcasecmp(known, name) == 0)
			return (int)type;
	}
	return -1;
}

int bc_ref_type_by_word(struct bc_text word)
{
	char name[24];

	snprintf(name, sizeof(name), "%.*s", (int)word.bytes, word.at);
	return word.bytes >= sizeof(name)       ? -1
	       : strcasecmp(name, "read") == 0  ? BC_REQ_MEMREAD
	       : strcasecmp(name, "write") == 0 ? BC_REQ_MEMWRITE
	       : strcasecmp(name, "flush") == 0 ? BC_REF_FLUSH
						: bc_ref_type_by_name(name);
}

const struct bc_usual_word bc_usual_words[] = {{"r", BC_REQ_MEMREAD}, {"rd", BC_REQ_MEMREAD},
	{"read", BC_REQ_MEMREAD}, {"l", BC_REQ_MEMREAD}, {"ld", BC_REQ_MEMREAD},
	{"load", BC_REQ_MEMREAD}, {"loads", BC_REQ_MEMREAD}, {"lw", BC_REQ_MEMREAD},
	{"memr", BC_REQ_MEMREAD}, {"memread", BC_REQ_MEMREAD}, {"p_mem_rd", BC_REQ_MEMREAD},
	{"w", BC_REQ_MEMWRITE}, {"wr", BC_REQ_MEMWRITE}, {"write", BC_REQ_MEMWRITE},
	{"s", BC_REQ_MEMWRITE}, {"st", BC_REQ_MEMWRITE}, {"store", BC_REQ_MEMWRITE},
	{"stores", BC_REQ_MEMWRITE}, {"sw", BC_REQ_MEMWRITE}, {"memw", BC_REQ_MEMWRITE},
	{"memwrite", BC_REQ_MEMWRITE}, {"p_mem_wr", BC_REQ_MEMWRITE}, {"i", BC_REQ_FETCH},
	{"f", BC_REQ_FETCH}, {"ifetch", BC_REQ_FETCH}, {"fetch", BC_REQ_FETCH},
	{"p_fetch", BC_REQ_FETCH}, {"ior", BC_REQ_IOREAD}, {"iow", BC_REQ_IOWRITE},
	{"m", BC_REF_MODIFY}, {NULL, 0}};

int bc_ref_type_usual(struct bc_text word)
{
	for (const struct bc_usual_word *w = bc_usual_words; w->word != NULL; w++)
		if (strlen(w->word) == word.bytes && strncasecmp(w->word, word.at, word.bytes) == 0)
			return w->type;
	return -1;
}

const struct bc_time_form bc_time_forms[BC_TIME_FORMS] = {{"s", 9, BC_UNIT_NS},
	{"ms", 6, BC_UNIT_NS}, {"us", 3, BC_UNIT_NS}, {"ns", 0, BC_UNIT_NS}, {"ps", 0, BC_UNIT_PS}};

int bc_ref_type_plain(unsigned type)
{
	if (type == BC_REQ_MEMREADINV || type == BC_REF_MODIFY)
		return BC_REQ_MEMREAD;
	if (type == BC_REF_COPYBACK)
		return BC_REQ_MEMWRITE;
	bool is_plain = type == BC_REQ_FETCH || type == BC_REQ_MEMREAD || type == BC_REQ_MEMWRITE;
	return is_plain ? (int)type : -1;
}

bc_traits bc_ref_type_trait(unsigned type)
{
	switch (type) {
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMWRITE:
	case BC_REF_LETTER: /* represented by BC_TRAIT_LETTER */
		return 0;
	case BC_REQ_FETCH:
		return BC_TRAIT_FETCH;
	case BC_REF_MODIFY:
		return BC_TRAIT_MODIFY;
	case BC_REF_MISC:
		return BC_TRAIT_MISC;
	case BC_REF_FLUSH:
		return BC_TRAIT_FLUSH;
	case BC_REF_COPYBACK:
	case BC_REF_INVALIDATE:
		return BC_TRAIT_CACHE;
	case BC_REQ_IOREAD:
	case BC_REQ_IOWRITE:
	case BC_REQ_INTA:
	case BC_REQ_CNTRLAGNTRES: /* result of a special cycle with unknown byte enables */
	case BC_REQ_BRTRACEREC:
	case BC_REQ_SHUTDOWN:
	case BC_REQ_FLUSH:
	case BC_REQ_HALT:
	case BC_REQ_SYNC:
	case BC_REQ_FLUSHACK:
	case BC_REQ_STOPCLKACK:
		return BC_TRAIT_CYCLE;
	case BC_REQ_INVALID + 0x0:
	case BC_REQ_INVALID + 0x2:
	case BC_REQ_INVALID + 0x4:
	case BC_REQ_INVALID + 0x6:
	case BC_REQ_INVALID + 0xA:
	case BC_REQ_INVALID + 0xB:
		return BC_TRAIT_INVALID;
	default:
		return BC_TRAIT_P6;
	}
}

bc_traits bc_entry_traits(const struct bc_entry *entry)
{
	uint32_t type = entry->kind == BC_ENTRY_REFERENCE ? bc_ref_type_trait(entry->type) : 0;

	/* The traits of kinds have the order of the kinds. */
	return entry->traits | type | (uint32_t)BC_TRAIT_REFERENCE << entry->kind;
}

const char *bc_entry_kind_name(unsigned kind)
{
	static const char *const names[BC_ENTRY_KINDS] = {
		[BC_ENTRY_REFERENCE] = "references",
		[BC_ENTRY_INSTRUCTION] = "instructions",
		[BC_ENTRY_UOP] = "micro-ops",
		[BC_ENTRY_REGISTER] = "register writes",
		[BC_ENTRY_KERNEL] = "kernel events",
		[BC_ENTRY_EVENT] = "gaps, marks, epochs",
		[BC_ENTRY_LINE] = "other lines",
	};

	return kind < BC_ENTRY_KINDS ? names[kind] : "";
}

const char *bc_trait_name(uint32_t trait)
{
	static const char *const names[] = {
#define NAME(trait, name) name,
		BC_TRAIT_LIST(NAME)
#undef NAME
	};

	assert(trait != 0 && (trait & (trait - 1)) == 0);
	return names[__builtin_ctz(trait)];
}

const char *bc_unit_name(unsigned unit)
{
	static const char *const names[BC_UNITS] = {
		"", "clk", "ns", "cs", "cyc", "tic", "ps", "us"};

	return unit < BC_UNITS ? names[unit] : "";
}

/* Makes a reference with the time and processor of `entry`. */
static void make_reference(struct bc_entry *out, const struct bc_entry *entry, unsigned type,
	uint64_t addr, uint64_t size)
{
	bc_entry_reference(out, type, addr, entry->number);
	out->traits = entry->traits & (BC_TRAIT_PROC | BC_TRAIT_TIME);
	out->proc = entry->proc;
	out->unit = entry->unit;
	out->tick = entry->tick;
	out->epoch = entry->epoch;
	if (size != 0) {
		out->traits |= BC_TRAIT_SIZE;
		out->size = (uint32_t)size;
	}
}

/* Maximum length of an x86 instruction. A larger distance to the next one is not a length. */
#define X86_LENGTH_MAX 15

static size_t references_of_uop(struct bc_entry *out, const struct bc_entry *entry)
{
	const struct bc_uop *uop = &entry->uop;
	size_t n = 0;

	if (uop->step == 1) {
		uint64_t length = uop->fallthrough - entry->addr;
		make_reference(&out[n++], entry, BC_REQ_FETCH, entry->addr,
			length <= X86_LENGTH_MAX ? length : 0);
	}
	if (uop->access == 'L' || uop->access == 'S')
		make_reference(&out[n++], entry,
			uop->access == 'L' ? BC_REQ_MEMREAD : BC_REQ_MEMWRITE, uop->mem_addr,
			entry->size);
	return n;
}

size_t bc_entry_references(struct bc_entry out[BC_REFERENCES_MAX], const struct bc_entry *entry)
{
	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		out[0] = *entry;
		return 1;
	case BC_ENTRY_INSTRUCTION:
		make_reference(&out[0], entry, BC_REQ_FETCH, entry->addr, entry->size);
		out[0].traits |= entry->traits & BC_TRAIT_PHYS;
		out[0].phys = entry->phys;
		return 1;
	case BC_ENTRY_UOP:
		return references_of_uop(out, entry);
	default:
		return 0;
	}
}

void bc_entry_of_record(
	struct bc_entry *entry, const uint8_t *record, uint64_t number, uint64_t tick)
{
	bc_entry_reference(entry, record[4], bc_le32(record), number);
	entry->traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME;
	entry->size = record[5];
	entry->attr = record[6];
	entry->proc = record[7];
	entry->delta = bc_le32(record + 8);
	entry->has_delta = true;
	entry->tick = tick;
}

size_t bc_record_run_entries(struct bc_record_run *run, struct bc_entry *entries, size_t max)
{
	size_t n = run->count < max ? run->count : max;

	for (size_t i = 0; i < n; i++) {
		uint64_t ticks = bc_record_ticks(run->records);
		bc_entry_of_record(&entries[i], run->records, run->number, run->tick + ticks);
		entries[i].epoch = run->epoch;
		entries[i].is_inexact = run->is_inexact;
		bc_record_run_skip(run, 1, ticks);
	}
	return n;
}

void bc_entry_of_event(struct bc_entry *entry, const struct bc_event *event, const char *text,
	uint64_t number, uint64_t tick, uint32_t epoch)
{
	bc_entry_reference(entry, 0, 0, number);
	entry->kind = BC_ENTRY_EVENT;
	entry->tick = tick;
	entry->epoch = epoch;
	entry->note.event = *event;
	entry->note.text = (struct bc_text){.at = text, .bytes = event->text_bytes};
}

void bc_entry_of_sample(struct bc_entry *entry, const uint8_t sample[BC_SAMPLE_BYTES],
	const struct bc_mapping *mapping, uint8_t proc, uint64_t number, uint64_t tick)
{
	uint8_t record[BC_RECORD_BYTES] = {0};

	bc_map_sample(record, bc_map_entry(mapping, sample), sample, proc);
	bc_entry_of_record(entry, record, number, tick);
	entry->traits |= BC_TRAIT_SAMPLE;
	entry->has_delta = false; /* the record has no time */
	memcpy(entry->sample, sample, BC_SAMPLE_BYTES);
}

/* ---- entry text */

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
	case BC_EVENT_TRIGGER:
	case BC_EVENT_NOTE:
		append_format(line, "%s", bc_event_kind_name(event->kind));
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
	if ((entry->traits & BC_TRAIT_LETTER) != 0)
		append_format(line, " letter %c", entry->letter);
}

static void append_fields(struct line *line, const struct bc_entry *entry)
{
	if ((entry->traits & BC_TRAIT_SIZE) != 0 && entry->kind != BC_ENTRY_INSTRUCTION)
		append_format(line, " size %" PRIu32, entry->size);
	if ((entry->traits & BC_TRAIT_ATTR) != 0)
		append_format(line, " attr %02x", entry->attr);
	if ((entry->traits & BC_TRAIT_DATA) != 0)
		append_format(line, " data %0*" PRIx64,
			(int)((entry->size != 0 && entry->size < 8 ? entry->size : 8) * 2),
			entry->data);
	if ((entry->traits & BC_TRAIT_PHYS) != 0)
		append_format(line, " phys %" PRIx64, entry->phys);
	if ((entry->traits & BC_TRAIT_ATTRIB) != 0)
		append_word(line, " attrib ", entry->access.attrib);
	if ((entry->traits & BC_TRAIT_SECURITY) != 0)
		append_word(line, " security ", entry->access.security);
	if ((entry->traits & BC_TRAIT_SPACE) != 0)
		append_format(line, " space %" PRIx32, entry->space);
	if ((entry->traits & BC_TRAIT_SAMPLE) != 0)
		append_format(
			line, " enables %02x control %02x", entry->sample[4], entry->sample[5]);
	if ((entry->traits & BC_TRAIT_PROC) != 0)
		append_format(line, " proc %u", entry->proc);
	if ((entry->traits & BC_TRAIT_TIME) != 0)
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
		append_word(&line, "register ", entry->reg.name);
		append_word(&line, " = ", entry->reg.value);
		break;
	case BC_ENTRY_KERNEL:
		append_word(&line, "kernel event ", entry->kernel.tag);
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
