/* The status as OpenMetrics 1.0 text, for Prometheus: all that the status object has, and so what
 * was true at one moment. docs/api.md lists the metrics. */
#ifndef BC_DAEMON_API_METRICS_H
#define BC_DAEMON_API_METRICS_H

#include "daemon/recorder/status.h"

#define BC_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* For the caller to free; NULL when memory ran out. */
char *bc_metrics_write(const struct bc_status *status);

#endif
