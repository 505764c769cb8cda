/* buscapd's command line: its option table, wrong options, and settings on the command line and in
 * a file. Everything before the daemon starts, in this process. */

#include "daemon/config/config_keys.h"
#include "daemon/config/options.h"
#include "tests/support/option_rows.h"
#include "tests/support/temp_dir.h"

static void on_error(void *context, const char *text)
{
	fprintf(context, "buscapd: %s\n", text);
}

static enum bc_exit run_options(const struct bc_console *console, int argc, char **argv)
{
	struct bc_daemon_options options;
	struct bc_config config = {.names = NULL};
	struct bc_config_errors errors = {.context = console->err, .on_error = on_error};

	optind = 0; /* glibc: reset getopt */
	switch (bc_daemon_options_read(&options, argc, argv)) {
	case BC_OPTIONS_EXIT:
		return BC_EXIT_OK;
	case BC_OPTIONS_WRONG:
		return BC_EXIT_USAGE;
	case BC_OPTIONS_RUN:
		break;
	}
	bool ok = bc_daemon_options_config(&options, &config, &errors);
	if (ok && options.print_config)
		bc_config_print(stdout, &config);
	if (ok)
		bc_name_map_close(config.names);
	return ok ? BC_EXIT_OK : BC_EXIT_USAGE;
}

/* Like main() until the daemon would start, with standard output and errors of the console. */
static enum bc_exit run_daemon(const struct bc_console *console, int argc, char **argv)
{
	FILE *out = stdout;
	FILE *err = stderr;

	stdout = fdopen(dup(console->out), "w");
	stderr = console->err;
	assert_non_null(stdout);
	enum bc_exit code = run_options(console, argc, argv);
	fclose(stdout);
	stdout = out;
	stderr = err;
	return code;
}

struct fixture {
	struct option_program p;
	struct temp_dir dir;
};

static void write_text(const struct fixture *f, const char *name, const char *text)
{
	temp_write(&f->dir, name, text, strlen(text));
}

static void set_up(struct fixture *f)
{
	option_program_open(&f->p, "buscapd", run_daemon);
	temp_dir_make(&f->dir);
	assert_int_equal(chdir(f->dir.path), 0);
}

static void tear_down(struct fixture *f)
{
	option_program_close(&f->p);
	assert_int_equal(chdir("/"), 0);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* ---- the table of options */

TEST_F(options_and_settings_are_well_formed)
{
	option_check_rows(&f->p);
	option_check_help(&f->p, "-");
}

TEST_F(listed_options_are_accepted)
{
	option_check_listed(&f->p, "-");
}

static void check_option_word(
	struct option_program *p, const struct option_row *row, const char *value)
{
	option_run(p, "-c /dev/null --source sim %s %s", row->words[0], value);
	if (strcmp(row->name, "speed") != 0) /* of a file */
		assert_string_equal(option_output(p), "");
}

TEST_F(fixed_words_of_options_are_accepted)
{
	unsigned rows = 0;

	for (size_t i = 0; i < f->p.count; i++)
		if (strcmp(f->p.rows[i].command, "-") == 0)
			rows += option_each_word(&f->p, &f->p.rows[i], check_option_word) != 0;
	assert_int_equal(rows, 4);
}

/* -b and -a have a rule for each key of their sections. */
TEST_F(rules_are_the_keys_of_rotation_and_stop)
{
	for (size_t i = 0; i < f->p.count; i++) {
		const struct option_row *row = &f->p.rows[i];
		const char *const rules[] = {"rotation.", "stop."};
		for (size_t k = 0; k < COUNT_OF(rules); k++) {
			if (strcmp(row->command, "config") != 0 ||
				!option_starts(row->name, rules[k]))
				continue;
			option_run(&f->p, "--source sim -%c %s:", k == 0 ? 'b' : 'a',
				row->name + strlen(rules[k]));
			option_error(&f->p, "not a ");
		}
	}
}

/* ---- the table of settings */

/* Writes a setting's name with a NAME, KEY or CYCLE in it. Returns it. */
static const char *key_of(const struct option_row *row)
{
	static const char *const parts[][2] = {{"CYCLE", "D_WRITE"}, {"NAME", "x"}, {"KEY", "x"}};
	static char key[60];

	snprintf(key, sizeof(key), "%s", row->name);
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		char *at = strstr(key, parts[i][0]);
		char rest[60];
		if (at == NULL)
			continue;
		snprintf(rest, sizeof(rest), "%s", at + strlen(parts[i][0]));
		snprintf(at, sizeof(key) - (size_t)(at - key), "%s%s", parts[i][1], rest);
	}
	return key;
}

/* Checks the configuration with a setting, and those that it requires. */
static void check_setting(struct option_program *p, const char *key, const char *value)
{
	option_run(p, "-c /dev/null --source %s %s --set '%s=%s'",
		strcmp(key, "source.speed") == 0 ? "file:/dev/null" : "sim:rate=1M",
		option_starts(key, "trigger")
			? "--set recording.record=flight --set 'trigger x.when=gap'"
			: "",
		key, value);
}

static void check_setting_word(
	struct option_program *p, const struct option_row *row, const char *value)
{
	check_setting(p, key_of(row), value);
	assert_string_equal(option_output(p), "");
}

