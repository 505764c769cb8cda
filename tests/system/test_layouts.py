"""Lines that a layout describes: kinds of lines that tools write, made here from one list of accesses, have these."""

import csv
import io
import random

import pytest

from harness import BUSCAP, equal, need, run

DICE = random.Random(48)
ACCESSES = [{"n": n, "pc": 0x401000 + 4 * DICE.randrange(4000), "type": DICE.choice("RRRW"), "size": DICE.choice((1, 2, 4, 8)), "proc": DICE.randrange(4),
             "addr": DICE.choice((0x400000, 0x7FFC3FEB0000, 0x10000000)) + DICE.randrange(1 << 16), "data": DICE.getrandbits(32)} for n in range(185)]
for access in ACCESSES:
    access["time"] = (ACCESSES[access["n"] - 1]["time"] if access["n"] else 1000) + DICE.randrange(40)
RW = {"R": ("read", "R", "LD", "l", "r", "0", "load", "READ", "P_MEM_RD", "IOR"), "W": ("write", "W", "ST", "s", "w", "1", "store", "WRITE", "P_MEM_WR", "IOW")}

# The layout, the fields that its lines have besides the address, and how a line is written. `t` are the words of the type.
KINDS = {
    "pin": ("{pc}: {type} {addr}", "", lambda a, t: f"{a['pc']:#x}: {t[1]} {a['addr']:#x}"),
    "rw": ("{type} {addr}", "", lambda a, t: f"{t[4]} {a['addr']:x}"),
    "addr-rw": ("{addr} {type}", "", lambda a, t: f"{a['addr']:08X} {t[1]}"),
    "ld-st": ("{type} {addr:d}", "", lambda a, t: f"{t[2]} {a['addr']}"),
    "ls": ("{type} {addr} {size}", "size", lambda a, t: f"{t[3]} {a['addr']:#x} {a['size']}"),
    "thread": ("{proc} {pc} {type} {addr} {size}", "proc size", lambda a, t: f"{a['proc']} {a['pc']:#x} {t[1]} {a['addr']:#x} {a['size']}"),
    "dramsim": ("{addr} {type} {time}", "tick", lambda a, t: f"{a['addr']:#x} {t[8]} {a['time']}"),
    "nvmain": ("{time} {type} {addr} {data} {proc}", "tick data proc", lambda a, t: f"{a['time']} {t[1]} {a['addr']:#x} {a['data']:016x} {a['proc']}"),
    "dramsys": ("{time}: ({size}) {type} {addr} {data} | {time}: {type} {addr}", "tick", lambda a, t: f"{a['time']}:\t{t[0]}\t{a['addr']:#x}"),
    "memsim": ("{type:R=read|W=write}{addr}:{size:x} | I{*}", "size", lambda a, t: f"I{a['n']:x}\n{t[1]}{a['addr']:x}:{a['size']:x}"),
    "prospero": ("{time} {type} {addr:d} {size}", "tick size", lambda a, t: f"{a['time']} {t[7]} {a['addr']} {a['size']}"),
    "mmiotrace": ("{type} {size} {time:s} {*} {addr} {data} {pc} {*} | MAP {...}", "size data",
                  lambda a, t: f"MAP {a['n']} {t[1]}\n{t[1]} {a['size']} {a['time'] // 1000}.{a['time'] % 1000:03}000 1 {a['addr']:#x} {a['data']:#x} {a['pc']:#x} 0"),
    "execlog": ('{proc}, {pc}, {*}, "{...}", {type}, {addr}, {*} | {proc}, {pc}, {*}, "{...}"', "proc",
                lambda a, t: f"{a['proc']}, {a['pc']:#x}, 0x1, \"nop\"\n{a['proc']}, {a['pc']:#x}, 0xb9400020, \"ldr w0, [x1]\", {t[6]}, {a['addr']:#010x}, RAM"),
    "qemu": ("memory_region_ops_{type} cpu {proc:d} mr {*} addr {addr} value {data} size {size} name {...}", "proc data size",
             lambda a, t: f"memory_region_ops_{t[0]} cpu {a['proc']} mr 0x55d0 addr {a['addr']:#x} value {a['data']:#x} size {a['size']} name 'a b'"),
    "spike": ("core {proc}: {*} {pc} ({*}) mem {addr} {data}{type=write} | core {proc}: {*} {pc} ({*}) {*} {*} mem {addr}{type=read}", "proc",
              lambda a, t: f"core   {a['proc']}: 3 {a['pc']:#010x} (0x1) " + (f"x5  0x1 mem {a['addr']:#x}" if t[1] == "R" else f"mem {a['addr']:#x} {a['data']:#x}")),
    "gem5": ("{time}: {*} T{*} : {pc} @{...} : {...} : {type:MemRead=read|MemWrite=write} : D={data} A={addr}", "tick data",
             lambda a, t: f"{a['time']}: system.cpu: T0 : {a['pc']:#x} @main+8    : ldr r1 : Mem{t[0].title()} :  D={a['data']:#018x} A={a['addr']:#x}"),
    "packets": ("{time},{type},{addr:d},{size}", "tick size", lambda a, t: f"{a['time']},{t[4]},{a['addr']},{a['size']}"),
    "ibex": ("{time} {*} {pc} {...}PA:{addr} {type}:{data}", "tick data", lambda a, t: f" {a['time']}\t17\t{a['pc']:08x}\t00112623\tsw x1,12(x2)\tx1:0x1 PA:{a['addr']:#010x} {t[6]}:{a['data']:#010x}"),
    "perf": ("{*} {proc} {time:s}: cpu/mem-{type:loads=read|stores=write}/P: {addr} {pc}", "proc",
             lambda a, t: f"prog  {a['proc']} {a['time'] // 1000}.{a['time'] % 1000:03}000: cpu/mem-{'loads' if t[1] == 'R' else 'stores'}/P:  {a['addr']:x} {a['pc']:x}"),
    "6502": ("{addr} {type} {data} | {addr} {type} {data} {...}", "data", lambda a, t: f"{a['addr']:x} {t[1]} {a['data']:02x}" + ("  lda #$01" if a["n"] % 3 else "")),
    "lpc": ("{time:us} {type:IOR=read|IOW=write} {addr} {data}", "data", lambda a, t: f"{a['time']}.000 {t[9]} {a['addr']:x} {a['data']:x}"),
    "drmemtrace": ("{*} {*}: {proc} {type} {size} byte(s) @ {addr} by PC {pc}", "proc size",
                   lambda a, t: f"   {a['n']}   {a['n']}:  {a['proc']} {t[0]:6} {a['size']} byte(s) @ {a['addr']:#018x} by PC {a['pc']:#x}"),
    "hash": ("# {type:0=read|1=write} {addr} {*}", "", lambda a, t: f"# {t[5]} {a['addr']:x} 3"),
    "context": ("[{time}] core {proc} {type} {addr}", "tick proc", lambda a, t: f"[{a['time']}] core {a['proc']} {t[0]} {a['addr']:#x}\r"),
    "braces": ("{{}{type}{}} {addr}{size=4}", "", lambda a, t: "{" + t[0] + "} " + f"{a['addr']:x}  "),
    "usimm": ("{delta} R {addr} {pc}{type=read} | {delta} W {addr}{type=write}", "tick",
              lambda a, t: f"{a['time'] - (ACCESSES[a['n'] - 1]['time'] if a['n'] else 0)} {t[1]} {a['addr']:#x}" + (f" {a['pc']:#x}" if t[1] == "R" else "")),
}


