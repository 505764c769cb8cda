#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/codecs.h"
#include "formats/codec/format.h"
#include "formats/codec/tarmac_line.h"
#include "tests/support/test.h"

/* The result of parsing. Texts of the entries point into `bytes`. */
struct lines {
	char *bytes;
	size_t n;
	struct bc_entry *entries;
	size_t count;
	enum bc_parse_end end;
	size_t column; /* of the fault, from 1 */
	uint64_t number;
	const char *expected;
};

/* Parses a text that ends with a newline, up to the first malformed line, `capacity` entries at a
 * time. The buffer ends where a parser may read no further. */
static struct lines lines_read(const char *text, size_t n, size_t capacity)
{
	struct lines l = {.bytes = malloc(n + BC_PARSE_PADDING), .n = n};
	struct bc_entry *entries = malloc(capacity * sizeof(*entries));
	void *state = malloc(bc_tarmac_parser.state_bytes);
	struct bc_format_options options = bc_format_options_default();

	assert_non_null(l.bytes);
	assert_non_null(entries);
	assert_non_null(state);
	memcpy(l.bytes, text, n);
	memset(l.bytes + n, 0xA5, BC_PARSE_PADDING);
	bc_tarmac_parser.init(state, &options);
	struct bc_parse p = {.at = l.bytes, .end = l.bytes + n, .number = 1, .capacity = capacity};
	do {
		p.entries = entries;
		p.count = 0;
		l.end = bc_tarmac_parser.parse(state, &p);
		l.entries = realloc(l.entries, (l.count + p.count + 1) * sizeof(*l.entries));
		assert_non_null(l.entries);
		memcpy(l.entries + l.count, entries, p.count * sizeof(*entries));
		l.count += p.count;
		assert_true(l.end != BC_PARSE_FULL || capacity - p.count < BC_LINE_ENTRIES);
	} while (l.end == BC_PARSE_FULL);
	l.number = p.number;
	if (l.end == BC_PARSE_BAD) {
		l.column = (size_t)(p.bad - p.at) + 1;
		l.expected = p.expected;
		assert_true(p.bad >= p.at && p.bad < l.bytes + n);
	} else {
		assert_ptr_equal(p.at, p.end);
	}
	free(entries);
	free(state);
	return l;
}

static struct lines line_read(const char *line)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	return lines_read(text, (size_t)n, BC_LINE_ENTRIES);
}

static void lines_free(struct lines *l)
{
	free(l->bytes);
	free(l->entries);
}

static void check_text(const struct lines *l, const struct bc_text *text)
{
	assert_true(text->bytes == 0 ||
		    (text->at >= l->bytes && text->at + text->bytes <= l->bytes + l->n));
	assert_true(text->bytes == 0 || memchr(text->at, '\n', text->bytes) == NULL);
}

/* Checks that each complete line belongs to exactly one entry, the first of its line. */
static void lines_check(const struct lines *l)
{
	const char *at = l->bytes;
	uint64_t number = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct bc_entry *e = &l->entries[i];
		assert_true(e->is_continued == (e->number == number));
		if (!e->is_continued) {
			const char *end = memchr(at, '\n', l->n - (size_t)(at - l->bytes));
			assert_non_null(end);
			assert_true(e->number == number + 1);
			assert_ptr_equal(e->line.at, at);
			assert_int_equal(e->line.bytes, end - at);
			at = end + 1;
		} else {
			assert_int_equal(e->line.bytes, 0);
		}
		number = e->number;
		if (e->kind == BC_ENTRY_INSTRUCTION) {
			check_text(l, &e->instruction.set);
			check_text(l, &e->instruction.mode);
			check_text(l, &e->instruction.disassembly);
		} else if (e->kind == BC_ENTRY_REGISTER) {
			check_text(l, &e->reg.name);
			check_text(l, &e->reg.value);
		}
	}
	if (l->end == BC_PARSE_DONE)
		assert_ptr_equal(at, l->bytes + l->n);
}

/* Describes an entry: kind, time, CPU and the fields of its kind. */
static int describe(char *out, size_t room, const struct bc_entry *e)
{
	static const char *const effects[] = {"executed", "skipped", "fetchfail"};
	const struct bc_instruction *i = &e->instruction;
	char cpu[16] = "";
	char time[40] = "no time";
	char phys[24] = "";
	char id[32] = "";

	if (e->traits & BC_TRAIT_PROC)
		snprintf(cpu, sizeof(cpu), " cpu%u", e->proc);
	if (e->traits & BC_TRAIT_TIME)
		snprintf(time, sizeof(time), "%" PRIu64 " %s", e->tick, bc_unit_name(e->unit));
	if (e->traits & BC_TRAIT_PHYS)
		snprintf(phys, sizeof(phys), ":%" PRIx64, e->phys);
	switch (e->kind) {
	case BC_ENTRY_INSTRUCTION:
		assert_true(((e->traits & BC_TRAIT_SIZE) != 0) == (e->size != 0));
		if (i->has_id)
			snprintf(id, sizeof(id), " #%" PRIu64, i->id);
		return snprintf(out, room,
			"%s%s %s%s %" PRIx64 "%s %u %" PRIx64 "/%u [%.*s] [%.*s] [%.*s]", time, cpu,
			effects[i->effect], id, e->addr, phys, e->size, i->opcode, i->digits,
			(int)i->set.bytes, i->set.at, (int)i->mode.bytes, i->mode.at,
			(int)i->disassembly.bytes, i->disassembly.at);
	case BC_ENTRY_REFERENCE:
		assert_true(e->traits & BC_TRAIT_SIZE);
		if (!(e->traits & BC_TRAIT_DATA))
			return snprintf(out, room, "%s%s %s %" PRIx64 "%s %u unknown", time, cpu,
				bc_ref_type_name(e->type), e->addr, phys, e->size);
		return snprintf(out, room, "%s%s %s %" PRIx64 "%s %u %" PRIx64, time, cpu,
			bc_ref_type_name(e->type), e->addr, phys, e->size, e->data);
	case BC_ENTRY_REGISTER:
		return snprintf(out, room, "%s%s [%.*s] [%.*s]", time, cpu, (int)e->reg.name.bytes,
			e->reg.name.at, (int)e->reg.value.bytes, e->reg.value.at);
	default:
		assert_int_equal(e->kind, BC_ENTRY_LINE);
		return snprintf(out, room, "%s%s kept", time, cpu);
	}
}

