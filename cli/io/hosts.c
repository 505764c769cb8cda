/* ssh writes to files in memory, so that another process that keeps its output open delays nothing.
 * When all hosts have ended, their answers are read, one whole answer after the other; an answer
 * counts only if ssh ended with 0 or 3 and each line is an object. The rows are then sorted. Those
 * of a host keep their order, because within a recording numbers decide. */
#include "cli/io/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "formats/base/clock.h"
#include "formats/base/grow.h"
#include "formats/base/text.h"

#define SECOND_NS  UINT64_C(1000000000)
#define TICK_MS    10
#define ANSWER_MAX (64 << 20) /* bytes */
#define BLANKS     " \t\r"

struct host {
	const char *node; /* the ssh destination */
	const char *directory;
	int answer;
	int messages;
	pid_t pid; /* of ssh and its process group; 0: does not run */
	int status;
	uint64_t start_ns;
	uint64_t end_ns;    /* it is killed at this time */
	const char *reason; /* why it was killed; NULL: it was not */
};

struct row {
	json_t *object;
	const struct host *host;
	size_t number;             /* in the order of the hosts and their answers */
	char at[BC_RFC3339_BYTES]; /* its time, or a later one of its host before it */
};

struct asking {
	const struct bc_console *console;
	const struct bc_hosts_answer *kind;
	const struct bc_filter_args *args;
	const struct bc_name_map *names;
	const char *address; /* NULL: none */
	/* Options: */
	const char *file;
	uint64_t jobs;
	uint64_t timeout_ns;
	uint64_t first;
	uint64_t last;
	bool is_json;
	bool is_count;
	char *options; /* those that hosts get, quoted */
	/* Hosts: */
	char *text; /* of the file, divided into words */
	struct host *all;
	int count;
	/* Answers: */
	struct row *rows;
	size_t rows_count;
	size_t capacity;
	int node_width;
	int text_width;
};

/* ---- the command */

/* Writes a word that no shell splits or expands. */
static void write_quoted(FILE *out, const char *before, const char *word)
{
	fprintf(out, "%s'", before);
	for (; *word != '\0'; word++)
		fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
	fputc('\'', out);
}

/* Reads an option, and writes it unless it is for this machine. Sets *local if it excludes hosts.
 */
static bool read_option(struct asking *a, FILE *out, int letter, const char **local)
{
	const struct bc_usage_option *row = a->kind->usage->options;

	while (row->letter != letter)
		row++;
	a->is_json |= letter == 'j';
	a->is_count |= letter == 'c';
	if (letter == BC_HOSTS_OPT_FILE)
		a->file = optarg;
	if (letter == BC_HOSTS_OPT_TIMEOUT)
		return bc_option_time(a->console, "--timeout", SECOND_NS / 1000, 86400 * SECOND_NS,
			&a->timeout_ns);
	if (letter == BC_HOSTS_OPT_JOBS)
		return bc_option_count(a->console, "--jobs", 1, 1000, &a->jobs);
	if (letter == BC_HOSTS_OPT_FILE || letter == 'j' || letter == 'c' ||
		letter == BC_FILTER_OPT_REGION || bc_name_args_has(letter))
		return true;
	if (*local == NULL && (letter == 'U' || letter == 'I' || a->kind->time == NULL))
		*local = row->name;
	fprintf(out, " --%s", row->name);
	if (optarg != NULL)
		write_quoted(out, "=", optarg);
	if (strcmp(row->name, "first") != 0 && strcmp(row->name, "last") != 0)
		return true;
	return bc_option_count(
		a->console, row->name, 1, UINT64_MAX, row->name[0] == 'f' ? &a->first : &a->last);
}

/* Returns the command for a host's shell, or NULL if out of memory. It must not read the pipe that
 * ssh makes, nor ask hosts itself. A region is sent as a map with its addresses. */
