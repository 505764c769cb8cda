/* The recordings of this run: their ids, who waits for their end, how long they are kept, and how
 * clients see them.
 *
 * An id has the second of the start and a number that sorts ids of one second by time. Ids of a run
 * increase, even if triggers start several recordings at one instant.
 *
 * Invariant: a recording is in the list until it has ended, and the latest that has ended stays, so
 * that its outcome can be asked for. Waiters are called once, at the end or when all are freed. */
#include "daemon/recorder/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "capture/source/source.h"
#include "formats/base/json.h"
#include "formats/segment/segment_header.h"

struct bc_recording_waiter {
	struct bc_recording_waiter *next;
	void *context;
	void (*done)(void *context, const struct bc_recording *recording);
};

int bc_recording_wait(struct bc_recording *r, void *context,
	void (*done)(void *context, const struct bc_recording *recording))
{
	struct bc_recording_waiter *waiter = malloc(sizeof(*waiter));

	if (waiter == NULL)
		return -ENOMEM;
	*waiter = (struct bc_recording_waiter){r->waiters, context, done};
	r->waiters = waiter;
	return 0;
}

static void notify_waiters(struct bc_recording *r)
{
	while (r->waiters != NULL) {
		struct bc_recording_waiter *waiter = r->waiters;
		r->waiters = waiter->next;
		waiter->done(waiter->context, r);
		free(waiter);
	}
}

void bc_recording_end(struct bc_recording *r, const struct bc_writer_notice *totals)
{
	r->state = BC_RECORDING_ENDED;
	r->totals = *totals;
	r->totals.next = NULL;
	notify_waiters(r);
}

static void free_recording(struct bc_recording *r)
{
	notify_waiters(r);
	bc_recording_info_destroy(&r->info);
	free(r);
}

static void describe_recording(struct bc_recordings *recordings,
	struct bc_recording_info *recording, int64_t started_ns, const char *label,
	const struct bc_source *source, const char *host)
{
	struct bc_segment_header *h = &recording->header;
	time_t second = (time_t)(started_ns / 1000000000);
	uint64_t ns = (uint64_t)(started_ns % 1000000000);
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)ns ^ (uint32_t)getpid();
	/* The upper half is the fraction of the second, so that ids of one second sort by time. */
	random = (uint32_t)(ns * 4096 / 1000000000) << 12 | (random & 0xFFF);
	/* Triggers can start several recordings at one instant: their ids still increase. */
	if (second == recordings->id_second && random <= recordings->id_number)
		random = (recordings->id_number + 1) & 0xFFFFFF;
	recordings->id_second = second;
	recordings->id_number = random;
	recording->started_ns = started_ns;
	bc_recording_id_write(h->recording, started_ns, random, label);
	recording->tag = bc_recording_tag(h->recording);
	snprintf(h->label, sizeof(h->label), "%s", label);
	snprintf(h->source_kind, sizeof(h->source_kind), "%s", source->kind);
	snprintf(h->source_name, sizeof(h->source_name), "%s", source->name);
	h->clock_hz = source->clock_hz;
	snprintf(h->host, sizeof(h->host), "%s", host);
	snprintf(h->program, sizeof(h->program), "buscapd " BC_VERSION);
}

/* Frees ended recordings except the latest. */
static void drop_old(struct bc_recordings *recordings)
{
	struct bc_recording **at = &recordings->newest;
	bool has_last = false;

	while (*at != NULL) {
		struct bc_recording *r = *at;
		bool is_kept = r->state != BC_RECORDING_ENDED || !has_last;
		has_last = has_last || r->state == BC_RECORDING_ENDED;
		if (is_kept) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free_recording(r);
	}
}

struct bc_recording *bc_recordings_add(struct bc_recordings *recordings, int64_t started_ns,
	const char *label, const struct bc_source *source, const char *host)
{
	struct bc_recording *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	bc_recording_info_init(&r->info);
	describe_recording(recordings, &r->info, started_ns, label, source, host);
	r->next = recordings->newest;
	recordings->newest = r;
	drop_old(recordings);
	return r;
}

struct bc_recording *bc_recordings_find(const struct bc_recordings *recordings, const char *id)
{
	struct bc_recording *r = recordings->newest;

