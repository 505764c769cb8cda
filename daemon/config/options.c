/* The command line. Options that set something become overrides, which are applied after the files
 * each time the configuration is loaded, so that a reload keeps them. --once then drops what cannot
 * apply to a single recording that starts immediately. */
#include "daemon/config/options.h"

#include <libusb.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/config/config_keys.h"
#include "daemon/config/config_load.h"
#include "daemon/config/source_spec.h"
#include "formats/base/usage.h"
#include "formats/base/versions.h"

enum {
	OPT_CHECK = 256,
	OPT_PRINT,
	OPT_LIST_BOARDS,
	OPT_SOURCE,
	OPT_SPEED,
	OPT_LABEL,
	OPT_ONCE,
	OPT_SOCKET,
	OPT_NO_SOCKET,
	OPT_SET,
	OPT_LIST_SETTINGS,
	OPT_OPTIONS,
};

static const struct bc_usage_option options[] = {
	{'c', "config", "FILE", "file",
		"configuration file (default " BC_CONFIG_FILE ", if it exists)"},
	{OPT_CHECK, "check-config", NULL, NULL,
		"check the configuration, then exit: 0 valid, 2 invalid"},
	{OPT_PRINT, "print-config", NULL, NULL,
		"print the settings in effect as a configuration file, then exit"},
	{OPT_LIST_BOARDS, "list-boards", NULL, NULL,
		"list the USB devices, and why each is a capture board or not"},
	{OPT_SOURCE, "source", "SPEC", "choice:usb|usb:|sim|sim:|file:",
		"usb[:serial=X,port=1-2,id=VID:PID,protocol=raw6,link=ftdi,...]; "
		"file:PATH[,format=F][,clock_hz=N], - for standard input; or "
		"sim[:rate=N|max,count=N,seed=N,agents=N,loss=P,corrupt=P]"},
	{OPT_SPEED, "speed", "S", "choice:max|realtime",
		"pace of a file: max (default), realtime, or a factor"},
	{'o', "output", "DIR", "dir",
		"directory for segments (default " BC_SYSTEM_DIR
		"; of a user, $XDG_DATA_HOME/buscapd)"},
	{OPT_LABEL, "label", "TEXT", "text", "append this to the names of recordings"},
	{'b', NULL, "RULE:VALUE", "choice:filesize:|duration:|interval:|files:",
		"start a new segment at filesize:SIZE, duration:TIME or interval:TIME; files:N "
		"keeps the newest N segments; repeat -b for several rules"},
	{'a', NULL, "RULE:VALUE", "choice:duration:|records:|filesize:",
		"stop at duration:TIME, records:N or filesize:SIZE; repeat -a for several rules"},
	{OPT_ONCE, "once", NULL, NULL,
		"record to the end of the source and exit; waits 10 s for a board (--source "
		"usb:wait=TIME)"},
	{'j', "json", NULL, NULL,
		"print the status as JSON at the end; the default of --once unless standard output "
		"is a terminal"},
	{OPT_SOCKET, "socket", "PATH", "file",
		"status socket (default " BC_SYSTEM_SOCKET
		"; of a user, $XDG_RUNTIME_DIR/buscapd.sock; with --once, none)"},
	{OPT_NO_SOCKET, "no-socket", NULL, NULL, "no status socket"},
	{OPT_SET, "set", "SECTION.KEY=VALUE", "setting", "set any setting of the configuration"},
	{OPT_LIST_SETTINGS, "list-settings", NULL, NULL,
		"list all settings with their meanings and defaults"},
	{OPT_OPTIONS, "options", NULL, NULL,
		"list these options and all settings, one per line, for programs"},
	{'V', "version", NULL, NULL,
		"print the version, the commit, and the versions of the libraries"},
	{0},
};

static const struct bc_usage usage = {
	.summary = "record bus samples into rotating, lz4-compressed BYU address traces",
	.text = "Records bus samples into rotating, lz4-compressed BYU address traces.",
	.options = options,
	.more = "SIZE has a unit (64M, 64MiB) or is in bytes; TIME has one (10s, 5min) or is in "
		"seconds. All units: buscapd.conf(5). All settings: --list-settings.",
	.exits = "0 ok, 1 failed, 2 usage or configuration, 3 input damaged or torn, 4 samples "
		 "lost, 5 no board.",
	.example = "buscapd --once --source sim:rate=2M -o trace -b filesize:8M -a duration:2s",
};