static void describe_all(char *out, size_t room, const struct lines *l)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < l->count; i++) {
		used += (size_t)snprintf(out + used, room - used, "%s", i != 0 ? "; " : "");
		used += (size_t)describe(out + used, room - used, &l->entries[i]);
		assert_true(used < room);
	}
}

static const struct {
	const char *line;
	const char *expected;
} known[] = {
	/* Instructions. */
	{"1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1",
		"1 clk cpu0 executed #1 4 4 3c080001/8 [A] [svc] [lui t0,0x1]"},
	{"5 clk cpu3 IS (5) 00001000 1af0 T usr_ns : NOP",
		"5 clk cpu3 skipped #5 1000 2 1af0/4 [T] [usr_ns] [NOP]"},
	{"6 tic IF (6) 00001000 1af0 T usr_ns : NOP",
		"6 tic executed #6 1000 2 1af0/4 [T] [usr_ns] [NOP]"},
	{"7 clk IT 00001000 1af0 T usr_ns : NOP",
		"7 clk executed 1000 2 1af0/4 [T] [usr_ns] [NOP]"},
	{"18446744073709551615 ps IT (18446744073709551615) ffffffffffffffff 0123456789abcdef O "
	 "EL0t_n : x",
		"18446744073709551615 ps executed #18446744073709551615 ffffffffffffffff 8 "
		"123456789abcdef/16 [O] [EL0t_n] [x]"},
	{"8 clk IT (8) 00008000:000000009000_NS d503201f O EL1h_n : NOP ; a:b",
		"8 clk executed #8 8000:9000 4 d503201f/8 [O] [EL1h_n] [NOP ; a:b]"},
	{"9 clk IT (9) 00008ffe:000000009ffe,00000000a000 f000f800 T svc_s : BL x",
		"9 clk executed #9 8ffe:9ffe 4 f000f800/8 [T] [svc_s] [BL x]"},
	{"10 cs IT (00000000004d6eb0) 54000001 O  -Z-_- :   b.ne\t0x4d",
		"10 cs executed 4d6eb0 4 54000001/8 [O] [-Z-_-] [b.ne\t0x4d]"},
	{"11 cyc IT (00000100:0000000a) 00000100     4801 T16 LDR      r0,[pc,#4]  ; [0x108]",
		"11 cyc executed #10 100 2 4801/4 [T16] [] [LDR      r0,[pc,#4]  ; [0x108]]"},
	{"12 ns IT (00000000:00000001) 00000000 ea000006 A :      B pc+8",
		"12 ns executed #1 0 4 ea000006/8 [A] [] [B pc+8]"},
	{"13 clk IT (13) 00000000 ea000006 svc : B",
		"13 clk executed #13 0 4 ea000006/8 [] [svc] [B]"},
	{"14 clk IT (14) 00000000 -------- X svc :", "14 clk fetchfail #14 0 4 0/0 [X] [svc] []"},
	{"15 clk IT (00000010) -------- A svc :", "15 clk fetchfail 10 4 0/0 [A] [svc] []"},
	{"  16 ns  ES  (00000164:e59f1198) A svc:            LDR      r1,[r2]\r",
		"16 ns executed 164 4 e59f1198/8 [A] [svc] [LDR      r1,[r2]]"},
	{"17 ns  ES  (000001a4:03a06a01) A svc:     CCFAIL MOVEQ    r6,#1",
		"17 ns skipped 1a4 4 3a06a01/8 [A] [svc] [MOVEQ    r6,#1]"},
	{"18 tic ES (0000aaaaabaf59f0:----) T thrd_s:",
		"18 tic fetchfail aaaaabaf59f0 2 0/0 [T] [thrd_s] []"},
	{"19 tic ES  (000000d8:c878)     T thrd_s:         LDMCS    r0!,{r3-r6}",
		"19 tic executed d8 2 c878/4 [T] [thrd_s] [LDMCS    r0!,{r3-r6}]"},
	/* An unknown instruction set. */
	{"20 clk IT (1) 00001000 d503201f C EL0t_n : NOP",
		"20 clk executed #1 1000 4 d503201f/8 [] [EL0t_n] [NOP]"},
	{"20 clk IT (1) 00001000 D503201F Unsupported EL0t_n: NOP",
		"20 clk executed #1 1000 4 d503201f/8 [] [EL0t_n] [NOP]"},
	{"20 clk IS (00001000) d503201f C EL0t_n : NOP",
		"20 clk skipped 1000 4 d503201f/8 [] [EL0t_n] [NOP]"},
	{"20 clk IT (1) 00001000 d503201f Thumb-2 EL0t_n : NOP",
		"20 clk executed #1 1000 4 d503201f/8 [] [EL0t_n] [NOP]"},
	{"20 clk IT (1) 00001000 d503201f ? EL0t_n: NOP",
		"20 clk executed #1 1000 4 d503201f/8 [] [EL0t_n] [NOP]"},
	{"20 clk ES (00001008:1a) a64 EL0t_n: NOP",
		"20 clk executed 1008 1 1a/2 [] [EL0t_n] [NOP]"},
	{"20 clk ES (00001008:1a) J EL0t_n: CCFAIL iload_0",
		"20 clk skipped 1008 1 1a/2 [] [EL0t_n] [iload_0]"},
	{"20 clk IT (13) 00000000 ea000006 LDR : B",
		"20 clk executed #13 0 4 ea000006/8 [] [LDR] [B]"},
	/* Names of components. */
	{"20 clk cluster1.cpu2 IT (1) 1000 d503201f O EL1h_n : NOP",
		"20 clk cpu2 executed #1 1000 4 d503201f/8 [O] [EL1h_n] [NOP]"},
	{"20 clk cpu1.thread0 R X1 00000001", "20 clk cpu1 [X1] [00000001]"},
	{"20 clk CPU1 R X1 00000001", "20 clk cpu1 [X1] [00000001]"},
	{"20 clk core7 MR4 00001000 00000001", "20 clk cpu7 MEMREAD 1000 4 1"},
	{"20 clk cpu_3 R X1 00000001", "20 clk cpu3 [X1] [00000001]"},
	{"20 clk /tb/u_core3 R X1 00000001", "20 clk cpu3 [X1] [00000001]"},
	{"20 clk [cpu4] R X1 00000001", "20 clk cpu4 [X1] [00000001]"},
	{"20 clk _top.cpu5 MR4 00001000 00000001", "20 clk cpu5 MEMREAD 1000 4 1"},
	{"20 clk css.rse.cpu R X1 00000001", "20 clk cpu0 [X1] [00000001]"},
	{"20 clk board.Cluster[1].Core[12] R X1 00000001", "20 clk cpu12 [X1] [00000001]"},
	{"20 clk hart65536 R X1 00000001", "20 clk cpu0 [X1] [00000001]"},
	{"20ns css.rse.cpu E 10001848 00000001 CoreEvent_RESET", "20 ns cpu0 kept"},
	{"20 cluster0.cpu1 MW1 1000 7f", "20  cpu1 MEMWRITE 1000 1 7f"},
	/* Capabilities. */
	{"20 clk MR4 (1|dc5f000000010005|80001000):000000001000_NS 00000001",
		"20 clk MEMREAD 80001000:1000 4 1"},
	{"20 clk IT (4) (1|ffffc00000010005|80001000):80001000 c2c253c0 C EL3h_s : RET C30",
		"20 clk executed #4 80001000:80001000 4 c2c253c0/8 [] [EL3h_s] [RET C30]"},
	{"20 clk MW8 (00001000:0000000a) (0|0|2000) 0000000000000001", "20 clk MEMWRITE 2000 8 1"},
	{"20 clk R C0 1|dc5f000000010005|0000000080001000",
		"20 clk [C0] [1|dc5f000000010005|0000000080001000]"},
	{"20 clk R CSP (0|0|80001000) remark", "20 clk [CSP] [(0|0|80001000)]"},
	/* Several records. */
	{"20 clk cpu0 R R1 00000005   MW4 00002000 00000005",
		"20 clk cpu0 [R1] [00000005]; 20 clk cpu0 MEMWRITE 2000 4 5"},
	{"20 clk MW4 2004 00000006 MW4 2008 00000007 R r1 00000009",
		"20 clk MEMWRITE 2004 4 6; 20 clk MEMWRITE 2008 4 7; 20 clk [r1] [00000009]"},
	{"20 clk R cpsr 20000000 __C_ MR16 1000 0000000000000001 0000000000000002",
		"20 clk [cpsr] [20000000]; 20 clk MEMREAD 1000 8 2; 20 clk MEMREAD 1008 8 1"},
	{"20 clk W04 X 1000 010c010b R08 2000 0000000000000001",
		"20 clk MEMWRITE 1000 4 10c010b; 20 clk MEMREAD 2000 8 1"},
	/* Accesses. */
	{"10 clk MR8 00103fc4 0010400000000000", "10 clk MEMREAD 103fc4 8 10400000000000"},
	{"10 clk MW1X 00103fc4 7F", "10 clk MEMWRITE 103fc4 1 7f"},
	{"10 clk MW2T 00103fc4 0102", "10 clk MEMWRITE 103fc4 2 102"},
	{"10 us cpu1 MR4 00103fc4 01020304", "10 us cpu1 MEMREAD 103fc4 4 1020304"},
	{"1 clk MR8 0000010006fffcc0:010116fffcc0_NS 00000100_05101000",
		"1 clk MEMREAD 10006fffcc0:10116fffcc0 8 10005101000"},
	{"1 clk MR16 40017100 400f731b40000000 3ff87cc460000000",
		"1 clk MEMREAD 40017100 8 3ff87cc460000000; "
		"1 clk MEMREAD 40017108 8 400f731b40000000"},
	{"1 clk MW16 40017100:80017100 400f731b_40000000_3ff87cc4_60000000",
		"1 clk MEMWRITE 40017100:80017100 8 3ff87cc460000000; "
		"1 clk MEMWRITE 40017108:80017108 8 400f731b40000000"},
	{"1 clk MR12 1000 00112233 4455667788990011",
		"1 clk MEMREAD 1000 8 4455667788990011; 1 clk MEMREAD 1008 4 112233"},
	{"1 clk MR16 1000 xxxxxxxxxxxxxxxx 4455667788990011",
		"1 clk MEMREAD 1000 8 4455667788990011; 1 clk MEMREAD 1008 8 unknown"},
	{"1 clk MR32 1000 xxxxxxxxxxxxxxxxXXXXXXXXXXXXXXXXxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"1 clk MEMREAD 1000 32 unknown"},
	{"1 ns MSW4___D 201fffec xxxxxxxx", "1 ns MEMWRITE 201fffec 4 unknown"},
	{"1 ns MSW4___D 201fffec 12xx3456", "1 ns MEMWRITE 201fffec 4 unknown"},
	{"1 cyc MNW4___D 2002fa00 efbe0201", "1 cyc MEMWRITE 2002fa00 4 102beef"},
	{"1 cyc MNW2___D 2002fa00 efbe", "1 cyc MEMWRITE 2002fa00 2 beef"},
	{"1 ns MNW4____ (00000050:000000a8) 05011000 00000003", "1 ns MEMWRITE 5011000 4 3"},
	{"6 cs R08 0000007f99d14af4 4305000042ea0000",
		"6 cs MEMREAD 7f99d14af4 8 4305000042ea0000"},
	{"6 cs W04 X ffffffbdc3c15c30 010c010b", "6 cs MEMWRITE ffffffbdc3c15c30 4 10c010b"},
	{"7 ns LD 00000300  ........ ........ 00000800 ........     0000000300    NM ISH INC",
		"7 ns MEMREAD 304 4 800"},
	{"7 ns LD 7ff80fe0 ........ 44444444 ........ 2222..11    S:007ff80fe0    nGnRnE OSH",
		"7 ns MEMREAD 7ff80fe0 1 11; 7 ns MEMREAD 7ff80fe2 2 2222; "
		"7 ns MEMREAD 7ff80fe8 4 44444444"},
	{"7 ns ST 0010000 66656463 62613938 37363534 33323130 S:0000010000 nGnRnE OSH",
		"7 ns MEMWRITE 10000 8 3736353433323130; 7 ns MEMWRITE 10008 8 6665646362613938"},
	{"7 ns ST 0010000 ........ 62613938 37363534 33323130",
		"7 ns MEMWRITE 10000 4 33323130; 7 ns MEMWRITE 10004 8 6261393837363534"},
	{"7 ns ST b0000000  ........ ........ ........ ..##..65",
		"7 ns MEMWRITE b0000000 1 65; "
		"7 ns MEMWRITE b0000002 1 unknown"},
	{"7 ns ST b0000000 ##12#### ........ ........ ........",
		"7 ns MEMWRITE b000000c 2 unknown; 7 ns MEMWRITE b000000e 1 12; "
		"7 ns MEMWRITE b000000f 1 unknown"},
	/* Registers. */
	{"14 clk R r8 00000000", "14 clk [r8] [00000000]"},
	{"14 clk cpu0 R cpsr 20000000 __C_", "14 clk cpu0 [cpsr] [20000000]"},
	{"271ns R r13 20001fff (MSP)", "271 ns [r13] [20001fff]"},
	{"R R1 (USR) 00000800", "no time [R1] [00000800]"},
	{"R V0<127:64> ffeeddccbbaa9988", "no time [V0<127:64>] [ffeeddccbbaa9988]"},
	{"R FPCR 01230123:23452345", "no time [FPCR] [01230123:23452345]"},
	{"R Q0 -------- -------- 3ff6a09e 667f3bcd\r",
		"no time [Q0] [-------- -------- 3ff6a09e 667f3bcd]"},
	{"R psr xx0xxXxx", "no time [psr] [xx0xxXxx]"},
	{"R X0 01234567 89abcdef N_Cx", "no time [X0] [01234567 89abcdef]"},
};

TEST(each_line_becomes_the_right_entries)
{
	char got[2048];

	for (size_t i = 0; i < COUNT_OF(known); i++) {
		struct lines l = line_read(known[i].line);
		assert_int_equal(l.end, BC_PARSE_DONE);
		lines_check(&l);
		describe_all(got, sizeof(got), &l);
		assert_string_equal(got, known[i].expected);
		lines_free(&l);
	}
}

static const char *const strange[] = {
	"",
	"\r",
	"   \t",
	"# a comment",
	"Tarmac Text Rev 3t",
	"M",
	"4541 clk CADI E simulation_stopped",
	"0 clk SIGNAL: SIGNAL=DebugReset STATE=N",
	"0 clk cpu0 E 10001848 00000001 CoreEvent_RESET",
	"17000 ns  ES  EXC [0x00] Reset",
	"12345 ns  ES  Reset",
	"   BR (00000000) A",
	"   EXC [0x200] Synchronous",
	"5 clk TTW DTLB LPAE 1:1 000080001000 0000000080002003",
	"0 ps CACHE MAINTENANCE Instruction and Data cache Invalidate All to PoU 00000000",
	"28491 clk MR4 dfdfdfcf (ABORTED)",
	"28491 clk MR4 dfdfdfcf:00000000dfdf (ABORTED)",
	"3037 cyc MNR4O__I 00022ae4 f7ffffcb",
	"3037 cyc MNR4___A e0022ae4 f7ffffcb",
	"1359353 ns MCW4___R (01000250:000000bb) TRANSFER 00000000",
	"40 clk R DC CISW 00000000:00000000",
	"40 clk R IC IALLU 00000000:0000000",
	"40 clk R TLBI ALLE3 00000000:00000000",
	"40 clk R AT S12E1W 00000000:00000004",
	"40 clk MR4096 00001000 00",
	"40 clk MR0 00001000 00",
	"40 clk MRS",
	"40 clk MODE svc",
	"40 fortnights R r0 00000000",
	"99999999999999999999 clk CADI E",
	"99999999999999999999",
	"14 Q r8 00000000",
	"14 MOV r8 00000000",
	"1.5 clk R r8 00000000",
	"1.5 R r8 00000000",
	"   000000009884cfa0  00000000 00000007 ........ ........",
	"7 ns LD 00000300  ........ ........ ........ ........",
	"7 ns STOP",
	"7 ns ST stop",
	"7 ns IT works",
	"7 ns ITEM (1) 00000000",
	"==12== valgrind",
	"\x80\xff\x01 clk",
};

TEST(a_time_may_have_a_fraction_or_no_unit)
{
	static const struct {
		const char *line;
		uint64_t tick;
		unsigned unit;
	} times[] = {
		{"1166.177000us MR4_D 00000000 00204800", 1166177000, BC_UNIT_PS},
		{"  10.356000us R PSR f1000003", 10356000, BC_UNIT_PS},
		{"0.5 us R PSR f1000003", 500000, BC_UNIT_PS},
		{"7.000001us R PSR f1000003", 7000001, BC_UNIT_PS},
		{"7.0000010us R PSR f1000003", 7000001, BC_UNIT_PS},
		{"12.25 ns R PSR f1000003", 12250, BC_UNIT_PS},
		{"12.0 ps R PSR f1000003", 12, BC_UNIT_PS},
		{"18446744073709.551615us R r0 0", UINT64_MAX, BC_UNIT_PS},
		{"605500 cpu0 IT (2199) 00210c18 94000004 O EL3h_s : BL 0X210C28", 605500,
			BC_UNIT_TICK},
		{"605501 R r0 00000001", 605501, BC_UNIT_TICK},
		{"605502 MR4 00008034 000029b4", 605502, BC_UNIT_TICK},
		{"100 R08 00001000 0000000000000011", 100, BC_UNIT_TICK},
		{"7 LD 00000300  ........ ........ ........ 01020304", 7, BC_UNIT_TICK},
	};
	static const char *const bad[] = {"7.0000001us R r0 00000000", "12.5 ps R r0 00000000",
		"18446744073709.551616us R r0 00000000", "99999999999999999999 R r0 00000000"};

	for (size_t i = 0; i < COUNT_OF(times); i++) {
		struct lines l = line_read(times[i].line);
		assert_int_equal(l.end, BC_PARSE_DONE);
		assert_int_not_equal(l.entries[0].kind, BC_ENTRY_LINE);
		assert_true((l.entries[0].traits & BC_TRAIT_TIME) != 0);
		assert_int_equal(l.entries[0].tick, times[i].tick);
		assert_int_equal(l.entries[0].unit, times[i].unit);
		lines_free(&l);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct lines l = line_read(bad[i]);
		assert_int_equal(l.end, BC_PARSE_BAD);
		assert_non_null(strstr(l.expected, "whole picoseconds"));
		lines_free(&l);
	}
}

TEST(an_access_may_show_the_whole_bus)
{
	static const struct {
		const char *line;
		uint64_t data;
	} accesses[] = {
		{"1 ns MR2_I 0000010a b5100000", 0xb510},
		{"1 ns MR2_I 00000108 0000b510", 0xb510},
		{"1 ns MR1_D 00000103 5a000000", 0x5a},
		{"1 ns MW1_D 00000101 00005a00", 0x5a},
		{"1 ns MR4 00000104 123456789abcdef0", 0x12345678},
		{"1 cyc MNW1___D 2002fa01 efbe0201", 0xbe},
		{"1 ns MR4 00000104 12345678", 0x12345678},
		{"1 ns MR2 0000010a b510", 0xb510},
	};

	for (size_t i = 0; i < COUNT_OF(accesses); i++) {
		struct lines l = line_read(accesses[i].line);
		assert_int_equal(l.end, BC_PARSE_DONE);
		assert_int_equal(l.entries[0].kind, BC_ENTRY_REFERENCE);
		assert_int_equal(l.entries[0].data, accesses[i].data);
		lines_free(&l);
	}
}

TEST(an_unknown_line_is_kept)
{
	for (size_t i = 0; i < COUNT_OF(strange); i++) {
		struct lines l = line_read(strange[i]);
		if (l.end != BC_PARSE_DONE)
			print_message("%s: %s\n", strange[i], l.expected);
		assert_int_equal(l.end, BC_PARSE_DONE);
		lines_check(&l);
		assert_int_equal(l.count, 1);
		assert_int_equal(l.entries[0].kind, BC_ENTRY_LINE);
		lines_free(&l);
	}
}

TEST(a_malformed_line_is_reported_with_its_column)
{
	static const struct {
		const char *line;
		size_t column;
		const char *expected;
	} bad[] = {
		{"1 clk IT (1) 0000zz04 3c08", 18, "address"},
		{"1 clk IT (1)", 13, "address"},
		{"1 clk IT", 9, "address"},
		{"1 clk IT (1", 12, "')'"},
		{"1 clk IT (", 11, "number"},
		{"1 clk IT (1) 00000004", 22, "opcode"},
		{"1 clk IT (1) 00000004 3c08", 27, "instruction set"},
		{"1 clk IT (1) 10000000000000000 3c08 T svc : x", 30, "64 bits"},
		{"1 clk IT (1) 00000004:z 3c08 T svc : x", 23, "address"},
		{"1 clk IT (1) 00000004 3c08zz T svc : x", 27, "opcode"},
		{"1 clk IT (1) 00000004 00112233445566778 T svc : x", 40, "opcode"},
		{"1 clk IT (99999999999999999999) 00000004 3c08 T svc : x", 30, "64 bits"},
		{"1 clk ES (00000004", 19, "':'"},
		{"1 clk ES (00000004:3c08", 24, "')'"},
		{"1 clk ES (00000004:3c08)", 25, "instruction set"},
		{"1 clk MR4 0000zz04 00000000", 15, "address"},
		{"1 clk MR4", 10, "address"},
		{"1 clk R08", 10, "address"},
		{"1 clk MR4 00001000", 19, "two hexadecimal digits"},
		{"1 clk MR4 00001000 000000", 26, "two hexadecimal digits"},
		{"1 clk MR4 00001000 0000000000", 28, "two hexadecimal digits"},
		{"1 clk MR16 00001000 0000000000000000 00", 40, "two hexadecimal digits"},
		{"1 cs W04 X 0000000q 010c010b", 19, "address"},
		{"1 clk R", 8, "name"},
		{"1 clk R r0", 11, "value"},
		{"1 clk R r0 00zz", 14, "value"},
		{"1 clk R r0 (USR", 16, "')'"},
		{"1 clk LD", 9, "address"},
		{"1 clk LD 00001000 ........ ....", 32, "16 bytes"},
		{"1 clk LD 00001000 ........ ........ ........ 1.......", 46, "16 bytes"},
		{"1 clk LD 00001000 ........ ........ ........ ..........", 54, "16 bytes"},
		{"18446744073709551616 clk R r0 00000000", 20, "time"},
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct lines l = line_read(bad[i].line);
		assert_int_equal(l.end, BC_PARSE_BAD);
		assert_int_equal(l.count, 0);
		if (l.column != bad[i].column)
			print_message("%s: column %zu\n", bad[i].line, l.column);
		assert_int_equal(l.column, bad[i].column);
		assert_non_null(strstr(l.expected, bad[i].expected));
		lines_free(&l);
	}
}

TEST(any_byte_of_a_line_may_be_changed)
{
	char text[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].line);
		for (size_t at = 0; at < n; at++) {
			for (unsigned c = 0; c < 256; c += (unsigned)(at + c) % 3 + 1) {
				memcpy(text, known[i].line, n);
				text[at] = (char)c;
				text[n] = '\n';
				struct lines l = lines_read(text, n + 1, BC_LINE_ENTRIES);
				lines_check(&l);
				lines_free(&l);
			}
		}
	}
}