TEST_F(listed_settings_and_their_fixed_words_are_accepted)
{
	unsigned keys = 0;
	unsigned words = 0;

	for (size_t i = 0; i < f->p.count; i++) {
		const struct option_row *row = &f->p.rows[i];
		char section[60];
		if (strcmp(row->command, "config") != 0)
			continue;
		keys++;
		check_setting(&f->p, key_of(row), "");
		assert_null(strstr(f->p.r.err, "no such"));
		snprintf(section, sizeof(section), "%s", key_of(row));
		snprintf(strchr(section, '.'), 20, ".frobnicate");
		check_setting(&f->p, section, "1");
		option_error(&f->p, "frobnicate");
		unsigned count = option_each_word(&f->p, row, check_setting_word);
		words += count;
		if (count == 0)
			continue;
		check_setting(&f->p, key_of(row), "nonsense");
		option_error(&f->p, "nonsense");
	}
	assert_true(keys > 60 && words > 30);
}

/* ---- wrong options and files */

static const struct {
	const char *line;
	const char *words;
} wrong[] = {
	{"--frobnicate", "unknown option --frobnicate; see buscapd --help"},
	{"--list-bords", "did you mean --list-boards? See buscapd --help"},
	{"--o", "option --o is ambiguous"},
	{"--once=1", "option --once takes no value"},
	{"-cx -b", "option -b requires a value"},
	{"--once -xb", "unknown option -x"},
	{"-c", "option -c requires a value"},
	{"--source", "option --source requires a value"},
	{"-b filesize", "-b filesize: not RULE:VALUE; try duration:10s"},
	{"--set nonsense", "--set nonsense: not SECTION.KEY=VALUE; try "},
	{"--check-config", "no source: use --source usb, file:PATH or sim"},
	{"--source sim stray", "stray: unexpected argument"},
	{"--source sim -b weight:3", "-b weight:3: unknown rule"},
	{"--source sim -b filesize:0", "buscapd: -b filesize:0: must be a size above 0"},
	{"--source sim -b duration:soon", "-b duration:soon: not a time"},
	{"--source sim -a records:-1", "-a records:-1: not a decimal number"},
	{"--source sim -a files:3", "-a files:3: unknown rule"},
	{"--source sim --set a.b=1", "--set a.b=1: no such section"},
	{"--source sim --set pipeline.workers=0",
		"--set pipeline.workers=0: must be a number from 1 to 64"},
	{"--source sim --set pipeline.buffer=1M", "pipeline.buffer: must be "},
	{"--source sim --speed 2", "source.speed: only for files"},
	{"--source sim --speed -1", "--speed -1: must be max"},
	{"--source sim --label a/b",
		"--label a/b: must have up to 64 letters, digits, '.', '_' and '-'"},
	{"--source sim -o ''", "-o : must not be empty"},
	{"--source ''", "--source : unknown source"},
	{"--source file:", "--source file:: path missing"},
	{"--source tape:", "--source tape:: unknown source"},
	{"--source sim:what=1", "--source sim:what=1: what=1: unknown setting"},
	{"--source sim --set log.level=loud",
		"--set log.level=loud: must be error, warning, notice, info or debug"},
	{"--source sim --set mapping.attr.NOTHING=1",
		"--set mapping.attr.NOTHING=1: unknown cycle type"},
	{"--source sim --set mapping.attr.D_WRITE=256",
		"--set mapping.attr.D_WRITE=256: must be a number from 0 to 255"},
	{"--source sim --set space.max_age=old", "--set space.max_age=old: not a time"},
	{"--print-config --source sim --set log.level=loud",
		"--set log.level=loud: must be error, warning, notice, info or debug"},
	{"-c none.conf --source sim", "none.conf: can't open: No such file"},
	{"-c . --source sim", "buscapd: .: not a file"},
	{"-c map.conf --source sim", "names.map: names: line 2: expected a hexadecimal address"},
	{"-c no-map.conf --source sim",
		"names.map: /nowhere/names: can't open: No such file or directory"},
	{"-c dir.conf --source sim", "names.symbols: .: not a regular file"},
	{"-c symbols.conf --source sim", "names.symbols: names: line 1: neither ELF nor a symbol"},
	{"-c keep.conf --source sim", "filter.keep: region=vgs: no region has this name"},
	{"-c trigger.conf --source sim", "trigger t: when: region=vgs: no region has this name"},
};

TEST_F(wrong_options_are_named)
{
	write_text(f, "names", "10-1f device\nzz\n");
	write_text(f, "map.conf", "[names]\nmap = names\n");
	write_text(f, "no-map.conf", "[names]\nmap = /nowhere/names\n");
	write_text(f, "dir.conf", "[names]\nsymbols = .\n");
	write_text(f, "symbols.conf", "[names]\nsymbols = names:-10\n");
	write_text(f, "keep.conf", "[filter]\nkeep = region=vgs\n");
	write_text(f, "trigger.conf", "[trigger t]\nwhen = region=vgs\naction = mark\n");
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		int fd = first_free_fd();
		option_run(&f->p, "%s", wrong[i].line);
		if (f->p.r.code != BC_EXIT_USAGE || strstr(f->p.r.err, wrong[i].words) == NULL)
			print_error("buscapd %s\n", wrong[i].line);
		option_error(&f->p, "%s", wrong[i].words);
		assert_int_equal(first_free_fd(), fd);
	}
	option_run(&f->p, "--source sim --label %065d", 1);
	option_error(&f->p, "--label 0");
	option_run(&f->p, "--source sim --socket /%0200d", 1);
	option_error(&f->p, "--socket /0");
}
