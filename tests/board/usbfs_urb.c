#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "tests/board/usbfs_kernel.h"
#include "tests/board/usbfs_state.h"

#define TRANSFER_MAX (INT32_MAX / 2)

#define UNKNOWN_FLAGS                                                        \
	(~(unsigned)(USBDEVFS_URB_ISO_ASAP | USBDEVFS_URB_SHORT_NOT_OK |     \
		     USBDEVFS_URB_BULK_CONTINUATION | USBDEVFS_URB_NO_FSBR | \
		     USBDEVFS_URB_ZERO_PACKET | USBDEVFS_URB_NO_INTERRUPT))

/* Queues of URBs */

static void queue_append(struct usbfs_queue *queue, struct usbfs_urb *urb)
{
	urb->next = NULL;
	*queue->last = urb;
	queue->last = &urb->next;
}

static void queue_remove(struct usbfs_queue *queue, struct usbfs_urb *urb)
{
	struct usbfs_urb **at = &queue->first;

	while (*at != urb)
		at = &(*at)->next;
	*at = urb->next;
	if (queue->last == &urb->next)
		queue->last = at;
}

static struct usbfs_urb *new_urb(void)
{
	struct usbfs_urb *urb = usbfs_k.spare;

	if (urb == NULL)
		return calloc(1, sizeof(*urb));
	usbfs_k.spare = urb->next;
	memset(urb, 0, sizeof(*urb));
	return urb;
}

static void drop_urb(struct usbfs_urb *urb)
{
	usbfs_k.memory -= urb->memory;
	urb->next = usbfs_k.spare;
	usbfs_k.spare = urb;
}

void usbfs_drop_all(struct usbfs_queue *queue)
{
	struct usbfs_urb *next;

	for (struct usbfs_urb *urb = queue->first; urb != NULL; urb = next) {
		next = urb->next;
		usbfs_k.leaks.urbs++;
		drop_urb(urb);
	}
	queue->first = NULL;
	queue->last = &queue->first;
}

/* Completion */

void usbfs_set_reapable(struct usbfs_node *node, bool is_reapable)
{
	uint8_t byte = 0;

	if (node->drain_fd < 0)
		return;
	ssize_t n = is_reapable ? read(node->drain_fd, &byte, 1) : write(node->fd, &byte, 1);
	if (n != 1)
		abort();
}

static void finish(struct usbfs_urb *urb, int status, size_t actual);

static uint32_t endpoint_bit(uint8_t endpoint)
{
	return UINT32_C(1) << ((endpoint & 0xF) + (endpoint >> 7) * 16);
}

/* After an error, or a short URB with USBDEVFS_URB_SHORT_NOT_OK, the URBs that continue it are
 * cancelled up to the next transfer, or refused when they are submitted. */
static void cancel_continuations(struct usbfs_node *node, uint8_t endpoint)
{
	struct usbfs_queue *pending = &node->port->pending;
	struct usbfs_urb *found;

	do {
		found = NULL;
		for (struct usbfs_urb *urb = pending->first; urb != NULL; urb = urb->next) {
			if (urb->node != node || urb->endpoint != endpoint)
				continue;
			if (!urb->is_continuation)
				return;
			found = urb;
			break;
		}
		if (found != NULL)
			finish(found, -ECONNRESET, found->actual);
	} while (found != NULL);
	node->disabled |= endpoint_bit(endpoint);
}

static void finish(struct usbfs_urb *urb, int status, size_t actual)
{
	struct usbfs_node *node = urb->node;

	if (status == 0 && actual < urb->length &&
		(urb->user->flags & USBDEVFS_URB_SHORT_NOT_OK) != 0)
		status = -EREMOTEIO;
	queue_remove(&node->port->pending, urb);
	urb->status = status;
	urb->actual = actual;
	if (node->completed.first == NULL)
		usbfs_set_reapable(node, true);
	queue_append(&node->completed, urb);
	if (status < 0 && status != -ECONNRESET && status != -ENOENT && urb->endpoint != 0)
		cancel_continuations(node, urb->endpoint);
}

