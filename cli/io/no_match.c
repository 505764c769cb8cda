/* Reads the input again, after a command found nothing in it, and compares what it has with what
 * the filter wants. A sealed segment is described by its index and its page summary, any other file
 * by its entries, unless that would take long.
 *
 * Invariant: each member of struct contents covers everything that was read. has_pages is false if
 * a page or port may have been missed. */
#include "cli/io/no_match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/file.h"
#include "formats/base/text.h"
#include "formats/bus/page_counts.h"
#include "formats/bus/tick_time.h"
#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/segment/chunk_table.h"

/* Larger files are not read a second time, unless they have an index. */
#define READ_BYTES_MAX (UINT64_C(256) << 20)

#define PAGES  BC_PORT_0 /* of memory */
#define PLACES (BC_PORT_0 + BC_PORTS)
#define PROCS  (UINT16_MAX + 1)

#define NOTHING ((struct bc_span){UINT64_MAX, 0})

struct contents {
	uint64_t records;
	bool is_text; /* their numbers are of lines */
	struct bc_span numbers;
	struct bc_span ticks;
	struct bc_span epochs;
	struct bc_span addr;
	int64_t from_ns; /* INT64_MAX: unknown */
	int64_t to_ns;
	uint64_t types[BC_FILTER_TYPE_WORDS];
	uint64_t procs[PROCS / 64];
	bool has_pages;
	uint64_t pages[PLACES / 64];  /* pages and ports that are touched */
	struct bc_filter there;       /* only the wanted addresses, of memory and ports */
	uint64_t found[BC_REF_TYPES]; /* references there */
	uint64_t read_bytes;          /* of segments, to count these */
};

static void widen(struct bc_span *span, uint64_t first, uint64_t last)
{
	span->first = first < span->first ? first : span->first;
	span->last = last > span->last ? last : span->last;
}

