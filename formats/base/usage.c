/* Command-line options from a table: what getopt_long() needs, the error after it failed, the text
 * of --help, and the list of --options for completion and the manual pages.
 *
 * A command with verbs, such as `record`, prints the options of each verb under a heading, and
 * those that all verbs have once, at the end. */
#include "formats/base/usage.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "formats/base/suggest.h"
#include "formats/base/text.h"

/* Longer option names push only their own help text to the right. */
#define NAME_COLUMNS_MAX 26u

static const struct bc_usage_option help_option = {'h', "help", NULL, NULL, "print this help"};

static bool has_letter(const struct bc_usage_option *option)
{
	return option->letter > ' ' && option->letter < 127;
}

static bool is_end(const struct bc_usage_option *option)
{
	return option == NULL || option->help == NULL;
}

/* ---- getopt_long() */

static void add_getopt(
	struct bc_usage_getopt *g, size_t *all, size_t *brief, const struct bc_usage_option *option)
{
	int has_value = option->metavar == NULL     ? no_argument
			: option->metavar[0] == '[' ? optional_argument
						    : required_argument;

	if (option->name != NULL)
		g->all[(*all)++] = (struct option){option->name, has_value, NULL, option->letter};
	if (!has_letter(option))
		return;
	g->brief[(*brief)++] = (char)option->letter;
	for (int i = 0; i < has_value; i++)
		g->brief[(*brief)++] = ':';
}

void bc_usage_getopt(struct bc_usage_getopt *g, const struct bc_usage *usage)
{
	size_t all = 0;
	size_t brief = 1;

	memset(g, 0, sizeof(*g));
	g->brief[0] = ':';
	for (const struct bc_usage_option *o = usage->options; !is_end(o); o++) {
		assert(o - usage->options < BC_USAGE_OPTIONS_MAX);
		add_getopt(g, &all, &brief, o);
	}
	add_getopt(g, &all, &brief, &help_option);
}

bool bc_usage_are_options(const struct bc_usage *usage, int argc, char **argv)
{
	struct bc_usage_getopt g;
	char brief[sizeof(g.brief) + 1];
	int letter;

	bc_usage_getopt(&g, usage);
	snprintf(brief, sizeof(brief), "+%s", g.brief); /* stops at the first operand */
	optind = 0;                                     /* glibc: reset getopt */
	opterr = 0;
	do {
		letter = getopt_long(argc, argv, brief, g.all, NULL);
	} while (letter != -1 && letter != '?' && letter != ':');
	return letter == -1 && optind == argc && strcmp(argv[argc - 1], "--") != 0;
}

/* The name in a word such as "--t" or "--t=1", and its length. */
static const char *long_name(const char *word, size_t *bytes)
{
	const char *name = word[0] == '-' && word[1] == '-' ? word + 2 : "";

	*bytes = strcspn(name, "=");
	return name;
}

/* The number of long options that start with a word such as "--t" or "--t=1". */
static unsigned count_matches(const struct bc_usage *usage, const char *word)
{
	size_t n;
	const char *name = long_name(word, &n);
	unsigned count = n != 0 && strncmp(help_option.name, name, n) == 0;

	for (const struct bc_usage_option *o = usage->options; !is_end(o); o++)
		count += n != 0 && o->name != NULL && strncmp(o->name, name, n) == 0;
	return count;
}

/* Appends where the options are described. */
static void append_see(char *err, size_t errlen, const char *see, const char *program,
	const struct bc_usage *usage)
{
	size_t used = strlen(err);

	bc_message(err + used, errlen - used, "%s %s%s%s --help", see, program,
		usage->name != NULL ? " " : "", usage->name != NULL ? usage->name : "");
}

void bc_usage_unknown_option(char err[BC_USAGE_ERROR_MAX], const char *program,
	const struct bc_usage *usage, const char *word)
{
	char name[BC_SUGGESTION_BYTES + 2];
	size_t n;
	const char *start = long_name(word, &n);

	snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : 0, start);
	struct bc_suggestion s = bc_suggestion_start(name);
	for (const struct bc_usage_option *o = usage->options; !is_end(o); o++)
		if (o->name != NULL)
			bc_suggestion_add(&s, o->name, o->name);
	bc_suggestion_add(&s, help_option.name, help_option.name);
	if (s.nearest != NULL)
		bc_message(err, BC_USAGE_ERROR_MAX, "unknown option %.200s; did you mean --%s? ",
			word, s.nearest);
	else
		bc_message(err, BC_USAGE_ERROR_MAX, "unknown option %.200s; ", word);
	append_see(err, BC_USAGE_ERROR_MAX, s.nearest != NULL ? "See" : "see", program, usage);
}