void usbfs_finish_all(
	struct usbfs_port *port, const struct usbfs_node *node, int interface, int status)
{
	struct usbfs_urb *urb = port->pending.first;

	while (urb != NULL) {
		if ((node == NULL || urb->node == node) &&
			(interface < 0 || urb->interface == interface)) {
			urb->endpoint = 0; /* not followed by continuations */
			finish(urb, status, urb->is_hung ? urb->actual : 0);
			urb = port->pending.first;
		} else {
			urb = urb->next;
		}
	}
}

/* Serving the board */

static void wake_thread(uint64_t until_ns);

static struct usbfs_urb *first_of(const struct usbfs_port *port, uint8_t endpoint)
{
	struct usbfs_urb *urb = port->pending.first;

	while (urb != NULL && urb->endpoint != endpoint)
		urb = urb->next;
	return urb;
}

int usbfs_control_board(struct usbfs_port *port, const uint8_t setup[8], uint8_t *data)
{
	port->due_ns = 0;
	return port->is_dead ? -EPROTO : board_control(port->board, setup, data, usbfs_now());
}

static void serve_control(struct usbfs_port *port)
{
	struct usbfs_urb *urb;

	while ((urb = first_of(port, 0)) != NULL && !urb->is_hung) {
		int n = usbfs_control_board(port, urb->user->buffer, urb->data);
		if (n == -ETIMEDOUT)
			urb->is_hung = true;
		else
			finish(urb, n < 0 ? n : 0, n < 0 ? 0 : (size_t)n);
	}
}

static void replay(struct usbfs_port *port, struct usbfs_urb *urb)
{
	for (size_t done = 0; port->replay != NULL && done < urb->length;) {
		size_t n = port->replay_bytes - port->replay_at;
		n = n < urb->length - done ? n : urb->length - done;
		memcpy(urb->data + done, port->replay + port->replay_at, n);
		port->replay_at = (port->replay_at + n) % port->replay_bytes;
		done += n;
	}
	finish(urb, 0, urb->length);
}

/* Fills a URB. Returns the board's error, or 0. */
static int fill(
	struct usbfs_port *port, struct usbfs_urb *urb, size_t room, uint64_t at_ns, size_t *n)
{
	*n = 0;
	if (port->is_dead)
		return -EPROTO;
	int status = board_bulk_in(port->board, urb->data, room, n, at_ns);
	if (status == BOARD_NAK)
		port->due_ns = board_due_ns(port->board, at_ns);
	return status == -ENODEV ? -EPROTO : status;
}

static void serve_bulk(struct usbfs_port *port)
{
	struct usbfs_urb *urb;
	size_t n;

	while ((urb = first_of(port, BOARD_ENDPOINT)) != NULL && !urb->is_hung) {
		if (port->replay_bytes != 0 && !port->is_dead) {
			replay(port, urb);
			continue;
		}
		uint64_t at_ns = usbfs_now();
		if (at_ns < port->due_ns)
			break;
		int status = fill(port, urb, urb->length, at_ns, &n);
		if (status == BOARD_NAK) {
			wake_thread(port->due_ns);
			break;
		}
		if (status == -ETIMEDOUT) {
			urb->is_hung = true;
			urb->actual = n;
		} else {
			finish(urb, status, n);
		}
	}
}

/* OUT endpoints accept everything; other IN endpoints never have data. */
static void serve_others(struct usbfs_port *port)
{
	struct usbfs_urb *urb = port->pending.first;

	while (urb != NULL) {
		struct usbfs_urb *next = urb->next;
		if (urb->endpoint != 0 && (urb->endpoint & 0x80) == 0)
			finish(urb, 0, urb->length);
		urb = next;
	}
}

static void serve(struct usbfs_port *port)
{
	if (!port->is_plugged || port->board == NULL)
		return;
	serve_control(port);
	serve_bulk(port);
	serve_others(port);
}

