#include "daemon/config/options.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/config_file.h"
#include "daemon/config/config_keys.h"
#include "formats/base/usage.h"

enum {
	OPT_CHECK = 256,
	OPT_LIST_BOARDS,
	OPT_SOURCE,
	OPT_SPEED,
	OPT_LABEL,
	OPT_ONCE,
	OPT_SOCKET,
	OPT_NO_SOCKET,
	OPT_SET,
	OPT_OPTIONS,
};

static const struct bc_usage_option options[] = {
	{'c', "config", "FILE", "file", "configuration (default " BC_CONFIG_FILE ", if there)"},
	{OPT_CHECK, "check-config", NULL, NULL, "check it, and exit: 0 good, 2 not"},
	{OPT_LIST_BOARDS, "list-boards", NULL, NULL,
		"what is on the USB, and why it is a capture board or not"},
	{OPT_SOURCE, "source", "SPEC", "choice:usb|usb:|sim|sim:|file:",
		"usb[:serial=X,id=VID:PID,protocol=raw6,link=ftdi,...]; "
		"file:PATH[,format=F][,clock_hz=N], - is standard input; or "
		"sim[:rate=N|max,count=N,seed=N,agents=N,loss=P,corrupt=P]"},
	{OPT_SPEED, "speed", "S", "choice:max|realtime",
		"pace of a file: max (default), realtime, or a factor"},
	{'o', "output", "DIR", "dir", "where the segments go (default /var/lib/buscapd)"},
	{OPT_LABEL, "label", "TEXT", "text", "added to the recording's name"},
	{'b', NULL, "RULE:VALUE", "choice:filesize:|duration:|interval:|files:",
		"new segment: filesize:SIZE duration:TIME interval:TIME; files:N keeps N of them "
		"(repeat -b for several rules)"},
	{'a', NULL, "RULE:VALUE", "choice:duration:|records:|filesize:",
		"stop: duration:TIME records:N filesize:SIZE"},
	{OPT_ONCE, "once", NULL, NULL,
		"record to the end of the source, print the status, and exit; a board must come "
		"within 10 s (usb:wait=)"},
	{OPT_SOCKET, "socket", "PATH", "file",
		"status socket (default /run/buscapd/buscapd.sock; with --once none unless given)"},
	{OPT_NO_SOCKET, "no-socket", NULL, NULL, "no status socket"},
	{OPT_SET, "set", "SECTION.KEY=VALUE", "setting", "any setting of the configuration"},
	{OPT_OPTIONS, "options", NULL, NULL,
		"these options and the settings, one a line, for programs"},
	{'V', "version", NULL, NULL, "the version"},
	{0},
};

static const struct bc_usage usage = {
	.summary = "record bus samples into rotating, lz4-compressed BYU address traces",
	.text = "Records bus samples into rotating, lz4-compressed BYU address traces.",
	.options = options,
	.more = "SIZE is in kB, or with K, M, G, T; TIME in seconds, or with ms, s, m, h, d. All "
		"settings: buscapd.conf(5), docs/configuration.md.",
	.exits = "0 ok, 1 failed, 2 usage or configuration, 3 input damaged or torn, 4 samples "
		 "lost, 5 no board.",
	.example = "buscapd --once --source sim:rate=2M -o trace -b filesize:8M -a duration:2s",
};

static void list_options(void)
{
	bc_usage_list(stdout, &usage);
	for (const struct bc_config_key *key = bc_config_keys; key->usage.help != NULL; key++)
		bc_usage_list_row(stdout, "config", 0, key->usage.name, key->usage.metavar,
			key->usage.kind, key->usage.help);
}

static bool override(struct bc_options *o, const char *section, const char *key, const char *value)
{
	if (o->overrides_count == BC_OVERRIDES_MAX) {
		fprintf(stderr, "buscapd: too many settings on the command line\n");
		return false;
	}
	o->overrides[o->overrides_count].section = section;
	o->overrides[o->overrides_count].key = key;
	o->overrides[o->overrides_count++].value = value;
	return true;
}

/* "RULE:VALUE" of -b and -a sets RULE = VALUE of a section. argv is cut at the colon. */
static bool override_rule(struct bc_options *o, const char *section, char option, char *text)
{
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	const char *err;
	char *colon = strchr(text, ':');
	bool is_good = option == 'b' ? bc_rotation_read(&rotation, text, &err)
				     : bc_stop_rule_read(&stop, text, &err);

	if (!is_good || colon == NULL) {
		fprintf(stderr, "buscapd: -%c %s: %s\n", option, text, err);
		return false;
	}
	*colon = '\0';
	return override(o, section, text, colon + 1);
}

