/* Prints the CPU time of the reader of each text format, compared with a simple loop of fgets() and
 * sscanf() over the same lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/codec/layout.h"
#include "formats/codec/reader.h"
#include "tests/support/cpu_time.h"
#include "tests/support/dice.h"

#define LINES  200000u
#define ROUNDS 5

/* Results go here, so that the compiler keeps the loops. */
static volatile uint64_t sink;

/* The generated lines resemble those of programs: code in one region, data in three, increasing
 * times.
 */
static struct dice dice = {.state = 1};

static uint64_t data_address(void)
{
	static const uint64_t bases[] = {0x7ffe7ff000, 0x12ff000, 0x4222000};

	return bases[dice_below(&dice, 3)] + dice_below(&dice, 1 << 16);
}

static uint32_t code_address(void)
{
	return 0x400000 + dice_below(&dice, 1 << 20);
}

static void make_din(FILE *out, unsigned i)
{
	fprintf(out, "%u %" PRIx64 "\n", i % 3, data_address());
}

static uint64_t scan_din(const char *line)
{
	unsigned label;
	uint64_t addr;

	return sscanf(line, "%u %" SCNx64, &label, &addr) == 2 ? label + addr : 0;
}

static void make_xdin(FILE *out, unsigned i)
{
	fprintf(out, "%c %" PRIx64 " %x\n", "rwi"[i % 3], data_address(), 1u << i % 5);
}

static uint64_t scan_xdin(const char *line)
{
	char letter;
	uint64_t addr;
	unsigned size;

	return sscanf(line, "%c %" SCNx64 " %x", &letter, &addr, &size) == 3 ? addr + size : 0;
}

static void make_lackey(FILE *out, unsigned i)
{
	if (i % 3 == 0)
		fprintf(out, "I  %08" PRIx32 ",%u\n", code_address(), 1 + i % 7);
	else
		fprintf(out, " %c %08" PRIx64 ",%u\n", "LSM"[i % 3], data_address(), 1u << i % 4);
}

static uint64_t scan_lackey(const char *line)
{
	char letter;
	uint64_t addr;
	unsigned size;

	return sscanf(line, " %c %" SCNx64 ",%u", &letter, &addr, &size) == 3 ? addr + size : 0;
}

static void make_laplace(FILE *out, unsigned i)
{
	fprintf(out, "%c %" PRIx64 " %x %x %" PRIx32 "\n", "rwf"[i % 3],
		UINT64_C(0x123456789abcd) + i * 37, 1u << i % 4, 0x9f8e0 + i % 4, code_address());
}

static uint64_t scan_laplace(const char *line)
{
	char letter;
	uint64_t tick;
	unsigned size;
	unsigned space;
	uint64_t addr;

	if (sscanf(line, "%c %" SCNx64 " %x %x %" SCNx64, &letter, &tick, &size, &space, &addr) !=
		5)
		return 0;
	return tick + size + space + addr;
}

static void make_cis501(FILE *out, unsigned i)
{
	static const char *const macros[] = {"SET", "CMP", "MOV", "XOR", "JMP", "J", "MOVSX"};
	static const char *const micros[] = {
		"ADD", "LOAD", "SUB", "STORE", "JMP_IMM", "ADD_IMM", "SEXT_DWORD_TO_QWORD"};
	uint32_t pc = code_address();
	bool is_access = dice_below(&dice, 3) == 0;

	fprintf(out,
		"%u %6x %2d %2d %2d %c %c %c %9d %12" PRIx64 " %12" PRIx32 " %12" PRIx32
		" %-8s %s\n",
		1 + i % 4 / 3, pc, (int)dice_below(&dice, 51) - 1, (int)dice_below(&dice, 51) - 1,
		(int)dice_below(&dice, 51) - 1, "RW-"[dice_below(&dice, 3)],
		"TN----"[dice_below(&dice, 6)], is_access ? 'L' : '-',
		i % 2 ? 0 : (int)dice_below(&dice, 1000) - 500, is_access ? data_address() : 0,
		pc + 3, i % 6 ? 0 : code_address(), macros[dice_below(&dice, 7)],
		micros[dice_below(&dice, 7)]);
}

static uint64_t scan_cis501(const char *line)
{
	int step;
	int registers[3];
	uint64_t v[4];
	int64_t immediate;
	char letters[3];
	char macro[64];
	char micro[64];

	if (sscanf(line,
		    "%d %" SCNx64 " %d %d %d %c %c %c %" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		    " %63s %63s",
		    &step, &v[0], &registers[0], &registers[1], &registers[2], &letters[0],
		    &letters[1], &letters[2], &immediate, &v[1], &v[2], &v[3], macro, micro) != 14)
		return 0;
	return v[0] + v[1] + v[2] + v[3];
}

static void make_tarmac(FILE *out, unsigned i)
{
	if (i % 3 == 0)
		fprintf(out, "%u clk IT (%u) %08x e1a00000 A svc_s : MOV r0,r%u\n", 10 * i, i,
			code_address(), i % 13);
	else if (i % 3 == 1)
		fprintf(out, "%u clk R r%u %08x\n", 10 * i, i % 13, code_address());
	else
		fprintf(out, "%u clk MR4 %08x %08x\n", 10 * i, code_address(), code_address());
}

