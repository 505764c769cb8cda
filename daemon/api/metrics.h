/* The status as OpenMetrics 1.0 text or in the older text format, for Prometheus and others. All
 * values are from the same moment. docs/api.md lists the metrics. */
#ifndef BC_DAEMON_API_METRICS_H
#define BC_DAEMON_API_METRICS_H

#include "daemon/recorder/status.h"

#define BC_METRICS_NAME         "application/openmetrics-text"
#define BC_METRICS_VERSION      "1.0.0"
#define BC_METRICS_TYPE         BC_METRICS_NAME "; version=" BC_METRICS_VERSION "; charset=utf-8"
#define BC_METRICS_TEXT_NAME    "text/plain"
#define BC_METRICS_TEXT_VERSION "0.0.4"
#define BC_METRICS_TEXT_TYPE \
	BC_METRICS_TEXT_NAME "; version=" BC_METRICS_TEXT_VERSION "; charset=utf-8"

/* Both return allocated text, or NULL if out of memory. */
char *bc_metrics_write(const struct bc_status *status);
char *bc_metrics_write_text(const struct bc_status *status);

#endif
