/* Fills one chunk at a time and appends it to the file, which is created with the first. The file
 * is one segment: with more chunks than a segment may have, writing ends with an error.
 *
 * Invariant: within an epoch, ticks never decrease, and every record has its entry's tick. A delta
 * that doesn't fit, or whose tick is known only from an anchor, becomes an anchor event. Where the
 * source's clock restarts, or another recording begins, an epoch begins. Epoch numbers only grow.
 *
 * Times of day come from the source's chunks. A source that has none has an axis: its times are
 * positions on it, in ns after 1970 (struct bc_segment_header). */
#include "cli/io/segment_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/term/console.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/segment/segment_name.h"
#include "formats/segment/segment_writer.h"

#define NS_PER_S 1000000000

struct bc_segment_target {
	const struct bc_console *console;
	char unnamed[PATH_MAX]; /* path of a file that gets no name */
	const char *path;
	const char *name; /* path without directories */
	uint64_t clock_hz;
	struct bc_compressor compressor;
	struct bc_origin origin;
	int dir_fd;
	bool is_created;
	int error; /* the negative errno of a write that failed: don't try again */
	struct bc_segment_writer writer;
	bool has_header; /* `header` is set, except the members that depend on the first chunk */
	struct bc_segment_header header;
	uint64_t tag;
	int64_t now_ns; /* time of opening */
	/* The times of day of entries that have none count from these: the first tick of the epoch,
	 * and its position on the axis. */
	bool has_base;
	uint64_t base_tick;
	int64_t base_ns;
	bool has_record;         /* this epoch has a record */
	uint64_t records;        /* written so far */
	struct bc_totals totals; /* of the gaps written so far */
	uint64_t tick;           /* of the last record */
	uint32_t epoch;
	bool is_ticked; /* the source has times */
	unsigned unit;  /* of the first */
	bool has_source_epoch;
	uint32_t source_epoch; /* epoch and recording of the previous entry in the source */
	uint64_t source_tag;
	uint8_t *encoded;
	struct bc_chunk chunk;
	struct bc_chunk_pages pages;
};

static void print_exists(const struct bc_segment_target *t, const char *suffix, const char *left)
{
	bc_print_error(t->console, t->path,
		"not created: %s%s already exists, and segments never replace files; remove it or "
		"choose another -o%s",
		suffix[0] != '\0' ? t->name : "it", suffix, left);
}

