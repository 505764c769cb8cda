/* The inside of the daemon, for the files that it is made of: daemon.c has its beginning, what it
 * tells and is told, daemon_end.c the signals and the end. What stands outside is daemon/daemon.h.
 */
#ifndef BC_DAEMON_DAEMON_PARTS_H
#define BC_DAEMON_DAEMON_PARTS_H

#include <uv.h>

#include "daemon/daemon.h"
#include "daemon/front.h"
#include "daemon/hang.h"
#include "daemon/hook.h"
#include "daemon/recorder.h"
#include "daemon/service.h"
#include "daemon/socket.h"

enum { SIGNAL_TERM, SIGNAL_INT, SIGNAL_HUP, SIGNALS };

struct bc_daemon {
	const struct bc_options *options;
	struct bc_config config;
	uv_loop_t loop;
	int dir_fd;
	struct bc_socket socket;
	struct bc_service service;
	char before[BC_RECORDING_ID_MAX]; /* the recording that this run goes on after; or empty */
	struct bc_recorder *recorder;
	struct bc_front *front;
	struct bc_hook *hook;
	bool is_stopping;     /* by a signal */
	uint64_t stopping_ns; /* since then */
	bool is_over;
	bool is_ready;   /* the loop turns */
	bool has_failed; /* to start; what was begun is being stopped */
	bool has_handles;
	enum bc_exit exit_code;
	uv_signal_t signals[SIGNALS];
	uv_timer_t look;
	uv_timer_t stop_timer; /* of one step of the end after the other */
	uv_timer_t reload;
	unsigned stop_seconds; /* of those that the disk gets */
	unsigned rest_looks;   /* at the threads, at the end */
	uint64_t stop_written; /* when the disk was last looked at, while it stops */
	uint64_t seen_written; /* when the service manager was last told how things stand */
	uint64_t started_ns;
	struct bc_account account;
	struct bc_hang hang;
	unsigned looks; /* since the account was looked at */
};

/* daemon_end.c */

/* Signals reach nobody, or the loop again: SIG_BLOCK, SIG_UNBLOCK. */
void bc_daemon_block_signals(int how);

/* Makes the handles that the end needs, and takes the signals. */
void bc_daemon_start_signals(struct bc_daemon *d);

/* Ends what is recorded; the rest follows. */
void bc_daemon_stop(struct bc_daemon *d);

/* The recorder's on_over(). */
void bc_daemon_on_over(void *context);

/* Closes everything that the loop turns for; it then returns. */
void bc_daemon_end(struct bc_daemon *d);

/* Behind the loop: closes what was left to watch over the end. */
void bc_daemon_close_loop(struct bc_daemon *d);

/* Gives directory and socket back. */
void bc_daemon_release(struct bc_daemon *d);

#endif
