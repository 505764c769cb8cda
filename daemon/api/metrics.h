/* The status as OpenMetrics 1.0 text or in the older text format, for Prometheus and others. All
 * values are from the same moment. docs/api.md lists the metrics. */
#ifndef BC_DAEMON_API_METRICS_H
#define BC_DAEMON_API_METRICS_H

#include "daemon/recorder/status.h"

#define BC_METRICS_TYPE      "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define BC_METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Both return allocated text, or NULL if out of memory. */
char *bc_metrics_write(const struct bc_status *status);
char *bc_metrics_write_text(const struct bc_status *status);

#endif
