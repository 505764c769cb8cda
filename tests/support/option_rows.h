/* The output of --options (formats/base/usage.h) as rows, and checks of a program by them: fixed
 * words are the accepted values, and --help shows the same. The program runs in this process. */
#ifndef BC_TESTS_SUPPORT_OPTION_ROWS_H
#define BC_TESTS_SUPPORT_OPTION_ROWS_H

#include <ctype.h>

#include "formats/base/usage.h"
#include "tests/support/command_run.h"
#include "tests/support/test.h"

#define OPTION_ROWS_MAX 600

struct option_row {
	char *command; /* "-": the program */
	char *letter;
	char *name;
	char *metavar;
	char *kind;
	char *summary;
	char words[2][40]; /* "-x" and "--name" */
	unsigned words_count;
};

struct option_program {
	const char *name;
	command_fn *run;
	struct command_run r; /* of the last run */
	char *text;           /* that the rows point into */
	size_t count;
	struct option_row rows[OPTION_ROWS_MAX];
};

__attribute__((format(printf, 2, 3))) static inline void option_run(
	struct option_program *p, const char *format, ...)
{
	char *line;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&line, format, args) > 0);
	va_end(args);
	command_run_free(&p->r);
	command_run_by(&p->r, p->run, line);
	free(line);
}

/* After option_run(): wrong usage, and one line that contains the words. */
__attribute__((format(printf, 2, 3))) static inline void option_error(
	struct option_program *p, const char *format, ...)
{
	char words[300];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (p->r.code != BC_EXIT_USAGE || p->r.out_bytes != 0 ||
		strchr(p->r.err, '\n') != p->r.err + p->r.err_bytes - 1 ||
		strncmp(p->r.err, p->name, strlen(p->name)) != 0 || strstr(p->r.err, words) == NULL)
		fail_msg("exit code %d, not 2\n%s%s\nis not one line with: %s", p->r.code, p->r.out,
			p->r.err, words);
}

/* After option_run(): success, without messages. Returns the output. */
static inline const char *option_output(struct option_program *p)
{
	if (p->r.code != BC_EXIT_OK || p->r.err_bytes != 0)
		fail_msg("exit code %d: %s", p->r.code, p->r.err);
	return p->r.out;
}

static inline void option_program_open(struct option_program *p, const char *name, command_fn *run)
{
	p->name = name;
	p->run = run;
	option_run(p, "--options");
	p->text = strdup(option_output(p));
	for (char *line, *left = p->text; (line = strsep(&left, "\n")) != NULL && *line != '\0';) {
		struct option_row *row = &p->rows[p->count++];
		char **fields[] = {&row->command, &row->letter, &row->name, &row->metavar,
			&row->kind, &row->summary};
		assert_true(p->count < OPTION_ROWS_MAX);
		for (size_t i = 0; i < COUNT_OF(fields); i++)
			assert_non_null(*fields[i] = strsep(&line, "\t"));
		assert_null(line);
		if (*row->letter != '\0')
			snprintf(row->words[row->words_count++], 40, "-%s", row->letter);
		if (*row->name != '\0')
			snprintf(row->words[row->words_count++], 40, "--%s", row->name);
	}
}

static inline void option_program_close(struct option_program *p)
{
	command_run_free(&p->r);
	free(p->text);
}

/* The text of a command in a command line and in messages: "cut ", or "" for the program. */
static inline const char *option_command(const char *command)
{
	static char text[40];

	snprintf(text, sizeof(text), "%s%s", strcmp(command, "-") == 0 ? "" : command,
		strcmp(command, "-") == 0 ? "" : " ");
	return text;
}

