/* What the commands of buscap print about wrong usage and about files and sockets that they can't
 * use, and the exit code. The commands run in this process, one after another, so they must not
 * leave anything behind for the next one. */
#include <sys/socket.h>
#include <sys/un.h>

#include <zlib.h>

#include "formats/base/utf8.h"
#include "tests/support/command_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

static struct command_run r; /* of the last command */

static void run(const char *line)
{
	int fd = first_free_fd();

	command_run_free(&r);
	command_run(&r, line);
	assert_int_equal(first_free_fd(), fd);
}

/* Runs "buscap LINE". The error is one line. It starts with the command and contains the words, or
 * is these words if they start with "buscap". */
static void says(enum bc_exit code, const char *line, const char *words)
{
	char start[40];
	bool is_whole = strncmp(words, "buscap", 6) == 0;

	snprintf(start, sizeof(start), "buscap %.*s: ", command_name_bytes(line), line);
	run(line);
	if (r.code != code || r.err_bytes == 0 || strchr(r.err, '\n') != r.err + r.err_bytes - 1 ||
		!bc_utf8_is_valid(r.err, r.err_bytes) ||
		strncmp(r.err, is_whole ? words : start, strlen(is_whole ? words : start)) != 0 ||
		(is_whole && r.err_bytes != strlen(words) + 1) || strstr(r.err, words) == NULL)
		fail_msg("buscap %s\nexit code %d, not %d\n%s\nis not one line with: %s", line,
			r.code, code, r.err, words);
}

/* Like says(), and checks that nothing is printed on standard output. */
static void fails(enum bc_exit code, const char *line, const char *words)
{
	says(code, line, words);
	assert_string_equal(r.out, "");
}

static void prints(const char *line, const char *out)
{
	run(line);
	if (r.code != BC_EXIT_OK || r.err_bytes != 0 || (out != NULL && strcmp(r.out, out) != 0))
		fail_msg("buscap %s\nexit code %d\n%s%s", line, r.code, r.err, r.out);
}

static unsigned count_files(void)
{
	DIR *list = opendir(".");
	unsigned n = 0;

	assert_non_null(list);
	while (readdir(list) != NULL)
		n++;
	closedir(list);
	return n;
}

struct fixture {
	struct temp_dir dir;
	unsigned files;
};

static void write_text(const struct fixture *f, const char *name, const char *text)
{
	temp_write(&f->dir, name, text, strlen(text));
}

/* Writes files with the content of x.byu.lz4: damaged, torn, compressed; and the start of a
 * program. */
static void write_segments(const struct fixture *f)
{
	size_t n;
	uint8_t *segment = temp_read(&f->dir, "x.byu.lz4", &n);
	gzFile gz = gzopen("x.gz", "w");
	FILE *program = fopen("/proc/self/exe", "r");
	char start[100];

	assert_non_null(gz);
	assert_int_equal(gzwrite(gz, segment, (unsigned)n), n);
	assert_int_equal(gzclose(gz), Z_OK);
	assert_non_null(program);
	assert_int_equal(fread(start, 1, sizeof(start), program), sizeof(start));
	assert_int_equal(fseek(program, 0, SEEK_END), 0);
	temp_write(&f->dir, "torn-elf", start, sizeof(start));
	temp_write(&f->dir, "half-elf", start, sizeof(start));
	assert_int_equal(truncate("half-elf", ftell(program) / 2), 0);
	fclose(program);
	temp_write(&f->dir, "20260101T000000Z-000000-00000.byu.lz4.partial", segment, 11);
	segment[30] ^= 1; /* in the segment header */
	temp_write(&f->dir, "damaged.byu.lz4", segment, n);
	free(segment);
}

/* A working directory with a small trace of each kind. */
static void set_up(struct fixture *f)
{
	static const char *const texts[][2] = {
		{"x.din", "0 1a\n1 20\n"},
		{"bad.din", "x\n0 10\n1 20\n"},
		{"x.xdin", "r 1a 4\n"},
		{"x.laplace", "r 1 4 1000 0\nr 2 4 1000 0\n"},
		{"x.events", "F 10 100 77\n"},
		{"x.tarmac", "Tarmac Text Rev 3t\n1 clk E 10001848 00000001 CoreEvent_RESET\n"},
		{"clk.tarmac", "7 clk R r0 00000001\n"},
		{"ns.tarmac", "1 ns R r0 00000001\n"},
		{"bad.map", "1000 a\nqq b\n"},
		{"hello", "hello\n"},
		{"symbols", "c0100000 T start\nc0100000\n"},
		{"elf", "\177ELF"},
		{"empty", ""},
		{"unreadable", "0 10\n"},
		{"wall.csv", "type,addr,size,attr,proc,tick,time\n"
			     "MEMREAD,0x10,4,0,0,7,2026-11-29T12:00:00.000000000Z\n"},
	};

	temp_dir_make(&f->dir);
	assert_int_equal(chdir(f->dir.path), 0);
	setenv("BUSCAP_SOCKET", "no-socket", 1);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		write_text(f, texts[i][0], texts[i][1]);
	chmod("unreadable", 0);
	assert_int_equal(symlink("nowhere", "link"), 0);
	prints("sim -n 100 -O byu -o x.byu", "");
	prints("sim -n 100 -O bcp1 -o x.bcp1", "");
	prints("sim -n 100 -O raw6 -o x.raw6", "");
	run("convert -O segment -o x.byu.lz4 x.bcp1");
	assert_non_null(strstr(r.err, "x.byu.lz4: no clock rate: pictures of it count ticks; "));
	assert_non_null(strstr(r.err, "no byte enables"));
	says(0, "convert -O segment:clock_hz=7 -o slow.byu.lz4 x.bcp1", "no byte enables");
	says(0, "convert -O segment:clock_hz=9 -o fast.byu.lz4 x.bcp1", "no byte enables");
	prints("convert -I csv -O segment:clock_hz=7 -o wall.byu.lz4 wall.csv", "");
	write_segments(f);
	assert_int_equal(mkdir("directory", 0700), 0);
	f->files = count_files();
}

