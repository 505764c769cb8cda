#include "cli/io/segment_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"

/* Opens a segment whose header is damaged. Returns -1 for any other file, with the reason. */
static int open_damaged(const struct bc_console *console, const char *path, const char **why)
{
	const struct bc_console silent = bc_console_silent(console);
	struct bc_file file;
	int fd = -1;

	*why = "not a segment";
	if (bc_file_open(&file, &silent, path, BC_FORMAT_UNKNOWN) != BC_EXIT_OK)
		return -1;
	if (file.probe.format == BC_FORMAT_SEGMENT && file.is_regular) {
		fd = file.fd;
		file.is_ours = false; /* but the caller's */
	} else if (file.probe.format == BC_FORMAT_SEGMENT) {
		*why = "a compressed segment; decompress it first";
	}
	bc_file_close(&file);
	return fd;
}

/* Opens a segment file. Returns a descriptor; or -1 with errno set: ENOENT if the file was deleted;
 * otherwise an error was printed. EBADMSG: not a segment; EXDEV: it has another's name. */
static int on_search_open(void *context, const char *path)
{
	struct bc_segment_input *input = context;
	const struct bc_operands *operands = &input->operands;
	const char *why = "not a file; a pipe can't be searched for segments";
	bool has_header;
	int fd = bc_operands_open_segment(operands, path, &has_header);
	int error = errno;
	enum bc_exit code = bc_operands_have_file(operands, path) ? BC_EXIT_USAGE : BC_EXIT_DAMAGED;

	if ((fd >= 0 && has_header) || (fd < 0 && error == ENOENT))
		return fd;
	if (fd >= 0)
		close(fd);
	if (fd < 0 && error != EINVAL && error != EXDEV) {
		code = bc_print_error(operands->console, path, "can't open: %s", strerror(error));
	} else if (fd >= 0 || error == EINVAL) {
		if (fd >= 0 && (fd = open_damaged(operands->console, path, &why)) >= 0)
			return fd;
		bc_print_error(operands->console, path, "%s", why);
		error = EBADMSG;
	}
	input->exit = bc_exit_worse(input->exit, code);
	errno = error;
	return -1;
}

static enum bc_exit print_fault(
	const struct bc_console *console, const struct bc_segment_fault *fault)
{
	struct bc_file file = {.name = fault->file};

	switch (fault->kind) {
	case BC_SEGMENT_DAMAGED:
		bc_print_damage(console, fault->file, fault->offset, fault->bytes, fault->what);
		return BC_EXIT_DAMAGED;
	case BC_SEGMENT_UNREADABLE:
		return bc_print_read_error(console, &file, fault->error);
	case BC_SEGMENT_MISSING:
		bc_print_error(console, fault->file, "%s", fault->what);
		return BC_EXIT_DAMAGED;
	case BC_SEGMENT_REPEATED:
		bc_print_error(console, fault->file, "the same segment again; skipped");
		return BC_EXIT_OK;
	case BC_SEGMENT_NO_CLOCK:
		bc_print_error(console, fault->file, BC_NO_CLOCK_TEXT);
		return BC_EXIT_OK;
	}
	return BC_EXIT_OK;
}

static void on_search_fault(void *context, const struct bc_segment_fault *fault)
{
	struct bc_segment_input *input = context;

	input->exit = bc_exit_worse(input->exit, print_fault(input->operands.console, fault));
}

struct bc_segment_io bc_segment_input_io(struct bc_segment_input *input)
{
	return (struct bc_segment_io){
		.context = input, .open = on_search_open, .fault = on_search_fault};
}
