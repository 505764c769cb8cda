/* Reads value change dumps: those of other programs as state captures (formats/codec/capture.h), as
 * the user describes them, and our own (formats/codec/vcd.c), which need no description.
 *
 * A dump is words; line ends mean nothing. A word of a value change is complete, or a value that
 * the next word gives to a signal. A directive is collected up to its $end. A line may become any
 * number of entries, so parse() can stop within one.
 *
 * In our own dumps, `seq` is written first and changes with each reference. So the reference is
 * complete at the next change of a `seq`, event or time, also if others had the same time.
 *
 * Source: IEEE Std 1364, value change dump; states u w l h -: dumps of VHDL; fractional times and
 * strings: GTKWave. */
#include "formats/codec/codecs.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/base/clock.h"
#include "formats/base/text.h"
#include "formats/codec/capture.h"
#include "formats/codec/timeline.h"
#include "formats/codec/vcd_ids.h"

#define SCOPES_MAX 128u

enum own { FOREIGN, OWN_VECTORS, OWN_BITS };

/* What the next word is. */
enum awaited { ANY, END_OF_DIRECTIVE, ID_OF_VALUE, ID_OF_TEXT };

/* Roles of signals with usual names, for the line that is suggested. */
static const struct {
	const char *key;
	bool is_vector;
	const char *names;
} usual[] = {{"clock", false, " clk clock "}, {"addr", true, " addr address adr a ab "},
	{"data", true, " data dat d dq db rdata "}, {"when", false, " valid stb "},
	{"type", false, " we wr rw write "}};
#define USUAL (sizeof(usual) / sizeof(usual[0]))

struct vcd {
	struct bc_capture capture; /* first: bc_capture_traits() */
	bool is_described;
	bool has_head;
	bool has_failed; /* nothing more is read */
	uint64_t last_line;
	enum own own;
	enum awaited awaited;
	char directive[16];
	char words[1024];
	size_t words_bytes;
	unsigned depth;
	size_t path_bytes[SCOPES_MAX + 1]; /* of the first scopes, each with a dot */
	char path[2048];
	struct bc_signal value; /* ID_OF_VALUE */
	char texts[2 * BC_LINE_MAX];
	size_t texts_bytes;

	/* Without a description: what there is to describe. */
	uint64_t signals;
	char list[6144];
	size_t list_bytes;
	unsigned listed;
	char guesses[USUAL][64];

	/* Our own dump. */
	bool has_times;
	uint64_t hz; /* 0: unknown */
	uint64_t start;
	unsigned unit;
	bool is_pending; /* values[scope] are a reference */
	unsigned scope;
	struct bc_signal values[SCOPES][VARIABLES];
	unsigned event; /* pending: its kind; 0: none */
	struct bc_text event_text;
	uint64_t lost;
	uint64_t lost_before;
	struct bc_signal toggles[BC_EVENT_TRIGGER + 1];
};

static void vcd_init(void *state, const struct bc_format_options *options)
{
	struct vcd *v = state;

	v->is_described = options->layout != NULL;
	v->has_times = true;
	memset(v->values, 0xFF, sizeof(v->values)); /* unknown */
	memset(v->toggles, 0xFF, sizeof(v->toggles));
	bc_capture_init(&v->capture, options);
}

/* ---- our own */

static void set_own_time(const struct vcd *v, struct bc_entry *entry)
{
	bc_fs scale = v->capture.scale == 1000 ? 1000 : BC_FS_PER_NS;
	bc_fs time = v->capture.time;
	bc_fs start = v->start;

	entry->unit = (uint8_t)v->unit;
	if (bc_unit_picoseconds(v->unit) != 0) {
		time += start * bc_unit_picoseconds(v->unit) * 1000;
		entry->unit = scale == 1000 ? BC_UNIT_PS : BC_UNIT_NS;
		entry->tick = (uint64_t)(time / scale);
	} else {
		/* Both times were rounded down. */
		bc_fs hz = v->hz != 0 ? v->hz : BC_NS_PER_S;
		time += start * BC_FS_PER_S / hz / scale * scale;
		entry->tick = (uint64_t)((time / 1000 * hz + BC_PS_PER_S - 1) / BC_PS_PER_S);
	}
}