static char *make_command(const struct asking *a, const struct host *host)
{
	const struct bc_filter *filter = a->args != NULL && a->args->region != NULL
						 ? &a->args->filter
						 : NULL;
	char *command = NULL;
	size_t bytes;
	FILE *out = open_memstream(&command, &bytes);

	if (out == NULL)
		return NULL;
	/* ssh does not end what it has started there. */
	fprintf(out, "env BUSCAP_HOSTS= timeout %" PRIu64 " buscap %s --json%s%s --",
		a->timeout_ns / SECOND_NS + 1, a->kind->usage->name, a->options,
		filter != NULL ? " --map=/dev/fd/3 --region=region" : "");
	if (a->address != NULL)
		write_quoted(out, " ", a->address);
	if (host->directory != NULL && a->kind->time != NULL)
		write_quoted(out, " ", host->directory);
	fputs(" </dev/null", out);
	for (unsigned i = 0; filter != NULL && i < filter->ranges_count; i++)
		fprintf(out, "%s%s%" PRIx64 "-%" PRIx64 " region\n", i == 0 ? " 3<<'END'\n" : "",
			i < filter->memory_count ? "" : "port ", filter->ranges[i].first,
			filter->ranges[i].last);
	fputs(filter != NULL ? "END\n" : "", out);
	fclose(out);
	return command;
}

/* ---- ssh */

static void start_host(const struct asking *a, struct host *host)
{
	char *command = make_command(a, host);
	char *argv[] = {(char[]){"ssh"}, (char[]){"-o"}, (char[]){"BatchMode=yes"}, (char[]){"--"},
		(char *)host->node, command, NULL};

	host->start_ns = bc_now_ns();
	host->end_ns = host->start_ns + a->timeout_ns;
	host->answer = memfd_create("answer", MFD_CLOEXEC);
	host->messages = memfd_create("messages", MFD_CLOEXEC);
	if (command == NULL || host->messages < 0)
		host->reason = strerror(errno);
	else if ((errno = bc_spawn(&host->pid, argv, host->answer, host->messages)) != 0) {
		host->reason = errno == ENOENT ? "can't start ssh; install it" : strerror(errno);
		host->pid = 0;
	}
	free(command);
}

/* Ends a host that needs too long. Returns whether it counts as one of --jobs: one that is silent
 * does not, so that those that hang don't delay the others. */
static bool check_host(struct host *host, bool is_interrupted)
{
	uint64_t now_ns = bc_now_ns();
	off_t answer = lseek(host->answer, 0, SEEK_CUR); /* ssh's position, too */
	bool is_long = answer + lseek(host->messages, 0, SEEK_CUR) > ANSWER_MAX;

	if (waitpid(host->pid, &host->status, WNOHANG) > 0) {
		if (host->reason != NULL)
			kill(-host->pid, SIGKILL); /* what it has started */
		host->pid = 0;
	} else if (now_ns >= host->end_ns ||
		   (host->reason == NULL && (is_long || is_interrupted))) {
		/* First politely, so that ssh tidies up. */
		kill(-host->pid, host->reason == NULL ? SIGTERM : SIGKILL);
		host->reason = is_long ? "the answer is longer than 64 MiB; narrow the search"
				       : "no answer in time; try a longer --timeout";
		host->end_ns = now_ns + SECOND_NS / 2;
	}
	return host->pid != 0 && (answer != 0 || now_ns < host->start_ns + SECOND_NS);
}

