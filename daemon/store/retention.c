/* Deletes the oldest sealed segments until every rule holds.
 *
 * Invariants:
 *   - The oldest recording first, by sequence number. A file that can't be deleted is refused:
 *     logged, passed over, and tried again after a minute. If the directory accepts no change,
 *     or too many files are refused, that ends the check. If a header can't be read for the
 *     moment (a lease, a timeout), the rules wait for it, up to a minute; then it is refused.
 *     Meanwhile, those after it are read, up to one that can be: each gets its own minute.
 *   - Never an open, damaged or foreign file, or one that an earlier run left open. The catalogue
 *     may be wrong about files of others, so a file's header is read before it is deleted.
 *   - Nothing for files that are gone: before each deletion, the catalogue enters what others
 *     have changed. If they change more than it can follow, the rules about existing files
 *     (files, max_use, max_age) wait for it, up to a minute; keep_free does not. While the
 *     catalogue is incomplete, all rules wait: what they would delete may not be the oldest.
 *   - Age counts only while the clock is known (is_age_known()).
 *
 * Free space is what the file system reports plus what was deleted and is not shown there yet. That
 * shows when the figure grows, apart from what this process has written: on most file systems at
 * once, so they are asked again after deleting, else by the growth from check to check. Some
 * (btrfs) show neither deletions nor writes before their next commit: an unchanged figure says
 * nothing. What does not show within a minute makes keep_free slow: one segment a minute. */
#include "daemon/store/retention.h"
#include "daemon/store/catalogue_listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/base/host.h"
#include "formats/base/quantity.h"
#include "formats/base/text.h"
#include "formats/segment/segment_header.h"

#define SECOND_NS INT64_C(1000000000)

/* More time than this between two files, or after the newest one, is a change of the clock. */
#define LEAP_NS (180 * 86400 * SECOND_NS)

/* During a run, a larger change of the clock suspends max_age. */
#define JUMP_NS (3600 * SECOND_NS)

/* A file may be this much newer than the clock: file servers have their own. */
#define SLACK_NS (60 * SECOND_NS)

/* What was deleted must show as free within this time. */
#define SHOWN_NS UINT64_C(60000000000)

/* Deletions within this time are expected to show together. */
#define TOGETHER_NS UINT64_C(8000000000)

/* Between two looks at all ages. */
#define AGE_CHECK_NS UINT64_C(1000000000)

/* Files that could not be deleted are passed over for this long. A check tries this many. */
#define REFUSED_NS  UINT64_C(60000000000)
#define REFUSED_MAX 16u

/* The rules about existing files wait this long for the catalogue. */
#define BEHIND_NS UINT64_C(60000000000)

/* Age */

enum { CLOCK_OK, CLOCK_BEHIND, CLOCK_AHEAD, CLOCK_JUMPED };

/* Describes a time in the largest unit that suits it. */
static const char *span_text(char out[32], int64_t ns)
{
	double s = (double)(ns < 0 ? -ns : ns) / (double)SECOND_NS;

	if (s >= 2 * 86400)
		snprintf(out, 32, "%.0f days", s / 86400);
	else if (s >= 2 * 3600)
		snprintf(out, 32, "%.0f hours", s / 3600);
	else
		snprintf(out, 32, "%.0f minutes", s / 60);
	return out;
}

static void log_clock(int clock, const struct bc_segment_name *newest, int64_t ns)
{
	char file[BC_SEGMENT_NAME_MAX] = "";
	char span[32];

	if (newest != NULL)
		bc_segment_name_write(file, newest);
	span_text(span, ns);
	switch (clock) {
	case CLOCK_OK:
		if (newest != NULL)
			bc_log(BC_LOG_NOTICE, "rule max_age applies again: the clock has passed %s",
				file);
		return;
	case CLOCK_BEHIND:
		bc_log(BC_LOG_WARNING,
			"rule max_age is suspended: the clock is %s behind %s, the newest file; "
			"check the clock",
			span, file);
		return;
	case CLOCK_AHEAD:
		bc_log(BC_LOG_WARNING,
			"rule max_age does not count the %s since %s, the newest file; check the "
			"clock",
			span, file);
		return;
	case CLOCK_JUMPED:
		bc_log(BC_LOG_WARNING,
			"rule max_age is suspended until the next start: the clock has jumped %s "
			"by %s; check the clock",
			ns < 0 ? "back" : "ahead", span);
		return;
	}
}