static void end_event(struct vcd *v, struct bc_parse *p)
{
	struct bc_event event = {.kind = (uint8_t)v->event,
		.value = v->event == BC_EVENT_GAP ? v->lost - v->lost_before : 0};
	struct bc_entry *entry = &p->entries[p->count++];
	char cause[32];

	snprintf(cause, sizeof(cause), "%.*s", (int)v->event_text.bytes, v->event_text.at);
	while (v->event == BC_EVENT_GAP && event.cause < BC_GAP_CAUSES &&
		strcmp(bc_gap_cause_name(event.cause), cause) != 0)
		event.cause++;
	event.cause %= BC_GAP_CAUSES;
	event.text_bytes = v->event != BC_EVENT_GAP ? (uint16_t)v->event_text.bytes : 0;
	bc_entry_of_event(entry, &event, v->event_text.at, p->number, 0, 0);
	set_own_time(v, entry);
	v->lost_before = v->lost;
	v->event = 0;
	v->event_text = (struct bc_text){.at = "", .bytes = 0};
}

/* Adds the reference or event whose values are complete. */
static void end_own(struct vcd *v, struct bc_parse *p)
{
	const struct bc_signal *values = v->values[v->scope];
	struct bc_entry *entry = &p->entries[p->count];
	bool has_proc = v->scope < SHARED || values[PROC].unknown == 0;

	if (v->event != 0)
		end_event(v, p);
	if (!v->is_pending)
		return;
	v->is_pending = false;
	if ((values[TYPE].unknown | values[ADDR].unknown) != 0 ||
		values[TYPE].bits >= BC_REF_LETTER) {
		v->capture.notes.unknown_addresses++;
		return;
	}
	bc_entry_reference(entry, (unsigned)values[TYPE].bits, values[ADDR].bits, p->number);
	entry->size = values[SIZE].unknown == 0 ? (uint32_t)values[SIZE].bits : 0;
	entry->attr = values[ATTR].unknown == 0 ? (uint8_t)values[ATTR].bits : 0;
	entry->proc = (uint16_t)(v->scope < SHARED ? v->scope : has_proc ? values[PROC].bits : 0);
	entry->traits = (values[SIZE].unknown == 0 ? BC_TRAIT_SIZE : 0) |
			(values[ATTR].unknown == 0 ? BC_TRAIT_ATTR : 0) |
			(has_proc ? BC_TRAIT_PROC : 0) | (v->has_times ? BC_TRAIT_TIME : 0);
	if (v->has_times)
		set_own_time(v, entry);
	p->count++;
}

static void change_event(struct vcd *v, struct bc_parse *p, unsigned kind, struct bc_signal value)
{
	struct bc_signal *old = &v->toggles[kind];

	if (old->unknown == 0 && old->bits != value.bits) {
		end_own(v, p);
		v->event = kind;
	}
	*old = value;
}

static void change_own(struct vcd *v, struct bc_parse *p, char id, struct bc_signal value)
{
	unsigned scope = SHARED;
	unsigned variable = 0;
	unsigned bit = 64;

	for (unsigned kind = BC_EVENT_GAP; kind <= BC_EVENT_TRIGGER; kind++)
		if (kind != BC_EVENT_ANCHOR && id == ID_EVENT(kind)) {
			change_event(v, p, kind, value);
			return;
		}
	if (id == ID_LOST && v->own == OWN_VECTORS)
		v->lost = value.bits;
	if (v->own == OWN_VECTORS) {
		scope = (unsigned)(id - ID(0, 0)) / (VARIABLES + 1);
		variable = (unsigned)(id - ID(0, 0)) % (VARIABLES + 1);
	} else {
		while (variable < VARIABLES && (unsigned)(id - variables[variable].signal_id) >=
						       variables[variable].signals)
			variable++;
		bit = variable < VARIABLES ? (unsigned)(id - variables[variable].signal_id) : 0;
	}
	if (scope >= SCOPES || variable >= VARIABLES)
		return;
	if (variable == SEQ) {
		end_own(v, p);
		v->scope = scope;
		v->is_pending = value.unknown == 0;
	}
	struct bc_signal *old = &v->values[scope][variable];
	if (bit == 64) {
		*old = value;
		return;
	}
	/* Bits above those of the signals are 0, and unknown if the others are. */
	uint64_t one = UINT64_C(1) << bit;
	uint64_t all = (UINT64_C(2) << (variables[variable].signals - 1)) - 1;
	old->bits = (old->bits & all & ~one) | ((value.bits & 1) != 0 ? one : 0);
	old->unknown = (old->unknown & all & ~one) | ((value.unknown & 1) != 0 ? one : 0);
}

