"""buscap info detects the formats of text by what only they have, and names what it can't read."""

import bz2
import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import zipfile
import zlib

import pytest

from harness import BUSCAP, ROOT, equal, need, run

SHARED = ROOT / "../shared/repro/formats-2"

# Texts that look like traces in one way or another, but are none that buscap reads.
FOREIGN = {
    "prose": "It was a bright cold day in April,\nand the clocks were striking thirteen.\nA 4th man came at 10 o'clock.\n",
    "capitals and counts": "B 12 eggs\nA 7 cups of flour\nF 20 grams of sugar\nM 3 spoons of oil\n",
    "chapters": "I 3 The Road\nI 17 The River\nM 20 The Hill\nI 31 The Sea\n",
    "syslog": "Nov 27 09:15:00 host kernel: [   12.345678] usb 1-2: new device\nNov 27 09:15:01 host sshd[812]: accepted\n",
    "dmesg": "[    0.000000] Linux version 6.1.0\n[    0.004000] Memory: 4020160K/4193784K available\n",
    "access log": '10.0.0.1 - - [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 512\n',
    "csv": "time,type,addr,size\n10,R,0x1000,4\n12,W,0x1004,4\n",
    "tsv": "time\ttype\taddr\n10\tR\t1000\n12\tW\t1004\n",
    "json lines": '{"t":10,"op":"R","addr":"0x1000"}\n{"t":12,"op":"W","addr":"0x1004"}\n',
    "C": "#include <stdio.h>\nint main(void)\n{\n\tputs(\"R 1000 4\");\n\treturn 0;\n}\n",
    "Python": "import sys\n\nfor line in sys.stdin:\n    print(line)\n",
    "makefile": "all: a.o b.o\n\tcc -o all a.o b.o\nclean:\n\trm -f *.o\n",
    "diff": "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n",
    "disassembly": "  401000:\t55                   \tpush   %rbp\n  401001:\t48 89 e5             \tmov    %rsp,%rbp\n",
    "hex dump": "00000000  7f 45 4c 46 02 01 01 00  |.ELF....|\n00000010  03 00 3e 00 01 00 00 00  |..>.....|\n",
    "srec": "S00F000068656C6C6F202020202000003C\nS11F00007C0802A6900100049421FFF07C6C1B787C8C23783C6000003863000026\n",
    "maps": "00400000-00401000 r-xp 00000000 08:01 131 /bin/x\n00600000-00601000 rw-p 00000000 08:01 131 /bin/x\n",
    "stat of a Linux": "cpu  100 0 50 9000 1 0 0 0 0 0\ncpu0 50 0 25 4500 0 0 0 0 0 0\ncpu1 50 0 25 4500 1 0 0 0 0 0\nintr 12345 1 2 3\n",
    "ftrace": "  bash-812   [001] d... 12.345678: sched_switch: prev_comm=bash\n  idle-0     [000] d... 12.345690: timer\n",
    "strace": "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3\nread(3, \"root\", 4096) = 4\nclose(3) = 0\n",
    "perf script": "prog 812 12.345: cycles: 401000 main+0x0 (/bin/prog)\nprog 812 12.346: cycles: 401004 main+0x4 (/bin/prog)\n",
    "operation, address, data": "R 2000a044 00000001\nW 2000b0d8 00000002\nR 2000a048 0000cafe\n",
    "time with a unit, operation, address, data": "10 ns R 0x7b25f34a 0xbecbde01\n20 ns R 0x1eeda989 0x2bfc7ffd\n30 ns W 0x1eeda98c 0x1\n",
    "mostly writes": "10 ns W 7b25f34a becbde01\n20 ns R 1eeda989 2bfc7ffd\n30 ns W 1eeda98c 00000001\n40 ns W 1eeda98c 0000000a\n",
    "channels": "0 ns axi_m0 AW dafbc98e 75\n10 ns axi_m0 B 31ff2698 28\n20 ns axi_m0 R 31ff2698 28\n30 ns axi_m0 W ff26 28\n",
    "percent": "0 20\n1 40\n2 60\n3 80\n4 100\n",
    "votes": "3 400\n1 300\n0 100\n4 400\n2 200\n",
    "operation, decimal address": "r 536920068 4\nw 536924350 8\nr 536920075 4\ni 536870913 2\n",
    "ramulator": "3 20734016\n1 20846400\n0 20734210\n2 20846530\n4 20846402\n1 20735013\n",
    "spike": "core   0: 3 0x80000000 (0x00000297) x5  0x80000000\ncore   0: 3 0x80000004 (0x02028593) x11 0x80000020\n",
    "gem5": "1000: system.cpu: A0 T0 : 0x400 : mov x0, x1 : IntAlu : D=0x1\n1500: system.cpu: A0 T0 : 0x404 : ret : Branch :\n",
    "simulator log": "100 ns: reset released\n120 ns  bus idle\n140 ns  grant = 1\n160 ns  R done\n",
    "picture": "M 10,20\nL 30,40\nL 50,60\nS 70,80\n",
    "small graph": "0 4\n4 8\n3 0\n1 8\n",
    "outline": "v 1a 20\nv 30 4c\nc 50 60\nv 1c 9\n",
    "mesh": "v 10 20\nv 30 40\nv 50 60\nv 11 9\n",
    "gcode": "G1 X10 Y20 F1200\nM 104 S200\nF 1200\nG1 X30\n",
    "graph": "0 1\n0 2\n1 3\n2 3\n3 4\n",
    "ratings": "4 17\n2 93\n0 51\n1 8\n3 77\n",
    "table": "1 2 3 4 5\n2 4 6 8 10\n3 6 9 12 15\n",
    "markdown": "# Title\n\n* a list\n* of things\n\nSome text, 1 paragraph.\n",
    "mail": "From: a@example.org\nTo: b@example.org\nSubject: R 1000 4\n\nHello\n",
    "blktrace": "8,0 3 1 0.000000000 697 G W 223490 + 8 [kjournald]\n8,0 3 2 0.000001829 697 P R [kjournald]\n",
    "ini": "[recording]\nrecord = flight\n[space]\nkeep_free = 5G\n",
}


