#include "daemon/api/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/base/clock.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"

/* The first figure of an interval that was missed. */
#define MISSED UINT64_MAX

/* Bytes of a printed figure with its comma, and of everything else. */
#define FIGURE_BYTES 21u
#define FRAME_BYTES  512u

struct ring {
	const char *name;
	uint64_t interval_ns;
	uint64_t size;     /* in intervals */
	uint64_t complete; /* intervals since the start; the ring has the last `size` */
	uint64_t current[BC_HISTORY_FIGURES]; /* the interval in progress; MISSED until polled */
	uint64_t (*intervals)[BC_HISTORY_FIGURES]; /* interval n is at n % size */
};

struct bc_history {
	uint64_t start_ns;
	uint64_t totals[BC_HISTORY_USED_CHUNKS]; /* at the last poll */
	struct ring rings[2];
	uint64_t seconds[BC_HISTORY_SECONDS][BC_HISTORY_FIGURES];
	uint64_t minutes[BC_HISTORY_MINUTES][BC_HISTORY_FIGURES];
};

int bc_history_open(struct bc_history **out, uint64_t boot_ns)
{
	struct bc_history *h = calloc(1, sizeof(*h));

	*out = h;
	if (h == NULL)
		return -ENOMEM;
	h->start_ns = boot_ns;
	h->rings[0] = (struct ring){.name = "seconds",
		.interval_ns = BC_NS_PER_S,
		.size = BC_HISTORY_SECONDS,
		.current = {MISSED},
		.intervals = h->seconds};
	h->rings[1] = (struct ring){.name = "minutes",
		.interval_ns = 60 * BC_NS_PER_S,
		.size = BC_HISTORY_MINUTES,
		.current = {MISSED},
		.intervals = h->minutes};
	return 0;
}

void bc_history_close(struct bc_history *h)
{
	free(h);
}

/* Completes the current interval and those missed after it, up to interval `now`. */
static void ring_advance(struct ring *ring, uint64_t now)
{
	if (now <= ring->complete)
		return;
	memcpy(ring->intervals[ring->complete % ring->size], ring->current, sizeof(ring->current));
	ring->current[0] = MISSED;
	uint64_t missed = now - ring->complete - 1;
	for (uint64_t n = missed < ring->size ? missed : ring->size; n != 0; n--)
		ring->intervals[(now - n) % ring->size][0] = MISSED;
	ring->complete = now;
}

void bc_history_poll(
	struct bc_history *h, const uint64_t figures[BC_HISTORY_FIGURES], uint64_t boot_ns)
{
	for (unsigned r = 0; r < 2; r++) {
		struct ring *ring = &h->rings[r];
		ring_advance(ring, (boot_ns - h->start_ns) / ring->interval_ns);
		if (ring->current[0] == MISSED)
			memset(ring->current, 0, sizeof(ring->current));
		for (unsigned f = 0; f < BC_HISTORY_USED_CHUNKS; f++)
			ring->current[f] += figures[f] - h->totals[f];
		uint64_t *used_chunks = &ring->current[BC_HISTORY_USED_CHUNKS];
		if (figures[BC_HISTORY_USED_CHUNKS] > *used_chunks)
			*used_chunks = figures[BC_HISTORY_USED_CHUNKS];
	}
	memcpy(h->totals, figures, sizeof(h->totals));
}

static char *write_figures(char *out, const struct ring *ring, unsigned figure)
{
	uint64_t n = ring->complete < ring->size ? 0 : ring->complete - ring->size;

	for (; n < ring->complete; n++) {
		const uint64_t *figures = ring->intervals[n % ring->size];
		out = figures[0] == MISSED ? BC_WRITE_LITERAL(out, "null")
					   : bc_write_decimal(out, figures[figure]);
		*out++ = ',';
	}
	return ring->complete != 0 ? out - 1 : out;
}

static char *write_ring(char *out, const struct ring *ring, int64_t end_ns)
{
	static const char *const names[BC_HISTORY_FIGURES] = {
		"received_samples", "lost_samples", "record_bytes", "written_bytes", "used_chunks"};
	char end[BC_RFC3339_BYTES];

	bc_rfc3339_write(end, end_ns);
	out += sprintf(out, "\"%s\":{\"end\":\"%s\",\"interval_seconds\":%u", ring->name, end,
		(unsigned)(ring->interval_ns / BC_NS_PER_S));
	for (unsigned f = 0; f < BC_HISTORY_FIGURES; f++) {
		out += sprintf(out, ",\"%s\":[", names[f]);
		out = write_figures(out, ring, f);
		*out++ = ']';
	}
	*out++ = '}';
	return out;
}

char *bc_history_write(const struct bc_history *h, uint64_t boot_ns, int64_t wall_ns)
{
	size_t bytes = FRAME_BYTES;

	for (unsigned r = 0; r < 2; r++)
		bytes += h->rings[r].size * BC_HISTORY_FIGURES * FIGURE_BYTES;
	char *text = malloc(bytes);
	if (text == NULL)
		return NULL;
	char *out = text;
	for (unsigned r = 0; r < 2; r++) {
		const struct ring *ring = &h->rings[r];
		uint64_t end_ns = h->start_ns + ring->complete * ring->interval_ns;
		*out++ = r == 0 ? '{' : ',';
		out = write_ring(out, ring, wall_ns - (int64_t)(boot_ns - end_ns));
	}
	out += sprintf(out, "}\n");
	char *fitted = realloc(text, (size_t)(out - text) + 1);
	return fitted != NULL ? fitted : text;
}
