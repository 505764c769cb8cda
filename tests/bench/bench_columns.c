/* Prints the CPU time of writing references as csv, ndjson and vcd, compared with a simple loop
 * over fprintf(). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/codec/format.h"
#include "formats/reader/reader.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"
#include "tests/support/cpu_time.h"
#include "tests/support/dice.h"

#define ENTRIES   100000u
#define OUT_BYTES (512u << 10)
#define ROUNDS    10

/* Makes references like those of a recorded bus: several types, few attributes, mostly short
 * deltas. */
static struct bc_entry *make_entries(void)
{
	static const uint8_t types[] = {BC_REQ_FETCH, BC_REQ_FETCH, BC_REQ_MEMREAD, BC_REQ_MEMWRITE,
		BC_REQ_MEMREADINV, BC_REQ_IOREAD};
	struct bc_entry *entries = calloc(ENTRIES, sizeof(*entries));
	struct dice dice = {1};
	uint64_t tick = 5000000000;

	if (entries == NULL)
		exit(1);
	for (unsigned i = 0; i < ENTRIES; i++) {
		uint8_t record[BC_RECORD_BYTES];
		struct bc_record r = {.addr = dice_below(&dice, 128u << 20),
			.reqtype = types[dice_below(&dice, sizeof(types))],
			.size = (uint8_t)(1 << dice_below(&dice, 6)),
			.attr = (uint8_t)dice_below(&dice, 4),
			.proc = (uint8_t)dice_below(&dice, 2),
			.time = 1 + dice_below(&dice, dice_below(&dice, 16) == 0 ? 5000 : 60)};
		bc_record_store(record, &r);
		tick += r.time;
		bc_entry_of_record(&entries[i], record, 1000000 + i, tick);
	}
	return entries;
}

static void print_entries(enum bc_format format, const struct bc_entry *entries, int fd)
{
	static char out[OUT_BYTES];
	uint64_t reduced[BC_TRAIT_BITS] = {0};
	struct bc_format_options options = bc_format_options_default();
	const struct bc_printer *printer = bc_format_info(format)->printer;

	options.source_holds = bc_format_info(BC_FORMAT_BYU)->holds;
	void *state = bc_printer_start(printer, &options);
	if (state == NULL)
		exit(1);
	struct bc_print p = {.entries = entries,
		.count = ENTRIES,
		.out = out,
		.capacity = sizeof(out),
		.reduced = reduced};
	if (printer->head != NULL)
		printer->head(state, &p);
	while (p.count != 0) {
		if (printer->print(state, &p) != 0 || write(fd, out, p.used) != (ssize_t)p.used)
			exit(1);
		p.used = 0;
	}
	if (printer->free != NULL)
		printer->free(state);
	free(state);
}

static void print_csv(const struct bc_entry *e, FILE *file)
{
	for (unsigned i = 0; i < ENTRIES; i++, e++)
		fprintf(file, "%" PRIu64 ",%" PRIu64 ",%s,0x%" PRIx64 ",%u,%u,%u,%" PRIu64 "\n",
			e->number, e->tick, bc_ref_type_name(e->type), e->addr, e->size, e->attr,
			e->proc, e->delta);
}

static void print_ndjson(const struct bc_entry *e, FILE *file)
{
	for (unsigned i = 0; i < ENTRIES; i++, e++)
		fprintf(file,
			"{\"kind\":\"reference\",\"number\":%" PRIu64 ",\"tick\":%" PRIu64
			",\"type\":\"%s\",\"addr\":\"0x%" PRIx64
			"\",\"size\":%u,\"attr\":%u,\"proc\":%u,\"delta\":%" PRIu64 "}\n",
			e->number, e->tick, bc_ref_type_name(e->type), e->addr, e->size, e->attr,
			e->proc, e->delta);
}

/* Prints binary digits: %b is not available everywhere. */
static void print_bits(FILE *file, uint64_t value, char id)
{
	char bits[65] = "";
	unsigned n = 64;

	do {
		bits[--n] = (char)('0' + (value & 1));
		value >>= 1;
	} while (value != 0);
	fprintf(file, "b%.*s %c\n", (int)(64 - n), bits + n, id);
}

static void print_vcd(const struct bc_entry *e, FILE *file)
{
	struct bc_entry last;

	memset(&last, 0xFF, sizeof(last));
	for (unsigned i = 0; i < ENTRIES; i++, e++) {
		fprintf(file, "#%" PRIu64 "\n", e->tick);
		print_bits(file, i, '!');
		if (e->addr != last.addr)
			print_bits(file, e->addr, '"');
		if (e->type != last.type) {
			print_bits(file, e->type, '#');
			fprintf(file, "s%s $\n", bc_ref_type_name(e->type));
		}
		if (e->size != last.size)
			print_bits(file, e->size, '%');
		if (e->attr != last.attr)
			print_bits(file, e->attr, '&');
		if (e->proc != last.proc)
			print_bits(file, e->proc, '\'');
		last = *e;
	}
}

static void bench_format(enum bc_format format, void (*peer)(const struct bc_entry *, FILE *),
	const struct bc_entry *entries)
{
	int fd = open("/dev/null", O_WRONLY);
	FILE *file = fopen("/dev/null", "w");
	double best = 1e9;
	double best_peer = 1e9;

	if (fd < 0 || file == NULL)
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_time_s();
		print_entries(format, entries, fd);
		double middle = cpu_time_s();
		peer(entries, file);
		fflush(file);
		double end = cpu_time_s();
		best = middle - start < best ? middle - start : best;
		best_peer = end - middle < best_peer ? end - middle : best_peer;
	}
	printf("print %s: %.1f ns per reference, fprintf %.1f ns: 1/%.1f of its CPU time\n",
		bc_format_name(format), best * 1e9 / ENTRIES, best_peer * 1e9 / ENTRIES,
		best_peer / best);
	fclose(file);
	close(fd);
}

int main(void)
{
	struct bc_entry *entries = make_entries();

	bench_format(BC_FORMAT_CSV, print_csv, entries);
	bench_format(BC_FORMAT_NDJSON, print_ndjson, entries);
	if (bc_format_info(BC_FORMAT_VCD)->printer != NULL)
		bench_format(BC_FORMAT_VCD, print_vcd, entries);
	free(entries);
	return 0;
}
