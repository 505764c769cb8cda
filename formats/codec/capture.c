/* State captures. A description is a list of terms: a signal in a role, such as the clock or a part
 * of the address. A term is a vector or up to 64 bits; each has an id in the file, and the table of
 * ids says to which terms a change belongs.
 *
 * An access is sampled just before the edge of its clock, or `setup` earlier: at the edge, its
 * signals may have the next values already, in any order. So changes wait in a queue until they are
 * older than that, and an edge looks at the values that have left it. A latch stores the value that
 * its signal had before the latch's own edge; that is a change like others.
 *
 * An edge is from 0 to 1 or back, not from x. Edges of several clocks at one time are one access.
 */
#include "formats/codec/capture.h"
#include "formats/codec/format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/base/fast_text.h"
#include "formats/base/text.h"

enum role { LATCH, CLOCK, WHEN, FETCH, TYPE, BE, CONTROL, ADDR, DATA, SETUP, ROLES };

/* From CLOCK to FETCH: of one bit, and "-" before the name is the other edge or value. */
static const char *const roles[ROLES] = {
	"latch", "clock", "when", "fetch", "type", "be", "control", "addr", "data", "setup"};

/* How well a name fits a path. */
enum { NOT, BY_NUMBER, BY_NAME, AS_WHOLE };

/* ---- the description */

bool bc_capture_read_time(bc_fs *fs, const char *text, size_t bytes)
{
	static const char units[] = "fs ps ns us ms s";
	char copy[32];
	char *unit;
	double scale = 1;

	snprintf(copy, sizeof(copy), "%.*s", (int)bytes, text);
	double number = strtod(copy, &unit);
	unit += *unit == ' ' && unit != copy;
	for (const char *at = units; unit != copy && *at != '\0'; at += strcspn(at, " ")) {
		at += *at == ' ';
		size_t n = strcspn(at, " ");
		*fs = number >= 0 && number < 1e6 ? (bc_fs)(number * scale + 0.5) : 0;
		if (*fs != 0 && strlen(unit) == n && memcmp(unit, at, n) == 0)
			return true;
		scale *= 1000;
	}
	*fs = 0;
	return false;
}

bool bc_capture_read_number(bc_fs *fs, struct bc_text text, bc_fs unit)
{
	const char *at = text.at;
	uint64_t whole;

	if (!bc_parse_decimal(&at, &whole))
		return false;
	*fs = whole * unit;
	if (*at == '.')
		for (at++; isdigit((uint8_t)*at); at++)
			*fs += (bc_fs)(*at - '0') * (unit /= 10);
	return at == text.at + text.bytes && *fs / 1000 <= UINT64_MAX;
}

/* Reads "0=read|1=write" up to a comma. */
static bool read_types(struct bc_capture_layout *l, const char **at, char *err, size_t errlen)
{
	for (int n = 0;; *at += n + 1, n = 0) {
		char name[16] = "";
		long long value = 0;
		sscanf(*at, "%lli=%15[a-zA-Z]%n", &value, name, &n);
		int type = bc_ref_type_by_word((struct bc_text){name, (uint32_t)strlen(name)});
		if (n == 0 || type < 0 || type == BC_REF_LETTER || l->types == BC_CAPTURE_TYPES)
			return bc_fail(err, errlen,
				"'%s': must be VALUE=TYPE, with read, write, fetch, ioread, "
				"iowrite, modify, misc or flush; at most %u",
				*at, BC_CAPTURE_TYPES);
		l->type[l->types].value = (uint64_t)value;
		l->type[l->types++].type = (uint16_t)type;
		if ((*at)[n] != '|') {
			*at += n;
			return true;
		}
	}
}