/* Runs the command on all hosts. */
static void run_hosts(struct asking *a)
{
	bool is_interrupted = false;
	bool runs = true;
	uint64_t busy = 0;
	int next = 0;
	sigset_t before;

	sigprocmask(SIG_SETMASK, NULL, &before);
	int interrupt = bc_interrupt_open();
	while (runs || (next < a->count && !is_interrupted)) {
		for (; next < a->count && busy < a->jobs && !is_interrupted; busy++)
			start_host(a, &a->all[next++]);
		is_interrupted = bc_interrupt_wait(interrupt, TICK_MS);
		busy = 0;
		runs = false;
		for (int i = 0; i < next; i++) {
			busy += a->all[i].pid != 0 && check_host(&a->all[i], is_interrupted);
			runs |= a->all[i].pid != 0;
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL); /* a signal that has come kills us now */
}

/* ---- answers */

/* Prints a host's messages without the name of the command; or after `before`, only the last one.
 */
static void print_messages(const struct asking *a, const struct host *host, const char *before)
{
	char text[8192];
	off_t end = lseek(host->messages, 0, SEEK_END);
	off_t from = before != NULL && end >= (off_t)sizeof(text) ? end - (off_t)sizeof(text) + 1
								  : 0;
	ssize_t n = pread(host->messages, text, sizeof(text) - 1, from);
	const char *last = "no message";
	char *rest = text;
	char *line;

	text[n > 0 ? n : 0] = '\0';
	while ((line = strtok_r(NULL, "\r\n", &rest)) != NULL) {
		const char *colon = strncmp(line, "buscap ", 7) == 0 ? strstr(line, ": ") : NULL;
		last = colon != NULL ? colon + 2 : line;
		if (before == NULL && colon != NULL) /* not what ssh says at the login */
			bc_print_error(a->console, host->node, "%s", last);
	}
	if (before != NULL)
		bc_print_error(a->console, host->node, "%s: %s", before, last);
}

/* Adds the rows of an answer. Returns false if a line is not one, or not whole. */
static bool read_rows(struct asking *a, const struct host *host)
{
	size_t n = (size_t)lseek(host->answer, 0, SEEK_END);
	char at[BC_RFC3339_BYTES] = "";
	char *text = calloc(1, n + 1);
	char *line = text;
	char *end = NULL;

	for (n = text != NULL ? (size_t)pread(host->answer, text, n, 0) : 0; line < text + n;
		line = end + 1) {
		struct row *rows = bc_grow(a->rows, &a->capacity, a->rows_count, sizeof(*rows));
		a->rows = rows != NULL ? rows : a->rows;
		end = memchr(line, '\n', (size_t)(text + n - line));
		json_t *object = end != NULL ? bc_json_parse_object(line, (size_t)(end - line))
					     : NULL;
		const char *name = bc_json_path_text(object, a->kind->text);
		const char *time = a->kind->time != NULL ? bc_json_path_text(object, a->kind->time)
							 : NULL;
		if (rows == NULL || name == NULL) {
			json_decref(object);
			break;
		}
		if (time != NULL && strlen(time) < sizeof(at) && strcmp(time, at) > 0)
			strcpy(at, time);
		if ((int)strlen(name) > a->text_width)
			a->text_width = (int)strlen(name);
		rows[a->rows_count] = (struct row){object, host, a->rows_count, ""};
		strcpy(rows[a->rows_count++].at, at);
	}
	bool is_whole = text != NULL && line == text + n;
	free(text);
	return is_whole;
}

/* Reads the answers, and prints what went wrong. */
static enum bc_exit read_answers(struct asking *a)
{
	enum bc_exit result = BC_EXIT_OK;
	char before[64];
	int failed = 0;

	for (int i = 0; i < a->count; i++) {
		struct host *host = &a->all[i];
		int code = WIFEXITED(host->status) ? WEXITSTATUS(host->status) : -1;
		bool is_whole = code == BC_EXIT_OK || code == BC_EXIT_DAMAGED;
		size_t begin = a->rows_count;
		const char *wrong = host->reason;
		if (wrong == NULL && is_whole && !read_rows(a, host))
			wrong = "not a whole answer of this command; does a login script print?";
		if (wrong == NULL && is_whole && a->kind->time == NULL && begin == a->rows_count)
			wrong = "no answer";
		snprintf(before, sizeof(before), "%s %d%s",
			code >= 0 ? "exit code" : "ssh was killed by signal",
			code >= 0 ? code : WTERMSIG(host->status),
			code == BC_EXIT_USAGE ? ", perhaps another version" : "");
		if (wrong != NULL)
			bc_print_error(a->console, host->node, "%s", wrong);
		else if (code != BC_EXIT_OK)
			print_messages(a, host, is_whole ? NULL : before);
		if (wrong != NULL || code != BC_EXIT_OK)
			result = BC_EXIT_DAMAGED;
		failed += wrong != NULL || !is_whole;
		while ((wrong != NULL || !is_whole) && a->rows_count > begin)
			json_decref(a->rows[--a->rows_count].object);
	}
	return failed == a->count ? BC_EXIT_FAILED : result;
}

static int compare_rows(const void *x, const void *y)
{
	const struct row *a = x;
	const struct row *b = y;
	int order = strcmp(a->at, b->at);

	return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* Sorts the rows, and drops those that are copies of another host's. */
static void sort_rows(struct asking *a)
{
	json_t *first = json_object(); /* which host had an object first */
	size_t count = 0;

	if (a->rows_count != 0)
		qsort(a->rows, a->rows_count, sizeof(*a->rows), compare_rows);
	for (size_t i = 0; i < a->rows_count && a->kind->print == NULL; i++) {
		struct row row = a->rows[i];
		json_t *object = json_copy(row.object);
		json_object_del(object, "file");
		char *key = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
		json_decref(object);
		const json_t *by = key != NULL ? json_object_get(first, key) : NULL;
		if (by != NULL && json_integer_value(by) != row.host - a->all) {
			json_decref(row.object);
		} else {
			a->rows[count++] = row;
			json_object_set_new(first, key, json_integer(row.host - a->all));
		}
		free(key);
	}
	a->rows_count = a->kind->print == NULL ? count : a->rows_count;
	json_decref(first);
}

/* Names the address of a reference, which a host does not know. */
static void name_address(const struct asking *a, json_t *object)
{
	const char *type = bc_json_path_text(object, "type");
	const char *addr = bc_json_path_text(object, "addr");
	bool is_port = type != NULL && strncmp(type, "IO", 2) == 0;
	struct bc_entry entry = {.kind = BC_ENTRY_REFERENCE,
		.type = is_port ? BC_REQ_IOREAD : BC_REQ_MEMREAD,
		.size = (uint8_t)bc_json_path_count(object, "size"),
		.addr = addr != NULL ? strtoull(addr, NULL, 16) : 0};

	json_object_set_new(object, "name",
		bc_name_map_json(a->names, is_port, bc_filter_touched(&a->args->filter, &entry)));
}

/* Prints a record or a mark. */
static void print_line(const struct asking *a, struct bc_output *o, const json_t *object)
{
	char number[24] = "-";

	if (json_is_integer(json_object_get(object, "number")))
		snprintf(number, sizeof(number), "%" PRIu64, bc_json_path_count(object, "number"));
	bc_output_format(o, "%10s", number);
	bc_template_print(o, "  {time}  ", object);
	bc_column_text(o, a->node_width, object, "node");
	bc_template_print(o, "{file}  ", object);
	if (json_object_get(object, "kind") != NULL)
		bc_column_text(o, 7, object, "kind");
	bc_template_print(o, "{text}[  ({name})]\n", object);
}

static enum bc_exit print_rows(const struct asking *a)
{
	size_t n = a->rows_count;
	size_t begin = a->last != 0 && a->last < n ? n - a->last : 0;
	size_t end = a->first != 0 && a->first < n ? a->first : n;
	struct bc_output o;

	if (!bc_output_open(&o, a->console))
		return BC_EXIT_FAILED;
	if (a->is_count && isatty(o.fd))
		bc_output_format(&o, "%s\n", BC_GROUPED(n));
	else if (a->is_count)
		bc_output_format(&o, "%zu\n", n);
	else if (n == 0 && a->kind->time != NULL)
		bc_print_error(a->console, NULL, "no host has a match");
	for (size_t i = begin; i < end && !a->is_count && !bc_output_failed(&o); i++) {
		json_t *object = a->rows[i].object;
		json_object_set_new(object, "node", bc_json_text(a->rows[i].host->node));
		if (json_object_get(object, "name") != NULL && a->args != NULL)
			name_address(a, object);
		if (a->is_json)
			bc_output_json_value(&o, json_incref(object));
		else if (a->kind->print != NULL)
			a->kind->print(&o, object, a->node_width, a->text_width, i == 0);
		else
			print_line(a, &o, object);
	}
	return bc_output_close(&o, a->console);
}

/* ---- all of it */

/* Reads the hosts of a file. */
static enum bc_exit read_hosts(struct asking *a)
{
	FILE *file = fopen(a->file, "re");
	const char *wrong = NULL;
	unsigned number = 1;
	size_t capacity = 0;
	size_t room = 0;
	char *line;

	if (file == NULL)
		return bc_print_error(a->console, a->file, "can't open: %s", strerror(errno));
	ssize_t bytes = getdelim(&a->text, &capacity, '\0', file);
	if (bytes < 0)
		wrong = feof(file) != 0 ? "the file is empty" : strerror(errno);
	else if (strlen(a->text) != (size_t)bytes)
		wrong = "not a text file";
	fclose(file);
	for (char *next = a->text; wrong == NULL && (line = strsep(&next, "\n")) != NULL;
		number += next != NULL) {
		struct host host = {.answer = -1, .messages = -1};
		line[strcspn(line, "#")] = '\0';
		host.node = strtok_r(line, BLANKS, &line);
		host.directory = strtok_r(NULL, BLANKS, &line);
		if (host.node == NULL)
			continue;
		if (host.node[0] == '-')
			wrong = "an ssh destination can't begin with \"-\"";
		else if (strtok_r(NULL, BLANKS, &line) != NULL)
			wrong = "more than an ssh destination and a directory";
		struct host *all = bc_grow(a->all, &room, (size_t)a->count, sizeof(host));
		wrong = all == NULL ? "out of memory" : wrong;
		if (wrong != NULL)
			break;
		a->all = all;
		all[a->count++] = host;
		if ((int)strlen(host.node) > a->node_width)
			a->node_width = (int)strlen(host.node);
	}
	if (wrong == NULL && a->count == 0)
		wrong = "the file ends without an ssh destination";
	if (wrong != NULL)
		bc_print_error(a->console, a->file, "line %u: %s", number, wrong);
	return wrong == NULL ? BC_EXIT_OK : BC_EXIT_USAGE;
}

static void free_asking(struct asking *a)
{
	for (int i = 0; i < a->count; i++) {
		close(a->all[i].answer);
		close(a->all[i].messages);
	}
	while (a->rows_count != 0)
		json_decref(a->rows[--a->rows_count].object);
	free(a->rows);
	free(a->all);
	free(a->text);
	free(a->options);
}

static enum bc_exit ask(struct asking *a)
{
	enum bc_exit code = read_hosts(a);

	if (code != BC_EXIT_OK)
		return code;
	run_hosts(a);
	code = read_answers(a);
	sort_rows(a);
	return code == BC_EXIT_FAILED ? code : bc_exit_worse(code, print_rows(a));
}

bool bc_hosts_ask(const struct bc_console *console, const struct bc_hosts_answer *answer, int argc,
	char **argv, int operands, const struct bc_filter_args *args,
	const struct bc_name_map *names, enum bc_exit *code)
{
	const char *local = argc > optind + operands ? "files" : NULL;
	struct asking a = {.console = console,
		.kind = answer,
		.args = args,
		.names = names,
		.address = operands != 0 ? argv[optind] : NULL,
		.jobs = 16,
		.timeout_ns = 30 * SECOND_NS,
		.node_width = (int)strlen("NODE")};
	struct bc_options o;
	size_t bytes;
	int letter = -1;
	FILE *out = open_memstream(&a.options, &bytes);

	if (out != NULL)
		bc_options_start(&o, console, answer->usage, optind, argv);
	while (out != NULL && (letter = bc_options_next(&o)) != -1 &&
		read_option(&a, out, letter, &local))
		;
	if (out != NULL)
		fclose(out);
	if (a.file == NULL && local == NULL)
		a.file = getenv("BUSCAP_HOSTS");
	bool is_asked = a.file != NULL && a.file[0] != '\0';
	if (is_asked && local != NULL)
		bc_print_error(console, NULL, "--hosts excludes %s%s; see buscap %s --help",
			argc > optind + operands ? "" : "--", local, answer->usage->name);
	if (is_asked)
		*code = letter == -1 && local == NULL ? ask(&a) : BC_EXIT_USAGE;
	free_asking(&a);
	return is_asked;
}