static void tear_down(struct fixture *f)
{
	assert_int_equal(count_files(), f->files);
	command_run_free(&r);
	rmdir("directory");
	assert_int_equal(chdir("/"), 0);
	temp_dir_remove(&f->dir);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

struct failure {
	const char *line;
	const char *words;
};

static const struct failure wrong_options[] = {
	/* buscap */
	{"", "buscap: no command given; see buscap --help"},
	{"frobnicate", "buscap: no such command: frobnicate; see buscap --help"},
	{"--socket status", "buscap: unknown option --socket; see buscap --help"},
	{"--frobnicate status", "buscap: unknown option --frobnicate; see buscap --help"},
	{"--hlep", "buscap: unknown option --hlep; did you mean --help? See buscap --help"},
	/* info, verify, recover */
	{"info -q x.byu", "unknown option -q"},
	{"verify --frob x.byu", "unknown option --frob"},
	{"recover", "no file given"},
	{"recover x.byu", "-o is required: the output file"},
	{"recover x.byu x.byu -o out", "give one file at a time"},
	{"recover x.byu -o -", "-o is required: the output file"},
	/* dump */
	{"dump --frob x.byu", "unknown option --frob"},
	{"dump -x x.byu", "unknown option -x"},
	{"dump -px x.byu", "unknown option -x"},
	{"dump --records", "option --records requires a value"},
	{"dump --records 5-3 x.byu", "--records 5-3: the range ends before it starts"},
	{"dump --records a x.byu", "--records a: not a range"},
	{"dump --records - x.byu", "--records -: not a range"},
	{"dump --records 5x- x.byu", "--records 5x-: not a range"},
	{"dump --records 2K-1e3 x.byu", "--records 2K-1e3: the range ends before it starts"},
	{"dump --records 99999999999999999999- x.byu", "not a range"},
	{"dump --records 1 --records 2 x.byu", "--records given twice"},
	{"dump --to @1 -t tick --to @2 x.byu", "--to given twice"},
	{"dump --from @5 --to @4 x.byu", "the end is before the start"},
	{"dump -t absolute x.byu", "absolute"},
	{"dump --port 80 --addr 80 x.byu", "--addr excludes --port"},
	{"dump --region vga --port 80 x.byu", "--port excludes --region"},
	{"dump -e 0 -e 1 x.byu", "twice"},
	{"dump --epoch one x.byu", "one"},
	{"dump -I tarball x.byu", "tarball: no such format"},
	{"dump -I byu:x=1 x.byu", "byu:x=1"},
	{"dump --plain=yes x.byu", "option --plain takes no value"},
	{"dump -I din --to @3 x.din", "din has no time"},
	{"dump -I din -e 0 x.din", "no epochs"},
	{"dump -I din -t tick x.din", "--time tick"},
	{"dump -I laplace-text -e 0 x.laplace", "no epochs"},
	{"dump -I laplace-text -t tick x.laplace", "--time tick"},
	{"dump -I byu --b2a --map pc x.byu", "--b2a excludes --map and --symbols"},
	{"dump -I raw6 -t tick x.raw6", "--time tick works only with segments, BYU and bcp1"},
	{"dump -I raw6 --from @1 x.raw6", "raw6 has no time: can't select by tick"},
	{"dump -I raw6 -t wall x.raw6", "--time relative and --time wall need segments"},
	{"dump -I raw6 --from now x.raw6",
		"raw6 has no time of day: --from and --to need segments"},
	{"dump -I raw6 --epoch 0 x.raw6", "raw6 has no epochs: can't use --epoch"},
	{"dump --b2a -I raw6 x.raw6", "raw6 has no BYU records to print with --b2a"},
	{"dump --time wall x.bcp1", "--time relative and --time wall need segments"},
	{"dump --time relative x.bcp1", "--time relative and --time wall need segments"},
	{"dump --time wall --b2a x.byu.lz4", "--b2a excludes --time"},
	{"dump -I din --map pc x.din", "--map and --symbols work only with"},
	/* cut */
	{"cut --records 5-3 x.xdin", "ends before it starts"},
	{"cut --records a x.xdin", "not a range"},
	{"cut --records 1 --records 2 x.xdin", "twice"},
	{"cut --addr xyz x.xdin", "xyz"},
	{"cut --addr 20-10 x.xdin", "20-10"},
	{"cut --addr - x.xdin", "--addr"},
	{"cut --addr '' x.xdin", "--addr"},
	{"cut --addr 1-2-3 x.xdin", "1-2-3"},
	{"cut --addr 10000000000000000 x.xdin", "10000000000000000"},
	{"cut --type nothing x.xdin", "nothing"},
	{"cut --type '' x.xdin", "--type"},
	{"cut --type read, x.xdin", "read,"},
	{"cut --type 0x100 x.xdin", "0x100"},
	{"cut --proc x x.xdin", "--proc x"},
	{"cut --proc 3-1 x.xdin", "3-1"},
	{"cut --proc 70000 x.xdin", "70000"},
	{"cut --proc 1, x.xdin", "1,"},
	{"cut --proc 0 x.xdin", "xdin has no processors: can't use --proc"},
	{"cut --from tomorrow x.xdin", "tomorrow: not a time"},
	{"cut --from @10 --to @5 x.xdin", "the end is before the start"},
	{"cut --from @1 --from @2 x.xdin", "twice"},
	{"cut --to @1 x.xdin", "xdin has no time: can't select by tick"},
	{"cut --from @10 x.xdin", "xdin has no time: can't select by tick"},
	{"cut -e 0 x.xdin", "xdin has no epochs: can't use --epoch"},
	{"cut -O nothing x.xdin", "nothing: no such format"},
	{"cut -O lackey x.xdin", "lackey"},
	{"cut --frob x.xdin", "unknown option --frob"},
	{"cut --records", "option --records requires a value"},
	{"cut --t", "option --t is ambiguous"},
	{"cut --t=1", "option --t=1 is ambiguous"},
	{"cut --output-", "option --output- requires a value"},
	{"cut --rec", "option --rec requires a value"},
	{"cut --strict=3", "option --strict takes no value; see buscap cut --help"},
	{"cut -s", "unknown option -s"},
	{"cut --=1", "unknown option --=1"},
	{"cut -I byu --from +1s x.byu -O xdin", "time of day"},
	{"cut --from @5 --to @4 -O csv x.byu.lz4", "the end is before the start"},
	{"cut --to @4 --from @5 -O csv x.byu.lz4", "the end is before the start"},
	{"cut --to @0 --from @5 -O csv x.byu.lz4", "the end is before the start"},
	{"cut x.byu.lz4", "use -o"},
	{"cut -O csv -I byu - - <x.byu", "standard input (\"-\") can be read only once"},
	{"cut --from 2026-01-01T24:00:00Z -O csv x.byu.lz4",
		"2026-01-01T24:00:00Z: no such time of day"},
	{"cut --from 2026-01-01T00:60:00Z -O csv x.byu.lz4",
		"2026-01-01T00:60:00Z: no such time of day"},
	{"cut --from 2026-01-01T00:00:61Z -O csv x.byu.lz4",
		"2026-01-01T00:00:61Z: no such time of day"},
	{"cut --from 2026-01-01T99:00:00Z -O csv x.byu.lz4",
		"2026-01-01T99:00:00Z: no such time of day"},
	{"cut --from 2026-01-01T24:00Z -O csv x.byu.lz4", "2026-01-01T24:00Z: no such time of day"},
	{"cut --from 2026-01-01T25:00:00Z -O csv x.byu.lz4",
		"2026-01-01T25:00:00Z: no such time of day"},
	{"cut --from 2026-1-1 -O csv x.byu.lz4", "--from 2026-1-1: not a time"},
	{"cut --from '' -O csv x.byu.lz4", "--from : not a time"},
	{"cut --from '2026-01-01 3:14' -O csv x.byu.lz4", "--from 2026-01-01 3:14: not a time"},
	{"cut --from 25:00 -O csv x.byu.lz4", "--from 25:00: no such time of day"},
	{"cut --from 03:14X -O csv x.byu.lz4", "--from 03:14X: not a time zone"},
	{"cut --from +5x -O csv x.byu.lz4", "--from +5x: unknown unit x; use ns, us"},
	{"cut --from @ -O csv x.byu.lz4", "--from @: not a tick"},
	{"cut --from 2026-01-01T00:00:00x -O csv x.byu.lz4",
		"--from 2026-01-01T00:00:00x: not a time zone"},
	{"cut --from 2026-01-01T00:00:00+1:00 -O csv x.byu.lz4",
		"--from 2026-01-01T00:00:00+1:00: not a time zone"},
	{"cut --from -2x -O csv x.byu.lz4", "--from -2x: unknown unit x"},
	{"cut --from + -O csv x.byu.lz4", "--from +: not a time"},
	{"cut --from @-1 -O csv x.byu.lz4", "--from @-1: not a tick"},
	{"cut --from @x -O csv x.byu.lz4", "--from @x: not a tick"},
	{"cut --from @18446744073709551616 -O csv x.byu.lz4",
		"--from @18446744073709551616: not a tick"},
	{"cut --from 2400-01-01 -O csv x.byu.lz4", "--from 2400-01-01: out of range"},
	{"cut --from +999999d -O csv x.byu.lz4", "--from +999999d: too large"},
	/* convert, formats */
	{"convert -O segment x.byu.lz4", "use -o"},
	{"convert -O csv -I byu - - <x.byu", "standard input (\"-\") can be read only once"},
	{"convert -O csv -I byu -i - - <x.byu", "once"},
	{"convert -I din -O bcp1:seed=3 x.din", "seed has no effect without map=pages"},
	{"convert -I din -O tarmac x.din", "the source has no sizes"},
	{"convert -O perfetto:interval=1000000 x.byu", "must be a time up to 1000s, such as 10ms"},
	/* sim */
	{"sim", "no output format given; use -O with bcp1, raw6 or byu"},
	{"sim -O foo", "must be bcp1, raw6 or byu"},
	{"sim -O byu24", "must be bcp1, raw6 or byu"},
	{"sim -O bcp1:seed=3", "bcp1:seed=3"},
	{"sim -O bcp1 --agents 5", "agents"},
	{"sim -O bcp1 --agents 0", "agents"},
	{"sim -O bcp1 --loss 1.5", "--loss 1.5: not a probability"},
	{"sim -O bcp1 --loss nan", "--loss nan: not a probability"},
	{"sim -O bcp1 --loss 1e-9", "must be 0 or at least 0.000001"},
	{"sim -O raw6 --corrupt 0.1",
		"--corrupt works only with -O bcp1: the other formats have no checksums"},
	{"sim -O bcp1 --count -1", "--count -1: not a decimal number"},
	{"sim -O bcp1 --count k", "--count k: not a decimal number"},
	{"sim -O bcp1 --count 1kB", "--count 1kB: unknown unit kB; use K, M, G or T"},
	{"sim -O bcp1 --count ''", "--count : not a decimal number"},
	{"sim -O bcp1 --count 18446744073709551615k", "too large"},
	{"sim -O bcp1 --no-caches", "--no-caches needs"},
	{"sim -O bcp1 -I lackey", "-I needs"},
	{"sim -O byu - -", "standard input"},
	{"sim -O byu x.din -I nonsense", "nonsense"},
	/* stats */
	{"stats -I byu --line 33 x.byu", "33"},
	{"stats -I byu --line 0 x.byu", "--line 0"},
	{"stats -I byu --page 16 x.byu", "16"},
	{"stats -I byu --line 8192 x.byu", "a page of 4096 bytes is smaller than a line of 8192"},
	{"stats -I byu --page 4k x.byu", "4k"},
	{"stats -I byu --memory all x.byu", "all"},
	{"stats -I byu --idle -1 x.byu", "-1"},
	{"stats -I byu --burst '' x.byu", "--burst"},
	{"stats -I byu --clock-hz 0 x.byu", "--clock-hz 0"},
	{"stats -I byu --top x x.byu", "--top x"},
	{"stats -I byu --as mips x.byu", "mips"},
	{"stats -I byu --as cis501 --json x.byu", "--as excludes --json and --compare"},
	{"stats -I byu --as cis501 x.byu", "the format is byu, which has no micro-ops"},
	{"stats -I byu --port 3f8 --addr 1 x.byu", "--addr excludes --port"},
	{"stats -I byu --region nowhere x.byu", "--region nowhere: no region has this name"},
	{"stats -I byu --epoch 0 x.byu", "byu has no epochs: can't use --epoch"},
	{"stats --frob x.byu", "unknown option --frob"},
	{"stats -I tarball x.byu", "tarball: no such format"},
	{"stats -I byu:x=1 x.byu", "byu:x=1"},
	{"stats --full=yes x.byu", "option --full takes no value"},
	{"stats -I byu - - <x.byu", "standard input (\"-\") can be read only once"},
	/* find, marks */
	{"find", "give an address, --region or --port"},
	{"find xyz x.byu.lz4", "address xyz: not a hexadecimal address range"},
	{"find fee00000h x.byu.lz4",
		"address fee00000h: not a hexadecimal address range; leave out the h"},
	{"find x.byu.lz4", "the address comes first: buscap find 3f8 x.byu.lz4"},
	{"find --region comm1 x.byu.lz4", "similar names: COM1"},
	{"find 20-10 x.byu.lz4", "ends before it starts"},
	{"find --first 1 --last 1 10 x.byu.lz4", "--first excludes --last"},
	{"find --first 0 10 x.byu.lz4", "at least 1"},
	{"find --count --json 10 x.byu.lz4", "--count excludes"},
	{"find -U 99999 10 x.byu.lz4", "--context 99999: must be 0 to 10000"},
	{"find 10 x.din x.din", "x.din: not a segment"},
	{"find 10 x.din x.byu.lz4", "x.din: not a segment"},
	{"find 10 x.byu.lz4 -", "-: not a segment"},
	{"find --after-mark x 10 x.din", "need segments"},
	{"find --from tomorrow 10 x.byu.lz4", "not a time"},
	{"find --from today -I din 10 x.din", "no time of day"},
	{"find -I din --from -1h 10 x.din", "need segments"},
	{"find -I din --from -1h --last 1 10 x.din", "need segments"},
	{"find --from yesterday 0- - <x.byu.lz4", "no time of day"},
	{"find -c --to now 0- - <wall.byu.lz4", "need segment files"},
	{"find --last 1 -I din 10 - <x.din", "--last needs the name of a file"},
	{"find com1 x.byu", "address com1: not an address; try --region com1"},
	{"find --region com1 3f8 x.byu", "give an address, or --region or --port"},
	{"find --region com x.byu", "COM1"},
	{"find --symbols x.byu:zz 0 x.byu",
		"x.byu:zz: no such file, and \"zz\" is not an offset such as -c0000000"},
	{"find -I xdin --map bad.map 0- x.xdin", "bad.map: line 2: expected a hexadecimal address"},
	{"find -I din --symbols empty 0 x.din", "empty: no symbols of functions or objects"},
	{"find -I din --symbols elf 0 x.din", "elf: damaged ELF file: "},
	{"find -I din --symbols torn-elf 0 x.din", "torn-elf: damaged ELF file: "},
	{"find -I din --symbols half-elf 0 x.din",
		"half-elf: damaged ELF file: its sections are missing"},
	{"find -I din --symbols hello 0 x.din", "hello: line 1: neither ELF nor a symbol"},
	{"find -I din --symbols symbols 0 x.din", "symbols: line 2: neither ELF"},
	{"marks x.din", "x.din: not a segment"},
	{"marks x.byu.lz4 x.din", "x.din: not a segment"},
	{"marks empty", "empty: not a segment"},
	{"marks x.byu.lz4 empty", "empty: not a segment"},
	{"marks x.gz", "x.gz: a compressed segment; decompress it first"},
	{"marks /dev/null", "/dev/null: not a file"},
	{"marks x.byu.lz4 /dev/null", "/dev/null: not a file"},
	{"marks - <x.byu.lz4", "not a pipe"},
	{"marks x.byu.lz4 - <x.byu.lz4", "not a pipe"},
	/* report */
	{"report -o out.svg .", "an .svg file needs --figure timeline"},
	{"report --figure timeline -o out.png .", "name it .svg"},
	{"report --figure timeline --compare a b", "--figure excludes --json and --compare"},
	{"report --json --align mark=x a b", "--align needs --compare"},
	{"stats --compare a", "--compare needs two operands"},
	{"report --columns 1 .", "must be 2 to 512"},
	{"report --columns x .", "--columns"},
	{"report --rows 1025 .", "must be 2 to 1024"},
	{"report --json --from @5 .", "need a time, not @TICK"},
	{"report .",
		"no type of report given; use -o with FILE.html or FILE.json, --json or --figure"},
	{"report --text .", "unknown option --text"},
	{"report -o out.txt .", "write FILE.html, FILE.json or, with --figure, FILE.svg"},
	{"report --json -o out.html .", "name it .json"},
	{"report --json hello", "unknown format"},
	{"report --json - <x.byu.lz4", "give files, not a pipe"},
	/* merge */
	{"merge", "two files"},
	{"merge x.xdin", "two files"},
	{"merge -I xdin x.xdin x.xdin", "no time"},
	{"merge --by day x.xdin x.xdin", "tick or wall"},
	{"merge --clock-hz 0 x.xdin x.xdin", "0: must be 1 to"},
	{"merge --renumber 0 x.xdin x.xdin", "0: must be 1 to"},
	{"merge --frob", "unknown option --frob"},
	{"merge -I byu --by wall x.byu x.byu -O segment -o out", "no time of day"},
	{"merge x.byu.lz4 x.byu.lz4", "use -o"},
	{"merge --by wall -I tarmac -I segment -O ndjson x.tarmac slow.byu.lz4",
		"tarmac has no time of day"},
	{"merge --by wall slow.byu.lz4 slow.byu.lz4 -O segment:clock_hz=5 -o out",
		"clock_hz must be 1000000000"},
	{"merge --by wall x.byu.lz4 x.byu.lz4 -o out",
		"x.byu.lz4: clock rate unknown, so times of day are too; give it with --clock-hz"},
	{"merge --by tick slow.byu.lz4 fast.byu.lz4 -o out.byu.lz4",
		"clock rate is 9 Hz, but an earlier input has 7 Hz"},
	{"merge -I byu --clock-hz 5 x.byu x.byu", "--clock-hz works only with --by wall"},
	{"merge -I laplace-text -I laplace-text -I laplace-text x.laplace x.laplace",
		"once for each"},
	{"merge -I laplace-text -I laplace-events x.laplace x.events -O laplace-text",
		"can't convert laplace-events to laplace-text"},
	{"merge -O csv -I byu - - <x.byu", "standard input (\"-\") can be read only once"},
	{"merge -I tarmac -o out ns.tarmac clk.tarmac",
		"clk.tarmac: can't merge times in clk with times in ns"},
	/* diff */
	{"diff", "give two traces"},
	{"diff x.byu", "give two traces"},
	{"diff x.byu x.byu x.byu", "give two traces; several files of one must be segments of one "
				   "recording"},
	{"diff - - <x.byu", "standard input (\"-\") can be read only once"},
	{"diff --frob x.byu x.byu", "unknown option --frob"},
	{"diff -I rowbinary x.byu x.byu", "rowbinary"},
	{"diff -I x x.byu x.byu", "x: no such format"},
	{"diff --only x x.byu x.byu", "unknown name \"x\""},
	{"diff --only '' x.byu x.byu", "--only"},
	{"diff --only mem, x.byu x.byu", "mem,"},
	{"diff --only reg x.byu x.byu", "reg"},
	{"diff --only mem,foo x.byu x.byu",
		"unknown name \"foo\"; use inst, mem, reg, uop, kernel, event or line"},
	{"diff --fields frob x.byu x.byu", "unknown name \"frob\"; use kind, addr, "},
	{"diff --fields foo x.byu x.byu", " or security"},
	{"diff --ignore foo x.byu x.byu", "unknown name \"foo\"; use kind, addr, "},
	{"diff --ignore add x.byu x.byu", "\"add\""},
	{"diff -w x x.byu x.byu", "x: not a decimal number"},
	{"diff -n 0 x.byu x.byu", "--limit 0: must be at least 1"},
	{"diff -l 15 x.byu x.byu", "15"},
	{"diff -l 1000001 x.byu x.byu", "1000001"},
	{"diff -s 100001 x.byu x.byu", "100001"},
	{"diff --first=1 x.byu x.byu", "--first"},
	{"diff --format-b din --fields time x.byu x.din", "time"},
	{"diff --fields opcode x.byu x.byu", "opcode"},
	{"diff --format-b laplace-events x.byu x.events",
		"A is byu and B is laplace-events, which don't both have comparable entries"},
	{"diff --fields addr --ignore addr x.byu x.byu", "--ignore leaves no field to compare"},
	{"diff --fields addr,type --ignore type,time,addr x.byu x.byu",
		"--ignore leaves no field to compare"},
	{"diff --ignore addr,type,size,attr,proc,time,data,letter,event,text,phys,space,enables "
	 "x.byu x.byu",
		"--ignore leaves no field to compare"},
	{"diff --same-clock --relative x.byu x.byu", "--same-clock excludes --relative"},
	{"diff --json --quiet x.byu x.byu", "--json excludes --quiet"},
	{"diff --start xyz x.byu x.byu", "not a hexadecimal address"},
	/* the daemon's */
	{"status --no", "unknown option --no"},
	{"status x", "operands"},
	{"status --watch 0", "must be 100ms to 1d"},
	{"status --watch x", "not a time"},
	{"status --watch 1 2", "operands"},
	{"status --watch=0", "must be 100ms to 1d"},
	{"status --watch=1 2", "operands"},
	{"record", "no verb given; use start, stop, list, show, note or delete"},
	{"record begin", "begin: unknown verb"},
	{"record strat", "strat: unknown verb; use start, stop, list, show, note or delete"},
	{"record start x", "no operands"},
	{"record start --limit 10s", "duration:10s"},
	{"record start --limit files:3", "duration:10s"},
	{"record start --limit records:1 --limit records:2", "given twice"},
	{"record start --limit filesize:0", "--limit filesize:0: must be above 0"},
	{"record start --label a --label b", "twice"},
	{"record start --note a", "--note a: not KEY=VALUE; try program=ls"},
	{"record start --note =a", "program=ls"},
	{"record start --note a=1 --note a=2", "given twice"},
	{"record start --trigger a:stop", "NAME:ACTION:WHEN"},
	{"record start --trigger :stop:gap", "NAME:ACTION:WHEN"},
	{"record start --pre", "requires a value"},
	{"record stop x", "takes no operands; see buscap record stop --help"},
	{"record list x", "operands"},
	{"record show a b", "one ID"},
	{"record delete", "no ID given"},
	{"record note", "program=ls"},
	{"record note x", "record note: x: not KEY=VALUE; try program=ls"},
	{"record note a=1 a=2", "record note: a=2: a given twice"},
	{"rotate x", "rotate: takes no operands"},
	{"mark", "text"},
	{"snapshot x", "operands"},
	{"trigger", "list, add or remove"},
	{"trigger add a mark", "NAME ACTION WHEN"},
	{"trigger remove", "one NAME"},
	{"trigger list x", "operands"},
	{"tail x", "operands"},
	{"tail -n 0", "must be at least 1"},
	{"tail -n x", "decimal"},
	{"tail --addr 1 --addr 2", "twice"},
	{"events x", "operands"},
	{"web -", "give files, not a pipe"},
	{"web hello", "hello: unknown format"},
};

TEST_CASES(wrong_usage_is_one_line_and_exit_two, wrong_options)
{
	fails(BC_EXIT_USAGE, c->line, c->words);
}

/* Fails for "COMMAND OPTION OPERANDS" with each combination of these. The commands are separated by
 * '|' from their operands. */
static void each_fails(
	enum bc_exit code, const char *const *commands, const char *option, const char *words)
{
	char line[200];

	for (; *commands != NULL; commands++) {
		size_t n = strcspn(*commands, "|");
		snprintf(line, sizeof(line), "%.*s %s %s", (int)n, *commands, option,
			*commands + n + 1);
		fails(code, line, words);
	}
}

static const struct failure wrong_regions[] = {
	{"--region keybord",
		"--region keybord: no region has this name; similar names: keyboard data"},
	{"--region ''", "no region has this name"},
	{"--region vga --region vga", "--region given twice"},
};

TEST_CASES(each_command_refuses_unknown_regions, wrong_regions)
{
	each_fails(BC_EXIT_USAGE,
		(const char *const[]){"find|x.byu", "dump|x.byu", "cut|x.byu", NULL}, c->line,
		c->words);
}

static const char *const two_places[] = {"--region vga --addr 0", "--addr 0 --region vga",
	"--port 80 --region vga", "--region vga --port 80"};

TEST_CASES(a_region_excludes_addresses_and_ports, two_places)
{
	each_fails(BC_EXIT_USAGE, (const char *const[]){"dump|x.byu", NULL}, *c, " excludes --");
}

static const struct failure wrong_names[] = {
	{"--symbols none", "none: can't open"},
	{"--symbols none:-1000", "none: can't open"},
	{"--map .", ".: "},
};

TEST_CASES(each_command_names_a_file_of_names_that_it_can_not_read, wrong_names)
{
	each_fails(BC_EXIT_FAILED,
		(const char *const[]){"find|0 x.din", "dump|x.din", "cut|x.din", "stats|x.din",
			"tail|", "top|", NULL},
		c->line, c->words);
}

static const char *const no_dates[] = {"2026-02-30", "2025-02-29", "2026-02-31", "2026-04-31",
	"2026-13-01", "2026-00-01", "2026-01-00", "2026-01-32"};

TEST_CASES(a_day_that_does_not_exist_is_no_date, no_dates)
{
	char option[40];
	char words[60];

	snprintf(words, sizeof(words), "%sT00:00:00Z: no such date", *c);
	for (int i = 0; i < 2; i++) {
		snprintf(option, sizeof(option), "%s %sT00:00:00Z", i == 0 ? "--from" : "--to", *c);
		each_fails(
			BC_EXIT_USAGE, (const char *const[]){"cut|x.byu.lz4", NULL}, option, words);
	}
}

static const char *const no_addresses[] = {"''", "127.0.0.1:80", "8080", ":8080", "example.org",
	"256.0.0.1", "[::1]", "[::1]:80", "::1]", "fe80::1%lo"};

TEST_CASES(web_refuses_wrong_addresses_before_it_opens_anything, no_addresses)
{
	char option[60];

	snprintf(option, sizeof(option), "--listen %s", *c);
	each_fails(BC_EXIT_USAGE, (const char *const[]){"web|.", "web|none", "web|", NULL}, option,
		": must be a numeric address, such as 127.0.0.1 or ::1; --port sets the port");
}

static const char *const no_ports[] = {"80x", "8k", "0", "65536", "8000.5", "-1", ""};

TEST_CASES(a_port_of_web_is_a_plain_number, no_ports)
{
	char option[60];

	snprintf(option, sizeof(option), "--port '%s'", *c);
	each_fails(BC_EXIT_USAGE, (const char *const[]){"web|.", NULL}, option,
		"--port must be a port number, 1 to 65535");
}

static const struct failure wrong_files[] = {
	{"info none", "none: can't open: No such file"},
	{"info directory", "directory: no segments in this directory"},
	{"info hello", "hello: unknown format: the lines fit no known format; specify it with -I"},
	{"dump none", "none: can't open: No such file"},
	{"dump directory", "directory: no segments in this directory"},
	{"dump hello", "hello: unknown format: the lines fit no known format; specify it with -I"},
	{"verify none", "none: can't open: No such file"},
	{"verify directory", "directory: no segments in this directory"},
	{"verify hello",
		"hello: unknown format: the lines fit no known format; specify it with -I"},
	{"recover none -o out", "none"},
	{"sim -O byu -o none/out", "none/out"},
	{"sim -O byu none", "none"},
	{"sim -O byu x.din -o x.din", "is also an input"},
	{"sim -O byu -I lackey empty", "empty: no memory accesses"},
	{"cut none", "none"},
	{"cut x.byu.lz4 -o none/x", "directory"},
	{"diff x.byu none", "No such file"},
	{"find 10 none", "none: can't open"},
	{"find 10 directory", "directory: no segments in this directory; name the files if they "
			      "have other names"},
	{"find 10 empty", "empty: empty file"},
	{"find --last 1 10 empty", "empty: empty file"},
	{"find 10 hello", "unknown format"},
	{"find --last 1 10 hello", "unknown format"},
	{"find --map none 0- x.din", "none: can't open"},
	{"recover x.byu.lz4 -o x.byu.lz4", "input itself"},
	{"recover x.byu.lz4 -o none/out", "directory"},
	{"recover x.byu.lz4 -o ./", "directory"},
	{"recover - -o out <x.byu.lz4", "not a regular file"},
	{"report --map none .", "can't open"},
	{"report -o none/x.html x.byu.lz4", "none/x.html: can't open"},
	{"web none", "none: can't open: No such file"},
	{"web --listen 192.0.2.1 .", "192.0.2.1:0: can't listen: Cannot assign"},
	{"web --map none .", "none"},
	{"recover x.gz -o out", "x.gz: compressed; decompress it first"},
	{"recover x.byu.lz4 -o link", "already exists"},
	{"recover 20260101T000000Z-000000-00000.byu.lz4.partial -o out", "no whole chunk"},
};

TEST_CASES(a_file_that_can_not_be_used_is_one_line_and_exit_one, wrong_files)
{
	fails(BC_EXIT_FAILED, c->line, c->words);
}

TEST(an_unreadable_file_is_one_line_and_exit_one)
{
	if (geteuid() == 0)
		return;
	fails(BC_EXIT_FAILED, "info unreadable", "unreadable: can't open: Permission denied");
	fails(BC_EXIT_FAILED, "dump unreadable", "unreadable: can't open: Permission denied");
	fails(BC_EXIT_FAILED, "verify unreadable", "unreadable: can't open: Permission denied");
}

TEST(damage_is_one_line_and_exit_three)
{
	says(BC_EXIT_DAMAGED, "marks damaged.byu.lz4", "header is damaged");
	/* The end is not reached, but what is wrong before it is known. */
	says(BC_EXIT_DAMAGED, "find -I din --first 1 10-20 bad.din", "line 1");
	says(BC_EXIT_DAMAGED, "find -I din --last 1 10-20 bad.din", "line 1");
	says(BC_EXIT_DAMAGED, "find -I din -c 10-20 bad.din", "line 1");
	says(BC_EXIT_DAMAGED, "find -I din 10-20 bad.din", "line 1");
}

static const struct failure empty_selections[] = {
	{"find 99999990 x.byu.lz4", "no reference matches"},
	{"find -j 99999990 x.byu", "no reference matches"},
	{"find --region com1 --type write,iowrite x.byu", "matches; the input has types FETCH, "},
	{"dump --addr 99999990 x.byu", "no record matches"},
};

TEST_CASES(a_selection_that_matches_nothing_says_so, empty_selections)
{
	fails(BC_EXIT_OK, c->line, c->words);
}

TEST(a_region_of_ports_has_no_writes)
{
	run("find --region com1 --type write x.byu");
	static const char text[] = "buscap find: --region com1 with this --type matches nothing: "
				   "the types of I/O ports are ioread and iowrite\n"
				   "buscap find: no reference matches; the input has types FETCH";
	assert_string_equal(strncmp(r.err, text, sizeof(text) - 1) == 0 ? text : r.err, text);
}

static const struct failure good_usage[] = {
	{"dump -I laplace-text --from @1 --to @2 x.laplace", "r 1 4 1000 0\n"},
	{"dump -I din --records 2 x.din", "1 20\n"},
	{"-I din dump x.din", "0 1a\n1 20\n"},
	{"find -c -I din 10-20 - <x.din", "2\n"},
	{"stats -I byu - <x.byu", NULL},
	{"diff -I byu - x.byu <x.byu", NULL},
	{"convert -O csv -I byu - <x.byu", NULL},
	{"cut -O csv -I byu - <x.byu", NULL},
	{"merge -O csv -I byu - x.byu <x.byu", NULL},
	{"cut --from 2024-02-29T23:59:59Z -O csv wall.byu.lz4", NULL},
	{"cut --from 2000-02-29T00:00:00+23:59 -O csv wall.byu.lz4", NULL},
	{"cut --from 2020-12-31T23:59:60Z -O csv wall.byu.lz4", NULL},
};

TEST_CASES(good_usage_has_no_message, good_usage)
{
	prints(c->line, c->words);
}

static const char *const misspelt[][2] = {
	{"recrod", "record"},
	{"dmup", "dump"},
	{"verfy", "verify"},
	{"statuss", "status"},
	{"snapshott", "snapshot"},
	{"conv", "convert"},
	{"triger", "trigger"},
	{"hlep", "help"},
	{"stop", "record stop"},
	{"start", "record start"},
	{"check", "verify"},
	{"export", "convert"},
	{"ls", "info"},
	{"grep", "find"},
	{"exprt", "convert"},
	{"show", "info"}, /* also the end of "record show" */
	{"version", "--version"},
};

TEST_CASES(a_misspelt_command_gets_a_suggestion, misspelt)
{
	static const char *const forms[] = {"%s", "%s --help", "help %s"};
	char line[40];
	char words[120];

	snprintf(words, sizeof(words),
		"buscap: no such command: %s; did you mean %s? See buscap --help", (*c)[0],
		(*c)[1]);
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		snprintf(line, sizeof(line), forms[i], (*c)[0]);
		fails(BC_EXIT_USAGE, line, words);
	}
}