/* ---- the head */

/* The comments of our own dumps. */
static void read_comment(struct vcd *v)
{
	const char *tick = strstr(v->words, "time 0 is tick ");
	const char *hz = strstr(v->words, " ticks per second; times are rounded down");
	const char *unit;

	if (tick != NULL && bc_number_read_start(&v->start, tick + 15, &unit))
		while (*unit == ' ' && v->unit + 1 < BC_UNITS &&
			strcmp(bc_unit_name(v->unit), unit + 1) != 0)
			v->unit++;
	v->has_times &= strstr(v->words, "the trace has no times: each reference is ") == NULL;
	while (hz != NULL && hz > v->words && hz[-1] >= '0' && hz[-1] <= '9')
		hz--;
	if (hz != NULL && !bc_number_read_start(&v->hz, hz, &unit))
		v->hz = 0;
}

/* Takes a signal for a role if it is usually named so, unless another one was before. */
static void guess_role(struct vcd *v, const char *path, uint32_t width)
{
	size_t n = strcspn(path, " [");
	char word[34];

	/* A description can't have such names. */
	if (strcspn(path, "'+,:@=") < n)
		return;
	while (width == 1 && n > 1 && isdigit((uint8_t)path[n - 1]))
		n--;
	bool is_vector = width > 1 || path[n] != '\0';
	size_t leaf = n;
	while (leaf != 0 && strchr("._/", path[leaf - 1]) == NULL)
		leaf--;
	snprintf(word, sizeof(word), " %.*s ", (int)strcspn(path + leaf, "0123456789([ "),
		path + leaf);
	for (unsigned i = 0; i < USUAL; i++)
		if (is_vector == usual[i].is_vector && v->guesses[i][0] == '\0' &&
			n < sizeof(v->guesses[0]) && strcasestr(usual[i].names, word) != NULL)
			snprintf(v->guesses[i], sizeof(v->guesses[0]), "%.*s", (int)n, path);
}

static void list_signal(struct vcd *v, const char *path, uint32_t width)
{
	/* Leaves room for the last lines. */
	size_t room = sizeof(v->list) - sizeof(v->guesses) - 200 - v->list_bytes;
	int n = snprintf(v->list + v->list_bytes, room, "    %s, %" PRIu32 " bit%s\n", path, width,
		bc_plural(width));

	if (n >= (int)room)
		v->list[v->list_bytes] = '\0';
	v->signals++;
	v->listed += n < (int)room;
	v->list_bytes += n < (int)room ? (size_t)n : 0;
	guess_role(v, path, width);
}

