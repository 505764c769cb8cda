/* What `buscap web` reads from recordings, as JSON: pictures, events, the results of searches, and
 * curves.
 *
 * No path comes from a client: only files of the operands are read, and no symbolic links to files
 * are followed. One picture or curve is drawn at a time; several searches can run next to it. Any
 * thread may call the functions, except open and close. */
#ifndef BC_CLI_WEB_WEB_DATA_H
#define BC_CLI_WEB_WEB_DATA_H

#include <stdatomic.h>
#include <stdint.h>

#include "cli/io/client.h"
#include "cli/io/operands.h"
#include "cli/overview/overview.h"
#include "cli/web/figure.h"
#include "formats/base/must_check.h"
#include "formats/recording/search.h"
#include "formats/trace/name_map.h"

struct bc_web_data;

/* Shows the recordings of `operands`. Their directories are listed for each picture and search.
 * `names` may be NULL. Both must outlive the object. Returns 0 or -ENOMEM. */
int bc_web_data_open(struct bc_web_data **data, const struct bc_operands *operands,
	const struct bc_name_map *names) BC_MUST_CHECK;
void bc_web_data_close(struct bc_web_data *data);

/* The client that waits for a response. */
struct bc_web_client {
	int fd;                       /* its connection */
	uint64_t until_ns;            /* the time limit, on the monotonic clock */
	const atomic_bool *is_ending; /* true when the server stops */
};

/* Each function appends to `text`. It returns 0; -ECANCELED if the client has gone, the server is
 * ending, or the time is up; -EFBIG if the text is too long; -ENOMEM; or another negative errno if
 * a directory can't be read. Times are in ns since 1970, inclusive. */
int bc_web_data_overview(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_overview_options *options, enum bc_figure figure, unsigned classes,
	struct bc_byte_buffer *text) BC_MUST_CHECK;
int bc_web_data_locality(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_filter *filter, const char *recording, enum bc_figure figure,
	struct bc_byte_buffer *text) BC_MUST_CHECK; /* also -ENODATA: nothing to draw; and
					as bc_locality_read() */
int bc_web_data_events(struct bc_web_data *data, const struct bc_web_client *client,
	int64_t from_ns, int64_t to_ns, struct bc_byte_buffer *text) BC_MUST_CHECK;

/* Returns the operands, the number of their files, and how many of these the request that draws a
 * picture or lists events has read, as JSON; or NULL if out of memory. Does not wait for it. */
char *bc_web_data_files(const struct bc_web_data *data) BC_MUST_CHECK;

/* One JSON object per line (docs/web.md, "Paths"). A search that takes too long or finds too much
 * is cut off, which is not an error. */
int bc_web_data_find(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_search_options *options, struct bc_byte_buffer *text) BC_MUST_CHECK;

#endif