def rows(text, given, code=0):
    done = run(need(BUSCAP), "convert", "-I", given, "-O", "csv", "-", data=text.encode())
    equal(done.returncode, code, done.stderr.decode())
    return list(csv.DictReader(io.StringIO(done.stdout.decode()))), done.stderr.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_lines_has_the_accesses_that_were_written(kind):
    layout, fields, line = KINDS[kind]
    got, _ = rows("".join(line(a, RW[a["type"]]) + "\n" for a in ACCESSES), "lines:" + layout)
    equal([(row["type"], int(row["addr"], 16)) for row in got], [("MEM" + RW[a["type"]][7], a["addr"]) for a in ACCESSES])
    for field in fields.split():
        equal([int(row[field], 0) for row in got], [a["time" if field == "tick" else field] for a in ACCESSES], field)


def test_times_in_a_unit_are_ns_or_ps():
    for unit, text, ns in (("s", "1.5", 1500000000), ("s", "0.1234567899", 123456789), ("ms", "2.25", 2250000), ("us", "7", 7000), ("ns", "3", 3), ("ps", "4", 4)):
        got, _ = rows(f"{text} R 10\n", f"lines:{{time:{unit}}} {{type}} {{addr}}")
        equal(int(got[0]["tick"]), ns, unit)


def test_what_was_not_read_is_said_once():
    text = "".join(f"R {n}\n" for n in range(40)) + "# done\n" + "R 11 more to come\n"
    got, err = rows(text, "lines:{type} {addr} | {type} {addr} {...} | #{...}")
    equal(len(got), 41)
    for words in ("1 line without an access skipped", "1 line with more than was read", "no address has a digit above 9: if they are decimal, write {addr:d}"):
        equal(err.count(words), 1, err)
    got, err = rows("R 1f 00112233445566778899\nR 2 7\n", "lines:{type} {addr} {data}")
    equal(([row["data"] for row in got], err.count("1 access with more than 8 bytes of data, which are left out")), (["", "0x7"], 1))


def test_a_line_that_does_not_fit_names_the_furthest_point_that_was_reached():
    layout = "lines:{pc}: {type} {addr} {size} | {pc}: {type} {addr} | #{...}"
    for line, column, words in (("401000: R 10 x", 14, "expected {size}"), ("401000: R", 10, "expected a blank"), ("401000: Q 10", 9, "type 'Q' is not in the table"),
                                ("401000; R 10", 7, 'expected ":"'), ("401000: R 10 99999999999", 14, "at most 32 bits"), ("zz", 1, "expected"), ("401000: R 10 4 4", 16, "the end of the line")):
        got, err = rows(f"1: R 10 4\n{line}\n2: W 14\n", layout, 3)
        equal((len(got), f"line 2, column {column}: " in err, words in err), (2, True, True), err)