TEST(a_missing_directory_is_named)
{
	fails(BC_EXIT_FAILED, "convert -O csv -o nodir/y/z x.byu",
		"nodir/y/z: can't open for writing: the directory nodir does not exist");
}

TEST(a_misspelt_option_gets_a_suggestion)
{
	fails(BC_EXIT_USAGE, "--verison",
		"buscap: unknown option --verison; did you mean --version? See buscap --help");
	fails(BC_EXIT_USAGE, "dump --adr=b8000 x.byu",
		"did you mean --addr? See buscap dump --help");
	fails(BC_EXIT_USAGE, "record start --lable x",
		"did you mean --label? See buscap record start --help");
	fails(BC_EXIT_USAGE, "dump -I ndjsn x.byu", "did you mean ndjson? See buscap formats");
	fails(BC_EXIT_USAGE, "dump -I dinero:size=4 x.byu", "did you mean din?");
}

TEST(other_words_get_no_suggestion)
{
	static const char *const words[] = {"quux", "-x", "--quux", "''"};
	char line[5001];

	for (size_t i = 0; i < COUNT_OF(words); i++) {
		run(words[i]);
		assert_int_equal(r.code, BC_EXIT_USAGE);
		assert_null(strstr(r.err, "did you mean"));
	}
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	run(line);
	assert_int_equal(r.code, BC_EXIT_USAGE);
	assert_true(r.err_bytes < 300);
}