/* Serves whatever is due. Called by the thread. */

static uint64_t serve_all(void)
{
	uint64_t until_ns = UINT64_MAX;

	usbfs_k.thread_until_ns = 0; /* already awake */
	for (struct usbfs_port *port = usbfs_k.ports; port != NULL; port = port->next) {
		serve(port);
		const struct usbfs_urb *urb = first_of(port, BOARD_ENDPOINT);
		if (urb != NULL && !urb->is_hung && port->due_ns < until_ns)
			until_ns = port->due_ns;
	}
	return until_ns;
}

static void *run_thread(void *context)
{
	(void)context;
	usbfs_lock();
	while (!usbfs_k.is_stopping) {
		usbfs_k.thread_until_ns = serve_all();
		if (usbfs_k.thread_until_ns == UINT64_MAX) {
			pthread_cond_wait(&usbfs_k.wake, &usbfs_k.mutex);
		} else {
			struct timespec until = {
				.tv_sec = (time_t)(usbfs_k.thread_until_ns / 1000000000u),
				.tv_nsec = (long)(usbfs_k.thread_until_ns % 1000000000u)};
			pthread_cond_timedwait(&usbfs_k.wake, &usbfs_k.mutex, &until);
		}
	}
	usbfs_unlock();
	return NULL;
}

/* Makes the thread check at `until_ns` at the latest. */
static void wake_thread(uint64_t until_ns)
{
	if (until_ns == UINT64_MAX && !usbfs_k.is_threaded)
		return;
	if (!usbfs_k.has_thread) {
		usbfs_k.thread_until_ns = 0;
		if (pthread_create(&usbfs_k.thread, NULL, run_thread, NULL) != 0)
			abort();
		usbfs_k.has_thread = true;
	} else if (until_ns < usbfs_k.thread_until_ns) {
		pthread_cond_signal(&usbfs_k.wake);
	}
}

void usbfs_serve(struct usbfs_port *port)
{
	if (usbfs_k.is_threaded)
		wake_thread(0);
	else
		serve(port);
}

void usbfs_stop_thread(void)
{
	usbfs_lock();
	bool has_thread = usbfs_k.has_thread;
	usbfs_k.is_stopping = true;
	pthread_cond_signal(&usbfs_k.wake);
	usbfs_unlock();
	if (has_thread)
		pthread_join(usbfs_k.thread, NULL);
	usbfs_k.has_thread = false;
	usbfs_k.is_stopping = false;
}

/* URBs */

static int prepare_control(struct usbfs_node *node, struct usbfs_urb *urb)
{
	const uint8_t *setup = urb->user->buffer;

	if ((urb->user->endpoint & 0x7F) != 0 || urb->user->buffer_length < 8 ||
		bc_le16(setup + 6) + 8 > urb->user->buffer_length)
		return -EINVAL;
	urb->data = (uint8_t *)urb->user->buffer + 8;
	urb->length = bc_le16(setup + 6);
	urb->interface = -1;
	if ((setup[0] & 0x60) == 0x40) /* a vendor request is not checked */
		return 0;
	if ((setup[0] & 0x1F) == 1)
		return usbfs_check_claim(node, setup[4]);
	if ((setup[0] & 0x1F) == 2) {
		const struct usbfs_endpoint *found = usbfs_device_endpoint(
			&node->port->device, setup[4]);
		return found == NULL ? -ENOENT : usbfs_check_claim(node, found->interface);
	}
	return 0;
}