/* Reads "A+B@-S" up to a comma. The latch of a term is the next term. */
static bool read_terms(
	struct bc_capture_layout *l, enum role role, const char **at, char *err, size_t errlen)
{
	for (enum role next = role;; ++*at) {
		struct bc_capture_term *t = &l->term[l->terms];
		*t = (struct bc_capture_term){.role = (uint8_t)next};
		t->is_negative = next <= FETCH && **at == '-';
		*at += t->is_negative;
		t->name = (struct bc_text){.at = *at, .bytes = (uint32_t)strcspn(*at, "+,@:")};
		*at += t->name.bytes;
		t->now = t->past = t->stored = (struct bc_signal){.unknown = UINT64_MAX};
		snprintf(t->similar, sizeof(t->similar), "%.*s", (int)t->name.bytes, t->name.at);
		t->suggestion = bc_suggestion_start(t->similar);
		t->is_latched = **at == '@' && next > FETCH;
		if (t->name.bytes == 0 || (**at == '@' && !t->is_latched) ||
			++l->terms == BC_CAPTURE_TERMS)
			return bc_fail(err, errlen, "%s: expected the name of a signal; at most %u",
				roles[next], BC_CAPTURE_TERMS - 2);
		next = t->is_latched ? LATCH : role;
		if (**at != '+' && !t->is_latched)
			break;
	}
	*at += **at == ':' && role == TYPE;
	return (*at)[-1] != ':' || read_types(l, at, err, errlen);
}

static bool read_layout(struct bc_capture_layout *l, const char *text, char *err, size_t errlen)
{
	l->terms = 1;
	for (const char *at = text; *at != '\0'; at += *at == ',') {
		size_t n = strcspn(at, "=,");
		unsigned role = CLOCK;
		while (role < ROLES &&
			(strlen(roles[role]) != n || memcmp(at, roles[role], n) != 0))
			role++;
		if (at[n] != '=' || role == ROLES)
			return bc_fail(err, errlen,
				"'%.*s': must be clock=, addr=, data=, when=, type=, fetch=, be=, "
				"control= or setup=",
				(int)n, at);
		at += n + 1;
		l->roles |= 1u << role;
		n = role == SETUP ? strcspn(at, ",") : 0;
		if (role == SETUP && !bc_capture_read_time(&l->setup, at, n))
			return bc_fail(err, errlen, "setup: '%s': not a time; try 60ns", at);
		at += n;
		if (role != SETUP && !read_terms(l, role, &at, err, errlen))
			return false;
		if (*at != ',' && *at != '\0')
			return bc_fail(err, errlen, "'%s': expected a comma", at);
	}
	if ((l->roles >> CLOCK & 1) == 0 || (l->roles >> ADDR & 1) == 0)
		return bc_fail(err, errlen, "clock=SIGNAL,addr=SIGNAL are needed");
	return (l->roles >> BE & 1) == (l->roles >> CONTROL & 1) ||
	       bc_fail(err, errlen, "be= and control= need each other");
}

bool bc_capture_check(const char *layout, char *err, size_t errlen)
{
	struct bc_capture_layout l = {0};

	return layout == NULL || read_layout(&l, layout, err, errlen);
}

/* 0: the capture is not described. */
bc_traits bc_capture_traits(void *state, const char *at, const char *end, bool *has_wall)
{
	const struct bc_capture *c = state;

	(void)at;
	(void)end;
	*has_wall = false;
	if (c->layout.roles == 0)
		return 0;
	return bc_format_info(BC_FORMAT_VCD)->traits |
	       ((c->layout.roles >> DATA & 1) != 0 ? BC_TRAIT_DATA : 0) |
	       ((c->layout.roles >> CONTROL & 1) != 0 ? BC_TRAIT_SAMPLE : 0);
}

void bc_capture_init(struct bc_capture *c, const struct bc_format_options *options)
{

	bc_mapping_init(&c->mapping, NULL);
	c->in_picoseconds = options->in_picoseconds;
	c->bits = 1;
	if (options->layout != NULL)
		(void)read_layout(&c->layout, options->layout, c->err, sizeof(c->err));
}

/* ---- the signals */

uint64_t bc_capture_id(const char *text, size_t bytes)
{
	uint64_t id = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes; i++)
		id = (id ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return id;
}

/* True if the name is the end of a path, from the start of a part of it. */
static bool is_end_of(struct bc_text name, const char *path, size_t bytes)
{
	return name.bytes <= bytes && memcmp(path + bytes - name.bytes, name.at, name.bytes) == 0 &&
	       (name.bytes == bytes || path[bytes - name.bytes - 1] == '.');
}

