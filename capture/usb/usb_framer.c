/* Turns transfers into pieces for the sink, with their arrival times.
 *
 * Invariant: at most one break is open. Any number of faults with no data in between are one break,
 * with the worst of their causes; it closes, with its duration, before more data is passed on. */
#include "capture/usb/usb_framer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

/* Each kind of fault is logged at most this often; all are counted. */
#define LOG_INTERVAL_NS UINT64_C(1000000000)

void bc_usb_framer_log_text(
	struct bc_usb_framer *f, enum bc_source_level level, const char *kind, const char *what)
{
	const struct bc_source_sink *sink = &f->source->sink;

	if (!f->is_ended && sink->log != NULL)
		sink->log(sink->context, level, kind, what);
}

void bc_usb_framer_log(struct bc_usb_framer *f, enum bc_source_level level, const char *format, ...)
{
	char what[640];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	bc_usb_framer_log_text(f, level, format, what);
}

static void framer_send(struct bc_usb_framer *f, struct bc_source_data *data)
{
	const struct bc_source_sink *sink = &f->source->sink;

	data->format = f->protocol;
	if (f->is_ended)
		return;
	bool is_accepted = sink->data(sink->context, data);
	assert(is_accepted); /* a live source is never refused */
	(void)is_accepted;
}

void bc_usb_framer_start(struct bc_usb_framer *f)
{
	uint64_t now = uv_hrtime();

	if (f->base_ns == 0)
		f->base_ns = now;
	f->arrived_ns = now - f->base_ns;
	f->has_resubmitted = true;
	f->last_data_ns = now;
	f->last_frame_ns = 0;
	f->is_silent = false;
}

void bc_usb_framer_bytes(
	struct bc_usb_framer *f, uint8_t *bytes, size_t count, uint16_t packet_bytes)
{
	uint64_t now = uv_hrtime();

	if (f->link == BC_USB_FTDI)
		count = bc_ftdi_strip(bytes, count, packet_bytes);
	if (count == 0)
		return;
	/* Data in flight when the board was reset or unplugged belongs before the break. */
	if (!f->broken.is_restart || f->has_resubmitted)
		bc_usb_framer_resume(f);
	if (f->is_silent)
		bc_usb_framer_log(f, BC_SOURCE_NOTICE, "%s: data again after %.1f s",
			f->source->name, (double)(now - f->last_data_ns) * 1e-9);
	f->is_silent = false;
	f->last_data_ns = now;
	f->last_frame_ns = 0;
	f->faults = 0;
	f->has_streamed = true;
	f->board->bytes += count;
	struct bc_source_data data = {
		.bytes = bytes,
		.count = count,
		.has_times = true,
		.since_ns = f->arrived_ns,
		.until_ns = now - f->base_ns,
	};
	f->arrived_ns = data.until_ns;
	framer_send(f, &data);
}

void bc_usb_framer_fault(struct bc_usb_framer *f, enum bc_usb_fault fault)
{
	static const char *const texts[BC_USB_FAULTS] = {
		[BC_USB_STALL] = "endpoint stalled",
		[BC_USB_OVERFLOW] = "sent more than requested (overflow): excess lost",
		[BC_USB_ERROR] = "transfer failed: bad cable or hub?",
		[BC_USB_REFUSED] = "the system accepts no transfers",
	};
	struct bc_board *b = f->board;
	uint64_t now = uv_hrtime();

	switch (fault) {
	case BC_USB_TIMEOUT:
		b->timeouts++;
		return;
	case BC_USB_GONE:
		return;
	case BC_USB_STALL:
		b->stalls++;
		break;
	case BC_USB_OVERFLOW:
		b->overflows++;
		break;
	case BC_USB_ERROR:
	case BC_USB_REFUSED:
		b->errors++;
		break;
	}
	f->faults++;
	snprintf(b->last_error, sizeof(b->last_error), "%s", texts[fault]);
	if (fault != BC_USB_REFUSED)
		bc_usb_framer_break(f, BC_GAP_TRANSFER, false);
	f->broken.is_cut = f->broken.is_cut || (f->has_break && fault == BC_USB_OVERFLOW);
	if (f->reported_ns[fault] != 0 && now - f->reported_ns[fault] < LOG_INTERVAL_NS)
		return;
	f->reported_ns[fault] = now;
	bc_usb_framer_log(f, BC_SOURCE_WARNING,
		"%s: %s%s%s (total: %" PRIu64 " stalls, %" PRIu64 " overflows, %" PRIu64
		" failed transfers)",
		f->source->name, texts[fault], f->has_break ? "; gap recorded" : "",
		f->protocol == BC_FORMAT_RAW6 && fault != BC_USB_STALL && fault != BC_USB_REFUSED
			? "; raw6 can't resynchronize: the following data may be wrong"
			: "",
		b->stalls, b->overflows, b->errors);
}

void bc_usb_framer_break(struct bc_usb_framer *f, enum bc_gap_cause cause, bool is_restart)
{
	if (!f->has_streamed)
		return;
	if (!f->has_break) {
		f->has_break = true;
		f->broken = (struct bc_source_break){.cause = cause};
		f->broken_ns = uv_hrtime();
	}
	if (cause == BC_GAP_UNPLUGGED)
		f->broken.cause = cause;
	if (is_restart) {
		f->broken.is_restart = true;
		f->broken.is_cut = true;
		f->has_resubmitted = false;
	}
}

void bc_usb_framer_resume(struct bc_usb_framer *f)
{
	struct bc_source_data data = {.broken = &f->broken};

	if (!f->has_break)
		return;
	f->has_break = false;
	f->broken.duration_ns = uv_hrtime() - f->broken_ns;
	framer_send(f, &data);
}

void bc_usb_framer_lost(struct bc_usb_framer *f, uint64_t lost)
{
	const struct bc_source_break broken = {.cause = BC_GAP_BOARD, .lost = lost};
	struct bc_source_data data = {.broken = &broken};

	bc_usb_framer_resume(f);
	framer_send(f, &data);
}

size_t bc_ftdi_strip(uint8_t *bytes, size_t count, size_t packet_bytes)
{
	size_t out = 0;

	for (size_t at = 0; at < count; at += packet_bytes) {
		size_t packet = count - at < packet_bytes ? count - at : packet_bytes;
		if (packet <= BC_FTDI_STATUS_BYTES)
			continue;
		memmove(bytes + out, bytes + at + BC_FTDI_STATUS_BYTES,
			packet - BC_FTDI_STATUS_BYTES);
		out += packet - BC_FTDI_STATUS_BYTES;
	}
	return out;
}