/* Returns true if neither the file nor its .partial exists. */
static bool is_free(const struct bc_segment_target *t)
{
	static const char *const suffixes[] = {"", BC_PARTIAL_SUFFIX};
	char name[BC_ATOMIC_FILE_NAME_MAX];
	struct stat st;

	for (unsigned i = 0; i < 2; i++) {
		int n = snprintf(name, sizeof(name), "%s%s", t->name, suffixes[i]);
		if (n >= (int)sizeof(name)) {
			bc_print_error(
				t->console, t->path, "not created: %s", strerror(ENAMETOOLONG));
			return false;
		}
		if (fstatat(t->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			if (S_ISDIR(st.st_mode))
				bc_print_error(t->console, t->path,
					"not created: this is a directory; name a file in it");
			else
				print_exists(t, suffixes[i], "");
			return false;
		}
	}
	return true;
}

static void free_target(struct bc_segment_target *t)
{
	if (t->is_created)
		bc_interrupt_note_clear();
	if (t->dir_fd >= 0)
		close(t->dir_fd);
	bc_compressor_close(&t->compressor);
	free(t->encoded);
	free(t);
}

static void start_chunk(struct bc_segment_target *t)
{
	bc_chunk_reset(&t->chunk, t->tick, t->epoch);
	t->chunk.info.first_record = t->records;
}

enum bc_exit bc_segment_target_open(struct bc_segment_target **target,
	const struct bc_console *console, const char *path, uint64_t clock_hz, enum bc_level level,
	const struct bc_origin *origin)
{
	struct bc_segment_target *t = malloc(sizeof(*t));

	if (t == NULL)
		return bc_print_no_memory(console);
	memset(t, 0, offsetof(struct bc_segment_target, chunk));
	t->dir_fd = -1;
	t->encoded = malloc(BC_CHUNK_ENCODED_MAX);
	if (bc_compressor_open(&t->compressor, level) != 0 || t->encoded == NULL) {
		free_target(t);
		return bc_print_no_memory(console);
	}
	t->console = console;
	if (path == NULL) {
		const char *dir = getenv("TMPDIR");
		snprintf(t->unnamed, sizeof(t->unnamed), "%s/buscap-%ld",
			dir != NULL ? dir : "/tmp", (long)getpid());
		path = t->unnamed;
	}
	t->path = path;
	t->name = basename(path);
	t->clock_hz = clock_hz;
	t->origin = *origin;
	t->now_ns = bc_wall_ns();
	t->base_ns = t->now_ns;
	t->dir_fd = bc_open_directory(console, path);
	bool ok = t->dir_fd >= 0 && t->name[0] != '\0';
	if (t->dir_fd >= 0 && t->name[0] == '\0')
		bc_print_error(console, path, "is a directory; -o needs a file");
	if (!ok || !is_free(t)) {
		free_target(t);
		return BC_EXIT_FAILED;
	}
	start_chunk(t);
	*target = t;
	return BC_EXIT_OK;
}

/* Returns false if it doesn't fit in the header. */
static bool write_metadata(struct bc_segment_header *h, const json_t *metadata)
{
	char *text = bc_json_print(metadata);
	bool fits = text != NULL && strlen(text) < sizeof(h->metadata) - 5;

	if (fits)
		strcpy(h->metadata, text);
	free(text);
	return fits;
}

/* Sets the source's metadata plus the origin. If both don't fit, keeps the origin. */
static void set_metadata(struct bc_segment_target *t, const char *from)
{
	struct bc_segment_header *h = &t->header;
	const char *metadata = h->metadata[0] != '\0' ? h->metadata : "{}";
	json_t *all = bc_json_parse(metadata, strlen(metadata), JSON_ALLOW_NUL, NULL);
	json_t *own = json_object();
	const char *key[2] = {t->origin.key, "cut"};
	const char *value[2] = {from, t->origin.how};

	if (!json_is_object(all)) {
		json_decref(all);
		all = json_object();
	}
	for (unsigned i = 0; i < 2; i++) {
		if (value[i] == NULL || value[i][0] == '\0')
			continue;
		/* What was cut from a cut was also cut from the recording before it. */
		const char *old = json_string_value(json_object_get(all, key[i]));
		char both[2048];
		snprintf(both, sizeof(both), "%s%s%s", value[i], old != NULL ? " " : "",
			old != NULL ? old : "");
		json_object_del(all, key[i]);
		(void)json_object_set_new(all, key[i], bc_json_text(both));
		(void)json_object_set_new(own, key[i], bc_json_text(both));
	}
	if (!write_metadata(h, all)) {
		bc_print_error(t->console, t->path,
			"metadata of the source dropped: no space left to add the origin");
		if (!write_metadata(h, own))
			h->metadata[0] = '\0';
	}
	json_decref(all);
	json_decref(own);
}

/* Fills the header for a source that is not a recording. */
static void set_file_header(struct bc_segment_target *t, const struct bc_trace *source)
{
	struct bc_segment_header *h = &t->header;

	snprintf(h->source_kind, sizeof(h->source_kind), "file");
	snprintf(h->source_name, sizeof(h->source_name), "%s", source->paths[0]);
	if (gethostname(h->host, sizeof(h->host) - 1) != 0)
		h->host[0] = '\0';
	const char *axis = !t->is_ticked             ? "records"
			   : t->clock_hz != 0        ? "seconds"
			   : t->unit == BC_UNIT_TICK ? "ticks"
						     : bc_unit_name(t->unit);
	snprintf(h->axis, sizeof(h->axis), "%s",
		source->has_header ? source->header.axis
		: source->has_wall ? ""
				   : axis);
	t->base_ns = h->axis[0] != '\0' ? 0 : t->now_ns;
}

/* Fills the header, except the members that depend on the first chunk. */
static void set_header(struct bc_segment_target *t, const struct bc_trace *source)
{
	struct bc_segment_header *h = &t->header;
	const char *from = t->origin.from;
	char recording[BC_RECORDING_ID_MAX];

	if (t->has_header)
		return;
	t->has_header = true;
	bool has_one = source->has_header && !t->origin.is_merged;
	if (has_one)
		*h = source->header;
	else
		set_file_header(t, source);
	memcpy(recording, h->recording, sizeof(recording));
	if (from == NULL)
		from = has_one ? recording : source->paths[0];
	h->version = BC_SEGMENT_VERSION;
	h->segment = 0;
	h->continues[0] = '\0';
	if (t->clock_hz != 0)
		h->clock_hz = t->clock_hz;
	snprintf(h->program, sizeof(h->program), "buscap %s", BC_VERSION);
	set_metadata(t, from);
}

/* Returns the time of day of a tick. */
static int64_t tick_to_wall(
	const struct bc_segment_target *t, const struct bc_moment *moment, uint64_t tick)
{
	struct bc_clock_point clock = moment->is_known ? moment->clock
						       : (struct bc_clock_point){
								 t->base_ns, t->base_tick, 0};
	int64_t ns;

	clock.clock_hz = clock.clock_hz != 0 ? clock.clock_hz
					     : bc_segment_header_axis_hz(&t->header);
	(void)bc_tick_time(&ns, clock, tick);
	return ns;
}

/* Completes the header from the first chunk, and creates the file. */
static int create_file(struct bc_segment_target *t)
{
	struct bc_segment_header *h = &t->header;
	const struct bc_chunk_info *first = &t->chunk.info;
	uint32_t random = 0;
	char left[PATH_MAX];
	bool is_empty = bc_chunk_is_empty(&t->chunk);

	h->wall_ns = is_empty ? t->base_ns : first->wall_ns;
	h->first_tick = first->first_tick;
	h->first_epoch = first->epoch;
	h->first_record = 0;
	/* Only recordings made by buscapd have these; clear them. */
	h->sequence = 0;
	h->boot_id[0] = '\0';
	bc_level_write(h->compression, t->compressor.level);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)t->now_ns ^ (uint32_t)getpid();
	int64_t made_ns = h->axis[0] != '\0' ? t->now_ns : h->wall_ns;
	uint64_t fraction = (uint64_t)(made_ns > 0 ? made_ns : 0) % NS_PER_S;
	random = (uint32_t)(fraction * 4096 / NS_PER_S) << 12 | (random & 0xFFF);
	bc_recording_id_write(h->recording, made_ns, random, h->label);
	t->tag = bc_recording_tag(h->recording);
	int rc = bc_segment_create(&t->writer, t->dir_fd, t->name, BC_PARTIAL_SUFFIX, h);
	t->is_created = rc == 0;
	if (t->is_created && t->origin.fd != NULL) {
		(void)unlinkat(t->dir_fd, t->writer.file.open_name, 0);
	} else if (t->is_created) {
		snprintf(left, sizeof(left), "%s%s", t->path, BC_PARTIAL_SUFFIX);
		bc_interrupt_note(t->console, t->path, left);
	}
	return rc;
}

