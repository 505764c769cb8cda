/* An overview as JSON, written value by value into a buffer: as one tree, a picture would need more
 * than 100 MB. Times are ns after the origin, the first record, because a page reads them as
 * doubles, which are exact up to 104 days; the origin is a text.
 *
 * Invariant: after an error in w->rc, nothing more is written: callers check the last result. */
#include "cli/overview/overview.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_internal.h"
#include "formats/base/json.h"
#include "formats/base/utf8.h"
#include "formats/segment/segment_header.h"

#define NAME_BYTES_MAX 63u
#define ROW_NAME_MAX   136

struct writer {
	struct bc_byte_buffer *text;
	int rc; /* the first error */
	int64_t origin_ns;
	bool is_in_array;
	bool is_next; /* an item was written before */
};

static void write_text(struct writer *w, const char *text)
{
	if (w->rc == 0 && !bc_byte_buffer_add(w->text, text, strlen(text)))
		w->rc = w->text->is_too_long ? -EFBIG : -ENOMEM;
}

/* Writes a value and releases it. */
static void write_value(struct writer *w, json_t *value)
{
	char *text = bc_json_print(value);

	json_decref(value);
	if (text == NULL)
		w->rc = w->rc != 0 ? w->rc : -ENOMEM;
	else
		write_text(w, text);
	free(text);
}

static void write_member(struct writer *w, const char *name, json_t *value)
{
	write_text(w, ",\"");
	write_text(w, name);
	write_text(w, "\":");
	write_value(w, value);
}

static void end_array(struct writer *w)
{
	write_text(w, w->is_in_array ? "]" : "");
	w->is_in_array = false;
}

/* Starts an array, and ends the one before it. */
static void start_array(struct writer *w, const char *name)
{
	end_array(w);
	write_text(w, ",\"");
	write_text(w, name);
	write_text(w, "\":[");
	w->is_in_array = true;
	w->is_next = false;
}

static void write_item(struct writer *w, json_t *value)
{
	if (w->is_next)
		write_text(w, ",");
	w->is_next = true;
	write_value(w, value);
}

/* A time, in ns after the origin. */
static json_t *time_json(const struct writer *w, int64_t ns)
{
	__int128 after = (__int128)ns - w->origin_ns;

	return json_integer(after > INT64_MAX   ? INT64_MAX
			    : after < INT64_MIN ? INT64_MIN
						: (int64_t)after);
}

static json_t *origin_json(const struct writer *w)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, w->origin_ns);
	return json_string(text);
}

static json_t *recording_json(const struct writer *w, const struct bc_overview_recording *r)
{
	static const char *const states[] = {
		[BC_OVERVIEW_OPEN] = "open",
		[BC_OVERVIEW_RECORDING] = "recording",
		[BC_OVERVIEW_RECOVERED] = "recovered",
		[BC_OVERVIEW_SEALED] = "sealed",
	};

	return bc_json_merge(
		BC_JSON_OBJECT({"id", bc_json_text(r->id)},
			{"label", bc_json_text_or_null(r->label)},
			{"host", bc_json_text_or_null(r->host)},
			{"simulated", json_boolean(r->is_simulated)},
			{"state", json_string(states[r->state])},
			{"from", time_json(w, r->from_ns)}, {"to", time_json(w, r->to_ns)},
			{"ended", time_json(w, r->ended_ns)},
			{"clock_hz", bc_json_u64(r->clock_hz)},
			{"segments", json_integer(r->segments)},
			{"missing_segments", json_integer(r->missing_segments)},
			{"missing", bc_json_u64(r->missing)},
			{"first_record", bc_json_u64(r->first_record)},
			{"records", bc_json_u64(r->records)}, {"bytes", bc_json_u64(r->bytes)},
			{"metadata", bc_metadata_parse(r->metadata)}),
		bc_loss_json(&r->loss));
}

static json_t *damage_json(const struct bc_overview_damage *damage)
{
	return BC_JSON_OBJECT({"file", bc_json_text(damage->file)},
		{"offset", bc_json_u64(damage->offset)}, {"bytes", bc_json_u64(damage->bytes)},
		{"what", bc_json_text(damage->what)});
}

static json_t *hole_json(const struct bc_overview_hole *hole)
{
	char what[BC_MISSING_TEXT];

	return BC_JSON_OBJECT({"recording", json_integer(hole->recording)},
		{"file", bc_json_text(hole->file)}, {"first", json_integer(hole->missing.first)},
		{"count", json_integer(hole->missing.count)},
		{"records", bc_json_u64_or_null(hole->missing.records != 0, hole->missing.records)},
		{"what", json_string(bc_missing_write(what, &hole->missing))});
}