/* Notices if the clock has jumped since the last check. */
static void note_jump(struct bc_retention *r, const struct bc_retention_check *check)
{
	int64_t offset = check->wall_ns - (int64_t)check->boot_ns;
	int64_t change = offset - r->clock_offset_ns;

	if (r->has_offset && (change > JUMP_NS || change < -JUMP_NS))
		r->jump_ns = change;
	r->has_offset = true;
	r->clock_offset_ns = offset;
}

/* Returns whether files may be deleted for their age. Logs when the answer changes. */
static bool is_age_known(struct bc_retention *r, const struct bc_catalogue_ages *ages,
	const struct bc_retention_check *check)
{
	const struct bc_segment_name *newest = ages->newest.recording[0] != '\0' ? &ages->newest
										 : NULL;
	int64_t since = newest != NULL ? check->wall_ns - ages->newest_ns : 0;
	int clock = CLOCK_OK;

	if (r->jump_ns != 0)
		clock = CLOCK_JUMPED;
	else if (since < -SLACK_NS)
		clock = CLOCK_BEHIND;
	else if (since > LEAP_NS)
		clock = CLOCK_AHEAD;
	/* Not logged: a file was written after a long time. */
	if (clock != r->clock && !(clock == CLOCK_OK && r->clock == CLOCK_AHEAD))
		log_clock(clock, newest, clock == CLOCK_JUMPED ? r->jump_ns : since);
	r->clock = clock;
	return clock == CLOCK_OK || clock == CLOCK_AHEAD;
}

/* Free space that does not show yet */

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t unshown_bytes(const struct bc_retention *r)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < r->unshown_count; i++)
		bytes += r->unshown[i].left;
	return bytes;
}

static void add_unshown(struct bc_retention *r, uint64_t bytes, uint64_t boot_ns)
{
	struct bc_unshown *last = r->unshown_count == 0 ? NULL : &r->unshown[r->unshown_count - 1];

	if (bytes == 0)
		return;
	if (last == NULL ||
		(r->unshown_count < BC_UNSHOWN_MAX && boot_ns - last->since_ns >= TOGETHER_NS)) {
		last = &r->unshown[r->unshown_count++];
		*last = (struct bc_unshown){.since_ns = boot_ns};
	}
	last->deleted += bytes;
	last->left += bytes;
}

static void remove_unshown(struct bc_retention *r, unsigned i)
{
	r->unshown_count--;
	memmove(&r->unshown[i], &r->unshown[i + 1], (r->unshown_count - i) * sizeof(r->unshown[0]));
}

/* Enters what the file system reports now. Its growth since the last report, apart from what was
 * written since, is the space of the files deleted first. It never matches to the byte. */
static void enter_free(struct bc_retention *r, uint64_t free_bytes, uint64_t written_bytes)
{
	if (r->has_free && free_bytes == r->free_bytes)
		return;
	uint64_t before = subtract(r->free_bytes, subtract(written_bytes, r->written_bytes));
	uint64_t more = r->has_free ? subtract(free_bytes, before) : 0;
	bool has_grown = r->has_free && free_bytes > r->free_bytes;
	unsigned i = 0;

	r->has_free = true;
	r->free_bytes = free_bytes;
	r->written_bytes = written_bytes;
	while (i < r->unshown_count) {
		struct bc_unshown *unshown = &r->unshown[i];
		uint64_t part = more < unshown->left ? more : unshown->left;
		unshown->left -= part;
		more -= part;
		if (unshown->left <= unshown->deleted / 8) {
			/* Without growth, some of what was written may just not show. */
			r->has_shown = r->has_shown || has_grown;
			remove_unshown(r, i);
		} else {
			i++;
		}
	}
}