/* Writes the current chunk unless it is empty, and starts the next. Returns 0 or target->error. */
static int finish_chunk(struct bc_segment_target *t)
{
	size_t header_bytes;

	if (!bc_chunk_is_empty(&t->chunk)) {
		int rc = t->is_created ? 0 : create_file(t);
		if (rc == 0) {
			t->chunk.info.recording_tag = t->tag;
			const struct bc_loss loss = bc_chunk_loss(&t->chunk);
			bc_totals_add(&t->totals, &t->chunk);
			t->chunk.info.totals = t->totals;
			bc_chunk_encode(
				t->encoded, &t->chunk, &t->compressor, &t->pages, &header_bytes);
			rc = bc_segment_append(&t->writer, t->encoded, header_bytes, &t->chunk.info,
				&loss, &t->pages.counts);
		}
		if (rc != 0)
			return t->error = rc;
	}
	start_chunk(t);
	return 0;
}

/* A chunk has the time of day of its first record or event. */
static void set_wall(struct bc_segment_target *t, const struct bc_moment *moment,
	const struct bc_entry *entry, uint64_t tick)
{
	const struct bc_moment start = {.is_known = true};

	if (t->chunk.info.records != 0)
		return;
	if (!t->has_base) {
		t->base_tick = tick;
		/* A tick's position is its number; the first record's is 0. */
		if (t->records == 0 && t->is_ticked && t->header.axis[0] != '\0')
			t->base_ns = tick_to_wall(t, &start, tick);
	}
	t->has_base = true;
	t->chunk.info.wall_ns = entry->has_wall ? entry->wall_ns : tick_to_wall(t, moment, tick);
}