/* A file name can't send anything to the terminal. */
TEST(file_names_are_escaped)
{
#define NAME  "a\033[31m\nname\342\200\256"
#define SHOWN "a\\x1b[31m\\x0aname\\xe2\\x80\\xae"
	fails(BC_EXIT_FAILED, "info '" NAME "'", SHOWN ": can't open: No such file");
	fails(BC_EXIT_FAILED, "dump '" NAME "'", SHOWN ": can't open: No such file");
	fails(BC_EXIT_FAILED, "verify '" NAME "'", SHOWN ": can't open: No such file");
	fails(BC_EXIT_USAGE, "formats '--" NAME "'", "unknown option --" SHOWN);
	fails(BC_EXIT_USAGE, "'" NAME "'", "buscap: no such command: " SHOWN "; see buscap --help");
	prints("sim -n 10 -O byu -o '" NAME "'", "");
	prints("convert -O segment:clock_hz=5 -o '" NAME ".byu.lz4' '" NAME "'", "");
	/* The header of the segment contains the first name. */
	prints("info '" NAME ".byu.lz4'", NULL);
	assert_int_equal(strncmp(r.out, SHOWN ".byu.lz4: ", strlen(SHOWN ".byu.lz4: ")), 0);
	assert_non_null(strstr(r.out, "  source      file " SHOWN "\n"));
	assert_null(strchr(r.out, '\033'));
	prints("info --json '" NAME ".byu.lz4'", NULL);
	assert_non_null(strstr(r.out, "\"name\":\"a\\u001b[31m\\nname"));
	prints("verify '" NAME "' '" NAME ".byu.lz4'", NULL);
	assert_int_equal(strncmp(r.out, SHOWN ": ", strlen(SHOWN ": ")), 0);
	assert_null(strchr(r.out, '\033'));
	prints("verify --json '" NAME "'", NULL);
	assert_non_null(strstr(r.out, "\"file\":\"a\\u001b[31m\\nname"));
	run("diff '" NAME "' '" NAME ".byu.lz4'");
	assert_null(strchr(r.out, '\033'));
	assert_null(strchr(r.err, '\033'));
	unlink(NAME);
	unlink(NAME ".byu.lz4");
}

