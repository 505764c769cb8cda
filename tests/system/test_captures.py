"""State captures: accesses read at clock edges of VCDs and of analysers' csv. The dumps have the shapes of public ones, drawn at
random, and what must be read is known from the accesses that they were made of."""

import csv
import gzip
import io
import json
import random
import subprocess

import pytest

from harness import BUSCAP, ROOT, equal, need, run

PUBLIC = ROOT.parent / "shared" / "repro" / "formats-2"


def read(description, data, code=0):
    """Returns the rows of a capture as csv, and the messages."""
    done = run(need(BUSCAP), "convert", "-I", description, "-O", "csv", "-i", "-", data=data.encode() if isinstance(data, str) else data)
    equal(done.returncode, code, done.stderr)
    return list(csv.DictReader(io.StringIO(done.stdout.decode()))), done.stderr.decode()


def accesses(rows, time=True):
    return [((int(row["tick"]),) if time else ()) + (row["type"], int(row["addr"], 16), int(row["data"], 16) if row.get("data") else None)
            for row in rows if row.get("kind", "reference") == "reference"]


class Dump:
    """A VCD: variables by id, and changes of values at times. At one time, changes are in any order."""

    def __init__(self, dice, head="$timescale 1 ns $end\n"):
        self.dice, self.head, self.ids, self.changes, self.values = dice, head, {}, {}, {}

    def var(self, name, width=1, kind="wire", same=None, index=""):
        ident = same and self.ids[same] or "".join(self.dice.choices("!#%&ABCxyz01b$", k=self.dice.choice((1, 3)))) + chr(40 + len(self.ids))
        self.ids[name] = ident
        *scopes, leaf = name.split(".")
        self.head += "".join(f"$scope module {scope} $end\n" for scope in scopes)
        self.head += f"$var {kind} {width} {ident} {leaf}{index} $end\n" + "$upscope $end\n" * len(scopes)
        self.width = getattr(self, "width", {})
        self.width[name] = width

    def set(self, time, name, value):
        self.changes.setdefault(time, {})[name] = value

    def text(self, unit=1, on_time_line=False):
        out = [self.head, "$enddefinitions $end\n"]
        for time in sorted(self.changes):
            names = list(self.changes[time])
            self.dice.shuffle(names)
            words = []
            for name in names:
                value = self.changes[time][name]
                digits = value if isinstance(value, str) else f"{value:b}"
                words.append(f"{digits}{self.ids[name]}" if self.width[name] == 1 else f"b{digits} {self.ids[name]}")
            blank = " " if on_time_line else "\n"
            out.append(f"#{time // unit}{blank}{blank.join(words)}\n")
        return "".join(out)


def clocked(dice, cycles):
    """PicoRV32: valid and ready; the next values come with the edge, in any order. Returns the dump and the accesses."""
    dump = Dump(dice, "$date\n  today\n$end\n$timescale\n\t1ns\n$end\n")
    dump.var("tb.clk")
    dump.var("tb.top.clk", same="tb.clk")
    for name, width in (("valid", 1), ("ready", 1), ("instr", 1), ("addr", 32), ("rdata", 32), ("wstrb", 4)):
        dump.var(f"tb.top.mem_{name}", width, "reg", index=f" [{width - 1}:0]" if width > 1 else "")
    dump.var("tb.top.other.addr", 32)
    wanted, values = [], {}
    dump.set(0, "tb.clk", 0)
    for cycle in range(cycles):
        edge = 10 * cycle + 5
        if values.get("valid") == values.get("ready") == 1:
            kind = "FETCH" if values["instr"] else "MEMWRITE" if values["wstrb"] else "MEMREAD"
            wanted.append((edge, kind, values["addr"], values["rdata"]))
        dump.set(edge, "tb.clk", 1)
        dump.set(edge + 5, "tb.clk", 0)
        for name, most in (("valid", 1), ("ready", 1), ("instr", 1), ("addr", 0xFFFFFFFF), ("rdata", 0xFFFFFFFF), ("wstrb", 15)):
            if cycle == 0 or dice.random() < 0.6:
                values[name] = dice.choice((0, dice.randint(0, most)))
                dump.set(edge, f"tb.top.mem_{name}", values[name])
        if values["instr"] and dice.random() < 0.7:
            values["wstrb"] = 0
            dump.set(edge, "tb.top.mem_wstrb", 0)
    return dump, wanted