def info(tmp, texts, code):
    """Writes texts to files; returns the lines of stdout and stderr of info."""
    names = []
    for i, text in enumerate(texts):
        path = tmp / f"t{i:03}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        names.append(path.name)
    done = run(need(BUSCAP), "info", *names, cwd=tmp)
    equal(done.returncode, code, done.stdout.decode() + done.stderr.decode())
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def formats(out):
    return [line.split(": ")[1] for line in out if line.startswith("t")]


def test_no_other_text_is_taken_for_a_trace(tmp):
    for repeat in (1, 40):
        out, err = info(tmp, [text * repeat for text in FOREIGN.values()], 1)
        equal(formats(out), [], "\n".join(out))
        equal(len(err), len(FOREIGN), "\n".join(err))
        for name, line in zip(FOREIGN, err):
            assert ": unknown format: the lines fit no known format; specify it with -I" in line, f"{name}: {line}"


# Lines with a layout that has a name.
NAMED = {
    "pin": "0x401000: R 0x7ffd1000\n0x401004: W 0x7ffd1008\n0x401008: R 0x7ffd1010\n",
    "time-rw": "3 R 10000040 4\n5 W 10000048 4\n9 R 10000050 4\n12 W 10000058 8\n",
    "rw": "W 2000b0c0\nR 2000a044\nR 2000a048\nW 2000b0d8\n",
    "usimm": "3 R 0x3f3f00 0x12\n0 W 0x3f4f40\n7 R 0x3f3f80 0x16\n",
    "dramsim": "0x7fb0 READ 12\n0x7fc0 WRITE 17\n0x8000 READ 31\n",
}


