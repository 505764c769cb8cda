#include "cli/term/progress.h"

#include <inttypes.h>
#include <unistd.h>

#include "cli/term/text.h"
#include "formats/base/clock.h"

#define SECOND_NS UINT64_C(1000000000)
#define STEP_NS   (SECOND_NS / 4)

void bc_progress_start(
	struct bc_progress *progress, const struct bc_console *console, uint64_t total_bytes)
{
	int fd = fileno(console->err);

	*progress = (struct bc_progress){.total_bytes = total_bytes};
	if (fd < 0 || !isatty(fd))
		return;
	progress->console = console;
	progress->start_ns = bc_now_ns();
	progress->next_ns = progress->start_ns + SECOND_NS;
}

void bc_progress_extend(struct bc_progress *progress, uint64_t total_bytes)
{
	bool is_known = progress->total_bytes != 0 && total_bytes != 0;

	progress->total_bytes = is_known ? progress->total_bytes + total_bytes : 0;
}

bool bc_progress_is_due(struct bc_progress *progress)
{
	if (progress->console == NULL)
		return false;
	uint64_t now = bc_now_ns();
	if (now < progress->next_ns)
		return false;
	progress->next_ns = now + STEP_NS;
	return true;
}

void bc_progress_print(char out[BC_PROGRESS_TEXT_MAX], uint64_t done_bytes, uint64_t total_bytes,
	uint64_t elapsed_ns)
{
	double seconds = (double)elapsed_ns / (double)SECOND_NS;
	double rate = seconds > 0 ? (double)done_bytes / seconds : 0;
	char done[BC_HUMANIZE_MAX];
	char total[BC_HUMANIZE_MAX];
	char per_second[BC_HUMANIZE_MAX];

	bc_humanize_bytes(done, (double)done_bytes);
	bc_humanize_bytes(per_second, rate);
	if (total_bytes == 0 || done_bytes > total_bytes) {
		snprintf(out, BC_PROGRESS_TEXT_MAX, "%s, %s/s", done, per_second);
		return;
	}
	bc_humanize_bytes(total, (double)total_bytes);
	double seconds_left = rate > 0 ? (double)(total_bytes - done_bytes) / rate + 1 : 0;
	uint64_t left = seconds_left < UINT32_MAX ? (uint64_t)seconds_left : UINT32_MAX;
	snprintf(out, BC_PROGRESS_TEXT_MAX, "%s of %s (%.0f %%), %s/s, %" PRIu64 ":%02u left", done,
		total, 100.0 * (double)done_bytes / (double)total_bytes, per_second, left / 60,
		(unsigned)(left % 60));
}

void bc_progress_show(struct bc_progress *progress)
{
	char text[BC_PROGRESS_TEXT_MAX];

	bc_progress_print(text, progress->done_bytes, progress->total_bytes,
		bc_now_ns() - progress->start_ns);
	/* Carriage return, text, erase to the end of the line. */
	fprintf(progress->console->err, "\r%s\033[K", text);
	fflush(progress->console->err);
	progress->is_shown = true;
}

void bc_progress_clear(struct bc_progress *progress)
{
	if (!progress->is_shown)
		return;
	fputs("\r\033[K", progress->console->err);
	fflush(progress->console->err);
	progress->is_shown = false;
}
