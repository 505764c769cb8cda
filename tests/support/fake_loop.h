/* libuv's loop with the clock of tests/support/fibers.h: timers, idle handles and wake-ups from
 * other threads. Its functions replace those of libuv in the program that includes this.
 *
 * The loop is on fiber 0. An iteration is as in libuv: timers, idle handles, wake-ups, closed
 * handles. */
#ifndef BC_TESTS_SUPPORT_FAKE_LOOP_H
#define BC_TESTS_SUPPORT_FAKE_LOOP_H

#include <uv.h>

#include "tests/support/fibers.h"

#define FAKE_HANDLES_MAX 64u

struct fake_handle {
	uv_handle_t *handle; /* NULL: unused */
	uv_timer_cb on_timer;
	uv_idle_cb on_idle;
	uv_async_cb on_async;
	bool is_active;  /* timer, idle */
	bool is_pending; /* async */
	bool is_closing;
	uv_close_cb on_closed;
	uint64_t due_ms;
	uint64_t repeat_ms;
	uint64_t started; /* orders timers that are due at the same time */
};

struct fake_loop {
	struct fake_handle of[FAKE_HANDLES_MAX];
	uint64_t now_ms;
	uint64_t timers_started;
};

static struct fake_loop fake_loop;

static struct fake_handle *fake_find(const void *handle)
{
	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++)
		if (fake_loop.of[i].handle == handle)
			return &fake_loop.of[i];
	fibers_fail("a handle that is not open is used");
}

static struct fake_handle *fake_open(void *handle)
{
	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++)
		if (fake_loop.of[i].handle == handle)
			fibers_fail("an open handle is opened again");
	struct fake_handle *h = NULL;
	for (unsigned i = 0; h == NULL; i++) {
		fibers_check(i < FAKE_HANDLES_MAX);
		h = fake_loop.of[i].handle == NULL ? &fake_loop.of[i] : NULL;
	}
	*h = (struct fake_handle){.handle = handle};
	return h;
}

void uv_update_time(uv_loop_t *loop)
{
	(void)loop;
	fake_loop.now_ms = fibers.now_ns / 1000000;
}

uint64_t uv_hrtime(void)
{
	return fibers.now_ns;
}

uint64_t uv_now(const uv_loop_t *loop)
{
	(void)loop;
	return fake_loop.now_ms;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
	(void)loop;
	fake_open(timer);
	return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout_ms, uint64_t repeat_ms)
{
	struct fake_handle *h = fake_find(timer);

	fibers_check(fibers.current == 0);
	if (h->is_closing)
		return UV_EINVAL;
	h->on_timer = cb;
	h->is_active = true;
	h->due_ms = fake_loop.now_ms + timeout_ms;
	h->repeat_ms = repeat_ms;
	h->started = fake_loop.timers_started++;
	return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
	fake_find(timer)->is_active = false;
	return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer)
{
	uint64_t due_ms = fake_find(timer)->due_ms;

	return due_ms > fake_loop.now_ms ? due_ms - fake_loop.now_ms : 0;
}

int uv_idle_init(uv_loop_t *loop, uv_idle_t *idle)
{
	(void)loop;
	fake_open(idle);
	return 0;
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb cb)
{
	struct fake_handle *h = fake_find(idle);

	if (h->is_active)
		return 0;
	h->on_idle = cb;
	h->is_active = true;
	return 0;
}

int uv_idle_stop(uv_idle_t *idle)
{
	fake_find(idle)->is_active = false;
	return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb cb)
{
	(void)loop;
	fake_open(async)->on_async = cb;
	return 0;
}

int uv_async_send(uv_async_t *async)
{
	struct fake_handle *h = fake_find(async);

	h->is_pending = !h->is_closing;
	fibers_wake_all(&fake_loop);
	fibers_point("wake the loop", async);
	return 0;
}

int uv_is_active(const uv_handle_t *handle)
{
	const struct fake_handle *h = fake_find(handle);

	return h->is_active || (h->on_async != NULL && !h->is_closing);
}

int uv_is_closing(const uv_handle_t *handle)
{
	return fake_find(handle)->is_closing;
}

void uv_close(uv_handle_t *handle, uv_close_cb on_closed)
{
	struct fake_handle *h = fake_find(handle);

	fibers_check(fibers.current == 0 && !h->is_closing);
	h->is_active = false;
	h->is_pending = false;
	h->is_closing = true;
	h->on_closed = on_closed;
}

static struct fake_handle *fake_next_timer(void)
{
	struct fake_handle *next = NULL;

	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++) {
		struct fake_handle *h = &fake_loop.of[i];
		if (h->handle != NULL && h->on_timer != NULL && h->is_active &&
			(next == NULL || h->due_ms < next->due_ms ||
				(h->due_ms == next->due_ms && h->started < next->started)))
			next = h;
	}
	return next;
}

static void fake_run_timers(void)
{
	uint64_t before = fake_loop.timers_started; /* those started meanwhile wait */
	struct fake_handle *h;

	while ((h = fake_next_timer()) != NULL && h->due_ms <= fake_loop.now_ms &&
		h->started < before) {
		h->is_active = false;
		if (h->repeat_ms != 0)
			uv_timer_start(
				(uv_timer_t *)h->handle, h->on_timer, h->repeat_ms, h->repeat_ms);
		h->on_timer((uv_timer_t *)h->handle);
	}
}

/* Returns whether there were any. */
static bool fake_run_idle(void)
{
	bool any = false;

	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++) {
		struct fake_handle *h = &fake_loop.of[i];
		if (h->handle == NULL || h->on_idle == NULL || !h->is_active)
			continue;
		any = true;
		h->on_idle((uv_idle_t *)h->handle);
	}
	return any;
}

static bool fake_has_pending(void)
{
	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++)
		if (fake_loop.of[i].handle != NULL &&
			(fake_loop.of[i].is_pending || fake_loop.of[i].is_closing))
			return true;
	return false;
}

static void fake_poll(bool may_wait)
{
	struct fake_handle *timer = fake_next_timer();

	if (may_wait && !fake_has_pending())
		fibers_wait(
			"poll", &fake_loop, timer != NULL ? timer->due_ms * 1000000 : UINT64_MAX);
	else
		fibers_point("poll", &fake_loop);
	uv_update_time(NULL);
	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++) {
		struct fake_handle *h = &fake_loop.of[i];
		if (h->handle == NULL || !h->is_pending)
			continue;
		h->is_pending = false;
		h->on_async((uv_async_t *)h->handle);
	}
}

/* Returns whether any handle is left. */
static bool fake_close_handles(void)
{
	bool any = false;

	for (unsigned i = 0; i < FAKE_HANDLES_MAX; i++) {
		struct fake_handle *h = &fake_loop.of[i];
		uv_handle_t *handle = h->handle;
		if (handle == NULL || !h->is_closing) {
			any = any || handle != NULL;
			continue;
		}
		h->handle = NULL;
		if (h->on_closed != NULL)
			h->on_closed(handle);
	}
	return any;
}

/* After fibers_start(). */
static void fake_loop_start(void)
{
	memset(&fake_loop, 0, sizeof(fake_loop));
	uv_update_time(NULL);
}

/* Runs until all handles are closed. */
static void fake_loop_run(void)
{
	do {
		uv_update_time(NULL);
		fake_run_timers();
		fake_poll(!fake_run_idle());
	} while (fake_close_handles());
}

#endif