/* $var TYPE WIDTH ID NAME [INDEX] */
static bool declare(struct vcd *v)
{
	char type[16];
	char path[sizeof(v->path) + sizeof(v->words)];
	uint32_t width;
	int id = 0;
	int id_end = 0;
	int name = 0;

	if (sscanf(v->words, "%15s %" SCNu32 " %n%*s%n %n", type, &width, &id, &id_end, &name) <
			2 ||
		name == 0 || v->words[name] == '\0')
		return bc_fail(v->capture.err, sizeof(v->capture.err),
			"expected $var TYPE WIDTH ID NAME $end");
	if (v->signals == 0 && !v->is_described && v->own == FOREIGN)
		v->own = strcmp(v->words, "wire 64 ! seq [63:0]") == 0 ||
					 strcmp(v->words, "wire 64 = seq [63:0]") == 0
				 ? OWN_VECTORS
			 : strcmp(v->words, "wire 1 ! seq") == 0 ? OWN_BITS
								 : FOREIGN;
	size_t scope = v->path_bytes[v->depth < SCOPES_MAX ? v->depth : SCOPES_MAX];
	memcpy(path, v->path, scope);
	strcpy(path + scope, v->words + name + (v->words[name] == '\\'));
	if (v->is_described)
		bc_capture_declare(&v->capture, path,
			bc_capture_id(v->words + id, (size_t)(id_end - id)), width,
			strncmp(type, "real", 4) == 0 || strcmp(type, "string") == 0);
	else
		list_signal(v, path, width);
	return true;
}

/* $scope TYPE NAME. Names beyond a depth or length are left out of paths. */
static void enter_scope(struct vcd *v)
{
	const char *name = strchr(v->words, ' ');
	size_t from = v->path_bytes[v->depth < SCOPES_MAX ? v->depth : SCOPES_MAX];

	name = name != NULL ? name + 1 + (name[1] == '\\') : "";
	size_t n = strlen(name);
	if (v->depth++ >= SCOPES_MAX)
		return;
	bool fits = from + n + 1 <= sizeof(v->path);
	if (fits) {
		memcpy(v->path + from, name, n);
		v->path[from + n] = '.';
	}
	v->path_bytes[v->depth] = from + (fits ? n + 1 : 0);
}

/* Ends the list with a line that describes the dump, as far as its names tell. */
static void suggest_line(struct vcd *v)
{
	char *out = v->list + v->list_bytes;

	if (v->signals > v->listed)
		out += sprintf(out, "    %" PRIu64 " more\n", v->signals - v->listed);
	out = stpcpy(out, "  try: -I 'vcd:");
	for (unsigned i = 0; i < USUAL; i++) {
		const char *name = v->guesses[i];
		bool is_write = strcmp(usual[i].key, "type") == 0 && strstr(name, "rw") == NULL;
		if (name[0] != '\0' || i < 2)
			out += sprintf(out, "%s%s=%s%s", i != 0 ? "," : "", usual[i].key,
				name[0] != '\0' ? name : "SIGNAL",
				!is_write ? ""
				: strchr(name, '/') != NULL || strstr(name, "_n") != NULL
					? ":0=write"
					: ":1=write");
	}
	stpcpy(out, "'\n");
}

/* At $enddefinitions, or the first change of a dump without it. */
static bool end_head(struct vcd *v)
{
	struct bc_capture *c = &v->capture;
	bool was_read = v->has_head;

	v->has_head = true;
	if (was_read || v->own != FOREIGN || (v->is_described && bc_capture_start(c)))
		return true;
	v->has_failed = true;
	if (v->is_described)
		return false;
	suggest_line(v);
	return bc_fail(c->err, sizeof(c->err),
		"the signals must be described: -I vcd:clock=SIGNAL,addr=SIGNAL; buscap info lists "
		"them");
}

static bool end_directive(struct vcd *v)
{
	const char *name = v->directive;

	v->awaited = ANY;
	if (strcmp(name, "$var") == 0 && !v->has_head)
		return declare(v);
	if (strcmp(name, "$scope") == 0)
		enter_scope(v);
	else if (strcmp(name, "$upscope") == 0)
		v->depth -= v->depth != 0;
	else if (strcmp(name, "$timescale") == 0 &&
		 !bc_capture_read_time(&v->capture.scale, v->words, v->words_bytes))
		return bc_fail(v->capture.err, sizeof(v->capture.err), "expected a time: 10 ns");
	else if (strcmp(name, "$comment") == 0 && !v->is_described)
		read_comment(v);
	else if (strcmp(name, "$enddefinitions") == 0)
		return end_head(v);
	return true;
}

