#include "cli/trace/sim_programs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/trace.h"
#include "formats/bus/page_map.h"

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

struct bc_sim_programs {
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
static bool next_of_process(
	struct bc_sim_programs *s, struct process *p, struct bc_sim_access *access)
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
		bc_print_error(s->console, p->path, "can't go on: %s",
			rc == -ENOSPC ? "all programs together touch more than 4 GiB"
				      : strerror(-rc));
		s->exit = BC_EXIT_FAILED;
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

static void switch_process(struct bc_sim_programs *s, struct processor *processor, unsigned agent)
{
	processor->current += (int)s->agents;
	if (processor->current >= s->count)
		processor->current = (int)agent;
	processor->turn = TURN;
}

/* Processor n runs the processes n, n + agents, n + 2 agents, ... in turn. */
static bool next_access(void *context, unsigned agent, struct bc_sim_access *access)
{
	struct bc_sim_programs *s = context;
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

enum bc_exit bc_sim_programs_open(struct bc_sim_programs **programs,
	const struct bc_console *console, const char **paths, int count, enum bc_format format,
	const struct bc_reader_options *options, struct bc_sim_options *sim)
{
	*programs = NULL;
	if (count > PROCESSES_MAX) {
		bc_print_error(console, NULL, "too many traces; at most %d", PROCESSES_MAX);
		return BC_EXIT_USAGE;
	}
	struct bc_sim_programs *s = calloc(1, sizeof(*s) + (size_t)count * sizeof(s->processes[0]));
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
	for (unsigned agent = 0; agent < s->agents; agent++) {
		processors[agent] = (struct processor){.current = (int)agent, .turn = TURN};
	}
	for (; s->count < count && s->exit == BC_EXIT_OK; s->count++) {
		struct process *p = &s->processes[s->count];
		p->path = paths[s->count];
		s->exit = bc_trace_open(&p->trace, console, &p->path, 1, format, options);
	}
	if (s->exit != BC_EXIT_OK)
		return bc_sim_programs_close(s);
	sim->workload.next_access = next_access;
	sim->workload.context = s;
	*programs = s;
	return BC_EXIT_OK;
}

/* Returns the exit code of a trace. */
static enum bc_exit close_process(const struct bc_sim_programs *s, struct process *p)
{
	enum bc_exit code = p->trace.exit;

	bc_trace_close(&p->trace);
	if (p->skipped != 0)
		bc_print_error(s->console, p->path,
			"%" PRIu64 " reference%s left out: not memory accesses", p->skipped,
			bc_plural(p->skipped));
	if (p->is_over && !p->has_accesses && s->exit == BC_EXIT_OK) {
		bc_print_error(s->console, p->path, "no memory accesses");
		code = BC_EXIT_FAILED;
	}
	return code;
}

enum bc_exit bc_sim_programs_close(struct bc_sim_programs *s)
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