static void assert_described(const char *text, const char *expected)
{
	struct lines l = lines_read(text, strlen(text), BC_LINE_ENTRIES);
	char got[1024];

	lines_check(&l);
	describe_all(got, sizeof(got), &l);
	assert_string_equal(got, expected);
	lines_free(&l);
}

TEST(a_line_without_a_time_has_that_of_the_previous_line)
{
	static const char text[] = "R r0 00000001\n"
				   "12 ns R r0 00000001\n"
				   "   R r1 00000002\n"
				   "\n"
				   "13999 ps CADI\n"
				   "   BR (00000000) A\n"
				   "   MR1 00000000 01\n";
	static const char expected[] = "no time [r0] [00000001]; 12 ns [r0] [00000001]; "
				       "12 ns [r1] [00000002]; 12 ns kept; 13 ns kept; 13 ns kept; "
				       "13 ns MEMREAD 0 1 1";

	assert_described(text, expected);
}

TEST(a_continuation_line_has_the_kind_of_its_access)
{
	static const char text[] =
		"1 tic ES (000000d8:c878) T thrd_s: LDM r0!,{r3-r6}\n"
		"   LD 00004020  ........ 11111111 ........ ........ S:0000000000004020\n"
		"      00004010  22222222 ........ ........ ........ S:0000000000004010\n"
		"      00004000  ........ ........ ........ ......## S:0000000000004000\n"
		"   ST 00004020  ........ 33333333 ........ ........\n"
		"      0000401a  44444444 ........ ........ ........\n"
		"   R r0 00000000\n"
		"      00004010  44444444 ........ ........ ........\n"
		"   LD 00004020  ........ 11111111 ........ ........\n"
		"   CADI\n"
		"      00004010  44444444 ........ ........ ........\n";
	static const char expected[] =
		"1 tic executed d8 2 c878/4 [T] [thrd_s] [LDM r0!,{r3-r6}]; "
		"1 tic MEMREAD 4028 4 11111111; 1 tic MEMREAD 401c 4 22222222; "
		"1 tic MEMREAD 4000 1 unknown; 1 tic MEMWRITE 4028 4 33333333; "
		"1 tic MEMWRITE 4026 4 44444444; 1 tic [r0] [00000000]; 1 tic kept; "
		"1 tic MEMREAD 4028 4 11111111; 1 tic kept; 1 tic kept";

	assert_described(text, expected);
}

