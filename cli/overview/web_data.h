/* What `buscap web` reads from recordings: pictures, events, and what a search
 * finds, as JSON.
 *
 * No path comes from a client: the files are those of the operands. Symbolic links to files are not
 * followed.
 *
 * One picture is drawn at a time. What is known about the files is kept for the next one. All
 * functions may be called by any thread. */
#ifndef BC_CLI_OVERVIEW_WEB_DATA_H
#define BC_CLI_OVERVIEW_WEB_DATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/io/client.h"
#include "cli/io/operands.h"
#include "cli/overview/overview.h"
#include "formats/base/must_check.h"
#include "formats/recording/search.h"
#include "formats/trace/name_map.h"

struct bc_web_data;

/* Shows the recordings of `operands`, whose directories are listed for each picture and search.
 * `names` may be NULL. Both must outlive the object. Returns 0 or -ENOMEM. */
int bc_web_data_open(struct bc_web_data **data, const struct bc_operands *operands,
	const struct bc_name_map *names) BC_MUST_CHECK;
void bc_web_data_close(struct bc_web_data *data);

/* The client that waits for an answer. */
struct bc_web_client {
	int fd;                       /* its connection */
	uint64_t until_ns;            /* how long it may take, on the monotonic clock */
	const atomic_bool *is_ending; /* the server is */
};

/* Each appends to `text`, and returns 0; -ECANCELED if the client has gone, the server is ending,
 * or it took too long; -EFBIG if the text is too long; -ENOMEM; or another negative errno if the
 * directory can't be read. Times are in ns since 1970, inclusive. */
int bc_web_data_overview(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_overview_options *options, struct bc_byte_buffer *text) BC_MUST_CHECK;
int bc_web_data_events(struct bc_web_data *data, const struct bc_web_client *client,
	int64_t from_ns, int64_t to_ns, struct bc_byte_buffer *text) BC_MUST_CHECK;

/* One JSON object a line (docs/web.md, "Paths"). A search that takes too long, or finds too much,
 * is cut off. */
int bc_web_data_find(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_search_options *options, struct bc_byte_buffer *text) BC_MUST_CHECK;

#endif