/* Returns the name of the first or last address of a place, or NULL. */
static const char *find_name(const struct bc_name_map *names, uint32_t place, bool is_end)
{
	struct bc_name name;
	bool is_port = place >= BC_PORT_0;
	uint64_t addr = is_port ? place - BC_PORT_0
				: (uint64_t)place * BC_PAGE_BYTES +
					  (is_end ? BC_PAGE_BYTES - 1 : 0);

	return bc_name_map_find(names, is_port, addr, &name) ? name.text : NULL;
}

static int name_bytes(const char *name)
{
	return name != NULL ? (int)bc_utf8_fit(name, NAME_BYTES_MAX) : 0;
}

/* The name of a row: "VGA graphics"; or the names of its first and last address, "BIOS data area
 * ... option ROMs", of which one may be missing. Long names are cut off. Writes it to `out`, and
 * returns it; NULL if both are missing. */
static const char *write_row_name(
	char out[ROW_NAME_MAX], const struct bc_name_map *names, const struct bc_overview_row *row)
{
	if (names == NULL)
		return NULL;
	const char *first = find_name(names, row->place, false);
	const char *last = find_name(names, row->place + row->count - 1, true);
	if (first == NULL && last == NULL)
		return NULL;
	if (first != NULL && last != NULL && strcmp(first, last) == 0)
		snprintf(out, ROW_NAME_MAX, "%.*s", name_bytes(first), first);
	else
		snprintf(out, ROW_NAME_MAX, "%.*s%s...%s%.*s", name_bytes(first),
			first != NULL ? first : "", first != NULL ? " " : "",
			last != NULL ? " " : "", name_bytes(last), last != NULL ? last : "");
	return out;
}

static json_t *row_json(const struct bc_overview_row *row, const struct bc_name_map *names)
{
	char name[ROW_NAME_MAX];

	return BC_JSON_OBJECT({"place", json_integer(row->place)},
		{"count", json_integer(row->count)},
		{"name", bc_json_text(write_row_name(name, names, row))});
}

/* Appends numbers to an array, which is NULL if out of memory. Returns it, or NULL and frees it. */
static json_t *append_numbers(json_t *array, const uint64_t *numbers, unsigned count)
{
	for (unsigned i = 0; array != NULL && i < count; i++)
		array = bc_json_append(array, bc_json_u64(numbers[i]));
	return array;
}

static json_t *cells_json(const struct bc_region *cells, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < count; i++) {
		const uint64_t row = cells[i].first;
		array = append_numbers(array, &row, 1);
		array = append_numbers(array, cells[i].counts, BC_PAGE_CLASSES);
	}
	return array;
}

/* The cells of each track, if the picture is by processor. */
static json_t *tracks_json(const struct bc_overview *o, uint32_t column)
{
	json_t *array = json_array();

	for (uint32_t i = 0; o->picture.by_processor && i < o->track_count; i++) {
		const struct bc_page_counts *cells = &o->cells[column].of[i];
		array = bc_json_append(array, cells_json(cells->regions, cells->count));
	}
	return array;
}

static json_t *processors_json(const uint64_t track[4])
{
	json_t *array = json_array();

	for (unsigned proc = 0; proc < 256; proc++)
		if ((track[proc / 64] >> proc % 64 & 1) != 0)
			array = bc_json_append(array, json_integer(proc));
	return array;
}

static json_t *column_json(const struct writer *w, const struct bc_overview *o, uint32_t column)
{
	const struct bc_overview_column *c = &o->columns[column];

	return bc_json_merge(
		BC_JSON_OBJECT({"from", time_json(w, c->from_ns)}, {"to", time_json(w, c->to_ns)},
			{"duration_ns", bc_json_u64(c->duration_ns)},
			{"recording", json_integer(c->recording)},
			{"first_record", bc_json_u64(c->first_record)},
			{"is_hole", json_boolean(c->is_hole)}, {"missing", bc_json_u64(c->missing)},
			{"records", bc_json_u64(c->records)},
			{"uncounted", bc_json_u64(c->uncounted)},
			{"counts", append_numbers(json_array(), c->counts, BC_PAGE_CLASSES)},
			{"cells", cells_json(c->cells, c->cell_count)},
			{"cells_by_processor", tracks_json(o, column)}),
		bc_loss_json(&c->loss));
}

static void write_lists(
	struct writer *w, const struct bc_overview *o, const struct bc_name_map *names)
{
	const struct bc_overview_picture *p = bc_overview_picture(o);
	const struct bc_overview_contents c = bc_overview_contents(o);