static void set_bit(uint64_t *words, size_t bit)
{
	words[bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool has_bit(const uint64_t *words, size_t bit)
{
	return (words[bit / 64] >> bit % 64 & 1) != 0;
}

/* ---- segments */

static void add_row(struct contents *c, const struct bc_chunk_info *info, uint64_t clock_hz)
{
	if (info->records == 0)
		return;
	int64_t to_ns;
	(void)bc_chunk_end(&to_ns, info, clock_hz);
	c->records += info->records;
	widen(&c->numbers, info->first_record, info->first_record + info->records - 1);
	widen(&c->ticks, info->first_tick, info->last_tick);
	widen(&c->epochs, info->epoch, info->epoch);
	widen(&c->addr, info->addr_low, info->addr_high);
	c->from_ns = info->wall_ns < c->from_ns ? info->wall_ns : c->from_ns;
	c->to_ns = to_ns > c->to_ns ? to_ns : c->to_ns;
	for (unsigned i = 0; i < 4; i++) {
		c->types[i] |= info->types[i];
		c->procs[i] |= info->procs[i];
	}
}

/* Adds the pages of the segment in fd. Returns false if they are not known exactly. */
static bool add_summary(struct contents *c, int fd)
{
	struct bc_page_search search;
	bool ok = bc_page_search_open(&search, fd) == 0 && bc_page_search_top(&search) == 0 &&
		  search.counts.page_shift == 0 && search.counts.port_shift == 0;

	for (uint32_t i = 0; ok && i < search.counts.count; i++)
		set_bit(c->pages, search.counts.regions[i].first);
	bc_page_search_close(&search);
	return ok;
}

static void ignore_damage(void *context, const struct bc_segment_damage *damage)
{
	(void)context;
	(void)damage;
}

static bool always(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return true;
}

static bool add_segment(struct contents *c, int fd)
{
	const struct bc_chunk_table_io io = {.damage = ignore_damage, .pace = always};
	struct bc_chunk_table table;
	bool ok = bc_chunk_table_load(&table, fd, &io) == 0;

	for (uint32_t row = 0; ok && row < table.count; row++) {
		const struct bc_segment_header *header = bc_chunk_table_header(&table, row);
		add_row(c, &table.rows[row].info, header != NULL ? header->clock_hz : 0);
	}
	c->has_pages = c->has_pages && ok && add_summary(c, fd);
	bc_chunk_table_free(&table);
	return ok;
}

/* ---- other formats */

static void add_reference(struct contents *c, const struct bc_entry *entry)
{
	uint64_t start = bc_entry_start(entry);
	uint64_t last = start + (entry->size != 0 ? entry->size - 1 : 0);

	widen(&c->addr, start, last);
	set_bit(c->types, entry->type);
	c->found[entry->type] += c->there.has_addr && bc_filter_entry(&c->there, entry);
	if (bc_is_port_access(entry->type))
		set_bit(c->pages, BC_PORT_0 + start % BC_PORTS);
	else if (start >> BC_PAGE_BITS < PAGES)
		set_bit(c->pages, start >> BC_PAGE_BITS);
}

static void add_entry(struct contents *c, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	size_t n;

	if (entry->kind == BC_ENTRY_EVENT)
		return;
	c->records++;
	widen(&c->numbers, entry->number, entry->number);
	widen(&c->ticks, entry->tick, entry->tick);
	widen(&c->epochs, entry->epoch, entry->epoch);
	if ((entry->traits & BC_TRAIT_PROC) != 0)
		set_bit(c->procs, entry->proc);
	n = bc_entry_references(references, entry);
	for (size_t i = 0; i < n; i++)
		add_reference(c, &references[i]);
}

/* Of a segment, only chunks that may have references there. */
static bool is_needed(void *context, const struct bc_chunk_info *info)
{
	const struct contents *c = context;
	struct bc_filter_bounds bounds;

	return bc_filter_chunk(&c->there, info, 0, &bounds);
}

static bool add_entries(struct contents *c, const struct bc_file *file,
	const struct bc_format_options *options, bool is_segment)
{
	const struct bc_reader_options how = {.format = *options,
		.needs_chunk = is_needed,
		.context = c,
		.is_partial = file->is_partial,
		.is_one_of_many = true,
		.index_fd = is_segment ? file->fd : -1};
	struct bc_reader *reader;
	struct bc_batch batch;
	int rc = file->bytes > READ_BYTES_MAX
			 ? -EFBIG
			 : bc_reader_open(&reader, file->input, file->probe.format, &how);

	if (rc < 0)
		return false;
	while ((rc = bc_reader_next(reader, &batch)) > 0)
		for (size_t i = 0; i < batch.count; i++)
			add_entry(c, &batch.entries[i]);
	bc_reader_close(reader);
	return rc == 0;
}

static bool add_file(struct contents *c, const struct bc_console *silent, const char *path,
	enum bc_format format, const struct bc_format_options *options)
{
	struct bc_file file;

	if (strcmp(path, "-") == 0 || bc_file_open(&file, silent, path, format) != BC_EXIT_OK)
		return false;
	bool is_segment = file.probe.format == BC_FORMAT_SEGMENT && file.is_regular;
	c->is_text = bc_format_info(file.probe.format)->is_text;
	bool is_readable = file.bytes != 0 || file.is_regular;
	bool ok = is_readable && (!is_segment || c->there.has_addr) &&
		  add_entries(c, &file, options, is_segment);
	if (is_segment && !ok)
		memset(c->found, 0, sizeof(c->found));
	ok = is_segment ? add_segment(c, file.fd) : ok;
	bc_file_close(&file);
	return ok;
}

/* ---- comparing */

static bool overlaps(struct bc_span a, struct bc_span b)
{
	return a.first <= b.last && b.first <= a.last;
}

static void write_span(char out[BC_NO_MATCH_MAX], const char *what, struct bc_span span)
{
	if (span.first == span.last)
		snprintf(
			out, BC_NO_MATCH_MAX, "; the input has only %s %" PRIu64, what, span.first);
	else
		snprintf(out, BC_NO_MATCH_MAX, "; the input has %ss %" PRIu64 " to %" PRIu64, what,
			span.first, span.last);
}

static void write_times(char out[BC_NO_MATCH_MAX], const struct contents *c)
{
	char from[BC_RFC3339_BYTES];
	char to[BC_RFC3339_BYTES];

	bc_rfc3339_write(from, c->from_ns);
	bc_rfc3339_write(to, c->to_ns);
	snprintf(out, BC_NO_MATCH_MAX,
		"; the input is from %s to %s (a time without a zone is UTC)", from, to);
}

/* Writes the names of the bits; nothing if no bit is set. `name` NULL: their numbers. */
static void write_bits(char out[BC_NO_MATCH_MAX], const char *what, const uint64_t *words,
	size_t bits, const char *(*name)(unsigned bit))
{
	size_t used = (size_t)snprintf(out, BC_NO_MATCH_MAX, "; the input has %s", what);
	const char *separator = " ";

	for (size_t bit = 0; bit < bits && used < BC_NO_MATCH_MAX - 40; bit++) {
		const char *text = name != NULL ? name((unsigned)bit) : NULL;
		if (!has_bit(words, bit))
			continue;
		used += (size_t)(text != NULL ? snprintf(out + used, BC_NO_MATCH_MAX - used, "%s%s",
							separator, text)
					      : snprintf(out + used, BC_NO_MATCH_MAX - used,
							"%s%zu", separator, bit));
		separator = ", ";
	}
	if (separator[0] == ' ')
		out[0] = '\0';
}

/* Writes which references the input has at the wanted addresses. */
static void write_found(char out[BC_NO_MATCH_MAX], const struct contents *c)
{
	size_t used = 0;

	for (unsigned type = 0; type < BC_REF_TYPES && used < BC_NO_MATCH_MAX - 80; type++) {
		const char *name = bc_ref_type_name(type);
		if (c->found[type] != 0)
			used += (size_t)snprintf(out + used, BC_NO_MATCH_MAX - used, "%s%s %s",
				used == 0 ? "; at these addresses, the input has " : ", ",
				BC_GROUPED(c->found[type]), name != NULL ? name : "others");
	}
}

/* Writes the first page or port of the wanted addresses that is touched, or the nearest around. */
static void write_nearest(
	char out[BC_NO_MATCH_MAX], const struct contents *c, const struct bc_filter *f)
{
	bool is_port = bc_filter_is_at_ports(f);
	unsigned shift = is_port ? 0 : BC_PAGE_BITS;
	const char *what = is_port ? "port" : "page";
	uint32_t start = is_port ? PAGES : 0;
	uint32_t end = is_port ? BC_PORTS : PAGES;
	uint64_t above = f->addr.first >> shift;
	uint64_t below = above; /* the page after it */
	char at[2][20];

	while (above < end && !has_bit(c->pages, start + above))
		above++;
	while (below > 0 && below < end && !has_bit(c->pages, start + below - 1))
		below--;
	snprintf(at[0], sizeof(at[0]), "%0*" PRIx64, is_port ? 4 : 8, (below - 1) << shift);
	snprintf(at[1], sizeof(at[1]), "%0*" PRIx64, is_port ? 4 : 8, above << shift);
	if (above < end && above <= f->addr.last >> shift)
		snprintf(out, BC_NO_MATCH_MAX, "; %s %s has only other references", what, at[1]);
	else if (above < end && below > 0)
		snprintf(out, BC_NO_MATCH_MAX, "; the nearest %ss with references are %s and %s",
			what, at[0], at[1]);
	else if (above < end || (below > 0 && below < end))
		snprintf(out, BC_NO_MATCH_MAX, "; the nearest %s with references is %s", what,
			at[above < end]);
}

static bool has_common(const uint64_t *a, const uint64_t *b, size_t words)
{
	uint64_t common = 0;

	for (size_t i = 0; i < words; i++)
		common |= a[i] & b[i];
	return common != 0;
}

static void compare(char out[BC_NO_MATCH_MAX], const struct contents *c, struct bc_filter *f)
{
	if (c->records == 0) {
		snprintf(out, BC_NO_MATCH_MAX, "; the input is empty");
		return;
	}
	bc_filter_start(f, c->from_ns);
	if (!overlaps(f->numbers, c->numbers))
		write_span(out, c->is_text ? "line" : "record", c->numbers);
	else if (!overlaps(f->epochs, c->epochs))
		write_span(out, "epoch", c->epochs);
	else if (!overlaps(f->ticks, c->ticks)) /* as --from and --to take them */
		snprintf(out, BC_NO_MATCH_MAX, "; the input is from @%" PRIu64 " to @%" PRIu64,
			c->ticks.first, c->ticks.last);
	else if (f->has_wall && c->from_ns != INT64_MAX &&
		 (f->from_ns > c->to_ns || f->to_ns <= c->from_ns))
		write_times(out, c);
	else if (f->has_procs && !has_common(f->procs, c->procs, PROCS / 64))
		write_bits(out, "processors", c->procs, PROCS, NULL);
	else if ((f->has_types && !has_common(f->types, c->types, BC_FILTER_TYPE_WORDS)) ||
		 (bc_filter_is_at_ports(f) && (c->types[0] & BC_PORT_TYPES) == 0))
		write_bits(out, "types", c->types, BC_REF_TYPES, bc_ref_type_name);
	else if (f->has_addr && f->ranges_count == 0 && !overlaps(f->addr, c->addr))
		snprintf(out, BC_NO_MATCH_MAX,
			"; the input has addresses %08" PRIx64 " to %08" PRIx64, c->addr.first,
			c->addr.last);
	else
		write_found(out, c);
	if (out[0] == '\0' && f->has_addr && f->ranges_count <= 1 && c->has_pages)
		write_nearest(out, c, f);
}

const char *bc_no_match_text(char out[BC_NO_MATCH_MAX], const struct bc_console *console,
	const struct bc_filter_args *args, const char *const *paths, int count,
	enum bc_format format, const struct bc_format_options *options)
{
	struct contents *c = malloc(sizeof(*c));
	struct bc_filter filter = args->filter;
	const struct bc_console silent = bc_console_silent(console);
	bool ok = true;

	out[0] = '\0';
	if (c == NULL)
		return out;
	*c = (struct contents){
		.numbers = NOTHING,
		.ticks = NOTHING,
		.epochs = NOTHING,
		.addr = NOTHING,
		.from_ns = INT64_MAX,
		.to_ns = INT64_MIN,
		.has_pages = true,
	};
	bc_filter_init(&c->there);
	c->there.has_addr = filter.has_addr && args->region == NULL &&
			    (filter.has_types || bc_filter_is_at_ports(&filter));
	c->there.addr = filter.addr;
	for (int i = 0; i < count && ok; i++)
		ok = add_file(c, &silent, paths[i], format, options);
	if (ok)
		compare(out, c, &filter);
	free(c);
	return out;
}