/* Starts an epoch where the entries have a new epoch or are from another recording, because that
 * has another clock, and where their ticks go backwards, because ticks must not decrease within an
 * epoch. Merged recordings share a clock. Epoch numbers always increase. */
static int follow_epoch(
	struct bc_segment_target *t, const struct bc_entry *entry, const struct bc_moment *moment)
{
	bool is_other_recording = moment->recording_tag != t->source_tag && !t->origin.is_merged;
	bool is_other = t->has_source_epoch &&
			(entry->epoch != t->source_epoch || is_other_recording);
	bool has_fallen = t->has_record && !is_other && !t->origin.is_numbered &&
			  (entry->traits & BC_TRAIT_TIME) != 0 && entry->tick < t->tick;
	uint32_t epoch = t->epoch;

	if (!t->has_source_epoch || (is_other && entry->epoch > epoch))
		epoch = entry->epoch;
	else if (is_other || has_fallen)
		epoch++;
	t->has_source_epoch = true;
	t->source_epoch = entry->epoch;
	t->source_tag = moment->recording_tag;
	if (epoch == t->epoch)
		return 0;
	int rc = finish_chunk(t);
	if (t->has_record)
		t->base_ns = tick_to_wall(t, &(struct bc_moment){.is_known = false}, t->tick);
	t->has_base = false;
	t->epoch = epoch;
	t->tick = 0;
	t->has_record = false;
	start_chunk(t);
	return rc;
}

/* Adds a gap to an earlier one at the same position and of the same cause. Gaps of cause
 * "unplugged" and "transfer" each stand for one event and stay separate. Returns true if merged. */
static bool join_gap(struct bc_segment_target *t, const struct bc_event *gap)
{
	struct bc_chunk *chunk = &t->chunk;

	if (gap->kind != BC_EVENT_GAP || gap->cause == BC_GAP_UNPLUGGED ||
		gap->cause == BC_GAP_TRANSFER)
		return false;
	for (uint32_t i = chunk->info.events; i > 0; i--) {
		struct bc_event *event = &chunk->events[i - 1];
		if (event->position != chunk->info.records)
			return false;
		if (event->kind != BC_EVENT_GAP || event->cause != gap->cause)
			continue;
		event->exact = event->exact && gap->exact;
		if (__builtin_add_overflow(event->value, gap->value, &event->value)) {
			event->value = UINT64_MAX;
			event->exact = false;
		}
		event->duration_ns += gap->duration_ns;
		return true;
	}
	return false;
}

static int add_event(
	struct bc_segment_target *t, const struct bc_entry *entry, const struct bc_moment *moment)
{
	struct bc_event event = entry->note.event;
	int rc = follow_epoch(t, entry, moment);

	/* Kind 0 only announces an epoch; records carry it. */
	if (rc != 0 || event.kind == 0)
		return rc;
	/* It belongs to the next record, and that will be in the next chunk. */
	if (t->chunk.info.records == BC_CHUNK_RECORDS)
		rc = finish_chunk(t);
	if (rc != 0 || join_gap(t, &event))
		return rc;
	for (;;) {
		set_wall(t, moment, entry, entry->tick);
		event.position = t->chunk.info.records;
		event.text_bytes = (uint16_t)entry->note.text.bytes;
		if (bc_chunk_add_event(&t->chunk, &event, entry->note.text.at))
			return 0;
		rc = finish_chunk(t);
		if (rc != 0)
			return rc;
	}
}

