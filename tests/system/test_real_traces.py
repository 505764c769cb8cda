"""Traces that others have made: a Pentium II's bus, a course's micro-ops and its own reader's output, Arm's models. They are not
part of the project; without them the tests are skipped."""

import collections
import json
import re
import struct

import locality
import pytest

from harness import BUSCAP, BUSCAPD, ROOT, equal, need, run, segments

DATA = ROOT / "../shared/data"
PENTIUM = DATA / "byu/pentium2-slice.tr"


@pytest.fixture(autouse=True)
def traces():
    if not DATA.exists():
        pytest.skip("needs traces that are not part of the project")


def stats(*argv):
    done = run(need(BUSCAP), "stats", "--json", *argv)
    return json.loads(done.stdout), done


def test_a_pentiums_records_are_counted_recorded_and_read_by_lz4(tmp):
    found, done = stats("-I", "byu", PENTIUM)
    equal({row["name"]: row["references"] for row in found["types"]},
          {"FETCH": 14362, "MEMREAD": 5756, "MEMWRITE": 2444, "MEMREADINV": 535, "DEFERREPLY": 238})
    equal(done.returncode, 3, "the torn tail of two bytes")
    done = run(need(BUSCAPD), "--once", "--source", f"file:{PENTIUM},format=byu", "-o", tmp / "out")
    equal(done.returncode, 3, done.stderr.decode())
    equal(run("lz4", "-dcm", *segments(tmp / "out")).stdout, PENTIUM.read_bytes()[: 23335 * 12])
    headers, _ = stats(*segments(tmp / "out"))
    equal(headers["classes"], {"fetch": 14362, "read": 5756 + 535, "write": 2444, "other": 238, "ioread": 0, "iowrite": 0})
    equal(headers["footprint"]["pages"], stats("--full", *segments(tmp / "out"))[0]["footprint"]["pages"])


def test_the_courses_own_reader_prints_the_same():
    done = run(need(BUSCAP), "stats", "-I", "cis501", "--as", "cis501", DATA / "cis501/sjeng-1K.trace")
    equal((done.returncode, done.stdout), (0, (DATA / "cis501/sjeng-1K.expected").read_bytes()))


@pytest.mark.parametrize("name", ["quicksort", "calltest32", "indextest", "cm0-fractional"])
def test_tarmac_traces_are_counted_and_written_unchanged(name):
    path = DATA / f"tarmac/{name}.tarmac"
    words = collections.Counter()
    for line in path.read_text(errors="replace").splitlines():
        word = re.search(r"\b(IT|IS|IF|R)\b|\bM[RW]\w*", line)
        words[word[0][:2] if word else ""] += 1
    found, _ = stats("-I", "tarmac", path)
    equal((found["instructions"]["executed"], found["instructions"]["skipped"]), (words["IT"], words["IS"]))
    equal(found["instructions"]["mnemonics"]["total"] + found["instructions"]["without_mnemonic"], words["IT"])
    done = run(BUSCAP, "convert", "-I", "tarmac", "-O", "tarmac", path)
    equal(done.stdout, path.read_bytes(), done.stderr.decode())


# Effects and instruction sets in the words of Arm's parser.
EFFECTS = {"executed": "executed", "skipped": "ccfail", "fetchfail": "fetchfail"}
SETS = {"A": "ARM", "T": "Thumb", "O": "A64"}


def test_a_conversion_says_which_types_it_changes_and_which_it_leaves_out(tmp):
    err = run(need(BUSCAP), "convert", "-O", "din", "-o", tmp / "x.din", PENTIUM).stderr.decode()
    assert "\nbuscap convert: MEMREADINV written as MEMREAD (535), DEFERREPLY left out (238)\n" in err, err