/* Prints all settings, in a form that docs/tables.py parses. */
static void list_settings(void)
{
	static const char *const sighup[] = {
		[BC_RELOAD_RESTART] = "no",
		[BC_RELOAD_NOW] = "yes",
		[BC_RELOAD_NEXT_RECORDING] = "next recording",
	};
	char text[1024];

	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		snprintf(text, sizeof(text),
			"%s=%s\n    %s\n    Default: %s. Changes at SIGHUP: %s.%s%s\n\n", k->name,
			k->metavar, k->meaning, k->initial != NULL ? k->initial : "none",
			sighup[k->reload], k->option != NULL ? " Option: " : "",
			k->option != NULL ? k->option : "");
		bc_usage_print_text(stdout, text);
	}
	for (const struct bc_config_key *s = bc_sim_settings; s->name != NULL; s++) {
		snprintf(text, sizeof(text), "%ssim:%s=%s\n    %s\n    Default: %s.\n",
			s != bc_sim_settings ? "\n" : "", s->name, s->metavar, s->meaning,
			s->initial);
		bc_usage_print_text(stdout, text);
	}
}

static bool add_override(struct bc_daemon_options *o, const char *option, const char *section,
	const char *key, const char *value)
{
	if (o->overrides_count == BC_OVERRIDES_MAX) {
		fprintf(stderr, "buscapd: too many settings on the command line; the limit is %d\n",
			BC_OVERRIDES_MAX);
		return false;
	}
	o->overrides[o->overrides_count].option = option;
	o->overrides[o->overrides_count].section = section;
	o->overrides[o->overrides_count].key = key;
	o->overrides[o->overrides_count++].value = value;
	return true;
}

/* True if -b or -a has a rule of this name: "-b filesize:" in the option of a key. */
static bool has_rule(char option, const char *rule)
{
	size_t n = strlen(rule);

	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++)
		if (k->option != NULL && k->option[1] == option && k->option[2] == ' ' &&
			strncmp(k->option + 3, rule, n) == 0 && strcmp(k->option + 3 + n, ":") == 0)
			return true;
	return false;
}

/* "RULE:VALUE" of -b or -a sets RULE = VALUE in a section. Ends the string in argv at the colon. */
static bool add_rule(
	struct bc_daemon_options *o, const char *option, const char *section, char *text)
{
	char *colon = strchr(text, ':');

	if (colon == NULL) {
		fprintf(stderr, "buscapd: %s %s: not RULE:VALUE; try duration:10s\n", option, text);
		return false;
	}
	*colon = '\0';
	if (!has_rule(option[1], text)) {
		fprintf(stderr, "buscapd: %s %s:%s: unknown rule; use %s\n", option, text,
			colon + 1,
			option[1] == 'a' ? "duration, records or filesize"
					 : "filesize, duration, interval or files");
		return false;
	}
	return add_override(o, option, section, text, colon + 1);
}

static bool add_setting(struct bc_daemon_options *o, char *text)
{
	char *point = strchr(text, '.');
	char *equals = strchr(text, '=');

	if (point == NULL || equals == NULL || equals < point) {
		fprintf(stderr,
			"buscapd: --set %s: not SECTION.KEY=VALUE; try pipeline.buffer=128M\n",
			text);
		return false;
	}
	*point = '\0';
	*equals = '\0';
	return add_override(o, "--set", text, point + 1, equals + 1);
}

/* Applies one option. On failure prints a message and returns false. */
static bool apply_option(struct bc_daemon_options *o, int option)
{
	switch (option) {
	case 'c':
		o->config_file = optarg;
		return true;
	case OPT_CHECK:
		o->check_config = true;
		return true;
	case OPT_PRINT:
		o->print_config = true;
		return true;
	case OPT_LIST_BOARDS:
		o->list_boards = true;
		return true;
	case OPT_SOURCE:
		return add_override(o, "--source", "source", "source", optarg);
	case OPT_SPEED:
		return add_override(o, "--speed", "source", "speed", optarg);
	case 'o':
		return add_override(o, "-o", "output", "dir", optarg);
	case OPT_LABEL:
		return add_override(o, "--label", "output", "label", optarg);
	case 'b':
		return add_rule(o, "-b", "rotation", optarg);
	case 'a':
		return add_rule(o, "-a", "stop", optarg);
	case OPT_ONCE:
		o->once = true;
		return true;
	case 'j':
		o->json = true;
		return true;
	case OPT_SOCKET:
		return add_override(o, "--socket", "socket", "path", optarg);
	case OPT_NO_SOCKET:
		return add_override(o, "--no-socket", "socket", "path", "");
	case OPT_SET:
		return add_setting(o, optarg);
	default:
		return false;
	}
}

static void print_version(void)
{
	const struct libusb_version *usb = libusb_get_version();

	bc_versions_print(stdout, "buscapd");
	printf("libusb %u.%u.%u\n", usb->major, usb->minor, usb->micro);
	printf("libuv %s\n", uv_version_string());
}