static const char *const to_a_full_disk[] = {
	"--help >/dev/full",
	"--version >/dev/full",
	"--options >/dev/full",
	"help help >/dev/full",
	"dump --help >/dev/full",
	"dump x.byu >/dev/full",
	"verify x.byu >/dev/full",
	"info x.byu >/dev/full",
	"sim -O byu >/dev/full",
	"formats >/dev/full",
	"formats -m >/dev/full",
};

TEST_CASES(a_full_disk_is_reported, to_a_full_disk)
{
	run(*c);
	assert_int_equal(r.code, BC_EXIT_FAILED);
	assert_non_null(strstr(r.err, ": write error: No space left on device; the output is "
				      "incomplete\n"));
}

/* A value, a file or a command of that name is not taken for a command or verb. */
static const struct failure options_first[] = {
	{"--socket nowhere status", "buscap status: nowhere: "},
	{"--socket=nowhere --json status", "buscap status: nowhere: "},
	{"record --label list --socket nowhere start", "buscap record start: nowhere: "},
	{"--label x --socket nowhere record start", "buscap record start: nowhere: "},
	{"--socket nowhere mark status", "buscap mark: nowhere: "},
};

TEST_CASES(options_may_precede_the_command_and_the_verb, options_first)
{
	run(c->line);
	assert_int_equal(r.code, BC_EXIT_UNREACHABLE);
	assert_int_equal(strncmp(r.err, c->words, strlen(c->words)), 0);
}