static bool override_any(struct bc_options *o, char *text)
{
	char *point = strchr(text, '.');
	char *equals = strchr(text, '=');

	if (point == NULL || equals == NULL || equals < point) {
		fprintf(stderr,
			"buscapd: --set %s: a setting is SECTION.KEY=VALUE, as "
			"pipeline.buffer=128M\n",
			text);
		return false;
	}
	*point = '\0';
	*equals = '\0';
	return override(o, text, point + 1, equals + 1);
}

/* Takes one option. Returns false when it is wrong, and has said so. */
static bool take_option(struct bc_options *o, int option)
{
	switch (option) {
	case 'c':
		o->config_file = optarg;
		return true;
	case OPT_CHECK:
		o->check_config = true;
		return true;
	case OPT_LIST_BOARDS:
		o->list_boards = true;
		return true;
	case OPT_SOURCE:
		return override(o, "source", "source", optarg);
	case OPT_SPEED:
		return override(o, "source", "speed", optarg);
	case 'o':
		return override(o, "output", "dir", optarg);
	case OPT_LABEL:
		return override(o, "output", "label", optarg);
	case 'b':
		return override_rule(o, "rotation", 'b', optarg);
	case 'a':
		return override_rule(o, "stop", 'a', optarg);
	case OPT_ONCE:
		o->once = true;
		return true;
	case OPT_SOCKET:
		o->has_socket = true;
		return override(o, "socket", "path", optarg);
	case OPT_NO_SOCKET:
		o->has_socket = false;
		return override(o, "socket", "path", "");
	case OPT_SET:
		return override_any(o, optarg);
	default:
		return false;
	}
}

/* Prints what was asked for instead of recording. Returns false if it isn't that. */
static bool print(int option)
{
	switch (option) {
	case 'h':
		bc_usage_help(stdout, "buscapd", &usage);
		return true;
	case OPT_OPTIONS:
		list_options();
		return true;
	case 'V':
		puts("buscapd " BC_VERSION);
		return true;
	default:
		return false;
	}
}

enum bc_options_result bc_options_read(struct bc_options *o, int argc, char **argv)
{
	struct bc_usage_getopt all;
	char what[256];
	int before = 1;
	int option;

	memset(o, 0, sizeof(*o));
	bc_usage_getopt(&all, &usage);
	opterr = 0;
	for (; (option = getopt_long(argc, argv, all.brief, all.all, NULL)) != -1;
		before = optind) {
		if (print(option))
			return BC_OPTIONS_EXIT;
		if (option == '?' || option == ':') {
			bc_usage_format_error(what, sizeof(what), &all, option, argv, before);
			fprintf(stderr, "buscapd: %s; see buscapd --help\n", what);
			return BC_OPTIONS_WRONG;
		}
		if (!take_option(o, option))
			return BC_OPTIONS_WRONG;
	}
	if (optind == argc)
		return BC_OPTIONS_RUN;
	fprintf(stderr, "buscapd: %s: no such argument; the source is given with --source\n",
		argv[optind]);
	return BC_OPTIONS_WRONG;
}

/* Whether the command line itself asks to record some other way than from the start. */
static bool wants_other_mode(const struct bc_options *o, const struct bc_config *config)
{
	bool is_reported = false;

	for (unsigned i = 0; i < o->overrides_count; i++)
		is_reported = is_reported || (strcmp(o->overrides[i].section, "recording") == 0 &&
						     strcmp(o->overrides[i].key, "record") == 0);
	return is_reported && config->recording.mode != BC_RECORD_ALWAYS;
}

bool bc_options_config(
	const struct bc_options *o, struct bc_config *config, char *err, size_t errlen)
{
	const char *path = o->config_file != NULL ? o->config_file : BC_CONFIG_FILE;
	char what[512];

	bc_config_default(config);
	if (!bc_config_load(config, path, o->config_file == NULL, err, errlen))
		return false;
	for (unsigned i = 0; i < o->overrides_count; i++) {
		if (bc_config_set(config, o->overrides[i].section, o->overrides[i].key,
			    o->overrides[i].value, what, sizeof(what)))
			continue;
		snprintf(err, errlen, "command line: %s", what);
		return false;
	}
	if (o->once && !o->has_socket)
		config->socket[0] = '\0';
	if (o->once && wants_other_mode(o, config)) {
		snprintf(err, errlen,
			"command line: --once records from the start; record = %s doesn't go with "
			"it",
			bc_record_mode_name(config->recording.mode));
		return false;
	}
	if (o->once)
		bc_config_make_once(config);
	if (o->list_boards && config->source.kind == BC_SOURCE_NONE)
		config->source.kind = BC_SOURCE_USB;
	return bc_config_check(config, err, errlen);
}