/* ---- words */

static void start_directive(struct vcd *v, struct bc_parse *p, struct bc_text word)
{
	struct bc_event gap = {.kind = BC_EVENT_GAP};

	snprintf(v->directive, sizeof(v->directive), "%.*s", (int)word.bytes, word.at);
	v->words[0] = '\0';
	v->words_bytes = 0;
	if (strcmp(v->directive, "$dumpoff") == 0 && !v->capture.is_off && v->is_described) {
		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_of_event(entry, &gap, "", p->number, 0, 0);
		entry->tick = bc_capture_tick(&v->capture, &entry->unit);
	}
	if (strncmp(v->directive, "$dump", 5) == 0 && strcmp(v->directive, "$dumpfile") != 0)
		v->capture.is_off = strcmp(v->directive, "$dumpoff") == 0 ||
				    (v->capture.is_off && strcmp(v->directive, "$dumpon") != 0);
	else if (strcmp(v->directive, "$end") != 0)
		v->awaited = END_OF_DIRECTIVE;
}

static bool read_time(struct vcd *v, struct bc_text word)
{
	struct bc_capture *c = &v->capture;
	bc_fs time;

	word.at++;
	word.bytes--;
	if (!bc_capture_read_number(&time, word, c->scale != 0 ? c->scale : 1))
		return bc_fail(c->err, sizeof(c->err), "expected a time of at most 64 bits");
	v->has_failed = !bc_capture_time(c, time);
	return !v->has_failed;
}

/* Returns how many bits a state has that are unknown: 0, 1, or -1 if it is none. */
static int read_state(char c, bool *is_one)
{
	*is_one = c == '1' || c == 'h' || c == 'H';
	if (*is_one || c == '0' || c == 'l' || c == 'L')
		return 0;
	return c != '\0' && strchr("xXzZuUwW-", c) != NULL ? 1 : -1;
}

static bool read_bits(struct vcd *v, struct bc_text word)
{
	bool is_one;

	v->value = (struct bc_signal){0, 0};
	if (word.bytes > 1 && read_state(word.at[1], &is_one) == 1)
		v->value.unknown = UINT64_MAX;
	for (uint32_t i = 1; i < word.bytes; i++) {
		int unknown = read_state(word.at[i], &is_one);
		if (unknown < 0)
			return false;
		v->value.bits = v->value.bits << 1 | is_one;
		v->value.unknown = v->value.unknown << 1 | (uint64_t)unknown;
	}
	return word.bytes > 1;
}

/* Takes the string of a pending event, with its escapes \ooo. */
static void read_text(struct vcd *v, struct bc_text word)
{
	char *out = v->texts + v->texts_bytes;

	v->event_text.at = out;
	for (uint32_t i = 1; i < word.bytes; i++) {
		const char *in = word.at + i;
		bool is_escape = in[0] == '\\' && i + 3 < word.bytes;
		unsigned byte = (unsigned)(in[1] & 3) << 6 | (unsigned)(in[2] & 7) << 3 |
				(unsigned)(in[3] & 7);
		*out = in[0];
		if (is_escape)
			*(uint8_t *)out = (uint8_t)byte;
		out++;
		i += is_escape ? 3 : 0;
	}
	v->event_text.bytes = (uint32_t)(out - v->event_text.at);
	v->texts_bytes += v->event_text.bytes;
}

static void set_value(struct vcd *v, struct bc_parse *p, const char *id, size_t bytes)
{
	if (v->own == FOREIGN)
		bc_capture_change(&v->capture, p, bc_capture_id(id, bytes), v->value);
	else if (bytes == 1)
		change_own(v, p, *id, v->value);
}