def test_named_layouts_are_detected_if_all_lines_fit_only_one(tmp):
    out, _ = info(tmp, list(NAMED.values()), 0)
    equal(formats(out), list(NAMED))
    out, err = info(tmp, ["x\n" + text for text in NAMED.values()] + [text + "x\n" for text in NAMED.values()], 1)
    equal((out, len(err)), ([], 2 * len(NAMED)))
    out, err = info(tmp, [NAMED["usimm"].splitlines()[0] + "\n", "3 R 0x3f3f00 0x12\n" * 9, "0 R 12\n1 W 14\n"], 1)
    equal((out, len(err)), ([], 3))  # one access, equal ones, and numbers that may be decimal


# The same kinds of lines, with what only the format has.
OWN = {
    "tarmac": ["3 clk R r0 10000040\n5 clk R r1 00000004\n",
               "3 R r0 10000040\n5 MR4 10000048 00000004\n9 R sp_el1 10000040\n",
               "1 clk cpu0 IT (1) 1000 d503201f O EL1h_n : NOP\n2 clk BR (1000) A\n",
               "100 ns R r0 00000001\n100 ns bus idle\n120 ns grant = 1\n140 ns P on\n"],
    "laplace-events": ["F 100 1 2\nM 100 1 2 3 4 5 6 7 x.so\nF 1ff a b\n"],
    "laplace-text": ["r 1 4 0 1f00\nw 2 4 0 1f04\nx 3 4 0 2000\ni 5 4 0 2004\n"],
    "din": ["0 1f\n2 2\n", "0 1000\n1 1004\n2 2000\n0 1008\n", "0 0x10\n1 0x1c\n"],
    "xdin": ["r 1f 4\nw 20 8\n", "r 1000 4\ni 2000 4\nr 1008 8\n"],
    "lackey": ["I  04016930,3\n L 1ffefffd88,8\n", " L 10,4\n S 20,1\nI 400,4\n"],
    "cis501": ["1 1000 -1 2 3 - - L 0 2000 1004 0 MOV load\n"],
}


def test_each_text_format_is_detected_by_what_only_it_has(tmp):
    for repeat in (1, 40):
        wanted = [(name, text) for name, texts in OWN.items() for text in texts
                  if repeat == 1 or not name.startswith("laplace")]
        out, err = info(tmp, [text * repeat for _, text in wanted], 0)
        equal(formats(out), [name for name, _ in wanted], "\n".join(err))


DIN = b"0 1000\n1 1f04\n2 2000\n0 1008\n"


def test_stray_control_bytes_and_blank_lines_are_in_text(tmp):
    """The line that has one is malformed, the others are read."""
    texts = {DIN + b"\x1a": 4, DIN + b"\0\n": 4, DIN + b"\n": 4, DIN + b"\r\n \n": 4, b"0 10\0 0\n" + DIN: 4,
             DIN + b"0 1\x07\n" + DIN: 8, DIN * 50 + b"\x01\x02\x03\n" + DIN: 204, b"\n" + DIN: 4, DIN + b"2 ": 4,
             DIN + bytes(5000): 4, DIN + b"\x1a" * 128: 4, DIN * 5000 + bytes(10000): 20000}
    out, _ = info(tmp, texts, 3)
    equal(formats(out), ["din"] * len(texts))
    equal([int(line.split()[1].replace(",", "")) for line in out if line.startswith("  references")], list(texts.values()))


