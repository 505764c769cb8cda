/* What signals do. No signal that another program can send ends the daemon before the buffer is
 * written, except SIGKILL and those that report a crash.
 *
 *     SIGTERM SIGINT SIGQUIT SIGPWR SIGXCPU    stop
 *     SIGHUP                                   reload; with --once stop: its terminal is gone
 *     all others that would end a program      ignored
 *
 * As elsewhere, SIGQUIT and (with --once) SIGHUP stay ignored if they are at the start (nohup).
 *
 *     bc_signals_block()    before any thread starts: threads keep them blocked
 *     bc_signals_start()
 *     bc_signals_unblock()  when the loop is about to run
 *     bc_signals_close()    from here on, signals have no effect
 */
#ifndef BC_DAEMON_MAIN_SIGNALS_H
#define BC_DAEMON_MAIN_SIGNALS_H

#include <stdbool.h>
#include <uv.h>

#define BC_SIGNALS_MAX 6

struct bc_signals {
	unsigned count;
	bool is_stopping; /* on_stop() has been called */
	uv_signal_t handles[BC_SIGNALS_MAX];
	void *context;
	/* "SIGTERM". Called again for each further one that somebody sends. */
	void (*on_stop)(void *context, const char *name);
	void (*on_reload)(void *context);
};

void bc_signals_block(void);
void bc_signals_unblock(void);

/* True if a pending signal will stop the daemon. */
bool bc_signals_is_stop_pending(void);

void bc_signals_start(struct bc_signals *signals, uv_loop_t *loop, bool is_once);
void bc_signals_close(struct bc_signals *signals);

#endif