static const char *const without_files[] = {
	"info", "verify", "find 10", "marks", "report --json", "web"};

TEST_CASES(the_directory_of_the_daemon_is_read_if_there_is_one, without_files)
{
	fails(BC_EXIT_UNREACHABLE, *c,
		"no files given, and the daemon's directory is not known: no-socket: no such "
		"socket");
}

static const char *const ids[] = {"info 2", "stats 20260101T0", "dump 20260101T000000Z-00000",
	"find 10 20260101T000000Z-3f9a2c", "diff x.byu 20260101T000000Z-3f9a2c-boot"};

TEST_CASES(an_id_is_looked_up_if_there_is_a_daemon, ids)
{
	fails(BC_EXIT_UNREACHABLE, *c, "no such file, and an id can't be looked up: no-socket: ");
}

static const char *const no_ids[] = {"info 20260101T000000Y", "info 20260101T000000Z-g",
	"info 20260101T000000Z-3f9a2cb", "info 2026/", "info 20260101T000000Z-3f9a2c-a/b"};

TEST_CASES(what_can_not_be_an_id_is_a_missing_file, no_ids)
{
	fails(BC_EXIT_FAILED, *c, "can't open: No such file or directory; check the name");
}

TEST(each_connection_error_has_its_own_message)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "left"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[160] = "status --socket ";

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	fails(BC_EXIT_UNREACHABLE, "status --socket left",
		"left: connection refused: buscapd has stopped; start it");
	unlink("left");
	fails(BC_EXIT_UNREACHABLE, "status --socket x.din", "x.din: not a socket");
	fails(BC_EXIT_UNREACHABLE, "status --socket x.din/x", "is buscapd running?");
	memset(line + strlen(line), 'x', 120);
	fails(BC_EXIT_UNREACHABLE, line, "too long for a socket path; the limit is 107 bytes");
}