/* Forgets deletions that have not shown in time. Returns true if most of one did not. */
static bool has_missed(struct bc_retention *r, uint64_t boot_ns)
{
	bool is_missed = false;

	while (r->unshown_count != 0 && boot_ns - r->unshown[0].since_ns >= SHOWN_NS) {
		is_missed = is_missed || r->unshown[0].left > r->unshown[0].deleted / 2;
		remove_unshown(r, 0);
	}
	return is_missed;
}

/* Makes keep_free slow if freed space is missing and needed; ends that when it is not. */
static void set_slow(struct bc_retention *r, const struct bc_retention_check *check)
{
	uint64_t missing = unshown_bytes(r);
	bool is_missed = has_missed(r, check->boot_ns);
	bool is_short = r->free_bytes < check->rules->keep_free_bytes + check->coming_bytes;

	if (r->is_slow && (!is_short || r->has_shown)) {
		bc_log_limited(check->limits, BC_LOG_NOTICE,
			"rule keep_free: the file system shows the space of deleted segments "
			"again");
		r->is_slow = false;
	} else if (!r->is_slow && is_short && is_missed) {
		bc_log_limited(check->limits, BC_LOG_WARNING,
			"rule keep_free: %llu MB deleted a minute ago are not free yet: a program "
			"has the files open, a snapshot has them, or the file system is slow; "
			"deleting only one segment a minute",
			(unsigned long long)(missing + 999999) / 1000000);
		r->is_slow = true;
		r->slow_at_ns = check->boot_ns - SHOWN_NS;
	}
	r->has_shown = false;
}

/* Usage */

/* Current usage, to compare with the rules */
struct usage {
	struct bc_catalogue_sums sums;
	bool is_current; /* `sums` and `old` are up to date */
	uint64_t files;
	uint64_t used;
	bool is_free_known;
	uint64_t free;
	uint64_t inodes; /* that are free; UINT64_MAX: none is needed */
	bool is_slow;
	bool waits;       /* keep_free deletes nothing until freed space or inodes show */
	bool has_more;    /* something that keep_free can delete later */
	uint64_t linked;  /* files passed over because they have other links */
	uint64_t refused; /* and because they can't be deleted */
	unsigned failed;  /* deletions */
	bool is_untried;  /* not all files were: the check ends, and no rule is broken yet */
	bool has_old;     /* files up to `old` are too old */
	struct bc_catalogue_place old;
};

static bool lacks_free(const struct usage *usage, const struct bc_retention_rules *rules)
{
	if (rules->keep_free_bytes == 0)
		return false;
	return usage->inodes == 0 || (usage->is_free_known && usage->free < rules->keep_free_bytes);
}

static bool uses_too_much(const struct usage *usage, const struct bc_retention_rules *rules)
{
	return usage->is_current && rules->max_use_bytes != 0 && usage->used > rules->max_use_bytes;
}

/* Updates the usage from the catalogue. */
static void count_usage(
	struct bc_retention *r, struct usage *usage, const struct bc_retention_check *check)
{
	bool is_current = bc_catalogue_notice(check->catalogue, check->dir_fd, check->limits);

	if (is_current)
		r->behind_since_ns = 0;
	else if (r->behind_since_ns == 0)
		r->behind_since_ns = check->boot_ns;
	usage->is_current = is_current || check->boot_ns - r->behind_since_ns >= BEHIND_NS;
	usage->sums = bc_catalogue_sums(check->catalogue);
	usage->files = usage->sums.segments + check->coming_files;
	usage->used = usage->sums.bytes + check->coming_bytes;
}

/* Returns the rule for which a file must be deleted, or NULL. */
static const char *rule_for(struct usage *usage, const struct bc_retention_check *check,
	const struct bc_catalogue_place *place, bool has_links)
{
	const struct bc_retention_rules *rules = check->rules;

	if (check->files != 0 && usage->is_current && usage->files > check->files)
		return "files";
	if (uses_too_much(usage, rules))
		return "max_use";
	if (usage->has_old && usage->is_current && !bc_catalogue_is_after(place, &usage->old))
		return "max_age";
	if (!lacks_free(usage, rules))
		return NULL;
	if (has_links) {
		usage->linked++;
		return NULL;
	}
	/* Slow, deleting the current recording's own first segments would gain nothing. */
	bool is_spared = usage->waits ||
			 (usage->is_slow && check->recording != NULL &&
				 strcmp(place->name.recording, check->recording) == 0);
	usage->has_more = usage->has_more || is_spared;
	return is_spared ? NULL : "keep_free";
}

