#include "formats/base/usage.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* What is longer than this, with the name before it, has its help farther to the right. */
#define NAME_COLUMNS_MAX 26u

static const struct bc_usage_option help_option = {'h', "help", NULL, NULL, "this text"};

static bool has_letter(const struct bc_usage_option *option)
{
	return option->letter > ' ' && option->letter < 127;
}

static bool is_end(const struct bc_usage_option *option)
{
	return option == NULL || option->help == NULL;
}

/* ---- for getopt_long() */

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

/* How many long options begin with a word, "--t" or "--t=1". */
static unsigned count_beginning(const struct bc_usage_getopt *g, const char *word)
{
	const char *name = word[1] == '-' ? word + 2 : "";
	size_t n = strcspn(name, "=");
	unsigned count = 0;

	for (const struct option *all = g->all; all->name != NULL; all++)
		count += n != 0 && strncmp(all->name, name, n) == 0;
	return count;
}

void bc_usage_refuse(char *out, size_t room, const struct bc_usage_getopt *g, int got,
	char *const *argv, int before)
{
	/* A long option was taken whole; of a cluster of short ones only the letter is known. */
	const char *word = argv[optind - 1];
	char brief_word[3] = {'-', (char)optopt, '\0'};

	if (optopt != 0 && (word[0] != '-' || word[1] != '-' || optind == before))
		word = brief_word;
	if (got == ':')
		snprintf(out, room, "option %.200s lacks its value", word);
	else if (count_beginning(g, word) == 1)
		snprintf(out, room, "option %.*s takes no value", (int)strcspn(word, "="), word);
	else if (count_beginning(g, word) > 1)
		snprintf(out, room, "%.200s is the beginning of several options", word);
	else
		snprintf(out, room, "no option %.200s here", word);
}

/* ---- for people */

/* Prints a text that stands from `column` on, in lines of which all but the first are indented. */
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

/* How an option looks at the left of its help; returns how long that is. */
static size_t name_option(char *left, size_t room, const struct bc_usage_option *option)
{
	char letter[] = {'-', (char)option->letter, ',', '\0'};
	int n;

	if (option->name == NULL) {
		letter[2] = '\0';
		n = snprintf(left, room, "  %s", letter);
	} else {
		n = snprintf(
			left, room, "  %-3s --%s", has_letter(option) ? letter : "", option->name);
	}
	if (option->metavar != NULL)
		n += snprintf(left + n, room - (size_t)n, " %s", option->metavar);
	return (size_t)n;
}

static void print_option(FILE *out, const struct bc_usage_option *option, size_t indent)
{
	char left[80];
	size_t n = name_option(left, sizeof(left), option) + 2;

	n = n > indent ? n : indent;
	fprintf(out, "%-*s", (int)n, left);
	print_wrapped(out, option->help, strlen(option->help), n, indent);
}

/* Where the help of options begins, so that it does for all of a help text. */
static size_t measure(const struct bc_usage_option *option, size_t indent)
{
	char left[80];

	for (; !is_end(option); option++) {
		size_t n = name_option(left, sizeof(left), option);
		if (n <= NAME_COLUMNS_MAX && n + 2 > indent)
			indent = n + 2;
	}
	return indent;
}

static size_t measure_all(const struct bc_usage *usage)
{
	size_t indent = measure(usage->options, 14);

	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL; i++)
		indent = measure(usage->verbs[i]->options, indent);
	return indent;
}

static bool has_option(const struct bc_usage *usage, const struct bc_usage_option *wanted)
{
	const struct bc_usage_option *option = usage->options;

	while (!is_end(option) && option->letter != wanted->letter)
		option++;
	return !is_end(option);
}

/* A command that takes nothing but its verbs has no options itself. */
static bool is_verbs_alone(const struct bc_usage *usage)
{
	return usage->verbs != NULL && usage->options == NULL;
}

static bool is_of_all(const struct bc_usage *usage, const struct bc_usage_option *option)
{
	bool is = is_verbs_alone(usage) || has_option(usage, option);

	for (size_t i = 0; usage->verbs != NULL && usage->verbs[i] != NULL && is; i++)
		is = has_option(usage->verbs[i], option);
	return is;
}

/* Prints the options of `part`, the command or one of its verbs, that all have or not all. */
static void print_options(FILE *out, const struct bc_usage *usage, const struct bc_usage *part,
	bool of_all, const char *heading, size_t indent)
{
	bool has_begun = false;

	for (const struct bc_usage_option *o = part->options; !is_end(o); o++) {
		if (is_of_all(usage, o) != of_all)
			continue;
		if (!has_begun && heading != NULL)
			fprintf(out, "Options of %s:\n", heading);
		has_begun = true;
		print_option(out, o, indent);
	}
	if (has_begun && !of_all)
		fputc('\n', out);
}

static void print_all_options(FILE *out, const struct bc_usage *usage)
{
	size_t indent = measure_all(usage);

	if (usage->verbs == NULL) {
		print_options(out, usage, usage, true, NULL, indent);
	} else {
		const struct bc_usage *first = is_verbs_alone(usage) ? usage->verbs[0] : usage;
		print_options(out, usage, usage, false, NULL, indent);
		for (size_t i = 0; usage->verbs[i] != NULL; i++)
			print_options(out, usage, usage->verbs[i], false,
				strchr(usage->verbs[i]->name, ' ') + 1, indent);
		print_options(out, usage, first, true, "all", indent);
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

	if (!is_verbs_alone(usage)) {
		print_synopsis(out, head, program, usage);
		head = "      ";
	}
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
	size_t indent = measure(options, 14);

	for (; !is_end(options); options++)
		print_option(out, options, indent);
	print_option(out, &help_option, indent);
}

/* ---- for programs */

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
