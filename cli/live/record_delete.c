/* buscap record delete: deletes whole recordings from the daemon's directory, with the rights of
 * the user. The daemon notices, as it does when others delete files.
 *
 *     find the recordings by their ids -> look at each of their files -> ask -> delete
 *
 * Nothing is deleted unless every file of all recordings may be: written by buscapd, as part of
 * this recording, and not being written. The files of a recording go in their order, so that an
 * error in between leaves what the rules for disk space also leave: a recording that begins
 * later. */
#include "cli/live/record_delete.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/operands.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/term/text.h"
#include "formats/recording/segments.h"
#include "formats/segment/segment_header.h"

static const struct bc_usage_option options[] = {
	{'y', "yes", NULL, NULL, "don't ask"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_record_delete_usage = {
	.name = "record delete",
	.operands = "ID...",
	.kind = "id",
	.summary = "delete recordings",
	.text = "Deletes recordings from the daemon's directory, after asking. The beginning of an "
		"id is enough. Refuses the recording that is in progress, and one among whose "
		"files there is one that buscapd has not written.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record delete 20261120T091500Z-3f9a2c",
};

/* A recording to be deleted. */
struct doomed {
	struct bc_recording_list list;
	const struct bc_recording *recording;
	int dir_fd;
	uint64_t bytes; /* that will be free */
};

struct deletion {
	const struct bc_console *console;
	const char *socket;
	bool is_confirmed;
	char current[BC_RECORDING_ID_MAX]; /* the recording in progress, or empty */
	struct bc_operands operands;
	struct doomed *all; /* one for each operand */
	uint64_t files;
	uint64_t bytes;
};

/* Without a daemon, only the files say what is being written. */
static void find_current(struct deletion *d)
{
	struct bc_response response = {0};
	struct bc_client *client;

	if (bc_client_open(&client, d->console, d->socket) == BC_EXIT_OK &&
		bc_client_call(client, "GET", "/v1/recordings/current", NULL, &response) ==
			BC_EXIT_OK) {
		const char *id = bc_json_path_text(response.json, "recording.id");
		snprintf(d->current, sizeof(d->current), "%s", id != NULL ? id : "");
	}
	bc_response_free(&response);
	bc_client_close(client);
}

/* Returns why a file may not be deleted, or NULL. Adds the bytes that this frees. */
static const char *refusal_of(struct doomed *r, const struct bc_recording_file *file, char *path)
{
	const struct bc_segment_name name = bc_recording_file_name(r->recording, file);
	struct bc_segment_header header;
	struct stat st;
	bool is_written = false;
	int fd = openat(r->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) != 0)
		return strerror(errno);
	(void)bc_segment_path_is_unsealed(r->dir_fd, path, fd, &is_written);
	close(fd);
	if (is_written)
		return "being written";
	if (bc_segment_owner_check(&header, r->dir_fd, path, &name) != 0)
		return "not written by buscapd for this recording, or damaged; move it away, or "
		       "use rm";
	r->bytes += st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
	return NULL;
}

static enum bc_exit look_at_files(struct deletion *d, struct doomed *r)
{
	char path[BC_RECORDING_PATH_MAX];

	for (uint32_t i = 0; i < r->recording->count; i++) {
		const struct bc_recording_file *file = &r->list.files[r->recording->first + i];
		bc_recording_file_path(path, &r->list, r->recording, file);
		const char *why = refusal_of(r, file, path);
		if (why != NULL)
			return bc_print_error(d->console, path, "%s; nothing is deleted", why);
	}
	d->files += r->recording->count;
	d->bytes += r->bytes;
	return BC_EXIT_OK;
}

static enum bc_exit find_recording(
	struct deletion *d, const struct bc_operand *operand, struct doomed *r)
{
	const struct bc_recording *end;

	if (operand->id == NULL) {
		bc_print_error(
			d->console, operand->path, "not the id of a recording; for files, use rm");
		return BC_EXIT_USAGE;
	}
	enum bc_exit code = bc_operand_list(&d->operands, operand, &r->list, &r->recording, &end);
	if (code != BC_EXIT_OK)
		return code;
	for (const struct doomed *other = d->all; other != r; other++)
		if (strcmp(other->recording->id, r->recording->id) == 0) {
			bc_print_error(d->console, NULL, "recording %s: given twice", operand->id);
			return BC_EXIT_USAGE;
		}
	r->dir_fd = open(operand->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir_fd < 0)
		return bc_print_error(d->console, operand->path, "can't open: %s", strerror(errno));
	return look_at_files(d, r);
}

/* Asks on the terminal. */
static enum bc_exit confirm(const struct deletion *d)
{
	char size[BC_HUMANIZE_MAX];
	char answer = 'n';

	if (d->is_confirmed)
		return BC_EXIT_OK;
	if (!isatty(d->console->in))
		return bc_print_usage_error(
			d->console, "standard input is not a terminal; to delete, use --yes");
	for (int i = 0; i < d->operands.count; i++)
		fprintf(d->console->err, "%s%s", i == 0 ? "Delete " : ", ",
			d->all[i].recording->id);
	fprintf(d->console->err, " (%" PRIu64 " file%s, %s)? [y/N] ", d->files, bc_plural(d->files),
		bc_humanize_bytes(size, (double)d->bytes));
	fflush(d->console->err);
	if (read(d->console->in, &answer, 1) == 1 && (answer == 'y' || answer == 'Y'))
		return BC_EXIT_OK;
	return bc_print_error(d->console, NULL, "nothing is deleted");
}

/* A file that others delete meanwhile is gone, too. */
static enum bc_exit delete_files(
	const struct deletion *d, const struct doomed *r, struct bc_output *output)
{
	char path[BC_RECORDING_PATH_MAX];
	char size[BC_HUMANIZE_MAX];

	for (uint32_t i = 0; i < r->recording->count; i++) {
		bc_recording_file_path(
			path, &r->list, r->recording, &r->list.files[r->recording->first + i]);
		if (unlinkat(r->dir_fd, path, 0) != 0 && errno != ENOENT)
			return bc_print_error(d->console, path,
				"can't delete: %s; deleted before: %" PRIu32 " of %" PRIu32
				" files",
				strerror(errno), i, r->recording->count);
	}
	bc_output_format(output, "%s: deleted %" PRIu32 " file%s, %s\n", r->recording->id,
		r->recording->count, bc_plural(r->recording->count),
		bc_humanize_bytes(size, (double)r->bytes));
	return BC_EXIT_OK;
}

static enum bc_exit delete_all(struct deletion *d, char **words, int count)
{
	struct bc_output output;

	find_current(d);
	for (int i = 0; i < count; i++)
		if (d->current[0] != '\0' && strncmp(d->current, words[i], strlen(words[i])) == 0)
			return bc_print_error(d->console, NULL,
				"recording %s: in progress; see buscap record stop", d->current);
	enum bc_exit code = bc_operands_open(
		&d->operands, d->console, (const char *const *)words, count, d->socket);
	if (code != BC_EXIT_OK || d->operands.exit != BC_EXIT_OK)
		return bc_exit_worse(code, d->operands.exit);
	d->all = calloc((size_t)count, sizeof(*d->all));
	if (d->all == NULL)
		return bc_print_no_memory(d->console);
	for (int i = 0; i < count; i++)
		d->all[i].dir_fd = -1;
	for (int i = 0; i < count && code == BC_EXIT_OK; i++)
		code = find_recording(d, &d->operands.all[i], &d->all[i]);
	if (code == BC_EXIT_OK)
		code = confirm(d);
	if (code == BC_EXIT_OK && !bc_output_open(&output, d->console))
		code = BC_EXIT_FAILED;
	if (code != BC_EXIT_OK)
		return code;
	for (int i = 0; i < count && code == BC_EXIT_OK; i++)
		code = delete_files(d, &d->all[i], &output);
	return bc_exit_worse(code, bc_output_close(&output, d->console));
}

enum bc_exit bc_record_delete(const struct bc_console *console, int argc, char **argv)
{
	struct deletion d = {.console = console};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_record_delete_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'y')
			d.is_confirmed = true;
		else if (letter == BC_CLIENT_OPT_SOCKET)
			d.socket = optarg;
		else
			return o.exit;
	}
	if (optind == argc)
		return bc_print_usage_error(console, "no ID given");
	enum bc_exit code = delete_all(&d, argv + optind, argc - optind);
	for (int i = 0; d.all != NULL && i < d.operands.count; i++) {
		bc_recording_list_free(&d.all[i].list);
		if (d.all[i].dir_fd >= 0)
			close(d.all[i].dir_fd);
	}
	free(d.all);
	bc_operands_close(&d.operands);
	return code;
}