static void log_deletion(const struct bc_retention_check *check, const char *file, const char *rule)
{
	const struct bc_retention_rules *rules = check->rules;
	char limit[BC_QUANTITY_TEXT_MAX];
	char why[128];

	if (strcmp(rule, "files") == 0) {
		snprintf(why, sizeof(why), "more than %" PRIu64 " file%s (rotation.files)",
			check->files, bc_plural(check->files));
	} else if (strcmp(rule, "max_use") == 0) {
		bc_quantity_write(limit, BC_QUANTITY_SIZE, rules->max_use_bytes);
		snprintf(why, sizeof(why), "the segments use more than %s (space.max_use)", limit);
	} else if (strcmp(rule, "max_age") == 0) {
		bc_quantity_write(limit, BC_QUANTITY_TIME, rules->max_age_ns);
		snprintf(why, sizeof(why), "older than %s (space.max_age)", limit);
	} else {
		bc_quantity_write(limit, BC_QUANTITY_SIZE, rules->keep_free_bytes);
		snprintf(
			why, sizeof(why), "less than %s or no inode free (space.keep_free)", limit);
	}
	bc_log(BC_LOG_INFO, "%s: deleted: %s", file, why);
}

/* Passes over a file that can't be read or deleted. */
static void refuse(struct bc_retention *r, struct usage *usage,
	const struct bc_retention_check *check, const struct bc_segment_name *name,
	bool was_refused, const char *what, const char *rule, int error)
{
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, name);
	bc_catalogue_refuse(check->catalogue, name);
	if (!was_refused)
		bc_log_limited(check->limits, BC_LOG_WARNING,
			"%s: can't %s (rule %s): %s; passing over it", file, what, rule,
			strerror(error));
	r->refused_at_ns = check->boot_ns;
	usage->refused++;
	usage->is_untried = ++usage->failed == REFUSED_MAX;
}

/* Deletes a file. Returns 0 or an errno. */
static int delete_file(struct bc_retention_state *state, const struct bc_retention_check *check,
	const struct bc_segment_name *name, const char *rule)
{
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, name);
	if (check->health != NULL)
		bc_thread_health_start(check->health, "deleting", file);
	int error = unlinkat(check->dir_fd, file, 0) != 0 ? errno : 0;
	(void)!bc_catalogue_look(
		check->catalogue, check->dir_fd, name, BC_LOOK, NULL, check->limits);
	if (error == ENOENT)
		return 0;
	if (error != 0 && faccessat(check->dir_fd, ".", W_OK, 0) != 0)
		snprintf(state->error, sizeof(state->error), "%s: can't delete (rule %s): %s", file,
			rule, strerror(error));
	if (error != 0)
		return error;
	log_deletion(check, file, rule);
	state->deleted++;
	return 0;
}

/* Looks at everything again before a deletion. Returns the rule for which the file must still be
 * deleted; NULL if it is not ours or has other links, or if others have deleted enough. *error: why
 * its header can't be read now, or 0. */
static const char *confirmed_rule(struct bc_retention *r, struct stat *status, struct usage *usage,
	const struct bc_retention_check *check, const struct bc_catalogue_place *place, int *error)
{
	if (check->health != NULL)
		bc_thread_health_start(check->health, "looking at", place->name.recording);
	int rc = bc_catalogue_look(check->catalogue, check->dir_fd, &place->name, BC_LOOK_INSIDE,
		status, check->limits);
	*error = rc == -ENOENT || bc_segment_is_foreign(rc) ? 0 : -rc;
	count_usage(r, usage, check);
	return rc == 0 || *error != 0 ? rule_for(usage, check, place, status->st_nlink > 1) : NULL;
}

