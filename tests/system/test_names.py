"""Names of addresses: symbols of real programs against nm, --map and --symbols in every command that shows names, and
regions in options, filters, triggers and requests."""

import json
import random
import shutil
import struct

import pytest

import harness
from api_harness import Stream, daemon_in, send
from cut_model import buscap
from harness import BUSCAP, BUSCAPD, equal, need, run
from mock_daemon import MockDaemon
from mock_daemon import Stream as MockStream
from top_harness import Bus, FakeDaemon

SOURCE = """
static int hidden = 3;
int table[1000];
const char text[] = "text";
__attribute__((noinline)) static int twice(int n) { return 2 * n + hidden; }
__attribute__((weak)) int weak_one(int n) { return n; }
int alias(int) __attribute__((alias("weak_one")));
int a_name_that_is_much_longer_than_the_names_of_a_map_may_have_been_before_this_test(int n) { return twice(n); }
int main(void) { hidden++; return weak_one(table[3]) + twice(text[0])
    + a_name_that_is_much_longer_than_the_names_of_a_map_may_have_been_before_this_test(1); }
"""

RECORD = struct.Struct("<IBBBBI")
MEM_READ, MEM_WRITE, IO_READ, IO_WRITE = 1, 3, 0x10, 0x11


def write_byu(path, accesses):
    """Writes records of one byte each, from pairs of address and type."""
    path.write_bytes(b"".join(RECORD.pack(addr, kind, 1, 0, 0, 1) for addr, kind in accesses))
    return path


# ---- symbols


def nm(program):
    """Returns {name: [(first, last)]} of all functions and objects with a size."""
    ranges = {}
    for line in run("nm", "--defined-only", "--format=sysv", program).stdout.decode().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[3] in ("FUNC", "OBJECT", "IFUNC") and cells[4] and int(cells[4], 16) and cells[2] != "C":
            first = int(cells[1], 16)
            ranges.setdefault(cells[0], []).append((first, first + int(cells[4], 16) - 1))
    return ranges