static bool read_word(struct vcd *v, struct bc_parse *p, struct bc_text word)
{
	enum awaited awaited = v->awaited;
	bool is_one;

	if (awaited == END_OF_DIRECTIVE) {
		if (word.bytes == 4 && memcmp(word.at, "$end", 4) == 0)
			return end_directive(v);
		if (v->words_bytes + word.bytes + 2 > sizeof(v->words))
			return true; /* a comment, or a name that is too long */
		v->words_bytes += (size_t)sprintf(v->words + v->words_bytes, "%s%.*s",
			v->words_bytes != 0 ? " " : "", (int)word.bytes, word.at);
		return true;
	}
	v->awaited = ANY;
	if (*word.at != '$' && !end_head(v))
		return false;
	if (awaited == ID_OF_VALUE) {
		set_value(v, p, word.at, word.bytes);
		return true;
	}
	if (awaited == ID_OF_TEXT) {
		if (*word.at != ID_TEXT || word.bytes != 1)
			v->event_text.bytes = 0;
		return true;
	}
	switch (*word.at | 0x20) {
	case 'b':
		v->awaited = ID_OF_VALUE;
		return read_bits(v, word) || bc_fail(v->capture.err, sizeof(v->capture.err),
						     "expected a value of 0, 1, x or z");
	case 's':
	case 'r':
		v->awaited = ID_OF_TEXT;
		if (v->event != 0 && v->event_text.bytes == 0)
			read_text(v, word);
		return v->event_text.bytes <= BC_CHUNK_TEXT_BYTES ||
		       bc_fail(v->capture.err, sizeof(v->capture.err),
			       "expected a text of at most %u bytes", BC_CHUNK_TEXT_BYTES);
	default:
		break;
	}
	if (*word.at == '$' || *word.at == '#') {
		if (v->own != FOREIGN)
			end_own(v, p);
		if (*word.at == '#')
			return read_time(v, word);
		start_directive(v, p, word);
		return true;
	}
	int unknown = read_state(*word.at, &is_one);
	if (unknown < 0 || word.bytes == 1)
		return bc_fail(v->capture.err, sizeof(v->capture.err),
			"expected a value change: 0, 1, x or z and a signal's id");
	v->value = (struct bc_signal){.bits = is_one, .unknown = (uint64_t)unknown};
	set_value(v, p, word.at + 1, word.bytes - 1);
	return true;
}

static enum bc_parse_end parse_vcd(void *state, struct bc_parse *p)
{
	struct vcd *v = state;
	const char *line = p->at;

	/* sigrok-cli writes the rate before its dumps. */
	if (p->number == 1 && strncmp(p->at, "META ", 5) == 0)
		p->at = bc_line_end(p->at);
	/* The texts of the last batch are not used any more, but one may still be pending. */
	v->texts_bytes = v->event_text.bytes;
	if (v->texts_bytes != 0)
		v->event_text.at = memmove(v->texts, v->event_text.at, v->texts_bytes);
	while (p->at < p->end && !v->has_failed) {
		const char *at = bc_skip_spaces(p->at);
		const char *end = bc_token_end(at);
		p->at = at;
		if (at == end) {
			line = p->at = end + 1;
			p->number++;
			continue;
		}
		if (!bc_parse_has_room(p) || v->texts_bytes + BC_LINE_MAX > sizeof(v->texts))
			return BC_PARSE_FULL;
		if (!read_word(v, p, (struct bc_text){.at = at, .bytes = (uint32_t)(end - at)})) {
			v->awaited = ANY;
			v->event_text.bytes = 0;
			p->at = line;
			return bc_parse_bad(p, at, v->capture.err);
		}
		p->at = end;
	}
	p->at = p->end;
	v->last_line = p->number;
	return BC_PARSE_DONE;
}

static void get_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct vcd *v = state;

	*notes = v->capture.notes;
	notes->signals = v->list;
	/* Each of ours ends in a time. */
	notes->open_line = v->own != FOREIGN && (v->is_pending || v->event != 0) ? v->last_line : 0;
}

const struct bc_parser bc_vcd_parser = {.state_bytes = sizeof(struct vcd),
	.init = vcd_init,
	.check = bc_capture_check,
	.traits = bc_capture_traits,
	.parse = parse_vcd,
	.notes = get_notes};
