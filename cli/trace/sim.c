/* buscap sim: writes what a board on the simulated bus would send, or only its samples, or the
 * records that are made of them. Programs of traces run on the simulated processors: the first part
 * turns entries into memory accesses with physical addresses, for which capture/sim asks.
 *
 * Invariant: the stream depends only on the options and the traces; formats keep more or less. */
#include "cli/term/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/sim/sim.h"
#include "cli/io/file.h"
#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/format_id.h"
#include "formats/bus/page_map.h"
#include "formats/bus/stamp.h"
#include "formats/codec/reader.h"

/* ---- The programs of `buscap sim TRACE...`: memory accesses of traces, for the processors.
 *
 * Each trace is a process with its own pages, which get physical addresses when they are first
 * used. The processors share the processes; one with several switches after 100,000 accesses. */

/* Accesses after which a processor switches to its next process. */
#define TURN 100000

#define PAGE_BYTES (UINT64_C(1) << BC_PAGE_BITS)

/* Page numbers have 52 bits; the process goes above. */
#define PROCESS_SHIFT 52
#define PROCESSES_MAX (1 << (64 - PROCESS_SHIFT))

/* An access at a virtual address. */
struct virtual_access {
	enum bc_sim_access_kind kind;
	uint64_t addr;
	uint64_t bytes;
};

struct process {
	struct bc_trace trace;
	const char *path;
	struct bc_batch batch;
	size_t next; /* entry of the batch */
	/* Of the last entry: accesses[first .. count) are left. A modify is two. */
	struct virtual_access accesses[2 * BC_REFERENCES_MAX];
	unsigned first;
	unsigned count;
	uint64_t skipped; /* references that are not memory accesses */
	bool has_accesses;
	bool is_over;
};

struct sim_programs {
	const struct bc_console *console;
	struct bc_page_map pages; /* of all processes */
	unsigned agents;
	struct processor {
		int current;   /* process */
		uint32_t turn; /* accesses left before it switches */
	} * processors;
	enum bc_exit exit;
	int count;
	struct process processes[];
};

static void add_access(
	struct process *p, enum bc_sim_access_kind kind, const struct bc_entry *reference)
{
	p->accesses[p->count++] = (struct virtual_access){
		.kind = kind,
		.addr = bc_entry_start(reference),
		.bytes = reference->size != 0 ? reference->size : 1,
	};
}

/* Reads entries until one has memory accesses. Returns false at the end of the trace. */
static bool read_accesses(struct process *p)
{
	struct bc_entry references[BC_REFERENCES_MAX];

	p->first = 0;
	p->count = 0;
	while (p->count == 0) {
		while (p->next == p->batch.count) {
			if (!bc_trace_next(&p->trace, &p->batch))
				return false;
			p->next = 0;
		}
		size_t n = bc_entry_references(references, &p->batch.entries[p->next++]);
		for (size_t i = 0; i < n; i++) {
			int type = bc_ref_type_plain(references[i].type);
			if (type < 0)
				p->skipped++;
			else if (type == BC_REQ_FETCH)
				add_access(p, BC_SIM_FETCH, &references[i]);
			else if (type == BC_REQ_MEMREAD)
				add_access(p, BC_SIM_READ, &references[i]);
			if (type == BC_REQ_MEMWRITE || references[i].type == BC_REF_MODIFY)
				add_access(p, BC_SIM_WRITE, &references[i]);
		}
	}
	p->has_accesses = true;
	return true;
}

/* Sets the part of the process's next access that is in one page. */
static bool next_of_process(struct sim_programs *s, struct process *p, struct bc_sim_access *access)
{
	if (p->is_over)
		return false;
	if (p->first == p->count && !read_accesses(p)) {
		p->is_over = true;
		return false;
	}
	struct virtual_access *from = &p->accesses[p->first];
	uint64_t offset = from->addr % PAGE_BYTES;
	uint64_t page = from->addr >> BC_PAGE_BITS | (uint64_t)(p - s->processes) << PROCESS_SHIFT;
	int rc = bc_page_map_touch(&s->pages, page, page);
	if (rc != 0) {
		s->exit = bc_print_error(s->console, p->path, "can't simulate the program: %s",
			rc == -ENOSPC ? "all programs together touch more than 4 GiB"
				      : strerror(-rc));
		for (int i = 0; i < s->count; i++)
			s->processes[i].is_over = true;
		return false;
	}
	access->kind = from->kind;
	access->address = bc_page_map_frame(&s->pages, page) << BC_PAGE_BITS | (uint32_t)offset;
	access->bytes = (uint32_t)(from->bytes < PAGE_BYTES - offset ? from->bytes
								     : PAGE_BYTES - offset);
	from->addr += access->bytes;
	from->bytes -= access->bytes;
	p->first += from->bytes == 0;
	return true;
}