static uint64_t scan_tarmac(const char *line)
{
	uint64_t time;
	char unit[8];
	char kind[8];
	unsigned id;
	uint64_t addr;
	uint64_t data;
	char set[8];
	char mode[16];
	char text[64];
	char name[16];

	if (sscanf(line, "%" SCNu64 " %7s %7s", &time, unit, kind) != 3)
		return 0;
	if (kind[0] == 'I')
		return (uint64_t)sscanf(line,
			"%" SCNu64 " %7s %7s (%u) %" SCNx64 " %" SCNx64 " %7s %15s : %63[^\n]",
			&time, unit, kind, &id, &addr, &data, set, mode, text);
	if (kind[0] == 'R')
		return (uint64_t)sscanf(
			line, "%" SCNu64 " %7s %7s %15s %" SCNx64, &time, unit, kind, name, &data);
	return (uint64_t)sscanf(
		line, "%" SCNu64 " %7s %7s %" SCNx64 " %" SCNx64, &time, unit, kind, &addr, &data);
}

static void make_pin(FILE *out, unsigned i)
{
	fprintf(out, "0x%" PRIx32 ": %c 0x%" PRIx64 " %u\n", code_address(), "RW"[i % 2],
		data_address(), 1u << i % 4);
}

static uint64_t scan_pin(const char *line)
{
	char letter;
	uint64_t pc;
	uint64_t addr;
	unsigned size;

	return sscanf(line, "%" SCNx64 ": %c %" SCNx64 " %u", &pc, &letter, &addr, &size) == 4
		       ? pc + addr + size
		       : 0;
}

static void make_dramsim(FILE *out, unsigned i)
{
	fprintf(out, "0x%" PRIx64 " %s %u\n", data_address(), i % 3 == 0 ? "WRITE" : "READ", 3 * i);
}

static uint64_t scan_dramsim(const char *line)
{
	char word[16];
	uint64_t addr;
	uint64_t time;

	return sscanf(line, "%" SCNx64 " %15s %" SCNu64, &addr, word, &time) == 3 ? addr + time : 0;
}

/* A layout by its name, or NULL for the format's own parser. */
static const struct job {
	enum bc_format format;
	const char *layout;
	void (*make)(FILE *, unsigned);
	uint64_t (*scan)(const char *);
} jobs[] = {
	{BC_FORMAT_DIN, NULL, make_din, scan_din},
	{BC_FORMAT_XDIN, NULL, make_xdin, scan_xdin},
	{BC_FORMAT_LACKEY, NULL, make_lackey, scan_lackey},
	{BC_FORMAT_LAPLACE_TEXT, NULL, make_laplace, scan_laplace},
	{BC_FORMAT_CIS501, NULL, make_cis501, scan_cis501},
	{BC_FORMAT_TARMAC, NULL, make_tarmac, scan_tarmac},
	{BC_FORMAT_LINES, "xdin", make_xdin, scan_xdin},
	{BC_FORMAT_LINES, "lackey", make_lackey, scan_lackey},
	{BC_FORMAT_LINES, "pin", make_pin, scan_pin},
	{BC_FORMAT_LINES, "dramsim", make_dramsim, scan_dramsim},
};

static const char *layout_of(const struct job *job)
{
	return job->layout == NULL                ? NULL
	       : strcmp(job->layout, "xdin") == 0 ? "{type:r=read|w=write|i=fetch|m=misc|c="
						    "copyback|v=invalidate} {addr} {size:x}"
	       : strcmp(job->layout, "lackey") == 0
		       ? "{type:I=fetch|L=read|S=write|M=modify} {addr},{size} | =={...}"
		       : bc_layout_by_name(job->layout)->layout;
}

static double read_ours(int fd, const struct job *job)
{
	struct bc_reader_options options = {.format = bc_format_options_default(), .index_fd = -1};
	struct bc_input_stream stream = {.fd = fd, .wake_fd = -1};
	struct bc_reader *reader;
	struct bc_input *input;
	struct bc_probe probe;
	struct bc_batch batch;
	size_t count = 0;
	double start = cpu_time_s();

	options.format.layout = layout_of(job);
	if (lseek(fd, 0, SEEK_SET) != 0 ||
		bc_input_open(&input, stream, job->format, BC_WINDOW_LOG, &probe) != 0 ||
		bc_reader_open(&reader, input, job->format, &options) != 0)
		exit(1);
	while (bc_reader_next(reader, &batch) == 1) {
		count += batch.count;
		sink = sink + (batch.count != 0 ? batch.entries[0].addr : 0);
		if (batch.fault != NULL) {
			fprintf(stderr, "%s\n", batch.fault->what);
			exit(1);
		}
	}
	bc_reader_close(reader);
	bc_input_close(input);
	if (count < LINES)
		exit(1);
	return cpu_time_s() - start;
}

static double read_simple(int fd, uint64_t (*scan)(const char *))
{
	char line[512];
	double start = cpu_time_s();
	FILE *file = fdopen(dup(fd), "r");

	if (file == NULL)
		exit(1);
	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		sink = sink + scan(line);
	fclose(file);
	return cpu_time_s() - start;
}

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static void bench_text(const struct job *job)
{
	double ours = 1e9;
	double simple = 1e9;
	int fd = memfd_create("lines", MFD_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(dup(fd), "w") : NULL;

	if (file == NULL)
		exit(1);
	for (unsigned i = 0; i < LINES; i++)
		job->make(file, i);
	fclose(file);
	for (int round = 0; round < ROUNDS; round++) {
		ours = lesser(ours, read_ours(fd, job));
		simple = lesser(simple, read_simple(fd, job->scan));
	}
	printf("%-15s %-8s %6.1f ns per line, sscanf %6.1f ns: 1/%.1f of its CPU time\n",
		bc_format_name(job->format), job->layout != NULL ? job->layout : "",
		ours * 1e9 / LINES, simple * 1e9 / LINES, simple / ours);
	close(fd);
}

int main(void)
{
	printf("text, %u lines, CPU time per line, minimum of %d rounds\n", LINES, ROUNDS);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (bc_format_info(jobs[i].format)->parser != NULL)
			bench_text(&jobs[i]);
	return 0;
}