/* Returns true if a reference does not fit a record, and describes why in `err`. */
static bool is_too_large(const struct bc_entry *entry, char err[160])
{
	if (entry->addr > UINT32_MAX)
		snprintf(err, 160,
			"address 0x%" PRIx64 " doesn't fit in the 32 bits of a record; "
			"with -O bcp1:map=pages, each page gets a number that does",
			entry->addr);
	else if (entry->size > UINT8_MAX)
		snprintf(err, 160,
			"size of %" PRIu32 " bytes doesn't fit in the 8 bits of a record",
			entry->size);
	else if (entry->proc > UINT8_MAX)
		snprintf(err, 160, "processor %u doesn't fit in the 8 bits of a record",
			(unsigned)entry->proc);
	else if (entry->type > UINT8_MAX)
		snprintf(err, 160, "records have no such type");
	else if ((entry->traits & BC_TRAIT_TIME) != 0 && entry->tick >= BC_TICK_END)
		snprintf(err, 160, "tick %" PRIu64 " is not below 2^63", entry->tick);
	else
		return false;
	return true;
}

/* True if a source's ticks have another rate than the header says; describes this in `err`. */
static bool is_other_rate(
	const struct bc_segment_target *t, const struct bc_moment *moment, char err[160])
{
	/* A user-given rate applies to every input. */
	bool is_fixed = t->clock_hz != 0 || t->header.clock_hz == 0;

	if (is_fixed || t->origin.is_merged || moment->clock.clock_hz == 0 ||
		moment->clock.clock_hz == t->header.clock_hz)
		return false;
	snprintf(err, 160,
		"clock rate changes from %" PRIu64 " to %" PRIu64 " Hz; use buscap merge --by wall",
		t->header.clock_hz, moment->clock.clock_hz);
	return true;
}

/* Returns the tick of an entry. In a source without times, each sample takes one tick, as when
 * recording. In a source with times, an entry without one has the tick of the previous entry. */
static uint64_t tick_of(const struct bc_segment_target *t, const struct bc_entry *entry)
{
	bool is_sample = (entry->traits & BC_TRAIT_SAMPLE) != 0;

	if ((entry->traits & BC_TRAIT_TIME) != 0 && !t->origin.is_numbered)
		return entry->tick;
	if (t->is_ticked)
		return t->tick;
	return is_sample && entry->number >= t->tick ? entry->number + 1 : t->tick + 1;
}

/* Appends a record. A delta that does not fit 32 bits, or is unknown, becomes an anchor event with
 * the absolute tick. Returns 0 or a negative errno. */
static int add_reference(
	struct bc_segment_target *t, const struct bc_entry *entry, const struct bc_moment *moment)
{
	struct bc_chunk_info *info = &t->chunk.info;
	int rc = follow_epoch(t, entry, moment);
	uint64_t tick = tick_of(t, entry);
	uint64_t delta = tick - t->tick;

	/* The first record of an epoch keeps a delta only if it had the same one in the source. */
	bool is_first = !t->has_record;
	bool has_delta = delta < BC_TIME_NONE && (!is_first || entry->has_delta);
	if (entry->has_delta && entry->delta == BC_TIME_NONE && !t->origin.is_numbered)
		has_delta = false;
	if (is_first && (t->epoch != 0 || t->records != 0 || entry->delta != delta))
		has_delta = false;
	if (rc == 0 && !bc_chunk_has_room(&t->chunk, has_delta ? 0 : 1))
		rc = finish_chunk(t);
	if (rc != 0)
		return rc;
	set_wall(t, moment, entry, tick);
	if (!has_delta) {
		struct bc_event anchor = {.position = info->records,
			.kind = BC_EVENT_ANCHOR,
			.exact = !entry->is_inexact,
			.value = tick};
		if (!bc_chunk_add_event(&t->chunk, &anchor, NULL))
			return -ENOMEM; /* can't happen: bc_chunk_has_room() */
	}
	struct bc_record record = {.addr = (uint32_t)entry->addr,
		.reqtype = (uint8_t)entry->type,
		.size = (uint8_t)entry->size,
		.attr = entry->attr,
		.proc = (uint8_t)entry->proc,
		.time = has_delta ? (uint32_t)delta : BC_TIME_NONE};
	bc_record_store(t->chunk.records + (size_t)info->records * BC_RECORD_BYTES, &record);
	if (info->records == 0)
		info->first_tick = tick;
	info->last_tick = tick;
	info->records++;
	t->records++;
	t->tick = tick;
	t->has_record = true;
	return 0;
}

