#include "daemon/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/base/text.h"

#define CONNECTIONS 64u

bool bc_config_error(struct bc_config_errors *errors, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	bc_vmessage(text, sizeof(text), format, args);
	va_end(args);
	errors->count++;
	errors->on_error(errors->context, text);
	return false;
}

void bc_config_default(struct bc_config *c)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (!bc_user_dir(c->dir, sizeof(c->dir)))
		snprintf(c->dir, sizeof(c->dir), BC_SYSTEM_DIR);
	if (gethostname(c->host, sizeof(c->host) - 1) != 0)
		snprintf(c->host, sizeof(c->host), "unknown");
	c->buffer_bytes = 64u << 20;
	c->compression = BC_LEVEL_DEFAULT;
	c->workers = cores < 1                      ? 1
		     : cores > (long)BC_WORKERS_MAX ? BC_WORKERS_MAX
						    : (unsigned)cores;
	c->flush_ns = 1000000000;
	c->sync_ns = 200000000;
	c->stuck_ns = 60000000000;
	c->sealed_timeout_ns = UINT64_C(3600000000000);
	c->recording.flight_ns = UINT64_C(10000000000);
	c->mapping = bc_mapping_options_default();
	c->usb = bc_usb_options_default();
	if (!bc_user_socket(c->socket) && !bc_user_is_ordinary())
		snprintf(c->socket, sizeof(c->socket), BC_SYSTEM_SOCKET);
	snprintf(c->socket_group, sizeof(c->socket_group), "buscap");
	c->connections = CONNECTIONS;
	c->disk_low_ns = UINT64_C(3600000000000);
	c->log_level = BC_LOG_INFO;
}

const char *bc_record_mode_name(enum bc_record_mode mode)
{
	static const char *const names[] = {
		[BC_RECORD_ALWAYS] = "always",
		[BC_RECORD_ON_DEMAND] = "on-demand",
		[BC_RECORD_FLIGHT] = "flight",
	};

	return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

void bc_config_make_once(struct bc_config *c)
{
	unsigned kept = 0;

	c->recording.mode = BC_RECORD_ALWAYS;
	for (unsigned i = 0; i < c->triggers_count; i++) {
		enum bc_trigger_action action = c->triggers[i].action;
		c->triggers[i].pre = (struct bc_time_or_size){BC_TIME_OR_SIZE_NONE, 0};
		if (action != BC_ACTION_SNAPSHOT && action != BC_ACTION_START)
			c->triggers[kept++] = c->triggers[i];
	}
	c->triggers_count = kept;
}