def test_valid_and_ready_before_the_edge():
    dice = random.Random(1)
    for _ in range(8):
        dump, wanted = clocked(dice, 400)
        options = "clock=clk,addr=mem_addr,data=mem_rdata,when=mem_valid+mem_ready,type=mem_wstrb:0=read,fetch=mem_instr"
        for text in (dump.text(), dump.text(on_time_line=True)):
            rows, err = read("vcd:" + options, text)
            equal(accesses(rows), wanted, err)
            equal(err, "")


def z80(dice, cycles, names="A0", vectors=False):
    """A bus of single lines whose values change up to 50 ns before /RD or /WR rises. Returns the dump and the accesses."""
    dump = Dump(dice, "$comment Acquisition with 26 channels at 20 MHz $end $timescale 1 ns $end\n")
    for line in ("/RD", "/WR", "/M1"):
        dump.var("libsigrok." + line)
    for name, bits in (("A", 16), ("D", 8)):
        for bit in range(bits):
            dump.var(f"libsigrok.{name}{bit}" if names == "A0" else f"libsigrok.{name} [{bit}]")
    def put(time, name, bits, value):
        for bit in range(bits):
            dump.set(time, f"libsigrok.{name}{bit}" if names == "A0" else f"libsigrok.{name} [{bit}]", value >> bit & 1)
    wanted, time = [], 0
    for line in ("/RD", "/WR", "/M1"):
        dump.set(0, "libsigrok." + line, 1)
    for _ in range(cycles):
        addr, data, kind = dice.getrandbits(16), dice.getrandbits(8), dice.choice(("FETCH", "MEMREAD", "MEMWRITE"))
        line = "libsigrok./WR" if kind == "MEMWRITE" else "libsigrok./RD"
        put(time + 50, "A", 16, addr)
        dump.set(time + 50, "libsigrok./M1", int(kind != "FETCH"))
        dump.set(time + 100, line, 0)
        put(time + 150, "D", 8, data)
        edge = time + 400 + 50 * dice.randrange(4)
        dump.set(edge, line, 1)
        put(edge - dice.choice((0, 50)), "D", 8, dice.getrandbits(8))
        put(edge - dice.choice((0, 50)), "A", 16, dice.getrandbits(16))
        wanted.append((edge, kind, addr, data))
        time = edge + 100
    return dump, wanted


@pytest.mark.parametrize("names", ["A0", "A [0]"])
def test_setup_and_bits(names):
    dice = random.Random(2)
    dump, wanted = z80(dice, 112, names)
    rows, err = read("vcd:clock=/RD+/WR,addr=A,data=D,type=/WR:0=write,fetch=-/M1,setup=60ns", dump.text())
    equal(accesses(rows), wanted, err)
    late, _ = read("vcd:clock=/RD+/WR,addr=A,data=D,type=/WR:0=write,fetch=-/M1", dump.text())
    equal(len(late), len(wanted))
    assert accesses(late) != wanted


def multiplexed(dice, cycles):
    """i8039: the low address is on the data lines until ALE falls; /PSEN rises at the end. Rows of CLK..., and the accesses."""
    names = ["ALE", "PSEN"] + [f"D{i}" for i in range(8)] + [f"A{i}" for i in range(8, 12)]
    rows, wanted = [], []
    def row(ale, psen, data, high):
        rows.append([ale, psen] + [data >> i & 1 for i in range(8)] + [high >> i & 1 for i in range(4)])
    row(0, 1, 0, 0)
    for _ in range(cycles):
        addr, data = dice.getrandbits(12), dice.getrandbits(8)
        row(1, 1, addr & 255, addr >> 8)
        row(0, 1, dice.choice((addr & 255, dice.getrandbits(8))), addr >> 8)
        row(0, 0, dice.getrandbits(8), addr >> 8)
        row(0, 0, data, addr >> 8)
        wanted.append((len(rows), "MEMREAD", addr, data))
        row(0, 1, dice.getrandbits(8), addr >> 8)
    return names, rows, wanted


