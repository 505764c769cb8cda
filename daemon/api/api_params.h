/* The parameters of requests, parsed from their bodies. docs/api.md lists them. */
#ifndef BC_DAEMON_API_API_PARAMS_H
#define BC_DAEMON_API_API_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/ingest/trigger.h"
#include "daemon/recorder/recorder.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_name.h"
#include "formats/trace/name_map.h"

enum bc_api_params_kind {
	BC_PARAMS_NONE,
	BC_PARAMS_START,
	BC_PARAMS_SNAPSHOT,
	BC_PARAMS_TRIGGER,
	BC_PARAMS_MARK,
	BC_PARAMS_NOTE,
	BC_PARAMS_ROTATE, /* no members */
	BC_PARAMS_KINDS,
};

/* About 160 KiB, for the triggers. */
struct bc_api_params {
	const struct bc_name_map *names; /* of regions */
	struct bc_start start;           /* points to the members below */
	char label[BC_LABEL_MAX + 1];
	char metadata[BC_METADATA_MAX];
	struct bc_trigger
		triggers[BC_TRIGGERS_REQUESTED]; /* of a trigger request: only the first */
	char mark[BC_MARK_TEXT_MAX + 1];
};

/* Parses a body into *params, which the caller has zeroed except for `names`. If the body is
 * invalid, returns false with a message in `err` that names the member. */
bool bc_api_params_parse(struct bc_api_params *params, enum bc_api_params_kind kind,
	const char *body, size_t bytes, char *err, size_t errlen) BC_MUST_CHECK;

#endif