static int prepare_bulk(struct usbfs_node *node, struct usbfs_urb *urb)
{
	const struct usbdevfs_urb *user = urb->user;
	const struct usbfs_endpoint *endpoint = usbfs_device_endpoint(
		&node->port->device, user->endpoint);

	if (endpoint == NULL)
		return -ENOENT;
	int error = usbfs_check_claim(node, endpoint->interface);
	if (error != 0)
		return error;
	if (node->port->device.alternates[endpoint->interface] != endpoint->setting)
		return -ENOENT;
	if (endpoint->type != 2 && endpoint->type != 3)
		return -EINVAL;
	if (user->type == USBDEVFS_URB_TYPE_INTERRUPT && endpoint->type != 3)
		return -EINVAL;
	urb->endpoint = user->endpoint;
	urb->interface = endpoint->interface;
	urb->data = user->buffer;
	urb->length = (size_t)user->buffer_length;
	urb->is_continuation = (user->flags & USBDEVFS_URB_BULK_CONTINUATION) != 0;
	return 0;
}

static int prepare(struct usbfs_node *node, struct usbfs_urb *urb)
{
	const struct usbdevfs_urb *user = urb->user;
	bool is_control = user->type == USBDEVFS_URB_TYPE_CONTROL;

	if ((user->flags & UNKNOWN_FLAGS) != 0 || user->buffer_length < 0 ||
		user->buffer_length >= TRANSFER_MAX ||
		(user->buffer_length > 0 && user->buffer == NULL) ||
		user->type == USBDEVFS_URB_TYPE_ISO || user->type > USBDEVFS_URB_TYPE_BULK)
		return -EINVAL;
	int error = is_control ? prepare_control(node, urb) : prepare_bulk(node, urb);
	if (error != 0)
		return error;
	if (usbfs_k.memory_limit != 0 &&
		usbfs_k.memory + urb->length + USBFS_URB_BYTES > usbfs_k.memory_limit)
		return -ENOMEM;
	if (!urb->is_continuation)
		node->disabled &= ~endpoint_bit(urb->endpoint);
	else if ((node->disabled & endpoint_bit(urb->endpoint)) != 0)
		return -EREMOTEIO;
	return 0;
}

int usbfs_submit(struct usbfs_node *node, struct usbdevfs_urb *user)
{
	struct usbfs_urb *urb = new_urb();

	if (urb == NULL)
		return -ENOMEM;
	urb->user = user;
	urb->node = node;
	int error = prepare(node, urb);
	if (error != 0) {
		drop_urb(urb);
		return error;
	}
	urb->memory = urb->length + USBFS_URB_BYTES;
	usbfs_k.memory += urb->memory;
	queue_append(&node->port->pending, urb);
	usbfs_serve(node->port);
	return 0;
}

int usbfs_discard(struct usbfs_node *node, const struct usbdevfs_urb *user)
{
	struct usbfs_port *port = node->port;
	size_t n = 0;

	/* A request that only the thread's delay has left unanswered is answered now. */
	if (usbfs_k.is_threaded)
		serve_control(port);
	struct usbfs_urb *urb = port->pending.first;
	while (urb != NULL && (urb->node != node || urb->user != user))
		urb = urb->next;
	if (urb == NULL)
		return -EINVAL;
	if (urb->is_hung) {
		n = urb->actual;
	} else if (usbfs_k.discard_count != 0 && urb == first_of(port, BOARD_ENDPOINT)) {
		size_t room = usbfs_k.discard_bytes < urb->length ? usbfs_k.discard_bytes
								  : urb->length;
		fill(port, urb, room, usbfs_now(), &n);
		usbfs_k.discard_count -= n != 0;
	}
	finish(urb, -ENOENT, n);
	usbfs_serve(port);
	return 0;
}

int usbfs_reap(struct usbfs_node *node, struct usbdevfs_urb **user)
{
	struct usbfs_urb *urb = node->completed.first;

	if (urb == NULL)
		return node->port->is_plugged ? -EAGAIN : -ENODEV;
	queue_remove(&node->completed, urb);
	if (node->completed.first == NULL)
		usbfs_set_reapable(node, false);
	urb->user->status = urb->status;
	urb->user->actual_length = (int)urb->actual;
	urb->user->error_count = 0;
	*user = urb->user;
	drop_urb(urb);
	return 0;
}
