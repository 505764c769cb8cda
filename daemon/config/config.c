#include "daemon/config/config.h"

#include <stdarg.h>

#include "formats/base/text.h"

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
