"""buscap convert with Tarmac: lines are written unchanged."""

import csv
import io
import json
import random

import pytest

from harness import BUSCAP, equal, need, run


# A line of each kind, and some uninterpreted ones.
LINES = b"""Tarmac Text Rev 3t
# a remark

0 clk cpu0 E 10001848 00000001 CoreEvent_RESET
1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1
2 clk cpu1 IS (2) 00008000:000000008000_NS 1afb T svc_ns : SUBNE    r3,r7,r3
10 clk MR8 00103fc4 0010400000000000
11 clk MR16 400171e0 400f731b40000000 3ff87cc460000000
12 cyc MNW4___D 2002fa00 efbe0201
13 cs R08 0000007f99d14af4 4305000042ea0000
14 clk R r8 00000000
271ns R r13 20001fff (MSP)
 300 ns  ES  (00000164:e59f1198) A svc:            LDR      r1,{pc}+0x1a0 ; 0x304
             LD 00000300  ........ ........ 00000800 ..##..11     0000000300    NM ISH INC
                00000310  22222222 ........ ........ ........     0000000310    NM ISH INC
 301 ns CADI E simulation_stopped
\x80\xff \x00
"""


def convert(data, *argv, code=0, to="tarmac"):
    done = run(BUSCAP, "convert", "-I", "tarmac", "-O", to, *argv, data=data)
    equal(done.returncode, code, done.stderr.decode(errors="replace"))
    return done.stdout, done.stderr.decode(errors="replace")


def test_every_line_is_written_unchanged():
    equal(convert(LINES)[0], LINES)
    equal(convert(b"")[0], b"")
    equal(convert(b"\n")[0], b"\n")
    for cut in range(len(LINES)):
        head = LINES[:cut]
        done = run(BUSCAP, "convert", "-I", "tarmac", "-O", "tarmac", data=head) if cut % 29 == 0 else None
        if done is not None and done.returncode == 0:
            equal(done.stdout, head + (b"\n" if head and not head.endswith(b"\n") else b""), f"the first {cut} bytes")
        elif done is not None:
            equal(done.returncode, 3)
            equal(done.stdout, head[: head.rindex(b"\n") + 1], f"the first {cut} bytes")
            assert b"the file ends in this line" in done.stderr, done.stderr


