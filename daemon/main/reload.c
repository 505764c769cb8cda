#include "daemon/main/reload.h"

#include "daemon/base/log.h"
#include "daemon/config/config_keys.h"

static void log_kept(void *context, const char *name)
{
	(void)context;
	bc_log(BC_LOG_WARNING, "SIGHUP: %s has changed, but needs a restart; keeping the old value",
		name);
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
	bc_config_reload(config, &new, NULL, log_kept);
	bc_name_map_close(config->names);
	config->names = new.names;
	return true;
}

void bc_reload_done(const struct bc_config *config)
{
	bc_log(BC_LOG_NOTICE,
		"SIGHUP: applied rotation, space, filters, sampling, triggers, metadata, "
		"sealed_command, events, flush, sync, stuck, reserve, names and log level");
	bc_log_set_level(config->log_level);
}