void bc_usage_format_error(char err[BC_USAGE_ERROR_MAX], const char *program,
	const struct bc_usage *usage, int got, char *const *argv, int before)
{
	/* For a long option, use the whole word. For a short one, getopt only reports the letter,
	 * which may be in the middle of a word. */
	const char *word = argv[optind - 1];
	char brief_word[3] = {'-', (char)optopt, '\0'};

	if (optopt != 0 && (word[0] != '-' || word[1] != '-' || optind == before))
		word = brief_word;
	unsigned matches = count_matches(usage, word);
	if (got != ':' && matches == 0) {
		bc_usage_unknown_option(err, program, usage, word);
		return;
	}
	if (got == ':')
		bc_message(err, BC_USAGE_ERROR_MAX, "option %.200s requires a value; ", word);
	else if (matches == 1)
		bc_message(err, BC_USAGE_ERROR_MAX, "option %.*s takes no value; ",
			(int)strcspn(word, "="), word);
	else
		bc_message(err, BC_USAGE_ERROR_MAX, "option %.200s is ambiguous; ", word);
	append_see(err, BC_USAGE_ERROR_MAX, "see", program, usage);
}

/* ---- --help */

/* Prints text as wrapped lines. The first line starts at `column`, the others at `indent`. */
static void print_wrapped(FILE *out, const char *text, size_t bytes, size_t column, size_t indent)
{
	const char *end = text + bytes;
	size_t blanks = 0;

	while (text < end) {
		size_t n = 0;
		while (text + n < end && text[n] != ' ')
			n++;
		if (column + blanks + n > BC_USAGE_COLUMNS && column > indent) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			blanks = 0;
		}
		fprintf(out, "%*s%.*s", (int)blanks, "", (int)n, text);
		column += blanks + n;
		text += n;
		for (blanks = 0; text < end && *text == ' '; text++)
			blanks++;
	}
	fputc('\n', out);
}

void bc_usage_print_text(FILE *out, const char *text)
{
	while (*text != '\0') {
		size_t blanks = strspn(text, " ");
		size_t n = strcspn(text, "\n");
		fprintf(out, "%*s", (int)blanks, "");
		print_wrapped(out, text + blanks, n - blanks, blanks, blanks);
		text += n + (text[n] == '\n');
	}
}

/* Formats the left column, "  -x, --name VALUE". Returns its length. */
static size_t format_left_column(char *left, size_t size, const struct bc_usage_option *option)
{
	char letter[] = {'-', (char)option->letter, ',', '\0'};
	int n;

	if (option->name == NULL) {
		letter[2] = '\0';
		n = snprintf(left, size, "  %s", letter);
	} else {
		n = snprintf(
			left, size, "  %-3s --%s", has_letter(option) ? letter : "", option->name);
	}
	if (option->metavar != NULL && option->metavar[0] == '[')
		n += snprintf(left + n, size - (size_t)n, "[=%s", option->metavar + 1);
	else if (option->metavar != NULL)
		n += snprintf(left + n, size - (size_t)n, " %s", option->metavar);
	return (size_t)n;
}

static void print_option(FILE *out, const struct bc_usage_option *option, size_t indent)
{
	char left[80];
	size_t n = format_left_column(left, sizeof(left), option) + 2;

	n = n > indent ? n : indent;
	fprintf(out, "%-*s", (int)n, left);
	print_wrapped(out, option->help, strlen(option->help), n, indent);
}

/* The column where the help of all these options starts; at least `indent`. */
static size_t help_column(const struct bc_usage_option *option, size_t indent)
{
	char left[80];

	for (; !is_end(option); option++) {
		size_t n = format_left_column(left, sizeof(left), option);
		if (n <= NAME_COLUMNS_MAX && n + 2 > indent)
			indent = n + 2;
	}
	return indent;
}

static bool has_option(const struct bc_usage *usage, int letter)
{
	const struct bc_usage_option *option = usage->options;

	while (!is_end(option) && option->letter != letter)
		option++;
	return !is_end(option);
}