def tarmac(path, lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_times_of_different_units_are_merged_by_real_time(tmp):
    ns = tarmac(tmp / "ns.tarmac", [f"{n} ns R r1 {n:08x}" for n in (1, 2, 3)])
    ps = tarmac(tmp / "ps.tarmac", [f"{n} ps R r0 {n:08x}" for n in (999, 1000, 2500, 3001)])
    us = tarmac(tmp / "us.tarmac", ["0.0015us R r2 00000000", "0.003us R r2 00000001"])
    done = run(need(BUSCAP), "merge", "-I", "tarmac", ns, ps, us, "-o", "-")
    equal(done.returncode, 0, done.stderr.decode())
    words = [line.split() for line in done.stdout.decode().splitlines()]
    equal([" ".join(w[:2] if len(w) == 5 else w[:1]) for w in words],
          ["999 ps", "1000 ps", "1000 ps", "0.0015us", "2000 ps", "2500 ps", "3000 ps", "0.003us", "3001 ps"], "order")


def test_traces_of_different_units_and_fields_are_compared(tmp):
    ps = tarmac(tmp / "ps.tarmac", [f"{1000 * n} ps R r0 {n:08x}" for n in range(100)])
    ns = tarmac(tmp / "ns.tarmac", [f"{n} ns R r0 {n:08x}" for n in range(100)])
    cpu = tarmac(tmp / "cpu.tarmac", [f"{n} ns cpu0 R r0 {n:08x}" for n in range(100)])
    late = tarmac(tmp / "late.tarmac", [f"{n + (n == 50)} ns R r0 {n:08x}" for n in range(100)])
    for a, b, code, said in ((ps, ns, 0, ""), (ns, ps, 0, ""), (ps, late, 1, ""),
                             (ns, cpu, 0, "buscap diff: A has no processor: not compared\n"),
                             (cpu, ps, 0, "buscap diff: B has no processor: not compared\n")):
        done = run(need(BUSCAP), "diff", "-I", "tarmac", a, b)
        equal((done.returncode, done.stderr.decode()), (code, said), f"{a.name} {b.name}: {done.stdout.decode()}")
    done = run(need(BUSCAP), "diff", "-I", "tarmac", "--fields", "name,value,proc", ns, cpu)
    equal((done.returncode, done.stderr), (1, b""), "a field that was asked for")


def test_fields_that_come_late_are_known(tmp):
    """Which fields a trace has is not decided by the registers that it starts with."""
    dice = random.Random(11)
    for _ in range(12):
        start = [f"0 clk R X{n % 31} {0:016x}" for n in range(dice.choice((0, 100, 180, 5000)))]
        late = {"phys": [], "no phys": [], "attrib": []}
        for n in range(dice.randrange(60, 400)):
            if dice.random() < 0.5:
                step = [f"{n} clk IT ({n}) {0x8000 + 4 * n:08x} f90003e0 O EL3h_s : STR x0,[sp]"]
            else:
                step = []
            for kind, mark, phys in (("phys", "", f":{0x10000 + 8 * n:012x}"), ("no phys", "", ""), ("attrib", "X", "")):
                late[kind] += [*step, f"{n} clk MW8{mark} {0x10000 + 8 * n:08x}{phys} 00000000_{n:08x}"]
        files = {kind: tarmac(tmp / kind, start + lines) for kind, lines in late.items()}
        for a, b, said in (("phys", "no phys", "B has no physical address"), ("no phys", "phys", "A has no physical address"),
                           ("attrib", "no phys", "B has no access attribute")):
            done = run(need(BUSCAP), "diff", "-I", "tarmac", files[a], files[b])
            equal((done.returncode, done.stderr.decode()), (0, f"buscap diff: {said}: not compared\n"), f"{len(start)} registers first")


def test_the_value_of_a_register_is_no_decimal_number(tmp):
    """Readers of csv take bare digits for a number, and 1e5 for 100000."""
    dice = random.Random(13)
    values = [f"{dice.randrange(1 << 4 * n):0{n}x}" for n in (2, 8, 8, 16, 32) for _ in range(40)]
    values += ["00000010", "000001e5", "1e5", "0000_0e10", "-0000010", "xxxx0010", "00000000:00000010", "00000010 000001e5"]
    capability = "(1|dc5f000000010005|80001000)"
    trace = tarmac(tmp / "a", [f"{n} clk R X{n} {value}" for n, value in enumerate([*values, capability])])
    table, _ = convert(trace.read_bytes(), to="csv")
    found = [row["value"] for row in csv.DictReader(io.StringIO(table.decode()))]
    equal(found, ["0x" + value for value in values] + [capability], "csv")
    for value in found:
        with pytest.raises(ValueError):
            float(value)
    objects, _ = convert(trace.read_bytes(), to="ndjson")
    equal([json.loads(line)["value"] for line in objects.splitlines()], found, "ndjson")


def test_verify_counts_uninterpreted_lines(tmp):
    for lines, code, said in (
            (["1 clk R r0 00000001", "2 clk BR x", "3 clk CADI E"], 0, "ok: tarmac, 3 entries, 2 uninterpreted lines among them"),
            (["1 clk R r0 00000001"], 0, "ok: tarmac, 1 entry"),
            (["2 clk BR x", "3 clk CADI E"], 3, "nothing recognised: tarmac, 2 entries, 2 uninterpreted lines among them")):
        path = tarmac(tmp / "x.tarmac", lines)
        done = run(need(BUSCAP), "verify", "-I", "tarmac", path)
        equal((done.returncode, done.stdout.decode()), (code, f"{path}: {said}\n"), str(lines))
        done = run(BUSCAP, "verify", "--json", "-I", "tarmac", path)
        result, end = (json.loads(line) for line in done.stdout.splitlines())
        equal((done.returncode, result["ok"], end["end"]["ok"]), (code, code == 0, int(code == 0)), str(lines))


def test_attributes_and_security_of_accesses_are_fields(tmp):
    forms = {"MR4X 1000 00000001": ("X", ""), "MR4T 1000:2000_NS 00000001": ("T", "NS"), "MR4 X 1000_S 00000001": ("X", "S"),
             "MNW4___D 1000 01000000": ("", ""), "MNW4X__D 1000 01000000": ("X", ""), "MR4X_T 1000 xxxxxxxx": ("X_T", ""), "MNR4XABCD 1000 00000001": ("XABCD", ""),
             "MR4 1000:2000 00000001": ("", "")}
    path = tarmac(tmp / "a", [f"{n} clk {words}" for n, words in enumerate(forms)])
    done = run(need(BUSCAP), "convert", "-I", "tarmac", "-O", "csv", path)
    header, *rows = (line.split(",") for line in done.stdout.decode().splitlines())
    found = [(row[header.index("attrib")], row[header.index("security")]) for row in rows]
    equal(found, list(forms.values()), "fields")
    done = run(BUSCAP, "convert", "-I", "tarmac", "-O", "xdin", path)
    for message in (b"xdin has no access attribute: omitted in 6 entries", b"xdin has no security: omitted in 2 entries"):
        assert message in done.stderr, done.stderr.decode()
    one, other, none = (tarmac(tmp / name, [f"{n} clk MR4{letter} 1000 00000001" for n in range(9)] + extra)
                        for name, letter, extra in (("x", "X", []), ("t", "T", []), ("-", "", [])))
    done = run(BUSCAP, "diff", "-I", "tarmac", one, other)
    assert done.returncode == 1 and b"9 entries differ in attrib" in done.stdout, done.stdout.decode()
    done = run(BUSCAP, "diff", "-I", "tarmac", one, none)
    equal((done.returncode, done.stderr), (0, b"buscap diff: B has no access attribute: not compared\n"), "one has none")


def test_dump_prints_whole_lines(tmp):
    """One line can have several accesses."""
    trace = tmp / "x.tarmac"
    trace.write_bytes(LINES)
    for addr, words in {"400171e0": b" MR16 ", "400171e8": b" MR16 ", "302": b" LD ", "8000": b" IS "}.items():
        done = run(need(BUSCAP), "dump", "-I", "tarmac", "--addr", addr, trace)
        equal((done.returncode, done.stderr), (0, b""))
        equal(done.stdout.splitlines(), [line for line in LINES.splitlines() if words in line], addr)


def test_times_that_one_trace_lacks_or_counts_otherwise_are_not_compared(tmp):
    def registers(name, form):
        path = tmp / name
        path.write_text("".join(form(n) + f"R r0 {n:08x}\n" for n in range(50)))
        return path

    timed, bare, clocks = (registers("ns", lambda n: f"{n} ns "), registers("bare", lambda n: ""),
                           registers("clk", lambda n: f"{7 * n} clk "))
    for other, message in ((bare, "B has no time: not compared"),
                           (clocks, "A has times in ns, B in clk: not compared")):
        done = run(need(BUSCAP), "diff", "-I", "tarmac", timed, other)
        equal((done.returncode, done.stderr.decode()), (0, f"buscap diff: {message}\n"), done.stdout.decode())
    done = run(need(BUSCAP), "merge", "-I", "tarmac", "-o", tmp / "merged", timed, clocks)
    equal((done.returncode, done.stderr.decode()),
          (2, f"buscap merge: {clocks}: can't merge times in clk with times in ns\n"), "merge")


def test_times_in_unrelated_units_are_not_merged(tmp):
    """As diff doesn't compare them: two clocks have unknown rates. Units of time are converted, and no unit fits any."""
    units = ("clk", "cs", "cyc", "tic", "ns", "us", "ps", "")
    for unit in units:
        tarmac(tmp / f"u{unit}", [f"{n + 1} {unit} R r0 {n:08x}" if unit else f"{n + 1} R r0 {n:08x}" for n in range(9)])
    for one in units:
        for other in units:
            done = run(need(BUSCAP), "merge", "-I", "tarmac", "-O", "csv", tmp / f"u{one}", tmp / f"u{other}")
            is_fit = one == other or "" in (one, other) or {one, other} <= {"ns", "us", "ps"}
            equal(done.returncode, 0 if is_fit else 2, f"{one} with {other}: {done.stderr.decode()}")
            if not is_fit:
                equal(done.stderr.decode(), f"buscap merge: {tmp / f'u{other}'}: can't merge times in {other} with times in {one}\n")


def test_names_and_what_is_not_read_are_reported(tmp):
    path = tarmac(tmp / "a", ["1 clk cluster0.cpu0 MR4 00001000 00000001", "2 clk cluster1.cpu0 MR4 (1|5|1004) 00000002",
                              "3 clk css.rse.cpu MR4 00001008 00000003 MW4 0000100c 00000004 ?"])
    done = run(need(BUSCAP), "convert", "-O", "csv", path)
    header, *rows = (line.split(",") for line in done.stdout.decode().splitlines())
    columns = [header.index(name) for name in ("type", "addr", "proc")]
    equal([tuple(row[i] for i in columns) for row in rows],
          [("MEMREAD", "0x1000", "0"), ("MEMREAD", "0x1004", "1"), ("MEMREAD", "0x1008", "2"), ("MEMWRITE", "0x100c", "2")])
    notes = ("2 lines with more than was read", "processor 1 is cluster1.cpu0", "processor 2 is css.rse.cpu")
    equal((done.returncode, done.stderr.decode()), (0, "".join(f"buscap convert: {path}: {note}\n" for note in notes)))
    for command in ("info", "dump"):
        done = run(BUSCAP, command, path)
        equal((done.returncode, done.stderr.decode()), (0, "".join(f"buscap {command}: {path}: {note}\n" for note in notes)))
    equal(run(BUSCAP, "convert", "-O", "tarmac", path).stdout, path.read_bytes())