size_t bc_segment_target_add(struct bc_segment_target *t, const struct bc_entry *entries,
	size_t count, const struct bc_trace *source, const struct bc_moment *moment, char err[160])
{
	err[0] = '\0';
	t->is_ticked = (bc_trace_traits(source) & BC_TRAIT_TIME) != 0 && !t->origin.is_numbered;
	for (size_t i = 0; i < count && t->unit == BC_UNIT_TICK; i++)
		t->unit = (entries[i].traits & BC_TRAIT_TIME) != 0 ? entries[i].unit : BC_UNIT_TICK;
	set_header(t, source);
	if (is_other_rate(t, moment, err))
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct bc_entry *entry = &entries[i];
		bool is_event = entry->kind == BC_ENTRY_EVENT;
		if (!is_event && is_too_large(entry, err))
			return i;
		if ((is_event ? add_event : add_reference)(t, entry, moment) != 0)
			return i;
	}
	return count;
}

/* Reports why the file is not whole, and what was written. */
static void print_abandoned(const struct bc_segment_target *t)
{
	uint64_t records = t->writer.records;
	char left[PATH_MAX + 64] = "";

	if (t->is_created && t->origin.fd == NULL)
		snprintf(left, sizeof(left), "; incomplete data (%s record%s) is in %s%s",
			BC_GROUPED(records), bc_plural(records), t->path, BC_PARTIAL_SUFFIX);
	if (t->error == -EEXIST)
		print_exists(t, "", left);
	else if (t->error == -EFBIG && t->writer.chunks == BC_SEGMENT_CHUNKS)
		bc_print_error(t->console, t->path,
			"too long: a segment holds at most %u chunks; split the trace with buscap "
			"cut%s",
			BC_SEGMENT_CHUNKS, left);
	else if (t->error != 0)
		bc_print_error(t->console, t->path, "write error: %s%s", strerror(-t->error), left);
	else if (left[0] != '\0')
		bc_print_error(t->console, t->path, "not sealed%s", left);
}

void bc_segment_target_abandon(struct bc_segment_target *t)
{
	/* The incomplete chunk is good, whatever the error after it. */
	if (t->error == 0)
		(void)!finish_chunk(t);
	print_abandoned(t);
	if (t->is_created)
		bc_segment_abandon(&t->writer);
	free_target(t);
}

enum bc_exit bc_segment_target_seal(struct bc_segment_target *t, const struct bc_trace *source)
{
	set_header(t, source);
	if (finish_chunk(t) == 0 && !t->is_created)
		t->error = create_file(t);
	if (t->error == 0)
		t->error = t->origin.fd != NULL ? bc_segment_end(&t->writer)
						: bc_segment_seal(&t->writer);
	if (t->error == 0 && t->origin.fd != NULL) {
		*t->origin.fd = fcntl(t->writer.file.fd, F_DUPFD_CLOEXEC, 3);
		t->error = *t->origin.fd < 0 ? -errno : 0;
		bc_segment_abandon(&t->writer);
	}
	if (t->error != 0) {
		bc_segment_target_abandon(t);
		return BC_EXIT_FAILED;
	}
	if (t->is_ticked && !source->has_header && t->clock_hz == 0 && t->origin.fd == NULL)
		bc_print_error(t->console, t->path,
			"no clock rate: pictures of it count %s; -O segment:clock_hz=N gives "
			"seconds",
			t->header.axis);
	free_target(t);
	return BC_EXIT_OK;
}