/* Prints entries with a new printer. The caller frees the text. */
static char *print_all(
	const struct bc_entry *entries, size_t count, size_t *n, int wanted, char err[160])
{
	uint64_t trait_losses[BC_TRAIT_BITS] = {0};
	struct bc_format_options options = bc_format_options_default();
	void *state = bc_printer_start(&bc_tarmac_printer, &options);
	char *text = NULL;

	*n = 0;
	assert_non_null(state);
	while (count != 0) {
		text = realloc(text, *n + BC_PRINT_MAX + 1);
		assert_non_null(text);
		struct bc_print p = {.entries = entries,
			.count = count,
			.out = text + *n,
			.capacity = BC_PRINT_MAX,
			.trait_losses = trait_losses};
		int rc = bc_tarmac_printer.print(state, &p);
		*n += p.used;
		if (rc != 0) {
			assert_int_equal(rc, wanted);
			memcpy(err, p.err, sizeof(p.err));
			break;
		}
		assert_true(p.count < count);
		entries = p.entries;
		count = p.count;
	}
	if (count == 0)
		assert_int_equal(wanted, 0);
	free(state);
	text[*n] = '\0';
	return text;
}

TEST(parsed_lines_are_printed_unchanged)
{
	char text[8192];
	char err[160];
	size_t n = 0;
	size_t printed;

	for (size_t i = 0; i < COUNT_OF(known); i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", known[i].line);
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s\n", strange[i % (COUNT_OF(strange))]);
	}
	assert_true(n < sizeof(text));
	struct lines l = lines_read(text, n, 64);
	assert_int_equal(l.end, BC_PARSE_DONE);
	char *out = print_all(l.entries, l.count, &printed, 0, err);
	assert_int_equal(printed, n);
	assert_memory_equal(out, text, n);
	free(out);
	lines_free(&l);
}