WRONG = [
    ("{typ} {addr}", 2, "no field 'typ'; fields are addr"), ("{type} {addr", 8, "no '}'"), ("{type} {addr} {addr}", 16, "a second"), ("{addr}", 1, "without {type}"),
    ("{time} {delta} {type} {addr}", 9, "a second"), ("{type:Z=zap} {addr}", 9, 'no type "zap"'), ("{type:Z} {addr}", 7, "WORD=TYPE"), ("{type} {addr:q}", 14, "hexadecimal"),
    ("{time:h} {type} {addr}", 7, "expected d, x, s"), ("{size=} {type} {addr}", 7, "size"), ("{addr}{size} {type}", 7, "between two fields"), ("{...}{addr}{type=read}", 6, "between two fields"),
    ("x | {type} {addr} | ", 21, "an empty alternative"), ("x | y", 0, "no alternative of the layout has {addr}"), ("{type} {addr}" + " {*}" * 10000, 0, "more than"), ("y" * 200 + "{addr}{type=read}", 1, "more than a line"),
    ("{type}" * 9 + "{addr}", 0, "a second"), (" | ".join(["{type} {addr}"] * 40), 0, "more than"), ("", 1, "an empty alternative")]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_layout_is_refused_with_its_position(number):
    layout, column, words = WRONG[number]
    done = run(need(BUSCAP), "stats", "-I", "lines:" + layout, "-", data=b"R 10\n")
    text = done.stderr.decode()
    equal((done.returncode, done.stdout), (2, b""), text)
    assert words in text and (column == 0 or f"column {column} " in text), text


def test_bad_bytes_are_errors_of_their_line():
    text = b"R 10\nR \x0012\n" + b"R " + b"1" * 70000 + b"\nW 14\n\nR 1\x00\nR 1f"
    done = run(need(BUSCAP), "convert", "-I", "lines:{type} {addr}", "-O", "csv", "-", data=text)
    equal((done.returncode, [line.split(",")[2] for line in done.stdout.decode().splitlines()[1:]]), (3, ["0x10", "0x14", "0x1f"]), done.stderr.decode())
    equal([words in done.stderr.decode() for words in ("line 2, column 3", "line 3", "line 6, column 4")], [True] * 3, done.stderr.decode())


def test_a_named_layout_is_printed_to_be_changed():
    layout = run(need(BUSCAP), "formats", "pin").stdout.decode().rstrip("\n")
    equal(rows("0x1: R 0x2f\n", "pin"), rows("0x1: R 0x2f\n", "lines:" + layout))
    equal([run(BUSCAP, "formats", *words).returncode for words in (["nope"], ["pin", "rw"], ["--json", "pin"])], [2] * 3)


def test_a_number_may_be_padded_and_blanks_cost_nothing():
    got, _ = rows("[    12] R 10\n[123456] W 1f\n", "lines:[{time}] {type} {addr}")
    equal([row["tick"] for row in got], ["12", "123456"])
    done = run(need(BUSCAP), "stats", "-I", "din", "-", data=("0 1 x" + " " * 16000 + "y\n").encode() * 200)  # 10 s if it were tried at each blank
    equal(done.returncode, 0, done.stderr)


def test_what_would_be_read_as_something_else_is_refused_or_noted():
    for text in ("0x7f00: R 1f\n0x7f04: W 2a\n", "100000 R 1f\n100004 W 2a\n100008 R 3c\n"):  # data, not addresses
        equal(run(need(BUSCAP), "info", "-", data=text.encode()).returncode, 1, text)
    _, err = rows("0x401000: R 140737488\n0x401004: R 140737489\n", "lines:{pc}: {type} {addr}")
    assert "no address has a digit above 9" in err, err
    for layout in ("{time} R {addr}{type=read} | +{delta} W {addr}{type=write}", "{time:ns} {addr}{type=read} | {time} {addr} {size}{type=read}"):
        done = run(BUSCAP, "stats", "-I", "lines:" + layout, "-", data=b"1 R 10\n")
        assert done.returncode == 2 and b"different kinds of times" in done.stderr, done.stderr
    _, err = rows("R 10 1.5\n", "lines:{type} {addr} {time}", 3)
    assert "line 1, column 7: a time with a fraction needs a unit, such as {time:us}" in err, err
    err = run(BUSCAP, "info", "-", data=b"Kernel,Address,Op\nk0,0x10,Read\nk1,0x20,Write\n").stderr
    assert b"name its columns: -I 'csv:addr=NAME,type=NAME'" in err, err
    got, _ = rows("R 10\nW 10 4\n5 R 10\n", "lines:{type} {addr} | {type} {addr} {size} | {time} {type} {addr}")
    equal(len(got), 3)