	while (r != NULL && strcmp(r->info.header.recording, id) != 0)
		r = r->next;
	return r;
}

void bc_recordings_free(struct bc_recordings *recordings)
{
	while (recordings->newest != NULL) {
		struct bc_recording *r = recordings->newest;
		recordings->newest = r->next;
		free_recording(r);
	}
}

const char *bc_recording_reason_name(enum bc_recording_reason reason)
{
	static const char *const names[] = {
		[BC_RECORDING_ONGOING] = NULL,
		[BC_RECORDING_REQUEST] = "request",
		[BC_RECORDING_LIMIT] = "limit",
		[BC_RECORDING_TRIGGER] = "trigger",
		[BC_RECORDING_SOURCE] = "source",
		[BC_RECORDING_SIGNAL] = "signal",
		[BC_RECORDING_FAILED] = "failed",
	};

	return names[reason];
}

/* As JSON */

static const char *state_name(const struct bc_recording *r)
{
	switch (r->state) {
	case BC_RECORDING_RUNNING:
		return "recording";
	case BC_RECORDING_DRAINING:
		return "draining";
	case BC_RECORDING_ENDED:
		return r->totals.left_open != 0 ? "open" : "sealed";
	}
	return "";
}

static json_t *path_json(const char *dir, const char *file, bool is_open)
{
	char path[4096 + BC_SEGMENT_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];

	snprintf(path, sizeof(path), "%s/%s%s", dir, file, is_open ? BC_PARTIAL_SUFFIX : "");
	return bc_json_text(file[0] != '\0' ? path : NULL);
}

/* As a request gives them. */
static json_t *limits_json(const struct bc_stop_rules *limits)
{
	struct bc_json_member members[4] = {{NULL, NULL}};
	unsigned n = 0;

	if (limits->duration_ns != 0)
		members[n++] = (struct bc_json_member){
			"duration", bc_json_double((double)limits->duration_ns / 1e9)};
	if (limits->records != 0)
		members[n++] = (struct bc_json_member){"records", bc_json_u64(limits->records)};
	if (limits->file_bytes != 0)
		members[n++] = (struct bc_json_member){"filesize", bc_json_u64(limits->file_bytes)};
	return bc_json_object(members);
}

json_t *bc_recording_json(const struct bc_recording *r, const struct bc_writer_notice *now,
	struct bc_loss loss, const char *dir, bool is_open)
{
	const struct bc_segment_header *header = &r->info.header;
	bool has_ended = r->state == BC_RECORDING_ENDED;

	return bc_json_merge(
		BC_JSON_OBJECT({"id", bc_json_text(header->recording)},
			{"label", bc_json_text_or_null(header->label)},
			{"host", bc_json_text_or_null(header->host)},
			{"started", bc_json_time(r->info.started_ns)},
			{"ended", has_ended ? bc_json_time(r->info.end.ended_ns) : json_null()},
			{"state", bc_json_text(state_name(r))},
			{"segments", bc_json_u64(now->segments)},
			{"records", bc_json_u64(now->records)}, {"bytes", bc_json_u64(now->bytes)},
			{"metadata", bc_metadata_parse(header->metadata)},
			{"limits", limits_json(&r->limits)},
			{"path", path_json(dir, now->file, is_open)},
			{"reason", bc_json_text(bc_recording_reason_name(r->reason))}),
		bc_loss_json(&loss));
}

json_t *bc_segment_json(const char *dir, const struct bc_writer_notice *n)
{
	bool is_sealed = n->kind == BC_NOTICE_SEALED;
	json_t *object = BC_JSON_OBJECT({"recording", bc_json_text(n->recording->header.recording)},
		{"segment", bc_json_u64(n->segment)},
		{"path", path_json(dir, n->file, !is_sealed)});

	if (!is_sealed)
		return object;
	object = bc_json_merge(object, bc_loss_json(&n->loss));
	return bc_json_merge(
		object, BC_JSON_OBJECT({"records", bc_json_u64(n->records)},
				{"bytes", bc_json_u64(n->bytes)},
				{"chunks", bc_json_u64(n->chunks)}, {"hash", bc_json_text(n->hash)},
				{"first_record", bc_json_u64(n->first_record)},
				{"started", bc_json_time(n->wall_ns)}));
}