/* True if all verbs of the command have this option; also without verbs. */
static bool is_common(const struct bc_usage *usage, int letter)
{
	bool is = true;

	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL && is; i++)
		is = has_option(usage->verbs[i], letter);
	return is;
}

/* Prints the common options, or the others, of `part`: the command or one of its verbs. */
static void print_options(FILE *out, const struct bc_usage *usage, const struct bc_usage *part,
	bool common, const char *heading, size_t indent)
{
	bool is_first = true;

	for (const struct bc_usage_option *o = part->options; !is_end(o); o++) {
		if (is_common(usage, o->letter) != common)
			continue;
		if (is_first && heading != NULL)
			fprintf(out, "Options of %s:\n", heading);
		is_first = false;
		print_option(out, o, indent);
	}
	if (!is_first && !common)
		fputc('\n', out);
}

static void print_all_options(FILE *out, const struct bc_usage *usage)
{
	size_t indent = help_column(usage->options, 14);

	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL; i++)
		indent = help_column(usage->verbs[i]->options, indent);
	if (usage->verbs == NULL) {
		print_options(out, usage, usage, true, NULL, indent);
	} else {
		assert(usage->verbs[0] != NULL);
		for (size_t i = 0; usage->verbs[i] != NULL; i++)
			print_options(out, usage, usage->verbs[i], false,
				strchr(usage->verbs[i]->name, ' ') + 1, indent);
		print_options(out, usage, usage->verbs[0], true, "all commands", indent);
	}
	print_option(out, &help_option, indent);
}

static void print_synopsis(
	FILE *out, const char *head, const char *program, const struct bc_usage *usage)
{
	const char *words[] = {usage->name, "[OPTION]...", usage->required, usage->operands};

	fprintf(out, "%s %s", head, program);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] != NULL)
			fprintf(out, " %s", words[i]);
	fputc('\n', out);
}

static void print_synopses(FILE *out, const char *program, const struct bc_usage *usage)
{
	const char *head = "usage:";

	if (usage->verbs == NULL)
		print_synopsis(out, head, program, usage);
	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL; i++) {
		print_synopsis(out, head, program, usage->verbs[i]);
		head = "      ";
	}
}

void bc_usage_help(FILE *out, const char *program, const struct bc_usage *usage)
{
	print_synopses(out, program, usage);
	fputc('\n', out);
	if (usage->text != NULL) {
		bc_usage_print_text(out, usage->text);
	} else {
		fputc(toupper((unsigned char)usage->summary[0]), out);
		fprintf(out, "%s.\n", usage->summary + 1);
	}
	fputc('\n', out);
	print_all_options(out, usage);
	fputc('\n', out);
	if (usage->more != NULL) {
		bc_usage_print_text(out, usage->more);
		fputc('\n', out);
	}
	fputs("Exit code: ", out);
	print_wrapped(out, usage->exits, strlen(usage->exits), strlen("Exit code: "), 0);
	fprintf(out, "\nExample: %s\n", usage->example);
}

void bc_usage_print_options(FILE *out, const struct bc_usage_option *options)
{
	print_all_options(out, &(struct bc_usage){.options = options});
}

/* ---- --options */

void bc_usage_list_row(FILE *out, const char *command, int letter, const char *name,
	const char *metavar, const char *kind, const char *summary)
{
	char brief[] = {(char)letter, '\0'};
	const char *fields[] = {brief, name, metavar, kind, summary};

	fputs(command, out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(out, "\t%s", fields[i] != NULL ? fields[i] : "");
	fputc('\n', out);
}

static void list_option(FILE *out, const char *command, const struct bc_usage_option *option)
{
	bc_usage_list_row(out, command, has_letter(option) ? option->letter : 0, option->name,
		option->metavar, option->kind != NULL ? option->kind : "none", option->help);
}

void bc_usage_list(FILE *out, const struct bc_usage *usage)
{
	const char *command = usage->name != NULL ? usage->name : "-";

	bc_usage_list_row(out, command, 0, NULL, usage->operands,
		usage->kind != NULL ? usage->kind : "none", usage->summary);
	for (const struct bc_usage_option *o = usage->options; !is_end(o); o++)
		list_option(out, command, o);
	list_option(out, command, &help_option);
	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL; i++)
		bc_usage_list(out, usage->verbs[i]);
}