TEST(lines_are_printed_from_their_fields)
{
	static const struct {
		const char *line;
		const char *printed; /* NULL: the same */
	} lines[] = {
		{"1 clk IT (1) 00000004 3c080001 A svc : lui t0,0x1", NULL},
		{"1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1",
			"1 clk cpu0 IT (1) 00000004 3c080001 A svc : lui t0,0x1"},
		{"5 clk cpu3 IS (5) 00001000:000080001000 1af0 T usr_ns : NOP", NULL},
		{"10 cs IT (00000000004d6eb0) 54000001 O -Z-_- : b.ne\t0x4d",
			"10 cs IT (004d6eb0) 54000001 O -Z-_- : b.ne\t0x4d"},
		{"11 cyc IT (0000000000004d6eb0:0000000a) 4d6eb0 4801 T16 LDR r0",
			"11 cyc IT (10) 004d6eb0 4801 T16 : LDR r0"},
		{"12 clk IT (12) 00000000 -------- A svc :",
			"12 clk IT (12) 00000000 -------- A svc : "},
		{"13 clk IT (1) 00001000 d503201f C EL0t_n : NOP",
			"13 clk IT (1) 00001000 d503201f EL0t_n : NOP"},
		{"13 clk IT (00001000) d503201f C EL0t_n : NOP",
			"13 clk IT 00001000 d503201f EL0t_n : NOP"},
		{"13 clk IT 00001000 d503201f EL0t_n : NOP", NULL},
		{"13 clk core2 R C0 (1|5|80001000)", "13 clk cpu2 R C0 (1|5|80001000)"},
		{"10 clk MR8 00103fc4 0010400000000000", NULL},
		{"10 clk MW1 00103fc4 07", NULL},
		{"10 clk MR8 0000010006fffcc0:010116fffcc0 00000100_05101000", NULL},
		{"10 clk MR8 10006fffcc0:10116fffcc0 0000010005101000",
			"10 clk MR8 0000010006fffcc0:010116fffcc0 00000100_05101000"},
		{"10 clk MR4 00103fc4 xxxxxxxx", NULL},
		{"10 us cpu65535 MW2 fffffffffffffff0 0abc", NULL},
		{"14 clk R r8 00000000", NULL},
		{"14 ps cpu1 R Q0 -------- 00000000", NULL},
	};
	static char out[BC_PRINT_MAX];
	char line[256];

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		struct lines l = line_read(lines[i].line);
		assert_int_equal(l.count, 1);
		char *end = bc_tarmac_print_fields(out, &l.entries[0], l.entries[0].tick);
		assert_non_null(end);
		*end = '\0';
		snprintf(line, sizeof(line), "%s\n",
			lines[i].printed != NULL ? lines[i].printed : lines[i].line);
		assert_string_equal(out, line);
		lines_free(&l);
	}
}

