/* What the writer and its rotator are given at the start. Everything pointed to must outlive the
 * writer. */
#ifndef BC_DAEMON_STORE_WRITER_OPTIONS_H
#define BC_DAEMON_STORE_WRITER_OPTIONS_H

#include <stdint.h>

#include "daemon/base/rules.h"

struct bc_catalogue;
struct bc_encoded;
struct bc_queue;

struct bc_writer_options {
	const char *dir;                /* for messages, and to open it again if it was replaced */
	int dir_fd;                     /* stays the caller's and open */
	struct bc_catalogue *catalogue; /* the caller's */
	struct bc_writer_rules rules;
	uint64_t lag_bytes;       /* how far syncing may lag behind writing */
	struct bc_queue *encoded; /* struct bc_encoded, from the encoder */
	unsigned encoded_max;     /* the most that exist at a time */

	/* Called on the writer's thread: a chunk is written; there are new stats or notices. */
	void (*on_written)(void *context, struct bc_encoded *encoded);
	void (*on_notices)(void *context);
	void *context;
};

#endif