def check_symbols(tmp, program, least, offset=0):
    ranges = nm(program)
    assert len(ranges) >= least, (program, len(ranges))
    every = [pair for pairs in ranges.values() for pair in pairs]
    edges = {addr for first, last in every for addr in (first, last, (first + last) // 2)}
    edges |= {addr for first, last in every for addr in (first - 1, last + 1) if addr >= 0}
    addresses = sorted(edges)
    trace = tmp / "addresses.din"
    trace.write_text("".join(f"0 {addr + offset:x}\n" for addr in addresses))
    spec = f"{program}:{offset:x}" if offset >= 0 else f"{program}:-{-offset:x}"
    out, err = buscap("find", "-j", "-I", "din", "--symbols", spec, "0-", trace)
    hits = [json.loads(line) for line in out.splitlines()]
    equal(len(hits), len(addresses), f"addresses of {program}; {err}")
    names_at = {}
    for name, pairs in ranges.items():
        for first, last in pairs:
            names_at.setdefault((first, last), set()).add(name)
    spans = sorted(names_at, reverse=True)
    around = []
    checked = 0
    for addr, hit in zip(addresses, hits):
        while spans and spans[-1][0] <= addr:
            around.append(spans.pop())
        around = [span for span in around if addr <= span[1]]
        if not around:
            continue  # perhaps a label
        size = min(last - first for first, last in around)
        wanted = {name + (f"+0x{addr - first:x}" if addr != first else "")
                  for first, last in around if last - first == size for name in names_at[first, last]}
        assert hit["name"] in wanted, (program, hex(addr), hit["name"], wanted)
        checked += 1
    assert checked >= least
    few = sorted(name for name, pairs in ranges.items() if len(pairs) <= 16)  # more are refused
    for name in random.Random(1).sample(few, min(10, len(few))):
        out, err = buscap("find", "-c", "-I", "din", "--symbols", spec, "--region", name, trace)
        equal(int(out), sum(any(first <= addr <= last for first, last in ranges[name]) for addr in addresses), name)


@pytest.mark.parametrize("form", ["executable", "position-independent", "object", "32-bit object", "stripped library"])
def test_symbols_agree_with_nm(tmp, form):
    flags = {"executable": ["-no-pie", "-static-libgcc"], "position-independent": ["-fPIE", "-pie"],
             "object": ["-c", "-ffunction-sections"], "32-bit object": ["-c", "-m32"],
             "stripped library": ["-shared", "-fPIC", "-s"]}[form]
    source, program = tmp / "program.c", tmp / "program"
    source.write_text(SOURCE)
    done = run("gcc", "-O1", *flags, "-o", program, source)
    if done.returncode != 0 and "32" in form:
        pytest.skip("gcc has no -m32")
    equal(done.returncode, 0, done.stderr.decode())
    if form == "stripped library":
        out, _ = buscap("find", "-c", "-I", "din", "--symbols", program, "--region", "weak_one", write_din(tmp))
        equal(out, b"0\n")
        return
    check_symbols(tmp, program, 6)
    check_symbols(tmp, program, 6, 0x7F0000000000)
    if form == "executable":
        check_symbols(tmp, program, 6, -0x1000)


def write_din(tmp):
    path = tmp / "empty.din"
    path.write_text("0 0\n")
    return path


def test_symbols_of_our_own_programs_agree_with_nm(tmp):
    program = tmp / "buscap"
    shutil.copy(need(BUSCAP), program)
    check_symbols(tmp, program, 1000)


# ---- where names are shown

ACCESSES = [(0xB8000, MEM_WRITE), (0x3F8, IO_WRITE), (0x3F8, MEM_READ), (0x1000, MEM_READ), (0x80, IO_WRITE),
            (0x123456, MEM_READ)]
PC_NAMES = ["VGA colour text", "COM1", "interrupt vectors", "conventional memory", "POST code", None]


def test_dump_appends_names_to_samples_and_segments(tmp):
    for kind in ("bcp1", "raw6"):
        trace = tmp / f"a.{kind}"
        run(BUSCAP, "sim", "--seed", "3", "--count", "8000", "-O", kind, "-o", trace)
        plain = buscap("dump", "-p", trace)[0].decode().splitlines()
        named = buscap("dump", "-p", "--map", "pc", trace)[0].decode().splitlines()
        equal(len(named), len(plain))
        assert all(new.startswith(old) for old, new in zip(plain, named))
        ends = {new[len(old):].strip() for old, new in zip(plain, named)}
        assert {"", "COM1", "timer"} <= ends, ends
    out = tmp / "out"
    run(BUSCAPD, "--once", "--source", f"file:{tmp / 'a.bcp1'},clock_hz=66000000", "-o", out)
    segment = harness.segments(out)[0]
    records = [line.split("\t") for line in buscap("dump", "-p", segment)[0].decode().splitlines()]
    named = [line.split("\t") for line in buscap("dump", "-p", "--map", "pc", segment)[0].decode().splitlines()]
    hits = [json.loads(line) for line in buscap("find", "-j", "--map", "pc", "0-", segment)[0].splitlines()]
    equal([line[:6] for line in named], records)
    equal([line[6] if len(line) > 6 else None for line in named], [hit["name"] for hit in hits])
    assert any(hit["name"] for hit in hits)


def test_stats_count_references_by_name(tmp):
    trace = write_byu(tmp / "a.byu", ACCESSES + ACCESSES[:1] * 3)
    assert "names" not in json.loads(buscap("stats", "-j", trace)[0])
    names = json.loads(buscap("stats", "-j", "--map", "pc", trace)[0])["names"]
    equal((names["total"], names["without"], names["others"]), (9, 1, 0))
    equal({row["name"]: row["count"] for row in names["names"]},
          {**{name: 1 for name in PC_NAMES if name}, "VGA colour text": 4})
    text = buscap("stats", "--map", "pc", trace)[0].decode()
    lines = text[text.index("references by name"):].split("\n\n")[0].splitlines()
    equal(lines[1].split(), ["VGA", "colour", "text", "4", "44.44", "%"])
    equal(lines[-1].split(), ["without", "a", "name", "1", "11.11", "%"])
    # Formats that are not read as BYU records, too.
    din = tmp / "a.din"
    din.write_text("0 b8000\n1 123456789a\n")
    names = json.loads(buscap("stats", "-j", "-I", "din", "--map", "pc", din)[0])["names"]
    equal((names["total"], names["without"], names["names"][0]["name"]), (2, 1, "VGA colour text"))


def test_tail_appends_names(tmp):
    types = {MEM_READ: "MEMREAD", MEM_WRITE: "MEMWRITE", IO_WRITE: "IOWRITE"}
    records = [{"number": i, "tick": i, "epoch": 0, "addr": hex(addr), "type": types[kind], "size": 1, "attr": 0,
                "proc": 0, "delta": 1} for i, (addr, kind) in enumerate(ACCESSES)]
    lines = [*records, {"mark": {"text": "m"}}]
    with MockDaemon(tmp / "s", {"*": MockStream(*lines)}) as daemon:
        def tail(*argv):
            return run(BUSCAP, "tail", "--socket", tmp / "s", *argv).stdout.decode().splitlines()

        plain = tail("-t", "tick")
        equal(tail("-t", "tick", "--map", "pc")[:-1],
              [line + (f"\t{name}" if name else "") for line, name in zip(plain, PC_NAMES)])
        equal([json.loads(line) for line in tail("--json", "--map", "pc")],
              [{**record, "name": name} for record, name in zip(records, PC_NAMES)] + lines[-1:])
        tail("--region", "IDE 1")
        equal(daemon.requests[-1][1].partition("?")[2].replace("+", "%20"), "region=IDE%201")


def test_top_shows_the_names_of_pages(tmp):
    names = tmp / "names"
    names.write_text("1f000-1ffff frame buffer\n32000-32fff a name that does not fit in the space of a column\n")
    with FakeDaemon(tmp / "s", Bus()):
        for width in (60, 80, 120, 160):
            done = run(BUSCAP, "top", "--once", "--socket", tmp / "s", "--map", names,
                       env={"PATH": "/usr/bin:/bin", "COLUMNS": str(width)})
            text = done.stdout.decode()
            lines = text.splitlines()
            assert any("0x0001f000" in line and line.rstrip().endswith("frame buffer") for line in lines), (width, text)
            assert any("0x00032000" in line and "a name that does" in line for line in lines), (width, text)
            assert all(len(line) <= width for line in lines), (width, text)


# ---- regions


def vga(addr, kind):
    if kind in (IO_READ, IO_WRITE):
        return 0x3B0 <= addr <= 0x3BB or 0x3C0 <= addr <= 0x3DF
    return 0xA0000 <= addr <= 0xBFFFF


EDGES = [(addr, kind) for addr in (0x3AF, 0x3B0, 0x3BB, 0x3BC, 0x3BF, 0x3C0, 0x3DF, 0x3E0, 0x9FFFF, 0xA0000, 0xBFFFF, 0xC0000)
         for kind in (MEM_READ, MEM_WRITE, IO_READ, IO_WRITE)]


def record_edges(tmp):
    """A recording of accesses at the edges of the VGA's memory and ports, in several segments."""
    trace = write_byu(tmp / "edges.byu", EDGES * 20)
    out = tmp / "recorded"
    done = run(BUSCAPD, "--once", "--source", f"file:{trace}", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    return out, harness.segments(out)


def test_a_region_selects_the_same_in_find_dump_and_cut(tmp):
    out, segments = record_edges(tmp)
    wanted = [access for access in EDGES * 20 if vga(*access)]
    hits = [json.loads(line) for line in buscap("find", "-j", "--region", "VGA", out)[0].splitlines()]
    types = {"MEMREAD": MEM_READ, "MEMWRITE": MEM_WRITE, "IOREAD": IO_READ, "IOWRITE": IO_WRITE}
    equal([(int(hit["addr"], 16), types[hit["type"]]) for hit in hits], wanted, "find")
    equal(int(buscap("find", "-c", "--region", "vga", "--type", "iowrite", out)[0]),
          sum(kind == IO_WRITE for _, kind in wanted), "with a type")
    for source in (segments[0], tmp / "edges.byu"):
        cut = tmp / "cut.byu"
        cut.unlink(missing_ok=True)
        buscap("cut", "--region", "vga", "-O", "byu", "-o", cut, source)
        equal([(r[0], r[1]) for r in RECORD.iter_unpack(cut.read_bytes())], wanted, f"cut of {source.name}")
        lines = [line.split("\t") for line in buscap("dump", "-p", "--region", "vga", source)[0].decode().splitlines()]
        equal([(int(line[0], 16), types[line[1]]) for line in lines], wanted, f"dump of {source.name}")


def listed(*argv):
    """What `find --region help` prints."""
    out, err = buscap("find", "--region", "help", *argv)
    equal(err, "")
    return out.decode()


def test_region_help_lists_all_names(tmp):
    names, symbols = tmp / "names", tmp / "System.map"
    names.write_bytes(b"a0000-bffff frame buffer\n80 \x1b[31mred\\\xff\x07 \xe2\x80\xaeback\nport 80\tPOST  code\nport 3f8-3ff COM1\n")
    symbols.write_text("c0100000 T startup_32\nc0100010 T main\n")
    ours = ("80\t\\x1b[31mred\\x5c\\xff\\x07 \\xe2\\x80\\xaeback\na0000-bffff\tframe buffer\n"
            "port 80\tPOST  code\nport 3f8-3ff\tCOM1\n")
    program = "c0100000-c010000f\tstartup_32\nc0100010-c011000f\tmain\n"
    pc = listed()
    assert pc.startswith("0-3ff\tinterrupt vectors\n") and "\nport 61\tspeaker, NMI status\n" in pc, pc
    # Later options come first, wherever --region is.
    equal(listed("--map", names), ours + pc)
    equal(listed("--map", names, "--symbols", symbols, "/nowhere"), program + ours + pc)
    for command in ("dump", "cut", "stats"):
        equal(buscap(command, "--symbols", symbols, "--region", "help", "--map", names), ((ours + program + pc).encode(), ""), command)
    equal(buscap("tail", "--map", names, "--region", "help"), (pc.encode(), ""))  # the names of the daemon are not known
    (tmp / "pc").write_text(pc)
    equal(listed("--map", tmp / "pc"), pc + pc, "the list is a map")
    err = buscap("find", "--region", "nowhere", code=2)[1]
    equal(err, "buscap find: --region nowhere: no region has this name; --region help lists all names\n")


def test_each_region_of_a_pc_is_found_by_its_listed_name(tmp):
    ranges = {}
    for line in listed().splitlines():
        place, name = line.split("\t")
        ends = [int(end, 16) for end in place.removeprefix("port ").split("-")]
        ranges.setdefault(name, []).append((IO_READ if place.startswith("port ") else MEM_READ, ends[0], ends[-1]))
    assert len(ranges) > 40, ranges
    accesses = sorted({(end, kind) for places in ranges.values() for kind, *ends in places for end in ends})
    trace = write_byu(tmp / "a.byu", accesses)
    for name, places in ranges.items():
        hits = [json.loads(line) for line in buscap("find", "-j", "--region", name, trace)[0].splitlines()]
        equal([(int(hit["addr"], 16), IO_READ if hit["type"] == "IOREAD" else MEM_READ) for hit in hits],
              [(addr, kind) for addr, kind in accesses
               if any(kind == wanted and first <= addr <= last for wanted, first, last in places)], name)


# ---- the daemon


def daemon_files(tmp):
    """A map and symbols that name the addresses of the simulated bus."""
    names, symbols = tmp / "names", tmp / "System.map"
    names.write_text("0-ffffffff everything\nport 0-ffff every port\n")
    symbols.write_text("c0000000 T low_half\n")
    return names, symbols


@pytest.mark.threads
def test_regions_in_requests(tmp):
    names, _ = daemon_files(tmp)
    with daemon_in(tmp, "--set", f"names.map={names}") as daemon:
        daemon.wait_ready()
        with Stream(tmp / "socket", "/v1/records?region=everything&limit=10", "RecordLine") as stream:
            records = [line for line in stream.rest() if "addr" in line]
        assert all(not record["type"].startswith("IO") for record in records), records
        equal(len(records), 10)
        for method, path, body in (("GET", "/v1/records?region=vgs", None),
                                   ("POST", "/v1/triggers", {"name": "a", "when": "region=vgs", "action": "mark"})):
            answer = send(tmp / "socket", method, path, body)
            equal(answer.status, 400)
            assert "region=vgs: no region has this name; similar names: VGA" in answer.json()["error"], answer.body
        done = run(BUSCAP, "trigger", "add", "port", "mark", "region=every_port", "--socket", tmp / "socket")
        equal(done.returncode, 0, done.stderr.decode())
        equal(send(tmp / "socket", "GET", "/v1/triggers/port").json()["trigger"]["when"], "region=every_port")
        # SIGHUP reads the files again.
        names.write_text("b8000-bffff my screen\n")
        harness.wait_until(lambda: is_known_after_reload(tmp, daemon, "screen"), "the new name is known")
        assert not is_known_after_reload(tmp, daemon, "everything")
        names.write_text("nonsense\n")
        is_known_after_reload(tmp, daemon, "vga")
        harness.wait_until(lambda: f"{names}: line 1: expected a hexadecimal address; keeping the old configuration"
                           in daemon.log_so_far(), "the error is logged")
        assert is_known(tmp, "screen")
        # A trigger that was requested keeps its ranges.
        equal(send(tmp / "socket", "POST", "/v1/recordings").status, 201)
        harness.wait_until(lambda: send(tmp / "socket", "GET", "/v1/triggers/port").json()["trigger"]["fired"] > 0, "it acts")
        equal(daemon.stop(), 0, daemon.err)


def is_known(tmp, name):
    """Whether the daemon knows a region."""
    trigger = {"name": "known", "when": f"region={name}", "action": "mark"}
    status = send(tmp / "socket", "POST", "/v1/triggers", trigger).status
    assert status in (201, 400), status
    return status == 201 and send(tmp / "socket", "DELETE", "/v1/triggers/known").status == 200


def is_known_after_reload(tmp, daemon, name):
    before = daemon.log_so_far().count("SIGHUP:")
    daemon.process.send_signal(1)
    harness.wait_until(lambda: daemon.log_so_far().count("SIGHUP:") > before, "it was reloaded")
    return is_known(tmp, name)