static inline bool option_starts(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Calls a function for each command, "-" for the program itself. */
static inline void option_each_command(
	struct option_program *p, void (*check)(struct option_program *p, const char *command))
{
	for (size_t i = 0; i < p->count; i++)
		if (i == 0 || strcmp(p->rows[i].command, p->rows[i - 1].command) != 0)
			if (strcmp(p->rows[i].command, "config") != 0)
				check(p, p->rows[i].command);
}

/* Writes text with one blank for each sequence of white space. */
static inline void option_join(char *out, const char *text)
{
	for (; *text != '\0'; text++)
		if (!isspace((unsigned char)*text))
			*out++ = *text;
		else if (!isspace((unsigned char)text[1]))
			*out++ = ' ';
	*out = '\0';
}

static inline void option_check_rows(struct option_program *p)
{
	static const char *const kinds[] = {"none", "file", "dir", "format-read", "format-write",
		"choice", "list", "command", "setting", "number", "size", "time", "length", "range",
		"text", "recording", "id", "trigger", "mark", "map", "region"};

	for (size_t i = 0; i < p->count; i++) {
		const struct option_row *row = &p->rows[i];
		size_t at = 0;
		char kind[500];
		assert_true(strlen(row->letter) <= 1);
		assert_true(*row->summary != '\0' && !isspace((unsigned char)*row->summary));
		assert_true(row->words_count == 0 ||
			    (strcmp(row->kind, "none") == 0) == (*row->metavar == '\0'));
		snprintf(kind, sizeof(kind), "%s", row->kind);
		for (char *word, *left = kind; (word = strsep(&left, " ")) != NULL;) {
			word[strcspn(word, ":")] = '\0';
			for (at = 0; at < COUNT_OF(kinds) && strcmp(word, kinds[at]) != 0;)
				at++;
			if (at == COUNT_OF(kinds))
				fail_msg("%s: kind %s", row->name, row->kind);
		}
		for (size_t k = 0; k < i; k++) /* listed once */
			if (strcmp(row->command, p->rows[k].command) == 0 && row->words_count != 0)
				assert_false((*row->letter != '\0' &&
						     strcmp(row->letter, p->rows[k].letter) == 0) ||
					     (*row->name != '\0' &&
						     strcmp(row->name, p->rows[k].name) == 0));
	}
}

/* --help, -h and "help COMMAND" print the same, with each option that --options lists. */
static inline void option_check_help(struct option_program *p, const char *command)
{
	char usage[100];
	char line[500];

	option_run(p, "%s--help", option_command(command));
	char *text = strdup(option_output(p));
	char *joined = malloc(strlen(text) + 1);
	char *example = strstr(text, "\nExample: ");
	snprintf(usage, sizeof(usage), "usage: %s %s", p->name, option_command(command));
	assert_true(option_starts(text, usage) && example != NULL);
	snprintf(usage, sizeof(usage), "%s %s", p->name, strcmp(command, "-") != 0 ? command : "");
	assert_non_null(strstr(example, usage));
	assert_true(strcmp(command, "-") == 0 || strstr(text, "\nExit code: 0 ") != NULL);
	option_run(p, "%s-h", option_command(command));
	assert_string_equal(option_output(p), text);
	option_join(joined, text);
	for (size_t i = 0; i < p->count; i++) {
		const struct option_row *row = &p->rows[i];
		if (strcmp(row->command, command) != 0 || row->words_count == 0)
			continue;
		bool is_optional = *row->metavar == '[';
		snprintf(line, sizeof(line), "%s%s%s%s%s %s", row->words[0],
			row->words_count == 2 ? ", " : "",
			row->words_count == 2 ? row->words[1] : "",
			is_optional             ? "[="
			: *row->metavar != '\0' ? " "
						: "",
			row->metavar + is_optional, row->summary);
		if (strstr(joined, line) == NULL)
			fail_msg("%s\nis not in the help of %s", line, command);
	}
	for (char *one, *rest = text; (one = strsep(&rest, "\n")) != NULL;) {
		assert_true(strlen(one) <= BC_USAGE_COLUMNS);
		assert_true(*one == '\0' || !isspace((unsigned char)one[strlen(one) - 1]));
	}
	free(joined);
	free(text);
}

/* False for a command that only has verbs: it accepts only --help. */
static inline bool option_takes_options(const struct option_program *p, const char *command)
{
	unsigned options = 0;
	unsigned verbs = 0;

	for (size_t i = 0; i < p->count; i++) {
		const char *other = p->rows[i].command;
		options += strcmp(other, command) == 0 && p->rows[i].words_count != 0;
		verbs += option_starts(other, command) && other[strlen(command)] == ' ';
	}
	return strcmp(command, "help") != 0 && (verbs == 0 || options > 1);
}

/* Every listed option is accepted. --help and the like print something and end the program. */
static inline void option_check_listed(struct option_program *p, const char *command)
{
	static const char *const prints[] = {"help", "version", "options", "list-settings"};
	const char *words = option_command(command);

	for (size_t i = 0; i < p->count && option_takes_options(p, command); i++) {
		const struct option_row *row = &p->rows[i];
		for (unsigned k = 0; k < row->words_count && strcmp(row->command, command) == 0;
			k++) {
			bool ends = false;
			for (size_t n = 0; n < COUNT_OF(prints); n++)
				ends |= strcmp(row->name, prints[n]) == 0;
			bool has_value = *row->metavar != '\0' && *row->metavar != '[';
			option_run(p, "%s%s%s", words, row->words[k],
				has_value ? "" : " --frobnicate");
			if (ends)
				option_output(p);
			else if (has_value)
				option_error(p, "option %s requires a value; see %s %s--help",
					row->words[k], p->name, words);
			else
				option_error(p, "unknown option --frobnicate; see %s %s--help",
					p->name, words);
		}
	}
}

/* Calls a function for each word of a "choice:" or "list:", and all words of a list at once, with a
 * value for words that take one. Returns the number of words. */
static inline unsigned option_each_word(struct option_program *p, const struct option_row *row,
	void (*check)(struct option_program *p, const struct option_row *row, const char *value))
{
	static const char *const values[][2] = {{"duration:", "1s"}, {"interval:", "1s"},
		{"filesize:", "64M"}, {"files:", "3"}, {"records:", "5"}, {"usb:", "serial=A"},
		{"sim:", "seed=2"}, {"file:", "x"}, {"127.0.0.1:", "9100"}, {"[::1]:", "9100"}};
	char kind[500];
	char value[100];
	unsigned count = 0;

	snprintf(kind, sizeof(kind), "%s", row->kind);
	bool is_list = option_starts(kind, "list:");
	if (!is_list && !option_starts(kind, "choice:"))
		return 0;
	for (char *word, *left = strchr(kind, ':') + 1; (word = strsep(&left, "|")) != NULL;
		count++) {
		assert_true(*word != '\0');
		snprintf(value, sizeof(value), "%s", word);
		for (size_t i = 0; i < COUNT_OF(values); i++)
			if (strcmp(word, values[i][0]) == 0)
				snprintf(value, sizeof(value), "%s%s", word, values[i][1]);
		check(p, row, value);
	}
	if (is_list) {
		snprintf(kind, sizeof(kind), "%s", strchr(row->kind, ':') + 1);
		for (char *bar; (bar = strchr(kind, '|')) != NULL;)
			*bar = ',';
		check(p, row, kind);
	}
	return count;
}

#endif