/* Returns how well a path fits a name. Sets *bit to that of the name's signal, or -1: all of it,
 * and *bytes to the part of the path that names that signal. */
static unsigned fit_of(
	struct bc_text name, const char *path, uint32_t width, int *bit, size_t *bytes)
{
	size_t n = strlen(path);
	size_t stem;
	uint64_t number = 0;
	const char *end = path + n;

	*bit = -1;
	*bytes = n;
	if (n == 0 || is_end_of(name, path, n))
		return n == 0 ? NOT : name.bytes == n ? AS_WHOLE : BY_NAME;
	end -= path[n - 1] == ']';
	for (stem = (size_t)(end - path); stem != 0 && isdigit((uint8_t)path[stem - 1]);)
		stem--;
	bool is_number = width <= 1 && bc_number_read_start(&number, path + stem, &end) &&
			 (*end == '\0' || (stem != 0 && path[stem - 1] == '['));
	const char *range = path[n - 1] == ']' ? memrchr(path, '[', n) : NULL;
	*bit = !is_number ? -1 : number < 64 ? (int)number : 64;
	*bytes = stem;
	if (range != NULL)
		*bytes = (size_t)(range - path) - (range != path && range[-1] == ' ');
	if ((!is_number && (range == NULL || strchr(range, ':') == NULL)) ||
		!is_end_of(name, path, *bytes))
		return NOT;
	return is_number ? BY_NUMBER : name.bytes == *bytes ? AS_WHOLE : BY_NAME;
}

static void add_bit(struct bc_capture *c, unsigned term, int bit, uint64_t id)
{
	uint16_t *slot = &c->slot[id % BC_CAPTURE_SLOTS];

	if (c->bits == BC_CAPTURE_BITS)
		return; /* many signals of one name: they are ambiguous */
	c->bit[c->bits].id = id;
	c->bit[c->bits].term = (uint8_t)term;
	c->bit[c->bits].bit = (int8_t)bit;
	c->bit[c->bits].next = *slot;
	*slot = (uint16_t)c->bits++;
}

/* Returns the id of a bit of a term, or 0. */
static uint64_t find_bit(const struct bc_capture *c, unsigned term, int bit)
{
	for (unsigned i = 1; i < c->bits; i++)
		if (c->bit[i].term == term && c->bit[i].bit == bit)
			return c->bit[i].id;
	return 0;
}

/* Keeps the path of a signal with a similar name. */
static void suggest(struct bc_capture_term *t, const char *path)
{
	const char *dot = strrchr(path, '.');
	char word[64];
	size_t before = t->suggestion.edits;

	bool is_leaf = memchr(t->name.at, '.', t->name.bytes) == NULL && dot != NULL;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(is_leaf ? dot + 1 : path, " ["),
		is_leaf ? dot + 1 : path);
	if (before != 0 && strlen(word) <= BC_SUGGESTION_BYTES)
		bc_suggestion_add(&t->suggestion, word, t->similar);
	if (t->suggestion.edits < before)
		snprintf(t->similar, sizeof(t->similar), "%s", path);
}

static void add_path(struct bc_capture_term *t, const char *path, size_t bytes)
{
	size_t used = t->others++ != 0 ? strlen(t->similar) : 0;

	if (t->others <= 3 && used + bytes + 3 < sizeof(t->similar))
		snprintf(t->similar + used, sizeof(t->similar) - used, "%s%.*s",
			used != 0 ? ", " : "", (int)bytes, path);
}