TEST(references_of_other_formats_are_printed)
{
	struct bc_entry e[5];
	char err[160];
	size_t n;

	bc_entry_reference(&e[0], BC_REQ_MEMREAD, 0x8034, 0);
	e[0].traits = BC_TRAIT_SIZE | BC_TRAIT_PROC;
	e[0].size = 4;
	e[0].proc = 2;
	/* A modify is split into a read and a write, which is_continued. */
	bc_entry_reference(&e[1], BC_REQ_MEMREAD, 0x1FFFFFFFF, 1);
	e[1].traits = BC_TRAIT_SIZE;
	e[1].size = 1;
	e[2] = e[1];
	e[2].type = BC_REQ_MEMWRITE;
	e[2].is_continued = true;
	bc_entry_reference(&e[3], BC_REQ_MEMWRITE, UINT64_MAX, 2);
	e[3].traits = BC_TRAIT_SIZE | BC_TRAIT_TIME | BC_TRAIT_DATA;
	e[3].size = 2;
	e[3].tick = UINT64_MAX;
	e[3].data = 0xFFFF1234; /* 2 of the bytes are valid */
	e[4] = e[3];
	e[4].size = 16;
	e[4].unit = BC_UNIT_PS;
	char *out = print_all(e, 5, &n, 0, err);
	assert_string_equal(out, "0 clk cpu2 MR4 00008034 xxxxxxxx\n"
				 "1 clk MR1 00000001ffffffff xx\n"
				 "2 clk MW1 00000001ffffffff xx\n"
				 "18446744073709551615 clk MW2 ffffffffffffffff 1234\n"
				 "18446744073709551615 ps MW16 ffffffffffffffff "
				 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	free(out);
}

TEST(a_reference_without_a_size_is_refused)
{
	struct bc_entry e[2];
	char err[160];
	size_t n;

	bc_entry_reference(&e[0], BC_REQ_MEMREAD, 0x8034, 0);
	e[0].traits = BC_TRAIT_SIZE;
	e[0].size = BC_TARMAC_ACCESS_MAX;
	e[1] = e[0];
	e[1].size = 0;
	char *out = print_all(e, 2, &n, -ERANGE, err);
	assert_string_equal(err, "its size is unknown, which a Tarmac memory access needs");
	assert_int_equal(n, strlen("0 clk MR512 00008034 \n") + 1024);
	free(out);
	e[1].size = BC_TARMAC_ACCESS_MAX + 1;
	out = print_all(e, 2, &n, -ERANGE, err);
	assert_string_equal(err,
		"size of 513 bytes exceeds the 512 bytes supported for a Tarmac memory "
		"access");
	free(out);
}

TEST(an_entry_without_its_line_is_printed_from_its_fields)
{
	char err[160];
	size_t n;

	struct lines l = line_read("1 clk MR16 40017100 400f731b40000000 3ff87cc460000000");
	char *out = print_all(l.entries + 1, 1, &n, 0, err);
	assert_string_equal(out, "1 clk MR8 40017108 400f731b40000000\n");
	free(out);
	lines_free(&l);
}

/* Parses lines, and returns the notes about them. */
static struct bc_parse_notes notes_of(const char *text, struct bc_entry *entries, size_t *count)
{
	const struct bc_format_options options = bc_format_options_default();
	struct lines l = lines_read(text, strlen(text), 4096);
	struct bc_parse p = {.at = l.bytes,
		.end = l.bytes + l.n,
		.number = 1,
		.entries = entries,
		.capacity = 4096};
	struct bc_parse_notes notes = {0};
	void *state = bc_parser_start(&bc_tarmac_parser, &options);

	assert_non_null(state);
	lines_check(&l);
	assert_int_equal(bc_tarmac_parser.parse(state, &p), BC_PARSE_DONE);
	bc_tarmac_parser.notes(state, &notes);
	*count = p.count;
	free(state);
	lines_free(&l);
	return notes;
}

TEST(what_is_not_read_is_counted)
{
	static const struct {
		const char *text;
		uint64_t unread;
		size_t entries;
	} rows[] = {
		{"1 clk MR4 1000 00000001\n", 0, 1},
		{"1 clk R r13 20001fff (MSP)\n2 clk R cpsr 20000000 __C_\n", 0, 2},
		{"1 clk LD 300 ........ ........ 00000800 ........ 0000000300 NM ISH INC\n", 0, 1},
		{"1 clk IT 1000 d503201f O EL1h_n : NOP ; MW4 1000 1\n", 0, 1},
		{"1 clk MR4 1000 00000001 ; remark\n2 clk W04 1000 00000001 x\n", 2, 2},
		{"1 clk MR4 1000 00000001 MW4 1000 01\n", 1, 1},
		{"1 clk MR4 1000 00000001 MW4 2000 (ABORTED)\n", 1, 1},
		{"1 clk R r1 00000001 MR4\n1 clk R r1 00000001 R R2\n", 2, 2},
		{"1 clk MR4 (1|5|1000) 00000001\n", 1, 1},
	};
	struct bc_entry *entries = malloc(4096 * sizeof(*entries));
	size_t count;

	assert_non_null(entries);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bc_parse_notes notes = notes_of(rows[i].text, entries, &count);
		if (notes.unread != rows[i].unread)
			print_message("%s", rows[i].text);
		assert_int_equal(notes.unread, rows[i].unread);
		assert_int_equal(count, rows[i].entries);
		assert_int_equal(notes.names, 0);
	}
	free(entries);
}

