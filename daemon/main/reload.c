#include "daemon/main/reload.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/config/usb_settings.h"

/* Logs the changed settings that need a restart. */
static void log_unchanged(const struct bc_config *old, const struct bc_config *new)
{
	const struct {
		const char *name;
		bool differs;
	} settings[] = {
		{"source.source", strcmp(old->source_text, new->source_text) != 0},
		{"[usb]", !bc_usb_settings_equal(&old->usb, &new->usb)},
		{"source.speed", old->speed < new->speed || old->speed > new->speed},
		{"output.dir", strcmp(old->dir, new->dir) != 0},
		{"output.keep_raw", old->keep_raw != new->keep_raw},
		{"output.label", strcmp(old->label, new->label) != 0},
		{"recording.record", old->recording.mode != new->recording.mode},
		{"recording.flight_time", old->recording.flight_ns != new->recording.flight_ns},
		{"recording.flight_size",
			old->recording.flight_bytes != new->recording.flight_bytes},
		{"[stop]", memcmp(&old->stop, &new->stop, sizeof(old->stop)) != 0},
		{"pipeline.buffer", old->buffer_bytes != new->buffer_bytes},
		{"pipeline.workers", old->workers != new->workers},
		{"[mapping]", memcmp(&old->mapping, &new->mapping, sizeof(old->mapping)) != 0},
		{"socket.path", strcmp(old->socket, new->socket) != 0},
		{"socket.group", strcmp(old->socket_group, new->socket_group) != 0},
		{"socket.connections", old->connections != new->connections},
		{"socket.metrics_listen",
			strcmp(old->metrics_listen.text, new->metrics_listen.text) != 0},
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].differs)
			bc_log(BC_LOG_WARNING,
				"SIGHUP: %s has changed, but needs a restart; keeping the old "
				"value",
				settings[i].name);
}

static void on_config_error(void *context, const char *text)
{
	(void)context;
	bc_log(BC_LOG_ERROR, "SIGHUP: %s; keeping the old configuration", text);
}

bool bc_reload(struct bc_config *config, const struct bc_daemon_options *options)
{
	struct bc_config_errors errors = {.on_error = on_config_error};
	struct bc_config new;

	if (!bc_daemon_options_config(options, &new, &errors))
		return false;
	log_unchanged(config, &new);
	config->rotation = new.rotation;
	config->space = new.space;
	config->flush_ns = new.flush_ns;
	config->sync_ns = new.sync_ns;
	config->stuck_ns = new.stuck_ns;
	config->log_level = new.log_level;
	config->filter = new.filter;
	memcpy(config->triggers, new.triggers, sizeof(new.triggers));
	config->triggers_count = new.triggers_count;
	memcpy(config->recording.metadata, new.recording.metadata, sizeof(new.recording.metadata));
	config->reserve = new.reserve;
	memcpy(config->sealed_command, new.sealed_command, sizeof(new.sealed_command));
	config->sealed_timeout_ns = new.sealed_timeout_ns;
	memcpy(config->event_command, new.event_command, sizeof(new.event_command));
	config->event_interval_ns = new.event_interval_ns;
	config->event_timeout_ns = new.event_timeout_ns;
	config->disk_low_ns = new.disk_low_ns;
	return true;
}

void bc_reload_done(const struct bc_config *config)
{
	bc_log(BC_LOG_NOTICE,
		"SIGHUP: applied rotation, space, filters, sampling, triggers, metadata, "
		"sealed_command, events, flush, sync, stuck, reserve and log level");
	bc_log_set_level(config->log_level);
}
