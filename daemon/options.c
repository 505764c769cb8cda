#include "daemon/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: buscapd [OPTION]...\n"
	"Records bus samples into rotating, lz4-compressed BYU address traces.\n"
	"\n"
	"  -c, --config FILE     configuration (default " BC_CONFIG_FILE ", if there)\n"
	"      --check-config    check it, and exit: 0 good, 2 not\n"
	"      --list-boards     what is on the USB, and why it is a capture board or not\n"
	"      --source SPEC     usb[:serial=X,id=VID:PID,protocol=raw6,link=ftdi,...];\n"
	"                        file:PATH[,format=F][,clock_hz=N], - is standard input; or\n"
	"                        sim[:rate=N|max,count=N,seed=N,agents=N,loss=P,corrupt=P]\n"
	"      --speed S         pace of a file: max (default), realtime, or a factor\n"
	"  -o, --output DIR      where the segments go (default /var/lib/buscapd)\n"
	"      --label TEXT      added to the recording's name\n"
	"  -b RULE:VALUE         new segment: filesize:SIZE duration:TIME interval:TIME; files:N\n"
	"                        keeps N of them (repeat -b for several rules)\n"
	"  -a RULE:VALUE         stop: duration:TIME records:N filesize:SIZE\n"
	"      --once            record to the end of the source, print the status, and exit; a\n"
	"                        board must come within 10 s (usb:wait=)\n"
	"      --socket PATH     status socket (default /run/buscapd/buscapd.sock; with --once\n"
	"                        none unless given)\n"
	"      --no-socket       no status socket\n"
	"      --set SECTION.KEY=VALUE  any setting of the configuration\n"
	"      --help, --version\n"
	"\n"
	"SIZE is in kB, or with K, M, G, T; TIME in seconds, or with ms, s, m, h, d.\n"
	"Exit: 0 ok, 1 failed, 2 usage or configuration, 3 input damaged or torn, 4 samples lost,\n"
	"5 no board.\n"
	"\n"
	"Example: record ten seconds of the simulated bus, in segments of 8 MB\n"
	"  buscapd --once --source sim:rate=2M -o /tmp/trace -b filesize:8M -a duration:10\n";

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
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"list-boards", no_argument, NULL, OPT_LIST_BOARDS},
	{"source", required_argument, NULL, OPT_SOURCE},
	{"speed", required_argument, NULL, OPT_SPEED},
	{"output", required_argument, NULL, 'o'},
	{"label", required_argument, NULL, OPT_LABEL},
	{"once", no_argument, NULL, OPT_ONCE},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"no-socket", no_argument, NULL, OPT_NO_SOCKET},
	{"set", required_argument, NULL, OPT_SET},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

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
	const char *why;
	char *colon = strchr(text, ':');
	bool is_good = option == 'b' ? bc_rotation_read(&rotation, text, &why)
				     : bc_stop_rule_read(&stop, text, &why);

	if (!is_good || colon == NULL) {
		fprintf(stderr, "buscapd: -%c %s: %s\n", option, text, why);
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
		fprintf(stderr, "buscapd: try buscapd --help\n");
		return false;
	}
}

enum bc_options_result bc_options_read(struct bc_options *o, int argc, char **argv)
{
	int option;

	memset(o, 0, sizeof(*o));
	while ((option = getopt_long(argc, argv, "c:o:b:a:", long_options, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(usage, stdout);
			return BC_OPTIONS_EXIT;
		}
		if (option == OPT_VERSION) {
			puts("buscapd " BC_VERSION);
			return BC_OPTIONS_EXIT;
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

bool bc_options_config(const struct bc_options *o, struct bc_config *config, char *why, size_t room)
{
	const char *path = o->config_file != NULL ? o->config_file : BC_CONFIG_FILE;
	char what[512];

	bc_config_default(config);
	if (!bc_config_load(config, path, o->config_file == NULL, why, room))
		return false;
	for (unsigned i = 0; i < o->overrides_count; i++) {
		if (bc_config_set(config, o->overrides[i].section, o->overrides[i].key,
			    o->overrides[i].value, what, sizeof(what)))
			continue;
		snprintf(why, room, "command line: %s", what);
		return false;
	}
	if (o->once && !o->has_socket)
		config->socket[0] = '\0';
	if (o->list_boards && config->source.kind == BC_SOURCE_NONE)
		config->source.kind = BC_SOURCE_USB;
	return bc_config_check(config, why, room);
}
