/* The sealer's thread. It closes a segment's file only in the segment's last task, so a sync never
 * meets a closed descriptor.
 *
 * After a failed sync, a segment is not sealed: the kernel has dropped what it could not write, and
 * the next sync would succeed without it. */
#include "daemon/store/sealer.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/base/clock.h"
#include "formats/base/host.h"

struct bc_sealer {
	struct bc_catalogue *catalogue;
	struct bc_queue *writer;
	pthread_t thread;
	struct bc_thread_health health;
	struct bc_queue tasks;
	struct bc_queue done;
	struct bc_retention retention; /* these: its thread only */
	struct bc_log_limits limits;
};

static int sync_segment(struct bc_sealer *s, struct bc_seal_task *task)
{
	struct bc_complete_segment *segment = task->segment;

	bc_thread_health_start(&s->health, "syncing", segment->open_name);
	int rc = bc_fd_sync(segment->fd, segment->synced_bytes == 0 ? segment->dir_fd : -1);
	if (rc == 0)
		segment->synced_bytes = task->bytes;
	segment->has_failed = rc != 0;
	return rc;
}

static void look_at(struct bc_sealer *s, int dir_fd, const char *file)
{
	struct bc_segment_name name;

	for (int i = 0; i < 2 && bc_segment_name_read(&name, file); i++) {
		name.is_partial = i == 0;
		(void)!bc_catalogue_look(s->catalogue, dir_fd, &name, BC_LOOK, NULL, &s->limits);
	}
}

static int seal_segment(struct bc_sealer *s, struct bc_complete_segment *segment)
{
	struct bc_atomic_file *file = &segment->writer.file;

	if (segment->has_failed)
		return -EIO;
	bc_thread_health_start(&s->health, "sealing", segment->open_name);
	file->is_name_durable = segment->synced_bytes != 0;
	file->durable = segment->synced_bytes;
	int rc = bc_segment_seal(&segment->writer);
	if (rc == 0) {
		look_at(s, segment->dir_fd, segment->notice->file);
		return 0;
	}
	segment->has_failed = file->durable != file->bytes;
	segment->is_deleted = bc_atomic_file_is_deleted(file);
	return rc;
}

static void close_segment(struct bc_sealer *s, struct bc_complete_segment *segment)
{
	if (segment->writer.file.fd < 0)
		return;
	bc_thread_health_start(&s->health, "closing", segment->open_name);
	bc_segment_abandon(&segment->writer);
}

static void check_space(struct bc_sealer *s, struct bc_space_check *check)
{
	bc_thread_health_start(&s->health, "checking the space in", ".");
	check->of.wall_ns = bc_wall_ns();
	check->of.boot_ns = bc_boot_ns();
	check->of.limits = &s->limits;
	check->of.health = &s->health;
	bc_retention_enforce(&s->retention, &check->state, &check->of);
	bc_log_limits_poll(&s->limits, bc_now_ns());
}

static void *sealer_thread(void *context)
{
	struct bc_sealer *s = context;
	struct bc_seal_task *task;

	while ((task = bc_queue_pop(&s->tasks)) != NULL) {
		uint64_t began_ns = bc_now_ns();
		task->rc = 0;
		if (task->kind == BC_SEAL_CHECK)
			check_space(s, (struct bc_space_check *)task);
		else if (task->kind == BC_SEAL_SYNC)
			task->rc = sync_segment(s, task);
		else if (task->kind == BC_SEAL_SEAL)
			task->rc = seal_segment(s, task->segment);
		if (task->kind == BC_SEAL_SEAL || task->kind == BC_SEAL_CLOSE)
			close_segment(s, task->segment);
		task->took_ns = bc_now_ns() - began_ns;
		bc_thread_health_idle(&s->health);
		bc_queue_push(&s->done, task);
		bc_queue_wake(s->writer);
	}
	bc_log_limits_end(&s->limits);
	return NULL;
}

void bc_sealer_submit(struct bc_sealer *s, struct bc_seal_task *task)
{
	bc_queue_push(&s->tasks, task);
}

struct bc_seal_task *bc_sealer_take(struct bc_sealer *s, uint64_t wait_ns)
{
	return bc_queue_pop_within(&s->done, wait_ns);
}

void bc_sealer_poll(struct bc_sealer *s, struct bc_thread_health_seen *longest)
{
	bc_thread_health_poll(&s->health, longest);
}

int bc_sealer_start(
	struct bc_sealer **sealer, struct bc_catalogue *catalogue, struct bc_queue *writer)
{
	const unsigned tasks = 2 * BC_SEALER_SEGMENTS + 3; /* the open one's, and a check */
	struct bc_sealer *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->catalogue = catalogue;
	s->writer = writer;
	bc_thread_health_init(&s->health, "the sealer");
	int rc = bc_queue_init(&s->tasks, tasks);
	if (rc == 0)
		rc = bc_queue_init(&s->done, tasks);
	if (rc == 0)
		rc = -pthread_create(&s->thread, NULL, sealer_thread, s);
	if (rc != 0) {
		bc_sealer_free(s);
		return rc;
	}
	*sealer = s;
	return 0;
}

void bc_sealer_finish(struct bc_sealer *s)
{
	bc_queue_close(&s->tasks);
	pthread_join(s->thread, NULL);
}

void bc_sealer_free(struct bc_sealer *s)
{
	if (s == NULL)
		return;
	bc_queue_destroy(&s->tasks);
	bc_queue_destroy(&s->done);
	bc_thread_health_destroy(&s->health);
	free(s);
}
