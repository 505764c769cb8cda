/* The status as text for Prometheus, of one moment. docs/api.md lists the metrics. */
#ifndef BC_DAEMON_API_METRICS_H
#define BC_DAEMON_API_METRICS_H

#include "daemon/recorder/status.h"

#define BC_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Returns allocated text, or NULL if out of memory. */
char *bc_metrics_write(const struct bc_status *status);

#endif