static void switch_process(struct sim_programs *s, struct processor *processor, unsigned agent)
{
	processor->current += (int)s->agents;
	if (processor->current >= s->count)
		processor->current = (int)agent;
	processor->turn = TURN;
}

/* Processor n runs the processes n, n + agents, n + 2 agents, ... in turn. */
static bool next_access(void *context, unsigned agent, struct bc_sim_access *access)
{
	struct sim_programs *s = context;
	struct processor *processor = &s->processors[agent];

	if (processor->turn == 0)
		switch_process(s, processor, agent);
	for (int i = (int)agent; i < s->count; i += (int)s->agents) {
		if (next_of_process(s, &s->processes[processor->current], access)) {
			processor->turn--;
			return true;
		}
		switch_process(s, processor, agent);
	}
	return false;
}

/* Returns the exit code of a trace. */
static enum bc_exit close_process(const struct sim_programs *s, struct process *p)
{
	enum bc_exit code = p->trace.exit;

	bc_trace_close(&p->trace);
	if (p->skipped != 0)
		bc_print_error(s->console, p->path, "%s reference%s left out: not memory accesses",
			BC_GROUPED(p->skipped), bc_plural(p->skipped));
	if (p->is_over && !p->has_accesses && s->exit == BC_EXIT_OK)
		code = bc_print_error(s->console, p->path, "no memory accesses");
	return code;
}

/* Closes the traces; NULL is allowed. Returns the worst exit code of reading them, after reporting
 * entries that are not memory accesses. */
static enum bc_exit close_programs(struct sim_programs *s)
{
	if (s == NULL)
		return BC_EXIT_OK;
	enum bc_exit code = s->exit;
	for (int i = 0; i < s->count; i++)
		code = bc_exit_worse(code, close_process(s, &s->processes[i]));
	bc_page_map_free(&s->pages);
	free(s->processors);
	free(s);
	return code;
}

/* Opens the traces. Sets sim->workload; sim->agents and sim->seed are used. Returns BC_EXIT_OK, or
 * prints an error and returns another code. */
static enum bc_exit open_programs(struct sim_programs **programs, const struct bc_console *console,
	const char **paths, int count, enum bc_format format,
	const struct bc_reader_options *options, struct bc_sim_options *sim)
{
	*programs = NULL;
	if (count > PROCESSES_MAX) {
		bc_print_error(console, NULL, "too many traces; at most %d", PROCESSES_MAX);
		return BC_EXIT_USAGE;
	}
	struct sim_programs *s = calloc(1, sizeof(*s) + (size_t)count * sizeof(s->processes[0]));
	struct processor *processors = calloc(sim->agents, sizeof(*processors));
	if (s == NULL || processors == NULL) {
		free(s);
		free(processors);
		return bc_print_no_memory(console);
	}
	s->processors = processors;
	s->console = console;
	s->agents = sim->agents;
	bc_page_map_init(&s->pages, sim->seed);
	for (unsigned agent = 0; agent < s->agents; agent++)
		processors[agent] = (struct processor){.current = (int)agent, .turn = TURN};
	for (; s->count < count && s->exit == BC_EXIT_OK; s->count++) {
		struct process *p = &s->processes[s->count];
		p->path = paths[s->count];
		s->exit = bc_trace_open(&p->trace, console, &p->path, 1, format, options);
	}
	if (s->exit != BC_EXIT_OK)
		return close_programs(s);
	sim->workload.next_access = next_access;
	sim->workload.context = s;
	*programs = s;
	return BC_EXIT_OK;
}

enum { OPTION_LOSS = 1000, OPTION_CORRUPT, OPTION_NO_CACHES };

static const struct bc_usage_option options[] = {
	{'O', "output-format", "FMT", "choice:bcp1|raw6|byu",
		"bcp1 (the board's frames), raw6 (only their samples) or byu (the resulting "
		"records); default: what the name of the output ends in"},
	{'o', "output", "FILE", "file",
		"output file (default: standard output); replaced if it exists"},
	{'I', "input-format", "FMT", "format-read",
		"format of the traces and its options (default: detected)"},
	{OPTION_NO_CACHES, "no-caches", NULL, NULL,
		"the processors' caches are off: every read and write of the traces goes to the "
		"bus, and code in pieces of 8 bytes"},
	{'s', "seed", "N", "number",
		"seed of the simulation: the same seed gives the same bytes (default 1)"},
	{'n', "count", "N", "number", "number of samples (default 1M; with traces, all)"},
	{'a', "agents", "N", "choice:1|2|3|4", "number of processors, 1 to 4 (default 1)"},
	{OPTION_LOSS, "loss", "P", "number",
		"probability that the board loses samples before a frame (default 0)"},
	{OPTION_CORRUPT, "corrupt", "P", "number",
		"probability that a frame has a flipped bit; bcp1 only (default 0)"},
	{0},
};