static void declare_for(struct bc_capture *c, unsigned term, const char *path, uint64_t id,
	uint32_t width, bool is_number)
{
	struct bc_capture_term *t = &c->layout.term[term];
	int bit;
	size_t bytes;
	unsigned fit = fit_of(t->name, path, width, &bit, &bytes);

	if (fit == NOT && t->fit == NOT)
		suggest(t, path);
	if (fit == NOT || fit < t->fit)
		return;
	uint64_t signal = bc_capture_id(path, bytes);
	if (fit > t->fit) {
		for (unsigned i = 1; i < c->bits; i++)
			c->bit[i].term = c->bit[i].term != term ? c->bit[i].term : 0;
		t->fit = fit;
		t->path = signal;
		t->width = 0;
		t->lowest = 64;
		t->is_number = false;
		t->others = 0;
		add_path(t, path, bytes);
	}
	uint64_t known = t->others > 1 ? 0 : find_bit(c, term, bit);
	if (known == id && known != 0)
		return;
	if (known != 0 || t->path != signal || t->others > 1) {
		add_path(t, path, bytes);
		return;
	}
	t->is_number |= is_number;
	width = bit < 0 ? width : (uint32_t)bit + 1;
	t->lowest = bit < 0 ? 0 : (unsigned)bit < t->lowest ? (unsigned)bit : t->lowest;
	t->width = width > t->width ? width : t->width;
	if (bit < 64)
		add_bit(c, term, bit, id);
}

void bc_capture_declare(
	struct bc_capture *c, const char *path, uint64_t id, uint32_t width, bool is_number)
{
	for (unsigned i = 1; i < c->layout.terms; i++)
		declare_for(c, i, path, id, width, is_number);
}

static bool has_role(const struct bc_capture *c, enum role role)
{
	return (c->layout.roles >> role & 1) != 0;
}

bool bc_capture_start(struct bc_capture *c)
{
	unsigned widths[ROLES] = {0};
	unsigned counts[ROLES] = {0};

	for (unsigned i = 1; i < c->layout.terms; i++)
		counts[c->layout.term[i].role]++;
	for (unsigned i = 1; i < c->layout.terms; i++) {
		struct bc_capture_term *t = &c->layout.term[i];
		/* A channel of a csv has one bit if others follow. */
		t->width += t->width == 0 && counts[t->role] > 1;
		unsigned most = t->role <= FETCH                      ? 1
				: t->role == BE || t->role == CONTROL ? 8
				: t->role == DATA                     ? UINT32_MAX
				: t->role == ADDR && has_role(c, BE)  ? 32
								      : 64;
		widths[t->role] = t->width + (t->role <= FETCH ? 0 : widths[t->role]);
		const char *what = t->fit == NOT && t->suggestion.nearest == NULL
					   ? "is not the name of a signal"
				   : t->fit == NOT          ? "is not a signal; did you mean "
				   : t->others > 1          ? "is one of several signals: "
				   : t->is_number           ? "is a real or a string"
				   : widths[t->role] > most ? "has too many bits"
							    : NULL;
		if (what == NULL)
			continue;
		bool has_similar = what[strlen(what) - 1] == ' ';
		size_t similar = t->fit == NOT ? strcspn(t->similar, " [") /* without its range */
					       : strlen(t->similar);
		return bc_fail(c->err, sizeof(c->err), "%s: '%.*s' %s%.*s%s", roles[t->role],
			(int)t->name.bytes, t->name.at, what, has_similar ? (int)similar : 0,
			t->similar, has_similar && t->fit == NOT ? "?" : "");
	}
	return c->scale != 0 || c->layout.setup == 0 ||
	       bc_fail(c->err, sizeof(c->err), "setup: the times have no unit");
}

/* ---- the values */

/* Applies the changes that happened before this time, less setup. */
static void apply_before(struct bc_capture *c, bc_fs time)
{
	unsigned n = 0;

	for (; n < c->queued && c->queue[n].time + c->layout.setup < time; n++) {
		struct bc_capture_term *t = &c->layout.term[c->queue[n].term];
		*(c->queue[n].is_stored ? &t->stored : &t->past) = c->queue[n].value;
	}
	c->queued -= n;
	if (n != 0)
		memmove(c->queue, c->queue + n, c->queued * sizeof(c->queue[0]));
}

