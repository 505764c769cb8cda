/* Keeps the catalogue (daemon/store/catalogue.h) up to date with what others change on disk.
 *
 *     bc_catalogue_open()
 *     bc_catalogue_start()    starts a thread that lists the directory, now and each minute
 *     bc_catalogue_notice()   enters the changes of others, before the sums are used
 *     bc_catalogue_set_dir() ...
 *     bc_catalogue_stop()
 *
 * Any thread may call any function, except where one is named. */
#ifndef BC_DAEMON_STORE_CATALOGUE_LISTING_H
#define BC_DAEMON_STORE_CATALOGUE_LISTING_H

#include "daemon/store/catalogue.h"

/* Opens an empty catalogue of this directory; the descriptor stays the caller's. Returns 0 or a
 * negative errno. bc_catalogue_stop() frees it. */
int bc_catalogue_open(struct bc_catalogue **catalogue, int dir_fd) BC_MUST_CHECK;

/* Starts the thread. `dir` is for its messages. Returns 0 or a negative errno. */
int bc_catalogue_start(struct bc_catalogue *catalogue, const char *dir) BC_MUST_CHECK;

/* Frees the catalogue. A thread that blocks on the disk for over two seconds is leaked, with the
 * catalogue. NULL is allowed. */
void bc_catalogue_stop(struct bc_catalogue *catalogue);

/* Changes to another directory: the catalogue is incomplete until it has been listed. Returns 0, or
 * a negative errno and keeps the old one. Not during bc_catalogue_notice(). */
int bc_catalogue_set_dir(struct bc_catalogue *catalogue, int dir_fd) BC_MUST_CHECK;

/* Enters what others have added, renamed and deleted since the last call. Returns false if that was
 * too much to look at now, or more than the kernel remembers: then the thread lists the directory.
 * One thread at a time. Blocks on the disk. */
bool bc_catalogue_notice(
	struct bc_catalogue *catalogue, int dir_fd, struct bc_log_limits *limits) BC_MUST_CHECK;

/* Lists the directory and looks at new and changed files. The thread does this after at most a
 * minute of rest, and otherwise spends half a percent of its time on it. Returns 0 or a negative
 * errno. Blocks on the disk. */
int bc_catalogue_refresh(struct bc_catalogue *catalogue);

/* Likewise, but only if the last listing took less than 20 ms. */
void bc_catalogue_refresh_small(struct bc_catalogue *catalogue);

/* Waits up to this long until the catalogue is complete. Returns whether it is. */
bool bc_catalogue_wait(struct bc_catalogue *catalogue, uint64_t ns);

#endif