const struct bc_usage bc_sim_usage = {
	.name = "sim",
	.required = "-O FMT",
	.operands = "[TRACE...]",
	.kind = "file",
	.summary = "generate the trace of a simulated bus",
	.text = "Writes what a capture board on a simulated Pentium bus would send. The same seed "
		"always gives the same bytes, on any machine. All formats contain the same "
		"stream.\n\n"
		"With traces (lackey, din and other formats of `buscap formats`; \"-\" is standard "
		"input), the processors run these programs: "
		"their memory accesses go through the simulated caches, and those that miss appear "
		"on the bus with its timing. Each program's pages get physical addresses when they "
		"are first used. Several programs are distributed over the processors; a processor "
		"with several switches after every 100,000 accesses.",
	.options = options,
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or malformed trace: its intact parts "
		 "were used.",
	.example = "buscap sim --seed 7 --count 100000 -O byu -o bus.byu",
};

struct sim_args {
	struct bc_sim_options sim;
	enum bc_format format;
	const char *path;    /* NULL: the console's output */
	enum bc_format from; /* of the traces; BC_FORMAT_UNKNOWN: detect it */
	struct bc_reader_options reader;
	const char **traces;
	int trace_count;
	bool has_count;
};

static bool is_output_format(enum bc_format format)
{
	return format == BC_FORMAT_BCP1 || format == BC_FORMAT_RAW6 || format == BC_FORMAT_BYU;
}

static bool read_sim_option(const struct bc_console *console, int letter, struct sim_args *sim_args)
{
	uint64_t agents;

	switch (letter) {
	case 'O':
		sim_args->format = bc_format_by_name(optarg);
		if (is_output_format(sim_args->format))
			return true;
		bc_print_error(console, NULL, "-O %s: must be bcp1, raw6 or byu", optarg);
		return false;
	case 'o':
		sim_args->path = strcmp(optarg, "-") != 0 ? optarg : NULL;
		return true;
	case 'I':
		return bc_option_read_format(
			console, "-I", &sim_args->from, &sim_args->reader.format);
	case OPTION_NO_CACHES:
		return sim_args->sim.no_caches = true;
	case 's':
		return bc_option_count(console, "--seed", 0, UINT64_MAX, &sim_args->sim.seed);
	case 'n':
		sim_args->has_count = true;
		return bc_option_count(console, "--count", 0, UINT64_MAX, &sim_args->sim.count);
	case 'a':
		if (!bc_option_count(console, "--agents", 1, 4, &agents))
			return false;
		sim_args->sim.agents = (unsigned)agents;
		return true;
	case OPTION_LOSS:
		return bc_option_ppm(console, "--loss", &sim_args->sim.loss_ppm);
	case OPTION_CORRUPT:
		return bc_option_ppm(console, "--corrupt", &sim_args->sim.corrupt_ppm);
	default:
		return false;
	}
}

static enum bc_exit check_args(const struct bc_console *console, const struct sim_args *sim_args)
{
	if (sim_args->trace_count == 0 && sim_args->sim.no_caches)
		return bc_print_usage_error(console, "--no-caches needs the traces of programs");
	if (sim_args->trace_count == 0 && sim_args->from != BC_FORMAT_UNKNOWN)
		return bc_print_usage_error(console, "-I needs the traces of programs");
	if (sim_args->format == BC_FORMAT_UNKNOWN)
		return bc_print_usage_error(
			console, "no output format given; use -O with bcp1, raw6 or byu");
	if (sim_args->sim.corrupt_ppm != 0 && sim_args->format != BC_FORMAT_BCP1)
		return bc_print_usage_error(console, "--corrupt works only with -O bcp1: the other "
						     "formats have no checksums");
	enum bc_exit code = bc_check_inputs(console, sim_args->traces, sim_args->trace_count);
	if (code != BC_EXIT_OK)
		return code;
	if (sim_args->path == NULL && isatty(console->out))
		return bc_print_usage_error(
			console, "won't write binary data to a terminal; use -o");
	return BC_EXIT_OK;
}

static void write_records(struct bc_output *output, struct bc_stamper *stamper,
	struct bc_chunk *chunk, const struct bc_bcp1_frame *frame)
{
	struct bc_samples samples = bc_samples_of_frame(frame);
	struct bc_stamped stamped;
	enum bc_stamp_result end;