bool bc_capture_time(struct bc_capture *c, bc_fs time)
{
	if (c->has_time && time < c->time)
		return bc_fail(c->err, sizeof(c->err), "the time goes back; the rest is not read");
	if (c->has_time && time == c->time)
		return true;
	c->in_picoseconds |= c->scale != 0 && time % BC_FS_PER_NS != 0 && !c->has_entry;
	c->has_time = true;
	c->edge = 0;
	c->time = time;
	apply_before(c, time);
	return true;
}

uint64_t bc_capture_tick(const struct bc_capture *c, uint8_t *unit)
{
	bool is_ps = c->in_picoseconds || c->scale < BC_FS_PER_NS;

	*unit = c->scale == 0 ? BC_UNIT_TICK : is_ps ? BC_UNIT_PS : BC_UNIT_NS;
	return (uint64_t)(c->scale == 0 ? c->time : c->time / (is_ps ? 1000 : BC_FS_PER_NS));
}

/* The newest changes are dropped if there are more than fit. */
static void put_change(struct bc_capture *c, unsigned term, bool is_stored, struct bc_signal value)
{
	unsigned i = c->queued;

	while (i != 0 && c->queue[i - 1].time == c->time &&
		(c->queue[i - 1].term != term || c->queue[i - 1].is_stored != is_stored))
		i--;
	if (i == 0 || c->queue[i - 1].time != c->time) {
		c->notes.too_many += c->queued == BC_CAPTURE_QUEUE;
		if (c->queued == BC_CAPTURE_QUEUE)
			return;
		i = ++c->queued;
	}
	c->queue[i - 1].time = c->time;
	c->queue[i - 1].term = (uint8_t)term;
	c->queue[i - 1].is_stored = is_stored;
	c->queue[i - 1].value = value;
}

/* The values of a role's signals, the first one in the highest bits. Those of a part that is not
 * the last may be numbered from any bit on. */
static struct bc_signal join(const struct bc_capture *c, enum role role, uint32_t *width)
{
	struct bc_signal all = {0, 0};
	unsigned lowest = 0;

	*width = 0;
	for (unsigned i = 1; i < c->layout.terms; i++) {
		const struct bc_capture_term *t = &c->layout.term[i];
		if (t->role != role)
			continue;
		struct bc_signal one = t->is_latched ? t->stored : t->past;
		uint32_t n = t->width != 0 && t->width < 64 ? t->width : 64;
		uint64_t mask = t->lowest < n ? UINT64_MAX >> (64 - n) >> t->lowest << t->lowest
					      : 0;
		all.bits = (n < 64 ? all.bits >> lowest << n : 0) | (one.bits & mask);
		all.unknown = (n < 64 ? all.unknown >> lowest << n : 0) | (one.unknown & mask);
		*width += t->width - lowest;
		lowest = t->lowest;
	}
	return all;
}

/* True if each signal of this role has its value, 1 or with "-" 0. */
static bool is_set(const struct bc_capture *c, enum role role)
{
	for (unsigned i = 1; i < c->layout.terms; i++) {
		const struct bc_capture_term *t = &c->layout.term[i];
		if (t->role == role && ((t->past.unknown & 1) != 0 ||
					       (t->past.bits & 1) == (uint64_t)t->is_negative))
			return false;
	}
	return true;
}

/* Returns the type of the access, or -1 if it is unknown. A single value of the table has the
 * others as its opposite. */
static int type_of(const struct bc_capture *c)
{
	uint32_t width;
	struct bc_signal value = join(c, TYPE, &width);
	const struct bc_capture_layout *l = &c->layout;

	if (has_role(c, FETCH) && is_set(c, FETCH))
		return BC_REQ_FETCH;
	if (!has_role(c, TYPE))
		return BC_REQ_MEMREAD;
	if (value.unknown != 0)
		return -1;
	for (unsigned i = 0; i < l->types; i++)
		if (l->type[i].value == value.bits)
			return l->type[i].type;
	if (l->types == 1)
		return l->type[0].type == BC_REQ_MEMREAD ? BC_REQ_MEMWRITE : BC_REQ_MEMREAD;
	return l->types != 0 || value.bits > 1 ? -1
	       : value.bits != 0               ? (int)BC_REQ_MEMREAD
					       : (int)BC_REQ_MEMWRITE;
}

