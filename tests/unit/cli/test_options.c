/* buscap's option tables: every listed option is accepted, fixed words are the accepted values, and
 * the help of each command. */
#include "tests/support/option_rows.h"

struct fixture {
	struct option_program p;
};

static void set_up(struct fixture *f)
{
	option_program_open(&f->p, "buscap", bc_commands_run);
	assert_true(f->p.count > 200);
}

static void tear_down(struct fixture *f)
{
	option_program_close(&f->p);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

TEST_F(rows_are_well_formed)
{
	option_check_rows(&f->p);
}

static void check_help(struct option_program *p, const char *command)
{
	char line[60];

	if (strcmp(command, "-") == 0)
		return; /* a list of the commands */
	option_check_help(p, command);
	char *text = strdup(option_output(p));
	option_run(p, "help %s", command);
	assert_string_equal(option_output(p), text);
	/* The help of the command has those of its verbs, the help of the program the command. */
	const char *blank = strchr(command, ' ');
	if (blank != NULL) {
		option_run(p, "%.*s --help", (int)(blank - command), command);
		snprintf(line, sizeof(line), " buscap %s ", command);
	} else {
		option_run(p, "--help");
		snprintf(line, sizeof(line), "\n  %s ", command);
	}
	assert_true(strcmp(command, "help") == 0 || strstr(option_output(p), line) != NULL);
	free(text);
}

TEST_F(each_command_and_verb_has_help_with_its_options_and_an_example)
{
	option_each_command(&f->p, check_help);
	option_run(&f->p, "--help");
	char *text = strdup(option_output(&f->p));
	option_run(&f->p, "help");
	assert_string_equal(option_output(&f->p), text);
	option_run(&f->p, "-h");
	assert_string_equal(option_output(&f->p), text);
	free(text);
}

static void check_listed(struct option_program *p, const char *command)
{
	if (strcmp(command, "-") != 0)
		option_check_listed(p, command);
}

TEST_F(every_listed_option_is_accepted)
{
	option_each_command(&f->p, check_listed);
}

static void check_word(struct option_program *p, const struct option_row *row, const char *value)
{
	for (unsigned i = 0; i < row->words_count; i++) {
		option_run(p, "%s %s %s --frobnicate", row->command, row->words[i], value);
		option_error(p, "unknown option --frobnicate;");
	}
}

TEST_F(fixed_words_are_the_accepted_values)
{
	unsigned tried = 0;

	for (size_t i = 0; i < f->p.count; i++) {
		const struct option_row *row = &f->p.rows[i];
		if (row->words_count == 0 || option_each_word(&f->p, row, check_word) == 0)
			continue;
		tried++;
		/* The daemon checks the types given to tail. */
		if (strcmp(row->command, "tail") == 0 && strcmp(row->name, "type") == 0)
			continue;
		option_run(&f->p, "%s --%s%snonsense --frobnicate", row->command, row->name,
			*row->metavar == '[' ? "=" : " ");
		option_error(&f->p, "nonsense");
		assert_null(strstr(f->p.r.err, "--frobnicate"));
	}
	assert_true(tried > 10);
}