def test_a_latch_in_csv_of_sigrok_saleae_and_dsview():
    dice = random.Random(3)
    names, rows, wanted = multiplexed(dice, 234)
    body = "".join(",".join(map(str, row)) + "\n" for row in rows)
    timed = "".join(f"{i * 125e-9:.9f}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(rows))
    sigrok = f"; CSV generated by libsigrok\n; Channels ({len(names)}/{len(names)}): {', '.join(names)}\n; Samplerate: 8 MHz\n"
    for text, scale in ((sigrok + ",".join("logic" for _ in names) + "\n" + body, 125),
                        (sigrok + ",".join(names) + "\r\n" + body.replace("\n", "\r\n"), 125), (sigrok + body, 125),
                        ("; CSV, generated by DSView\n; Sample rate: 8 MHz\nTime(s), " + ",".join(names) + "\n" + timed, 125),
                        ("Time [s]," + ",".join(names) + "\n" + timed, 125), (",".join(f'"{name}"' for name in names) + "\n" + body, 1)):
        got, err = read("csv:clock=PSEN,addr=A+D@-ALE,data=D", text)
        equal(accesses(got), [(row * scale, *rest) for row, *rest in wanted], err)
        again, _ = read("csv:clock=PSEN,addr=A11+A10+A9+A8+D@-ALE,data=D", text)
        equal(again, got)
    cut, err = read("csv:clock=PSEN,addr=A+D@-ALE,data=D", sigrok + body[:-4] + "\n0,1\n", 3)
    assert "columns instead of" in err and len(cut) == len(wanted) - 1, err


def test_times_of_all_units():
    for scale, unit, factor in [(n, u, n * f) for n in (1, 10, 100) for u, f in zip(("s", "ms", "us", "ns", "ps", "fs"), (10**15, 10**12, 10**9, 10**6, 1000, 1))]:
        text = f"$timescale {scale}{unit} $end $var wire 1 c c $end $var wire 8 a a $end $enddefinitions $end #0 0c b101 a #7 1c\n"
        rows, _ = read("vcd:clock=c,addr=a", text)
        whole = 1000 if factor < 10**6 else 10**6
        equal([row["tick"] for row in rows], [str(7 * factor // whole)], text)
    rows, _ = read("vcd:clock=c,addr=a", text.replace("$timescale 100fs $end", ""))
    equal(rows[0]["tick"], "7")
    rows, _ = read("vcd:clock=c,addr=a", text.replace("100fs", "1ns").replace("#7", "#7.25"))
    equal(rows[0]["tick"], "7250")


def test_unknown_values_are_counted_and_none_is_invented():
    head = "$timescale 1ns $end $var wire 1 c c $end $var wire 8 a a $end $var wire 8 d d $end $var string 1 s s $end $var real 64 r r $end $enddefinitions $end\n"
    rows, err = read("vcd:clock=c,addr=a,data=d", head + "#0 0c bx a sabc s r1.5e3 r\n#1 1c\n#2 0c b1h0l a bu d\n#3 1c\n#4 xc\n#5 1c\n#6 0c b1 d\n#7 1c b11 a\n")
    equal(accesses(rows), [(3, "MEMREAD", 12, None), (7, "MEMREAD", 12, 1)])
    assert "1 access with an unknown address" in err, err
    rows, err = read("vcd:clock=c,addr=a", head + "#0 0c b1 a\n#5 1c\n#4 0c\n#9 1c\n", 3)
    equal(len(rows), 1)
    assert "time goes back" in err, err


def test_a_file_without_signals_is_refused():
    for text in ("hello, world\n1!\n", "$var wire 1 ! clk $end\n#0\n0!\n#1\n1!\n", "#0\n"):
        rows, err = read("vcd:clock=clk,addr=a", text, 3)
        assert not rows and "is not the name of a signal" in err, err


@pytest.mark.parametrize("description, message", [
    ("clock=clk,addr=addr", "addr: 'addr' is one of several signals: top.cpu.addr, top.dma.addr"),
    ("clock=clk,addr=cpu.adr", "addr: 'cpu.adr' is not"), ("clock=clk,addr=adrr", "'adrr' is not a signal; did you mean top."),
    ("clock=clk,addr=volts", "'volts' is a real"), ("clock=cpu.addr,addr=cpu.addr", "'cpu.addr' has too many bits"),
    ("clock=clk,addr=wide", "'wide' has too many bits")])
def test_names_that_are_no_signal(description, message):
    text = ("$scope module top $end $var wire 1 ! clk $end $var real 64 R volts $end $scope module cpu $end $var wire 16 A addr [15:0] $end $upscope $end "
            "$scope module dma $end $var wire 16 Q addr [15:0] $end $var wire 4096 W wide $end $upscope $end $upscope $end $enddefinitions $end\n#0 0! b1 A\n#1 1!\n")
    rows, err = read("vcd:" + description, text, 3)
    assert message in err and not rows, err


@pytest.mark.parametrize("description", ["", "clock=c", "addr=a", "clock=c,addr=a,size=4", "clock=c,addr=a,setup=60", "clock=,addr=a", "clock=c,addr=a+",
                                         "clock=c,addr=a,type=t:1=wread", "clock=c,addr=a,be=b", "clock=c@d,addr=a", "clock=c,addr=a@"])
def test_descriptions_that_are_wrong(description):
    done = run(need(BUSCAP), "convert", "-I", "vcd:" + description, "-O", "csv", "-i", "-", data=b"")
    equal(done.returncode, 2, done.stderr)


def test_ours_read_back(tmp):
    """Both kinds, with gaps and marks, by detection."""
    for seed, source in ((1, "byu"), (2, "byu"), (3, "bcp1")):
        done = run(need(BUSCAP), "sim", "--seed", str(seed), "-n", "700", "-O", source, *(["--loss", "0.2"] if source == "bcp1" else []))
        equal(done.returncode, 0, done.stderr)
        (tmp / "trace").write_bytes(done.stdout)
        names = ("type", "addr", "size", "attr", "proc", "tick")
        def rows(path):
            text = run(BUSCAP, "convert", "-O", "csv", "-i", path).stdout.decode()
            return [[row[name] for name in names] for row in csv.DictReader(io.StringIO(text)) if row.get("kind", "reference") == "reference"]
        wanted = rows(tmp / "trace")
        for options in ("vcd", "vcd:clock_hz=66666667", "vcd:signals=bits"):
            done = run(BUSCAP, "convert", "-O", options, "-i", tmp / "trace", "-o", tmp / "own.vcd")
            equal(done.returncode, 0, done.stderr)
            got = rows(tmp / "own.vcd")
            base = int(wanted[0][5]) if "bits" in options else 0
            equal(got, [row[:5] + [str(int(row[5]) - base)] for row in wanted], options)
            (tmp / "own.vcd").unlink()


def test_public_inputs():
    if not PUBLIC.exists():
        pytest.skip("needs inputs that are not part of the project")
    text = (PUBLIC / "bus.vcd").read_text()
    rows, err = read("vcd:clock=top.clk,addr=top.cpu.addr,data=data,when=valid,type=rw(0):0=read|1=write", text)
    got = accesses(rows)
    equal((len(got), sum(a for _, _, a, _ in got), sum(d for *_, d in got)), (12, 468274, 1513))
    equal((got[0], got[-1]), ((200, "MEMREAD", 0xf52f, 0x4f), (2400, "MEMREAD", 0xe366, 0x95)))
    equal(sum(kind == "MEMREAD" for _, kind, *_ in got), 6)
    equal([row["kind"] for row in rows].count("gap"), 1)
    assert "1 access with an unknown address" in err, err
    done = run(BUSCAP, "info", "--json", PUBLIC / "own.vcd")
    equal((done.returncode, json.loads(done.stdout)["references"]), (0, 50))


def test_info_lists_the_signals_and_suggests_a_line(tmp):
    dump, wanted = clocked(random.Random(5), 50)
    for data in (dump.text().encode(), gzip.compress(dump.text().encode())):
        (tmp / "x.vcd").write_bytes(data)
        done = run(need(BUSCAP), "info", "x.vcd", cwd=tmp)
        out = done.stdout.decode()
        equal(done.returncode, 0, done.stderr)
        assert "tb.top.mem_addr [31:0], 32 bits" in out and "clock=tb.clk," in out, out
    line = out.partition("-I '")[2].partition("'")[0]
    equal(run(BUSCAP, "stats", "-I", line, "x.vcd", cwd=tmp).returncode, 0, line)
    done = run(BUSCAP, "dump", "-I", line, "x.vcd", cwd=tmp)
    assert done.returncode == 0 and done.stdout.startswith(b"reference,"), done
    done = run(BUSCAP, "stats", "x.vcd", cwd=tmp)
    equal(done.returncode, 1)
    assert b"must be described" in done.stderr and b"buscap info" in done.stderr, done.stderr
    many = "$scope module t $end\n" + "".join(f"$var wire 1 n{i} net_{i} $end\n" for i in range(100000))
    many += "$var wire 1 c clk $end\n$var wire 8 a a $end\n$upscope $end\n$enddefinitions $end\n#0 0c b11 a\n#1 1c\n"
    out = run(BUSCAP, "info", "-", data=many.encode()).stdout.decode()
    assert " more" in out and len(out) < 8192, out[-300:]
    rows, _ = read("vcd:clock=clk,addr=a", many)
    equal(accesses(rows), [(1, "MEMREAD", 3, None)])


def test_files_of_sigrok_and_gtkwave(tmp):
    dump, wanted = z80(random.Random(4), 60)
    dump.set(max(dump.changes) + 100, "libsigrok./M1", 1)  # libsigrok leaves out the last time
    (tmp / "a.vcd").write_text(dump.text())
    options = "clock=/RD+/WR,addr=A,data=D,type=/WR:0=write,fetch=-/M1,setup=60ns"
    subprocess.run([need("sigrok-cli"), "-i", "a.vcd", "-I", "vcd:downsample=50", "-O", "vcd", "-o", "b.vcd"], cwd=tmp, check=True)
    rows, err = read("vcd:" + options, (tmp / "b.vcd").read_text())
    equal(accesses(rows, time=False), [access[1:] for access in wanted], err)
    subprocess.run([need("vcd2fst"), "a.vcd", "a.fst"], cwd=tmp, check=True)
    done = run(need("fst2vcd"), "a.fst", cwd=tmp)
    rows, err = read("vcd:" + options, done.stdout)
    equal(accesses(rows), wanted, err)


def number(states):
    """The value of states, highest bit first; None if one is unknown."""
    states = states and states.replace("h", "1").replace("l", "0")
    return int(states, 2) if states and not set(states) - set("01") else None


class Signals:
    """Random signals: vectors, bits by number or by index, some declared again in a scope below; and their values over time."""

    def __init__(self, dice):
        self.dice = dice
        self.widths = {"c": 1, "k": 1, "a": dice.choice((4, 9, 33)), "b": 3, "d": dice.choice((8, 16)), "w": 1, "t": 2, "l": 1}
        self.ids, self.head = {}, "$timescale 1ns $end\n$scope module top $end\n"
        self.history = {name: [] for name in self.widths}
        names = ["".join(pair) for pair in zip(dice.sample([chr(c) for c in range(33, 127)], 90), dice.choices(["", "$", "#", "0", "x"], k=90))]
        for name, width in self.widths.items():
            index = dice.choice(("", " [{}]")) if width > 1 and dice.random() < 0.6 else None
            if index is None:
                self.ids[name] = names.pop()
                bounds = f" [{width - 1}:0]" if width > 1 and dice.random() < 0.7 else ""
                self.head += f"$var wire {width} {self.ids[name]} {name}{bounds} $end\n"
                continue
            self.ids[name] = [names.pop() for _ in range(width)]
            lines = [f"$var wire 1 {ident} {name}{index.format(i) if index else i} $end\n" for i, ident in enumerate(self.ids[name])]
            self.head += "".join(dice.sample(lines, width))
            if dice.random() < 0.5:
                self.head += "$scope module sub $end\n" + "".join(lines) + "$upscope $end\n"
        self.head += "$upscope $end\n$enddefinitions $end\n"

    def changes(self, name, states):
        width, ident = self.widths[name], self.ids[name]
        if isinstance(ident, list):
            return [states[width - 1 - i] + one for i, one in enumerate(ident)]
        if width == 1:
            return [states + ident]
        short = states.lstrip("0") if self.dice.random() < 0.5 else states
        return [f"b{short if short and short[0] in '1h' else states} {ident}"]

    def text(self):
        out, time = [self.head], 0
        for _ in range(self.dice.randrange(50, 400)):
            lines = []
            for name, width in self.widths.items():
                if self.dice.random() > (0.6 if name in "ck" else 0.3):
                    continue
                states = "".join(self.dice.choice("01" * 30 + "xzuUhl") for _ in range(width))
                if name in "ckl" and self.history[name] and self.dice.random() < 0.9:
                    states = "10"[number(self.history[name][-1][1]) or 0]
                self.history[name].append((time, states))
                lines += self.changes(name, states)
            self.dice.shuffle(lines)
            out.append(f"#{time}\n" + "".join(line + "\n" for line in lines))
            time += self.dice.randrange(1, 30)
        return "".join(out)

    def before(self, name, time):
        return number(next((states for when, states in reversed(self.history[name]) if when < time), None))

    def edges(self, name, is_falling):
        values = [(when, number(states)) for when, states in self.history[name]]
        return [when for (_, old), (when, new) in zip(values, values[1:]) if (old, new) == ((1, 0) if is_falling else (0, 1))]


@pytest.mark.parametrize("seed", range(60))
def test_random_signals_against_a_reference(seed):
    """The reference looks up the values at each edge in the history of the signals."""
    dice = random.Random(seed)
    signals = Signals(dice)
    text = signals.text()
    setup, latch, when, clock = dice.choice((0, 0, 5, 37)), dice.choice(("", "@l", "@-l")), dice.choice(("", "when=w,", "when=-w,")), dice.choice(("c", "-c", "c+k"))
    is_joined = dice.random() < 0.5
    table = {0: "MEMREAD", 1: "MEMWRITE", 3: "FETCH"}
    latched = signals.edges("l", latch == "@-l")
    wanted, unknown = [], 0
    for edge in sorted({*signals.edges("c", clock == "-c"), *(signals.edges("k", False) if clock == "c+k" else ())}):
        time = edge - setup
        if when and signals.before("w", time) != int(when == "when=w,"):
            continue
        if latch:
            stored = [one for one in latched if one < time]
            addr = signals.before("a", stored[-1] - setup) if stored else None
        else:
            addr = signals.before("a", time)
        high = signals.before("b", time) if is_joined else 0
        if addr is None or high is None:
            unknown += 1
        elif signals.before("t", time) in table:
            wanted.append((edge, table[signals.before("t", time)], high << signals.widths["a"] | addr, signals.before("d", time)))
    description = f"vcd:clock={clock},addr={'b+' if is_joined else ''}a{latch},{when}data=d,type=t:0=read|1=write|3=fetch,setup={setup}ns"
    rows, err = read(description if setup else description.rpartition(",")[0], text)
    equal(accesses(rows), wanted, description)
    equal(f"{unknown} access" in err, unknown != 0, err)


def test_a_row_that_is_malformed_changes_nothing():
    head = "Time [ms],clk,a,text\n"
    rows = "0,0,1,x y\n1,1,1,\n2,0,2,z\n3,1,huh,\n4,1,3,\n5,0,4,\n6,1,4,\n"
    got, err = read("csv:clock=clk,addr=a", head + rows, 3)  # the column "text" is not named
    equal(accesses(got), [(1000000, "MEMREAD", 1, None), (4000000, "MEMREAD", 2, None), (6000000, "MEMREAD", 4, None)], err)
    assert "line 5, " in err and "column 3: expected 0, 1 or another number" in err, err


def test_a_second_edge_of_a_clock_at_one_time_is_counted():
    got, err = read("csv:clock=clk,addr=a", "Time [s],clk,a\n0,0,1\n0.001,1,1\n0.001,0,2\n0.001,1,2\n0.002,0,3\n0.003,1,3\n")
    equal([row[2] for row in accesses(got)], [1, 3])
    assert "1 line with more than was read" in err, err