def event_of(entry, unit):
    """An entry as Arm's parser prints it."""
    time = f"time={entry['tick'] // unit}"
    if entry["kind"] == "instruction":
        return (f"* InstructionEvent {time} effect={EFFECTS[entry['effect']]} pc={int(entry['addr'], 16):x} "
                f"iset={SETS[entry['set'][0]]} width={entry['size'] * 8} instruction={int(entry.get('opcode', '0'), 16):x} "
                f"disassembly=\"{entry.get('disassembly', '')}\"")
    data = entry.get("data")
    return (f"* MemoryEvent {time} read={'true' if entry['type'] == 'MEMREAD' else 'false'} known={'true' if data else 'false'} "
            f"addr={int(entry['addr'], 16):x} size={entry['size']} contents={int(data or '0', 16):x}")


def test_instructions_and_accesses_are_those_of_arms_own_parser():
    path = DATA / "tarmac/parsertest.txt"
    entries = collections.defaultdict(list)
    for line in run(need(BUSCAP), "convert", "-I", "tarmac", "-O", "ndjson", path).stdout.splitlines():
        entry = json.loads(line)
        entries[entry["number"]].append(entry)
    lines = {number: line for number, line in enumerate(path.read_text().splitlines(), 1) if line and line[0] != "#"}
    references = (DATA / "tarmac/parsertest.ref").read_text().split("--- Tarmac line: ")[1:]
    counts, unit = collections.Counter(), 1
    for (number, line), reference in zip(lines.items(), references, strict=True):
        text, *events = reference.rstrip("\n").split("\n")
        equal(text, line)
        here = [entry for entry in entries[number] if entry["kind"] in ("instruction", "reference")]
        counts.update(entry["kind"] for entry in here)
        # Times are in ps, as in the line before if it has none of its own.
        if (written := re.match(r"\s*(\d+) [a-z]", line)) and (tick := entries[number][0].get("tick")) is not None:
            unit = tick // int(written[1]) if int(written[1]) else 1
        if here:
            # Arm's parser lists what LD and ST access from the highest address down.
            found = [event_of(entry, unit) for entry in here]
            equal(*((sorted(found), sorted(events)) if {"LD", "ST"} & set(line.split()) else (found, events)), line)
    equal(dict(counts), {"instruction": 36, "reference": 46})


def pentium_accesses():
    """Of all accesses to memory: (address, bytes)."""
    return [(addr, size) for addr, kind, size, _, _, _ in struct.iter_unpack("<I4BI", PENTIUM.read_bytes()[:-2]) if kind <= 3]


def micro_op_accesses():
    for line in (DATA / "cis501/sjeng-1K.trace").read_text().splitlines():
        step, pc, *_, access, _, addr, fallthrough, _, _, _ = line.split()
        if step == "1":
            yield int(pc, 16), int(fallthrough, 16) - int(pc, 16)
        if access in "LS":
            yield int(addr, 16), 0


def tarmac_accesses():
    done = run(need(BUSCAP), "convert", "-I", "tarmac", "-O", "ndjson", DATA / "tarmac/quicksort.tarmac")
    for entry in map(json.loads, done.stdout.splitlines()):
        if entry["kind"] in ("instruction", "reference"):
            yield int(entry["addr"], 16), entry["size"]


@pytest.mark.parametrize(("trace", "accesses"), [
    (("byu", PENTIUM), pentium_accesses),
    (("cis501", DATA / "cis501/sjeng-1K.trace"), micro_op_accesses),
    (("tarmac", DATA / "tarmac/quicksort.tarmac"), tarmac_accesses),
], ids=["pentium2", "sjeng", "quicksort"])
def test_working_sets_and_misses_are_those_of_a_direct_simulation(trace, accesses):
    found, _ = stats("--working-set", "--miss-ratio", "-I", *trace)
    is_bus = trace[0] == "byu"
    lines, pages = ([locality.blocks(addr, size, each, is_bus) for addr, size in accesses()] for each in (32, 4096))
    locality.check_misses(found["miss_ratio"], [line for span in lines for line in span], 32)
    locality.check_working_set(found["working_set"], list(enumerate(lines, 1)), list(enumerate(pages, 1)),
                               len(lines), every=4)
