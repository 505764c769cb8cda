/* Only the log's thread writes the line, between the lines of the log: `shown` is what the terminal
 * has, `text` what it should have. The lock is never held during a write. */
#include "daemon/main/foreground.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/write_out.h"
#include "formats/base/text.h"

/* A terminal moves to the start of the line, and erases from there. */
#define ERASE_LINE "\r\033[K"

/* bc_foreground_end() waits so long. */
#define END_MS 200

static struct {
	pthread_mutex_t lock;
	char text[BC_LOG_LINE_MAX];  /* empty: none */
	char shown[BC_LOG_LINE_MAX]; /* during a write, the old or new one that is not empty */
	bool is_over;
} view = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Shortened to the width of the terminal: only one row can be rewritten. */
static void write_line(const char *shown)
{
	char line[sizeof(ERASE_LINE) + BC_LOG_LINE_MAX] = ERASE_LINE;
	char *text = line + strlen(ERASE_LINE);
	struct winsize size;

	memcpy(text, shown, strlen(shown));
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		bc_shorten(text, size.ws_col - 1u);
	(void)!bc_write_out(STDERR_FILENO, line, strlen(line));
}

static void draw_text(const char *wanted)
{
	char text[BC_LOG_LINE_MAX];

	pthread_mutex_lock(&view.lock);
	bool is_new = strcmp(view.shown, wanted) != 0;
	memcpy(text, wanted, sizeof(text));
	if (text[0] != '\0')
		memcpy(view.shown, text, sizeof(text));
	pthread_mutex_unlock(&view.lock);
	if (is_new)
		write_line(text);
	pthread_mutex_lock(&view.lock);
	memcpy(view.shown, text, sizeof(text));
	pthread_mutex_unlock(&view.lock);
}

static void draw(void)
{
	draw_text(view.text);
}

static void erase(void)
{
	static const char none[BC_LOG_LINE_MAX];

	draw_text(none);
}

static bool is_shown(void)
{
	pthread_mutex_lock(&view.lock);
	bool is = view.shown[0] != '\0';
	pthread_mutex_unlock(&view.lock);
	return is;
}

static const struct bc_log_footer footer = {erase, draw};

void bc_foreground_show(const char *text)
{
	char line[BC_LOG_LINE_MAX] = "";

	if (text[0] != '\0')
		line[bc_log_write(line, 0, text) - 1] = '\0';
	pthread_mutex_lock(&view.lock);
	bool is_new = !view.is_over && strcmp(line, view.text) != 0;
	if (is_new)
		memcpy(view.text, line, sizeof(line));
	pthread_mutex_unlock(&view.lock);
	if (is_new)
		bc_log_draw(&footer);
}

void bc_foreground_end(void)
{
	pthread_mutex_lock(&view.lock);
	view.is_over = true;
	view.text[0] = '\0';
	pthread_mutex_unlock(&view.lock);
	bc_log_draw(&footer);
	for (unsigned ms = 0; ms < END_MS && is_shown(); ms++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