TEST(a_line_never_has_more_entries_than_fit)
{
	struct bc_entry *entries = malloc(4096 * sizeof(*entries));
	char text[16000];
	size_t count;

	assert_non_null(entries);
	for (unsigned size = 8; size <= 512; size += 56) {
		size_t used = (size_t)sprintf(text, "1 clk R r0 00000001");
		for (unsigned i = 0; i < 10; i++) {
			used += (size_t)sprintf(text + used, " MW%u 1000 ", size);
			memset(text + used, '1', (size_t)size * 2);
			used += (size_t)size * 2;
		}
		memcpy(text + used, "\n", 2);
		struct bc_parse_notes notes = notes_of(text, entries, &count);
		assert_true(count <= BC_LINE_ENTRIES);
		assert_int_equal(notes.unread, count != 1 + 10 * size / 8);
	}
	free(entries);
}

TEST(two_names_never_have_the_same_number)
{
	static const struct {
		const char *name;
		uint16_t proc;
	} names[] = {{"cluster0.cpu0", 0}, {"cluster0.cpu1", 1}, {"cluster1.cpu0", 2},
		{"cluster1.cpu1", 3}, {"cpu4", 4}, {"css.rse.cpu", 5}, {"css.scp.cpu", 6},
		{"cpu5", 7}, {"4", 4}, {"core9", 9}, {"cpu2", 8}, {"cluster1.cpu0", 2}, {"cpu5", 7},
		{"cpu4", 4}};
	struct bc_entry *entries = malloc(4096 * sizeof(*entries));
	char text[4000];
	size_t used = 0;
	size_t count;
	size_t n = COUNT_OF(names);

	assert_non_null(entries);
	for (size_t i = 0; i < n; i++)
		used += (size_t)sprintf(text + used, "1 clk %s R r0 00000001\n", names[i].name);
	struct bc_parse_notes notes = notes_of(text, entries, &count);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(entries[i].proc, names[i].proc);
	assert_int_equal(notes.names, 6);
	assert_string_equal(notes.named[0].name, "cluster1.cpu0");
	assert_int_equal(notes.named[0].proc, 2);
	assert_string_equal(notes.named[2].name, "css.rse.cpu");
	assert_string_equal(notes.named[4].name, "cpu5");
	free(entries);
}

TEST(more_names_than_fit_have_no_number)
{
	struct bc_entry *entries = malloc(4096 * sizeof(*entries));
	char *text = malloc(400 * 100);
	size_t used = 0;
	size_t count;

	assert_non_null(entries);
	assert_non_null(text);
	for (unsigned i = 0; i < 300; i++)
		used += (size_t)sprintf(text + used,
			"1 clk a.very.long.path.of.a.platform.with.many.levels.node%u.cpu R r0 "
			"00000001\n",
			i);
	struct bc_parse_notes notes = notes_of(text, entries, &count);
	assert_int_equal(count, 300);
	assert_int_equal(notes.unnumbered, 300 - 256);
	for (size_t i = 0; i < 300; i++) {
		assert_int_equal((entries[i].traits & BC_TRAIT_PROC) != 0, i < 256);
		assert_int_equal(entries[i].proc, i < 256 ? i : 0);
	}
	free(text);
	free(entries);
}