/* Handles options that only print. Returns false for the others. */
static bool print_info(int option)
{
	switch (option) {
	case 'h':
		bc_usage_help(stdout, "buscapd", &usage);
		return true;
	case OPT_LIST_SETTINGS:
		list_settings();
		return true;
	case OPT_OPTIONS:
		bc_usage_list(stdout, &usage);
		for (const struct bc_config_key *key = bc_config_keys; key->name != NULL; key++)
			bc_usage_list_row(stdout, "config", 0, key->name, key->metavar, key->kind,
				key->meaning);
		return true;
	case 'V':
		print_version();
		return true;
	default:
		return false;
	}
}

enum bc_daemon_options_result bc_daemon_options_read(
	struct bc_daemon_options *o, int argc, char **argv)
{
	struct bc_usage_getopt all;
	char what[BC_USAGE_ERROR_MAX];
	int before = 1;
	int option;

	memset(o, 0, sizeof(*o));
	bc_usage_getopt(&all, &usage);
	opterr = 0;
	for (; (option = getopt_long(argc, argv, all.brief, all.all, NULL)) != -1;
		before = optind) {
		if (print_info(option))
			return BC_OPTIONS_EXIT;
		if (option == '?' || option == ':') {
			bc_usage_format_error(what, "buscapd", &usage, option, argv, before);
			fprintf(stderr, "buscapd: %s\n", what);
			return BC_OPTIONS_WRONG;
		}
		if (!apply_option(o, option))
			return BC_OPTIONS_WRONG;
	}
	if (optind == argc)
		return BC_OPTIONS_RUN;
	struct bc_source_spec spec;
	bool is_source = bc_source_spec_read(&spec, argv[optind], what, sizeof(what)) ||
			 access(argv[optind], F_OK) == 0;
	fprintf(stderr, "buscapd: %s: unexpected argument; %s\n", argv[optind],
		is_source ? "the source is an option, --source"
			  : "buscapd takes only options (see buscapd --help)");
	return BC_OPTIONS_WRONG;
}

/* True if the command line sets a key. */
static bool sets(const struct bc_daemon_options *o, const char *section, const char *key)
{
	for (unsigned i = 0; i < o->overrides_count; i++)
		if (strcmp(o->overrides[i].section, section) == 0 &&
			strcmp(o->overrides[i].key, key) == 0)
			return true;
	return false;
}

/* Reports a wrong value as the user gave it: "--set pipeline.workers=0: WHY". */
static void report_override(const struct bc_daemon_options *o, unsigned i,
	struct bc_config_errors *errors, const char *err)
{
	const char *option = o->overrides[i].option;
	bool is_set = strcmp(option, "--set") == 0;
	bool is_rule = option[1] == 'b' || option[1] == 'a';

	bc_config_error(errors, "%s %s%s%s%s%.200s: %s", option,
		is_set ? o->overrides[i].section : "", is_set ? "." : "",
		is_set || is_rule ? o->overrides[i].key : "",
		is_set    ? "="
		: is_rule ? ":"
			  : "",
		o->overrides[i].value, bc_config_reason(err, o->overrides[i].value));
}

/* Makes a path absolute, because clients may run in another directory. Keeps it if that fails. */
static void make_absolute(char *dir, size_t size)
{
	char path[2 * PATH_MAX];
	char cwd[PATH_MAX];

	if (dir[0] == '/' || getcwd(cwd, sizeof(cwd)) == NULL)
		return;
	int n = snprintf(path, sizeof(path), "%s/%s", strcmp(cwd, "/") != 0 ? cwd : "",
		strncmp(dir, "./", 2) == 0 ? dir + 2 : dir);
	if (n > 0 && (size_t)n < size)
		memcpy(dir, path, (size_t)n + 1);
}

bool bc_daemon_options_config(const struct bc_daemon_options *o, struct bc_config *config,
	struct bc_config_errors *errors)
{
	const char *path = o->config_file != NULL ? o->config_file : BC_CONFIG_FILE;
	char what[512];

	bc_config_default(config);
	bc_config_load(config, path, o->config_file == NULL, errors);
	for (unsigned i = 0; i < o->overrides_count; i++)
		if (!bc_config_set(config, o->overrides[i].section, o->overrides[i].key,
			    o->overrides[i].value, what, sizeof(what)))
			report_override(o, i, errors, what);
	make_absolute(config->dir, sizeof(config->dir));
	if (o->once && !sets(o, "socket", "path"))
		config->socket[0] = '\0';
	if (o->once && config->recording.mode != BC_RECORD_ALWAYS && sets(o, "recording", "record"))
		bc_config_error(errors,
			"--once always records from the start; remove recording.record = %s",
			bc_record_mode_name(config->recording.mode));
	if (o->once)
		bc_config_make_once(config);
	if (o->list_boards && config->source.kind == BC_SOURCE_NONE)
		config->source.kind = BC_SOURCE_USB;
	bool has_names = bc_config_open_names(config, errors);
	if (bc_config_check(config, errors) && has_names)
		return true;
	bc_name_map_close(config->names);
	config->names = NULL;
	return false;
}
