/* The named layouts. A row is all that a kind of lines needs: -I and the detection use it, and
 * `buscap formats NAME` prints it, to be copied and changed.
 *
 * Invariant: the types are spelled out, because a file is detected by these, too; each sample fits
 * its layout (tests/unit/formats/test_lines.c). */
#include "formats/codec/layout.h"

#include <string.h>

#define RW     "{type:R=read|W=write|r=read|w=write}"
#define LONG   "{type:READ=read|WRITE=write|read=read|write=write}"
#define MEM    "{type:MemRead=read|MemWrite=write}"
#define LACKEY "{type:I=fetch|L=read|S=write|M=modify}"

const struct bc_named_layout bc_named_layouts[] = {
	{"addr-rw", "{addr} " RW " | #{...}", "0041f7a0 R\n13f5e2c0 W\n",
		"address and R or W: paging exercises, Ramulator"},
	{"din", BC_LAYOUT_DIN, "2 400560\n1 7ffc10\n", "Dinero: label and address"},
	{"dramsim",
		"{addr} {type:READ=read|WRITE=write|IFETCH=fetch|BOFF=misc|P_MEM_RD=read|"
		"P_MEM_WR=write|P_FETCH=fetch} {time}",
		"0x7fff12a0 READ 12\n0x7fff1300 P_MEM_WR 40\n", "DRAMSim2 and DRAMsim3"},
	{"dramsys",
		"{time}: ({size}) " LONG " {addr} {data} | {time}: ({size}) " LONG " {addr} | "
		"{time}: " LONG " {addr} {data} | {time}: " LONG " {addr} | #{...}",
		"31: read 0x400140\n33: (4) write 0x400148 0x1f\n", "DRAMSys, .stl"},
	{"drmemtrace",
		"{*} {*}: {proc} {type:read=read|write=write|ifetch=fetch} {size} byte(s) @ {addr} "
		"by PC {pc} | {*} {*}: {proc} ifetch {size} byte(s) @ {addr} {...}{type=fetch} | "
		"{*} {*}: {proc} <{...}",
		"1 0: 7 <marker: version 6>\n2 1: 7 read 8 byte(s) @ 0x7ffe10 by PC 0x401000\n",
		"the view tool of DynamoRIO's drmemtrace"},
	{"execlog",
		"{proc}, {pc}, {*}, \"{...}\", {type:load=read|store=write}, {addr}, {*} | "
		"{proc}, {pc}, {*}, \"{...}\", {type:load=read|store=write}, {addr} | "
		"{proc}, {pc}, {*}, \"{...}\", {type:load=read|store=write}, {addr}, {...} | "
		"{proc}, {pc}, {*}, \"{...}\"",
		"0, 0x401000, 0xb9400020, \"ldr w0, [x1]\"\n"
		"0, 0x401004, 0xb9400020, \"ldr w0, [x1]\", load, 0x40000010, RAM\n",
		"QEMU's plugin execlog"},
	{"gem5",
		"{time:ps}: {*} T{*} : {pc} @{...} : {...} : " MEM " : D={data} A={addr} | "
		"{time:ps}: {*} T{*} : {pc} @{...} : {...} : " MEM " : A={addr} | "
		"{time:ps}: {*} T{*} : {pc} : {...} : " MEM " : D={data} A={addr} | "
		"{time:ps}: {*} T{*} : {pc} : {...} : " MEM " : A={addr} | {time:ps}: {...}",
		"500: system.cpu: T0 : 0x10 @main    :   add  r1 : IntAlu :  D=0x1\n"
		"1000: system.cpu: T0 : 0x14 @main+4 : ldr r1 : MemRead :  D=0x2a A=0x8f10\n",
		"gem5 --debug-flags=Exec; its ticks are ps"},
	{"hash", "# {type:0=read|1=write} {addr} {*}", "# 0 7fffed80 1\n# 1 10010000 3\n",
		"# 0 ADDRESS COUNT: course traces for cache exercises"},
	{"ibex",
		"{time} {*} {pc} {...}PA:{addr} store:{data}{type=write} | "
		"{time} {*} {pc} {...}PA:{addr} load:{data}{type=read} | Time {...} | {*} {*} {*} "
		"{...}",
		"214 102 00000084 00112623 sw x1,12(x2) x1:0x1 x2:0x8f0 PA:0x000008fc "
		"store:0x00000001\n"
		"220 105 00000088 00c12083 lw x1,12(x2) x2:0x8f0 x1=0x1 PA:0x000008fc "
		"load:0x00000001\n",
		"the tracer of the Ibex core"},
	{"lackey3", LACKEY " {addr},{size} {*} | " LACKEY " {addr},{size} | =={...} | --{...}",
		"L 7ff0005c8,8 1\nS 7ff0005d0,4 2\n", "lackey with a third column"},
	{"ld-st", "{type:LD=read|ST=write} 0x{addr} | {type:LD=read|ST=write} {addr:d} | #{...}",
		"LD 4196252\nST 268435604\n", "Ramulator 2: LD or ST and a decimal address"},
	{"ls", "{type:l=read|s=write} {addr} {size}", "l 0x1fffff50 1\ns 0x1fffff58 4\n",
		"l or s, address, size: cache exercises"},
	{"mmiotrace",
		"{type:R=read|W=write} {size} {time:s} {*} {addr} {data} {pc} {*} | MAP {...} | "
		"UNMAP {...} | MARK {...} | VERSION {...} | PCIDEV {...} | UNKNOWN {...} | LSPCI "
		"{...}",
		"MAP 5.100000 1 0xf0000000 0xffffc90000100000 0x1000 0x0 0\n"
		"R 4 5.238811 1 0xf0000800 0x1f 0x0 0\n",
		"Linux's mmiotrace"},
	{"nvmain", "NVMV{*} | {time} " RW " {addr} {data} {proc}",
		"NVMV1\n12 W 0x7ff0 00000000000000ff 0\n", "NVMain"},
	{"pin",
		"{pc}: " RW " {addr} | {pc}: " RW " {addr} {size} | {pc}: " RW
		" {addr} {size} {*} | "
		"#{...} | RTN: {...}",
		"0x7f4c1b20a3: R 0x7ffd8c10\n0x7f4c1b20a8: W 0x7ffd8c08\n", "Pin's pinatrace"},
	{"proc-rw", "{proc} " RW " {addr}", "0 R 0x1000a0\n1 W 0x1000e0\n",
		"processor, R or W, address"},
	{"rw", RW " {addr} | #{...}", "R 0x40079c\nW 0x10000094\n",
		"R or W and an address: course traces, memtrace"},
	{"rw-size", "{type:R=read|W=write} {addr} {size} | #{...}",
		"R 0x40079c 4\nW 0x10000094 8\n", "R or W, address, size"},
	{"spike",
		"core {proc}: {*} {pc} ({*}) mem {addr} {data}{type=write} | "
		"core {proc}: {*} {pc} ({*}) {*} {*} mem {addr}{type=read} | core {proc}: {...}",
		"core   0: 3 0x80000004 (0x00a12023) mem 0x80001000 0x0000002a\n"
		"core   0: 3 0x80000008 (0x00012503) x10 0x0000002a mem 0x80001000\n",
		"spike --log-commits"},
	{"time-rw", "{time} " RW " {addr} | {time} " RW " {addr} {size}",
		"1229 R 0x40079c\n1261 W 0x10000094\n", "time, R or W, address"},
	{"usimm", "{delta} R {addr} {pc}{type=read} | {delta} W {addr}{type=write}",
		"65 R 0x40079c 0x401614\n0 W 0x10000094\n", "USIMM"},
	{NULL, NULL, NULL, NULL},
};

const struct bc_named_layout *bc_layout_by_name(const char *name)
{
	const struct bc_named_layout *row = bc_named_layouts;

	while (row->name != NULL && strcmp(row->name, name) != 0)
		row++;
	return row->name != NULL ? row : NULL;
}

const char *bc_layout_format_name(enum bc_format format, const char *layout)
{
	const struct bc_named_layout *row = bc_named_layouts;

	while (row->name != NULL && row->layout != layout)
		row++;
	return format == BC_FORMAT_LINES && row->name != NULL ? row->name : bc_format_name(format);
}