/* Enters a file whose header can't be read. Returns whether the rules still wait for it. */
static bool is_awaited(struct bc_retention *r, const struct bc_retention *before,
	const struct bc_segment_name *name, uint64_t boot_ns)
{
	struct bc_unread *unread = &r->unread[r->unread_count++];

	*unread = (struct bc_unread){*name, boot_ns};
	for (unsigned i = 0; i < before->unread_count; i++)
		if (bc_segment_name_compare(&before->unread[i].name, name) == 0)
			unread->since_ns = before->unread[i].since_ns;
	return boot_ns - unread->since_ns < REFUSED_NS;
}

static void delete_oldest(struct bc_retention *r, struct bc_retention_state *state,
	struct usage *usage, const struct bc_retention_check *check)
{
	struct bc_catalogue_place place = {.order = 0};
	struct bc_catalogue_traits traits;
	struct stat status;
	bool retries = check->boot_ns - r->refused_at_ns >= REFUSED_NS;
	const struct bc_retention before = *r;
	bool waits = false;
	int error;

	r->unread_count = 0;
	while (!usage->is_untried && r->unread_count < BC_UNREAD_MAX &&
		bc_catalogue_next(check->catalogue, &place, &traits)) {
		if (traits.is_refused && !retries) {
			usage->refused++;
			continue;
		}
		const char *rule = rule_for(usage, check, &place, traits.has_links);
		if (rule == NULL && lacks_free(usage, check->rules) && !usage->has_more)
			continue; /* passed over */
		if (rule == NULL)
			break;
		rule = confirmed_rule(r, &status, usage, check, &place, &error);
		if (rule == NULL)
			continue;
		if (error != 0) {
			if (!traits.is_refused &&
				is_awaited(r, &before, &place.name, check->boot_ns))
				waits = true;
			else
				refuse(r, usage, check, &place.name, traits.is_refused, "read",
					rule, error);
			continue;
		}
		if (waits)
			break;
		error = delete_file(state, check, &place.name, rule);
		if (state->error[0] != '\0')
			break;
		if (error != 0) {
			refuse(r, usage, check, &place.name, traits.is_refused, "delete", rule,
				error);
			continue;
		}
		count_usage(r, usage, check);
		if (status.st_nlink <= 1) {
			uint64_t freed = status.st_blocks != 0 ? (uint64_t)status.st_blocks * 512
							       : (uint64_t)status.st_size;
			usage->free += freed;
			usage->inodes += usage->inodes != UINT64_MAX;
			add_unshown(r, freed, check->boot_ns);
		}
		if (r->is_slow)
			r->slow_at_ns = check->boot_ns;
		usage->waits = usage->waits || r->is_slow;
	}
	usage->is_untried = usage->is_untried || waits;
}

/* The check */

/* Logs when keep_free is suspended or applies again. */
static void log_free_known(
	struct bc_retention *r, bool is_known, const struct bc_retention_check *check)
{
	bool is_unknown = !is_known && check->rules->keep_free_bytes != 0;

	if (is_unknown && !r->is_free_unknown)
		bc_log_limited(check->limits, BC_LOG_WARNING,
			"rule keep_free is suspended: the file system does not report its free "
			"space; use max_use");
	if (!is_unknown && r->is_free_unknown && is_known)
		bc_log_limited(check->limits, BC_LOG_NOTICE,
			"rule keep_free applies again: the file system reports its free space");
	r->is_free_unknown = is_unknown;
}

static void add_free(struct bc_retention *r, struct usage *usage, const struct bc_free_space *space,
	const struct bc_retention_check *check)
{
	usage->is_free_known = space->is_known;
	usage->inodes = check->coming_files != 0 ? space->files : UINT64_MAX;
	if (space->files != 0)
		r->inodes_at_ns = 0;
	log_free_known(r, space->is_known, check);
	if (space->is_known) {
		enter_free(r, space->bytes, check->written_bytes);
		set_slow(r, check);
	}
	uint64_t hidden = r->is_slow ? 0 : unshown_bytes(r);
	usage->free = subtract(space->bytes + hidden, check->coming_bytes);
	usage->is_slow = r->is_slow;
	usage->waits = r->is_slow && check->boot_ns - r->slow_at_ns < SHOWN_NS;
	if (usage->inodes == 0 && r->inodes_at_ns != 0)
		usage->waits = usage->waits || check->boot_ns - r->inodes_at_ns < SHOWN_NS;
}