	do {
		end = bc_stamp_samples(stamper, &samples, BC_NO_TICK_LIMIT, chunk, &stamped);
		bc_output_text(
			output, chunk->records, (size_t)chunk->info.records * BC_RECORD_BYTES);
		bc_chunk_reset(chunk, stamper->tick, stamper->epoch);
	} while (end == BC_STAMP_FULL);
}

static void write_samples(struct bc_output *output, const struct bc_bcp1_frame *frame)
{
	const uint8_t *sample = frame->samples;
	uint32_t count = frame->header.samples;
	char *out = bc_output_reserve(output, (size_t)count * BC_SAMPLE_BYTES);

	for (uint32_t i = 0; i < count; i++, sample += BC_BCP1_SAMPLE_BYTES)
		memcpy(out + (size_t)i * BC_SAMPLE_BYTES, sample, BC_SAMPLE_BYTES);
	output->used += (size_t)count * BC_SAMPLE_BYTES;
}

/* Writes the stream until its end or until writing fails. */
static int write_stream(
	struct bc_output *output, const struct sim_args *sim_args, struct bc_chunk *chunk)
{
	const struct bc_mapping_options mapping_options = bc_mapping_options_default();
	struct bc_mapping mapping;
	struct bc_stamper stamper;
	struct bc_sim *sim;
	uint8_t bytes[BC_SIM_FRAME_MAX];
	size_t n;
	int rc = bc_sim_open(&sim, &sim_args->sim);

	if (rc != 0)
		return rc;
	if (sim_args->sim.count == 0 && sim_args->has_count)
		bc_sim_stop(sim); /* to the simulator, 0 means endless */
	bc_mapping_init(&mapping, &mapping_options);
	bc_stamper_init(&stamper, &mapping);
	bc_chunk_reset(chunk, 0, 0);
	while ((n = bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, UINT64_MAX, bytes)) != 0 &&
		!bc_output_failed(output)) {
		struct bc_bcp1_frame frame = {.samples = bytes + BC_BCP1_HEADER_BYTES};
		if (sim_args->format == BC_FORMAT_BCP1)
			bc_output_text(output, bytes, n);
		else if (!bc_bcp1_read_header(&frame.header, bytes))
			continue;
		else if (sim_args->format == BC_FORMAT_RAW6)
			write_samples(output, &frame);
		else
			write_records(output, &stamper, chunk, &frame);
	}
	bc_sim_close(sim);
	return 0;
}

/* Closes the programs, which may be NULL: their result decides whether the output is whole. */
static enum bc_exit run_sim(const struct bc_console *console, const struct sim_args *sim_args,
	struct sim_programs *programs)
{
	struct bc_output output = {.fd = -1};
	struct bc_output_file file;
	enum bc_exit code = bc_output_file_open(
		&file, console, sim_args->path, sim_args->traces, sim_args->trace_count);

	if (code != BC_EXIT_OK)
		return bc_exit_worse(code, close_programs(programs));
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	bool is_open = chunk != NULL && bc_output_open_fd(&output, file.fd);
	int rc = is_open ? write_stream(&output, sim_args, chunk) : -ENOMEM;
	if (rc != 0)
		code = bc_print_error(console, NULL, "can't simulate the bus: %s", strerror(-rc));
	free(chunk);
	code = bc_exit_worse(code, close_programs(programs));
	return bc_exit_worse(
		code, bc_output_file_close(&file, console, output.buffer != NULL ? &output : NULL,
			      code != BC_EXIT_FAILED));
}

/* Opens the traces, if any, and runs them or the simulated programs. */
static enum bc_exit run_programs(const struct bc_console *console, struct sim_args *sim_args)
{
	struct sim_programs *programs = NULL;
	enum bc_exit code = BC_EXIT_OK;

	if (sim_args->trace_count != 0) {
		if (!sim_args->has_count)
			sim_args->sim.count = 0;
		code = open_programs(&programs, console, sim_args->traces, sim_args->trace_count,
			sim_args->from, &sim_args->reader, &sim_args->sim);
	}
	return code == BC_EXIT_OK ? run_sim(console, sim_args, programs) : code;
}

enum bc_exit bc_cmd_sim(const struct bc_console *console, int argc, char **argv)
{
	struct sim_args sim_args = {.sim = {.seed = 1, .count = 1000000, .agents = 1}};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_sim_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (!read_sim_option(console, letter, &sim_args))
			return o.exit;
	sim_args.traces = (const char **)argv + optind;
	sim_args.trace_count = argc - optind;
	if (sim_args.format == BC_FORMAT_UNKNOWN && sim_args.path != NULL &&
		is_output_format(bc_format_by_path(sim_args.path)))
		sim_args.format = bc_format_by_path(sim_args.path);
	enum bc_exit code = check_args(console, &sim_args);
	return code != BC_EXIT_OK ? code : run_programs(console, &sim_args);
}