/* Takes a sample at an edge of a clock. A second edge at the same time, as in a csv with coarse
 * times, is only counted: which values belong to it is unknown. */
static void sample(struct bc_capture *c, struct bc_parse *p, unsigned clock)
{
	struct bc_entry *entry = &p->entries[p->count];
	bool is_sample = has_role(c, BE);
	uint32_t width;
	uint8_t unit;

	if (!is_set(c, WHEN))
		return;
	c->notes.unread += c->edge == clock;
	if (c->edge != 0)
		return;
	c->edge = clock;
	struct bc_signal addr = join(c, ADDR, &width);
	struct bc_signal be = join(c, BE, &width);
	struct bc_signal control = join(c, CONTROL, &width);
	int type = is_sample ? 0 : type_of(c);
	c->notes.unknown_addresses += addr.unknown != 0;
	c->notes.unknown_types += addr.unknown == 0 &&
				  (type < 0 || (be.unknown | control.unknown) != 0);
	if (addr.unknown != 0 || type < 0 || (be.unknown | control.unknown) != 0)
		return;
	if (is_sample) {
		uint8_t bytes[BC_SAMPLE_BYTES];
		bc_write_be32(bytes, (uint32_t)addr.bits);
		bytes[4] = (uint8_t)be.bits;
		bytes[5] = (uint8_t)(width <= 4 ? control.bits << 4 : control.bits);
		bc_entry_of_sample(entry, bytes, &c->mapping, 0, p->number, 0);
		entry->traits &= ~(bc_traits)BC_TRAIT_PROC;
	} else {
		bc_entry_reference(entry, (unsigned)type, addr.bits, p->number);
	}
	struct bc_signal data = join(c, DATA, &width);
	if (width != 0 && !is_sample) {
		entry->size = (width + 7) / 8;
		entry->traits |= BC_TRAIT_SIZE;
	}
	c->notes.long_data += width > 64;
	if (has_role(c, DATA) && width <= 64 && data.unknown == 0) {
		entry->data = data.bits;
		entry->traits |= BC_TRAIT_DATA;
	}
	entry->tick = bc_capture_tick(c, &unit);
	entry->unit = unit;
	entry->traits |= BC_TRAIT_TIME;
	c->has_entry = true;
	p->count++;
}

bool bc_capture_uses(const struct bc_capture *c, uint64_t id)
{
	unsigned i = c->slot[id % BC_CAPTURE_SLOTS];

	while (i != 0 && (c->bit[i].id != id || c->bit[i].term == 0))
		i = c->bit[i].next;
	return i != 0;
}

void bc_capture_change(
	struct bc_capture *c, struct bc_parse *p, uint64_t id, struct bc_signal value)
{
	for (unsigned i = c->slot[id % BC_CAPTURE_SLOTS]; i != 0; i = c->bit[i].next) {
		unsigned term = c->bit[i].term;
		struct bc_capture_term *t = &c->layout.term[term];
		struct bc_signal before = t->now;
		if (c->bit[i].id != id || term == 0)
			continue;
		if (c->bit[i].bit < 0) {
			t->now = value;
		} else {
			uint64_t one = UINT64_C(1) << c->bit[i].bit;
			t->now.bits = (t->now.bits & ~one) | ((value.bits & 1) != 0 ? one : 0);
			t->now.unknown = (t->now.unknown & ~one) |
					 ((value.unknown & 1) != 0 ? one : 0);
		}
		if (memcmp(&before, &t->now, sizeof(before)) == 0)
			continue;
		if (t->role > CLOCK)
			put_change(c, term, false, t->now);
		if (((before.unknown | t->now.unknown) & 1) != 0 ||
			((before.bits ^ t->now.bits) & 1) == 0 ||
			(t->now.bits & 1) == (uint64_t)t->is_negative || c->is_off)
			continue;
		if (t->role == CLOCK)
			sample(c, p, term);
		/* The term before a latch is what it stores. */
		if (t->role == LATCH)
			put_change(c, term - 1, true, c->layout.term[term - 1].past);
	}
}