	start_array(w, "recordings");
	for (uint32_t i = 0; i < c.recording_count && w->rc == 0; i++)
		write_item(w, recording_json(w, &c.recordings[i]));
	start_array(w, "damage");
	for (uint32_t i = 0; i < c.damage_count && w->rc == 0; i++)
		write_item(w, damage_json(&c.damages[i]));
	start_array(w, "holes");
	for (uint32_t i = 0; i < c.hole_count && w->rc == 0; i++)
		write_item(w, hole_json(&c.holes[i]));
	start_array(w, "processors");
	for (uint32_t i = 0; i < o->track_count && w->rc == 0; i++)
		write_item(w, processors_json(o->tracks[i]));
	start_array(w, "rows");
	for (uint32_t i = 0; i < p->row_count && w->rc == 0; i++)
		write_item(w, row_json(&p->rows[i], names));
	start_array(w, "columns");
	for (uint32_t i = 0; i < p->column_count && w->rc == 0; i++)
		write_item(w, column_json(w, o, i));
	end_array(w);
}

int bc_overview_json(
	const struct bc_overview *o, const struct bc_name_map *names, struct bc_byte_buffer *text)
{
	static const char *const units[] = {
		[BC_OVERVIEW_RECORDS] = "records",
		[BC_OVERVIEW_CHUNKS] = "chunks",
		[BC_OVERVIEW_SUMMARY] = "summary",
		[BC_OVERVIEW_SEGMENTS] = "segments",
	};
	const struct bc_overview_picture *p = bc_overview_picture(o);
	const struct bc_overview_contents c = bc_overview_contents(o);
	struct writer w = {.text = text, .origin_ns = c.from_ns};

	if (c.axis == NULL)
		return -EXDEV;
	write_text(&w, "{\"version\":1");
	write_member(&w, "axis", bc_json_text_or_null(c.axis));
	write_member(&w, "origin_ns", origin_json(&w));
	write_member(&w, "extent",
		BC_JSON_OBJECT({"from", time_json(&w, c.from_ns)}, {"to", time_json(&w, c.to_ns)}));
	write_member(&w, "from", time_json(&w, p->from_ns));
	write_member(&w, "to", time_json(&w, p->to_ns));
	write_member(&w, "place_from", json_integer(p->place_from));
	write_member(&w, "place_to", json_integer(p->place_to));
	write_member(&w, "unit", json_string(units[p->unit]));
	write_member(&w, "by_processor", json_boolean(p->by_processor));
	write_member(&w, "page_shift", json_integer(p->page_shift));
	write_member(&w, "port_shift", json_integer(p->port_shift));
	write_lists(&w, o, names);
	write_text(&w, "}");
	return w.rc;
}

/* ---- events */

struct event_writer {
	struct writer writer;
	uint32_t count;
	uint32_t max;
	bool is_cut_off;
};

static json_t *event_json(const struct writer *w, const struct bc_overview_event *event)
{
	bool is_gap = event->kind == BC_EVENT_GAP;
	char text[BC_CHUNK_TEXT_BYTES + 1];

	memcpy(text, event->text, event->text_bytes);
	text[event->text_bytes] = '\0';
	return BC_JSON_OBJECT({"kind", json_string(bc_event_kind_name(event->kind))},
		{"time", time_json(w, event->time_ns)}, {"record", bc_json_u64(event->record)},
		{"recording", json_integer(event->recording)},
		{"text", is_gap ? json_null() : bc_json_text(text)},
		{"cause", is_gap ? json_string(bc_gap_cause_name(event->cause)) : json_null()},
		{"lost", bc_json_u64_or_null(is_gap, event->lost)},
		{"exact", is_gap ? json_boolean(event->is_exact) : json_null()},
		{"duration_ns", bc_json_u64(event->duration_ns)});
}

static bool add_event(void *context, const struct bc_overview_event *event)
{
	struct event_writer *e = context;

	e->is_cut_off = e->count == e->max;
	if (e->is_cut_off)
		return false;
	e->count++;
	write_item(&e->writer, event_json(&e->writer, event));
	return e->writer.rc == 0;
}

int bc_overview_events_json(struct bc_overview *o, int64_t from_ns, int64_t to_ns, uint32_t max,
	struct bc_byte_buffer *text)
{
	struct event_writer e = {
		.max = max, .writer = {.text = text, .origin_ns = bc_overview_contents(o).from_ns}};
	struct writer *w = &e.writer;

	write_text(w, "{\"origin_ns\":");
	write_value(w, origin_json(w));
	start_array(w, "events");
	int rc = w->rc == 0 ? bc_overview_events(o, from_ns, to_ns, add_event, &e) : w->rc;
	end_array(w);
	write_member(w, "cut_off", json_boolean(e.is_cut_off));
	write_text(w, "}");
	return rc != 0 ? rc : w->rc;
}