def archive(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def zipped(out):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.din", DIN)


def tarred(out):
    with tarfile.open(fileobj=out, mode="w") as file:
        member = tarfile.TarInfo("a.din")
        member.size = len(DIN)
        file.addfile(member, io.BytesIO(DIN))


# Files with a trace in them that are not read, what says so, and the command that is named.
LARGE = DIN * 100
TAR = archive(tarred)
PACKED = {
    "compress": (b"\x1f\x9d\x90" + bytes(range(48, 90)), "compressed with compress (.Z)", "gzip -dc"),
    "zlib": (zlib.compress(LARGE), "compressed with zlib", "pigz -dc"),
    "fast zlib": (zlib.compress(LARGE, 1), "compressed with zlib", "pigz -dc"),
    "zip": (archive(zipped), "a zip archive", "unzip -p"),
    "bzip2": (bz2.compress(LARGE), "compressed with bzip2", "bzip2 -dc"),
    "lzma": (lzma.compress(LARGE, lzma.FORMAT_ALONE), "compressed with lzma", "xz -dc"),
    "large lzma": (lzma.compress(LARGE, lzma.FORMAT_ALONE, preset=9), "compressed with lzma", "xz -dc"),
    "lzip": (b"LZIP\x01\x0c" + bytes(range(99, 140)), "compressed with lzip", "lzip -dc"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(range(40)), "a 7z archive", "7z x -so"),
    "tar": (TAR, "a tar archive", "tar -xOf"),
    "gzip twice": (gzip.compress(gzip.compress(LARGE)), "gzip within gzip", "gzip -dc"),
    "gzip of xz": (gzip.compress(lzma.compress(LARGE)), "xz within gzip", "gzip -dc"),
    "xz of bzip2": (lzma.compress(bz2.compress(LARGE)), "bzip2 within xz", "xz -dc"),
    "tar.gz": (gzip.compress(TAR), "tar within gzip", "gzip -dc"),
    "UTF-16": (DIN.decode().encode("utf-16"), "UTF-16 text", "iconv -f UTF-16LE"),
    "UTF-16 without a mark": (DIN.decode().encode("utf-16-be"), "UTF-16 text", "iconv -f UTF-16BE"),
    "UTF-32": (DIN.decode().encode("utf-32"), "UTF-32 text", "iconv -f UTF-32LE"),
    "a Macintosh": (DIN.replace(b"\n", b"\r"), "text whose lines end in CR", r"tr '\r' '\n'"),
    "a short UTF-16": ("0 1f\n".encode("utf-16"), "UTF-16 text", "iconv -f UTF-16LE"),
    "UTF-16 in Cyrillic": (b"\xfe\xff" + "трасса\n".encode("utf-16-be"), "UTF-16 text", "iconv -f UTF-16BE"),
    "UTF-16 in gzip": (gzip.compress(DIN.decode().encode("utf-16")), "UTF-16 text within gzip", "gzip -dc"),
}


def test_what_is_not_read_is_named_with_the_command_that_unpacks_it(tmp):
    _, err = info(tmp, [data for data, *_ in PACKED.values()], 1)
    equal(len(err), len(PACKED), "\n".join(err))
    for (name, (_, is_what, command)), line in zip(PACKED.items(), err):
        assert f": {is_what}; " in line and f"first: {command} " in line and "-I" not in line, f"{name}: {line}"
    # So are those that can't be lines of a format that is given.
    for name in ("compress", "bzip2", "UTF-16", "zip", "gzip twice", "xz of bzip2"):
        done = run(BUSCAP, "convert", "-I", "din", "-O", "xdin", data=PACKED[name][0])
        equal((done.returncode, done.stdout), (1, b""), name)
        assert PACKED[name][1].encode() in done.stderr, done.stderr


def test_a_program_is_not_a_trace(tmp):
    """Its tables may look like records; -I still reads it as these."""
    records = b"".join(struct.pack("<IBBBBI", 0x1000 + 40 * i, i % 3, 8, 0, 0, 5) for i in range(99))
    elf = b"\x7fELF\x02\x01\x01\0" + bytes(4)
    equal(formats(info(tmp, [bytes(12) + records], 0)[0]), ["byu"])
    _, err = info(tmp, [elf + records, gzip.compress(elf + records)], 1)
    equal([line.split(": ", 2)[2] for line in err], ["an ELF file, not a trace"] * 2)
    equal(run(BUSCAP, "info", "-I", "byu", "t000", cwd=tmp).returncode, 0)


# What a file of a format that can only be written is called.
WRITTEN = {"perfetto": "buscap's perfetto", "rowbinary": "buscap's rowbinary", "arrow": "buscap's arrow"}


def test_what_buscap_writes_is_detected_or_named(tmp):
    """Whatever the trace was, and however the output is packed; the message doesn't name an option that can't work."""
    dice = random.Random(6)
    (tmp / "tarmac").write_text("".join(OWN["tarmac"]))
    wanted, files, read = [], [], {"csv": [], "ndjson": []}
    for seed in range(4):
        for source in ("bcp1", "raw6", "byu", "din", "tarmac"):
            if source not in ("din", "tarmac"):
                done = run(need(BUSCAP), "sim", "--seed", str(seed), "-n", str(dice.randrange(50, 3000)), "-O", source)
                equal(done.returncode, 0, done.stderr)
                (tmp / source).write_bytes(done.stdout)
            elif source == "din":
                (tmp / "din").write_bytes(DIN * dice.randrange(1, 100))
            for form, outputs in read.items():
                data = run(BUSCAP, "convert", "-O", form, "--", tmp / source).stdout
                outputs.append(gzip.compress(data) if dice.random() < 0.3 else data)
            for form, name in WRITTEN.items():
                done = run(BUSCAP, "convert", "-O", form, "--", tmp / source)
                if done.returncode == 0 and (form != "rowbinary" or len(done.stdout) >= 64):
                    files.append(gzip.compress(done.stdout) if dice.random() < 0.3 else done.stdout)
                    wanted.append(name)
    equal({name for name in wanted}, set(WRITTEN.values()))
    _, err = info(tmp, files, 1)
    for name, line in zip(wanted, err, strict=True):
        assert f": {name}, which can only be written; use the trace that it was made from, " in line and "-I" not in line, line
    for form, outputs in read.items():
        equal([name.split(",")[0] for name in formats(info(tmp, outputs, 0)[0])], [form] * 20)
    _, err = info(tmp, OTHER_TABLES, 1)
    assert all("the lines fit no known format" in line for line in err), err


# Tables of others with names of our columns.
OTHER_TABLES = ["number,tick,kinds\n1,2,3\n", "number\n1\n", "number,type,addr\n1,home,Elm Street 5\n2,work,Hill 3\n",
                "number,text\n1,a\n", "id,number,type,addr\n1,1,MEMREAD,0x10\n", "number,tag,rest\n1,a,b\n",
                "type,addr,size\nMEMREAD,0x10,4\n", '{"kind":"cat","number":1}\n', '{"number":1,"kind":"mark"}\n']


def zip_of(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "2" * 9)
    return out.getvalue()


def test_zips_of_other_tools_are_named(tmp):
    _, err = info(tmp, [zip_of("version", "metadata", "logic-1-1"), zip_of("metadata", "version"), zip_of("chunk.0000", "chunk.0001"),
                        zip_of("version"), zip_of("metadata"), zip_of("a/version", "a/chunk.0000")], 1)
    for what, line in zip(["a sigrok session: signals, no accesses"] * 2 + ["a zip archive of drmemtrace"] + ["a zip archive;"] * 3, err, strict=True):
        assert f": {what}" in line and "first: " in line and "-I" not in line, line


def test_other_bytes_above_ascii_are_not_text(tmp):
    dice = random.Random(7)
    noise = [bytes(dice.choice(b"\n" + bytes(range(128, 256)) * 3) for _ in range(dice.randrange(400, 5000))) for _ in range(50)]
    _, err = info(tmp, noise, 1)
    for line in err:
        assert "the lines" not in line and "line is too long" not in line, line
    # But letters are: of UTF-8 any, of others a few.
    _, err = info(tmp, ["Это не трасса.\n" * 9, "Dies ist für niemanden eine Spur, sagte er.\n".encode("latin-1") * 9], 1)
    equal([line.split(": ", 2)[2].split(",")[0] for line in err], ["unknown format: the lines fit no known format; specify it with -I"] * 2)


def test_a_column_of_data_is_no_size(tmp):
    """`r ADDR DATA` with data of one to eight bytes is not xdin; with -I, it is read as said."""
    dice = random.Random(8)
    def line(bits, digits):
        data = dice.getrandbits(bits)
        return f"{dice.choice('rrrw')} {dice.getrandbits(16):x} {data:0{digits}x}\n"
    texts = ["".join(line(bits, dice.choice((0, bits // 4))) for _ in range(dice.choice((20, 40, 400)))) for bits in (8, 16, 32, 48, 64) * 40]
    small = ["".join(f"r {dice.getrandbits(16):x} {dice.randrange(9):08x}\n" for _ in range(40)) for _ in range(20)]
    out, _ = info(tmp, texts + small, 1)
    equal(formats(out), [])
    sizes = ["".join(f"{dice.choice('riw')} {dice.getrandbits(16):x} {dice.choice((1, 2, 4, 8, 16, 32, 64)):x}\n" for _ in range(40)) for _ in range(20)]
    equal(formats(info(tmp, sizes, 0)[0]), ["xdin"] * 20)
    equal(run(need(BUSCAP), "info", "-I", "xdin", "-", data=small[0].encode()).returncode, 0)


def test_din_with_label_3_for_writes_gets_a_note(tmp):
    lines = ["0 1000\n2 1f04\n", "3 1008\n" * 300, "1 2000\n"]
    for text, is_noted in ((lines[0] + lines[1], True), ("".join(lines), False), (lines[2] + lines[1], False), (lines[0], False), ("  3\t1f  x\n", True)):
        done = run(need(BUSCAP), "stats", "-I", "din", "-", data=text.encode())
        equal((b"no label 1 (write), but label 3" in done.stderr, done.returncode), (is_noted, 0), text[:40])
        done = run(BUSCAP, "info", "--json", "-I", "din", "-", data=text.encode())
        equal(json.loads(done.stdout).get("lacks_writes"), is_noted or None)


def test_inputs_that_were_mistaken(tmp):
    if not SHARED.exists():
        pytest.skip("needs inputs that are not part of the project")
    for name in ("one_colour.bmp.gz", "pin_records.bin", "addr_data.txt"):
        done = run(need(BUSCAP), "info", SHARED / name)
        equal((done.returncode, done.stdout), (1, b""), name)
        equal(b"-I" in done.stderr, not name.startswith(("own", "bus")), done.stderr)
    csv = run(BUSCAP, "convert", "-O", "csv", SHARED / "own.csv").stdout
    equal(csv, (SHARED / "own.csv").read_bytes())
    equal(csv.count(b"\n"), 51)
    for name, given, count in (("one_colour.bmp.gz", "raw6", "2,057"), ("pin_records.bin", "byu", "600"), ("addr_data.txt", "xdin", "40")):
        assert count in run(BUSCAP, "info", "-I", given, SHARED / name).stdout.decode(), name


def test_what_was_not_read_is_in_json(tmp):
    texts = {"lackey": "--1-- a\n--1:2: main b\nSB 00401000\nI  00401000,3\n L 10,4\n",
             "tarmac": "1 clk soc.cpu R r0 00000001\n2 clk soc.dsp MR4 00001000 00000002 3\n"}
    got = {}
    for name, text in texts.items():
        (tmp / name).write_text(text)
        done = run(need(BUSCAP), "info", "--json", name, cwd=tmp)
        equal(done.returncode, 0, done.stderr)
        got[name] = json.loads(done.stdout)
    equal(got["lackey"]["skipped_lines"], 3)
    equal(got["tarmac"]["partly_read_lines"], 1)
    equal(got["tarmac"]["processors"], [{"number": 0, "name": "soc.cpu"}, {"number": 1, "name": "soc.dsp"}])
    assert "skipped_lines" not in got["tarmac"] and "processors" not in got["lackey"]