/* Enters what deletions have freed at once. */
static void enter_freed(
	struct bc_retention *r, struct bc_free_space *space, const struct bc_retention_check *check)
{
	bool had_inodes = space->files != 0;

	*space = bc_free_space(check->dir_fd);
	if (space->is_known)
		enter_free(r, space->bytes, check->written_bytes);
	if (!had_inodes && space->files == 0)
		r->inodes_at_ns = check->boot_ns;
}

static uint64_t left_bytes(const struct bc_retention *r, const struct usage *usage,
	const struct bc_retention_check *check)
{
	if (check->rules->keep_free_bytes == 0 || !usage->is_free_known || usage->waits ||
		r->is_slow)
		return UINT64_MAX;
	return subtract(usage->free + check->coming_bytes, check->rules->keep_free_bytes);
}

/* Returns the rule that stops the recording because nothing is left to delete, or NULL. */
static const char *broken_rule(const struct usage *usage, const struct bc_retention_rules *rules)
{
	if (usage->is_untried)
		return NULL;
	if (uses_too_much(usage, rules))
		return "max_use";
	if (lacks_free(usage, rules) && !usage->has_more)
		return "keep_free";
	return NULL;
}

static void set_error(struct bc_retention_state *state, const char *rule, const struct usage *usage)
{
	char hint[100] = "";

	if (usage->sums.damaged_bytes != 0)
		snprintf(hint, sizeof(hint), "; delete damaged files (%llu MB)",
			(unsigned long long)(usage->sums.damaged_bytes + 999999) / 1000000);
	else if (usage->refused != 0)
		snprintf(hint, sizeof(hint), "; %llu file%s can't be deleted",
			(unsigned long long)usage->refused, bc_plural(usage->refused));
	else if (usage->linked != 0 && strcmp(rule, "keep_free") == 0)
		snprintf(hint, sizeof(hint), "; other hard links keep the space of %llu file%s",
			(unsigned long long)usage->linked, bc_plural(usage->linked));
	snprintf(state->err, sizeof(state->err),
		"rule %s is broken and no sealed segment is left to delete%s", rule, hint);
}

/* Finds the files that are too old. Takes O(n), so at most once a second. */
static void find_old(
	struct bc_retention *r, struct usage *usage, const struct bc_retention_check *check)
{
	struct bc_catalogue_ages ages;

	note_jump(r, check);
	if (check->rules->max_age_ns == 0)
		r->clock = CLOCK_OK;
	if (check->rules->max_age_ns == 0 || !usage->is_current ||
		(r->aged_at_ns != 0 && check->boot_ns - r->aged_at_ns < AGE_CHECK_NS))
		return;
	r->aged_at_ns = check->boot_ns;
	bc_catalogue_find_ages(
		check->catalogue, &ages, check->wall_ns, check->rules->max_age_ns, LEAP_NS);
	usage->has_old = is_age_known(r, &ages, check) && ages.has_old;
	usage->old = ages.old;
}

void bc_retention_enforce(struct bc_retention *retention, struct bc_retention_state *state,
	const struct bc_retention_check *check)
{
	struct bc_free_space space = bc_free_space(check->dir_fd);
	struct usage usage = {.files = 0};
	const char *rule = NULL;

	memset(state, 0, sizeof(*state));
	count_usage(retention, &usage, check);
	add_free(retention, &usage, &space, check);
	if (usage.sums.is_complete) {
		find_old(retention, &usage, check);
		delete_oldest(retention, state, &usage, check);
		if (state->deleted != 0)
			enter_freed(retention, &space, check);
		rule = broken_rule(&usage, check->rules);
	}
	state->is_waiting = !usage.sums.is_complete;
	state->used_bytes = usage.sums.bytes;
	state->segments = usage.sums.segments;
	state->is_free_unknown = !space.is_known;
	state->free_bytes = space.bytes;
	state->free_files = space.files;
	state->left_bytes = left_bytes(retention, &usage, check);
	state->is_over = rule != NULL;
	if (rule != NULL)
		set_error(state, rule, &usage);
}
