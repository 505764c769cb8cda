"""Segments that are missing: every command that reads says so in the same words, and with the same exit code."""

import json
import pathlib
import random
import re
import shutil
import struct

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, run
from web_harness import Web

SEGMENTS = 8

# Operands of each command; {} is the directory or the files. Others are a second input.
COMMANDS = {
    "verify": ["{}"],
    "stats": ["{}"],
    "dump": ["{}"],
    "cut": ["{}", "-O", "csv"],
    "convert": ["{}", "-O", "csv"],
    "info": ["{}"],
    "marks": ["{}"],
    "find": ["0-", "{}"],
    "report": ["--json", "{}"],
    "merge": ["{}", "OTHER", "-O", "csv"],
    "diff": ["{}", "SAME"],
}


def record(directory, chunks, filesize):
    """Records so many chunks, which are small because many records have no time."""
    dice = random.Random(chunks)
    records = b"".join(struct.pack("<IB3xI", dice.randrange(1 << 28), 0, dice.randrange(1000) if i % 2 else 0xFFFFFFFF)
                       for i in range(512 * chunks))
    stream = directory / "stream"
    stream.write_bytes(records)
    done = run(BUSCAPD, "--once", "--no-socket", "--source", f"file:{stream},format=byu,clock_hz=66000000", "-o", directory, "-b",
               f"filesize:{filesize}K")
    equal(done.returncode, 0, done.stderr)
    stream.unlink()


def recording():
    """A recording of eight segments."""

    def make(new):
        record(new, 10, 2)
        for path in harness.segments(new)[SEGMENTS:]:
            path.unlink()
        equal(len(harness.segments(new)), SEGMENTS)

    return harness.shared("holes", make)


def other():
    """Another recording."""
    return harness.segments(harness.shared("holes-other", lambda new: record(new, 1, 200)))[0]


def first_of(path):
    return reference.read_segment(path).chunks[0].info["first_record"]


def hole(firsts, first, last):
    """The sentence for the segments from one number to another."""
    records = firsts[last + 1] - firsts[first]
    which = f"segment {first} is not here" if first == last else f"segments {first} to {last} are not here"
    return f"{records:,} records missing: {which}"


# Name: numbers of the segments that are removed; the number of one whose index is damaged, or None; and the holes.
HOLES = {
    "no hole": ([], None, []),
    "one": ([3], None, [(3, 3)]),
    "three": ([3, 4, 5], None, [(3, 5)]),
    "two holes": ([2, 4, 5], None, [(2, 2), (4, 5)]),
    "the first two": ([0, 1], None, []),
    "the last two": ([6, 7], None, []),
    "a damaged index before it": ([3], 2, [(3, 3)]),
    "a damaged index after it": ([3], 4, [(3, 3)]),
}


def prepare(tmp, removed, damaged):
    """Copies the recording without some segments. Returns the directory, and the first record of each segment."""
    directory = pathlib.Path(shutil.copytree(recording(), tmp / "out"))
    (directory / ".buscapd.lock").unlink(missing_ok=True)
    firsts = [first_of(path) for path in harness.segments(directory)]
    paths = harness.segments(directory)
    for number in removed:
        paths[number].unlink()
    if damaged is not None:
        data = bytearray(paths[damaged].read_bytes())
        data[-20] ^= 1
        paths[damaged].write_bytes(data)
    return directory, firsts


def said(*texts):
    """The holes that a program names, in the order in which it does."""
    return re.findall(r"(?:[\d,]+ records? missing: )?segments? \d+(?: to \d+)? (?:is|are) not here", "".join(texts))


@pytest.mark.parametrize("name", HOLES)
def test_every_command_says_the_same(tmp, name):
    removed, damaged, holes = HOLES[name]
    directory, firsts = prepare(tmp, removed, damaged)
    wanted = [hole(firsts, *one) for one in holes]
    code = 3 if holes or damaged is not None else 0
    paths = harness.segments(directory)
    for command, operands in COMMANDS.items():
        for given in ([directory], paths[::-1]):
            if command == "diff" and given != [directory]:
                continue
            words = {"{}": given, "OTHER": [other()], "SAME": [directory]}
            done = run(BUSCAP, command, *(word for one in operands for word in words.get(one, [one])))
            # verify prints them among its results; diff reads the files twice.
            text = done.stdout.decode() if command == "verify" else ""
            found = said(text, done.stderr.decode())
            equal(sorted(found) if command == "diff" else found, sorted(wanted * 2) if command == "diff" else wanted,
                  (command, given, done.stderr.decode()))
            equal(done.returncode, code, (command, given, done.stderr.decode()))
    check_marks(directory, firsts, holes)
    check_picture(json.loads(run(BUSCAP, "report", "--json", directory).stdout)["overview"], firsts, removed, holes)
    with Web("--socket", tmp / "none", directory) as web:
        overview = web.get("/data/overview")
        check_picture(overview, firsts, removed, holes)
        equal([one["what"] for one in overview["holes"]], wanted, "holes of the page")
        damage = [line["damage"]["what"] for line in web.lines("/data/find?count=true") if "damage" in line]
        equal(said(*damage), wanted, "holes of a search")
        if holes:
            first = firsts[holes[0][0]]
            for records, found in ((f"0-{first - 1}", []), (f"0-{first}", wanted[:1]), (f"{firsts[holes[-1][1] + 1]}-", [])):
                damage = [line["damage"]["what"] for line in web.lines(f"/data/find?count=true&records={records}") if "damage" in line]
                equal(said(*damage), found, records)


def check_marks(directory, firsts, holes):
    """`marks` also lists them."""
    wanted = [(hole(firsts, first, last), firsts[first], first, last + 1 - first, firsts[last + 1] - firsts[first])
              for first, last in holes]
    for options, rows in (((), wanted), (("--kind", "missing"), wanted), (("--kind", "gap"), []), (("--from", "+1h"), [])):
        lines = [line for line in run(BUSCAP, "marks", *options, directory).stdout.decode().splitlines() if "  missing  " in line]
        equal([(line.split("  missing  ")[1], int(line.split()[0])) for line in lines], [row[:2] for row in rows], options)
        found = [json.loads(line) for line in run(BUSCAP, "marks", "-j", *options, directory).stdout.splitlines()]
        found = [one for one in found if one["kind"] == "missing"]
        equal([tuple(one[name] for name in ("text", "number", "segment", "segments", "records")) for one in found], rows, options)


def check_picture(overview, firsts, removed, holes):
    (one,) = overview["recordings"]
    missing = sum(firsts[last + 1] - firsts[first] for first, last in holes)
    equal((one["missing"], one["missing_segments"]), (missing, sum(last + 1 - first for first, last in holes)))
    equal(one["first_record"], firsts[min(set(range(SEGMENTS)) - set(removed))])
    columns = overview["columns"]
    equal(sum(column["missing"] for column in columns), missing, "missing in the picture")
    found = [column for column in columns if column["is_hole"]]
    equal([column["first_record"] for column in found], [firsts[first] for first, _ in holes], "holes")
    for column in found:
        equal((column["records"], column["counts"], column["cells"], column["lost"]), (0, [0] * 4, [], 0), "a hole is empty")


def test_a_recording_whose_first_segments_are_gone_starts_at_a_record(tmp):
    directory, firsts = prepare(tmp, [0, 1], None)
    assert f"starts at record {firsts[2]}" in run(BUSCAP, "info", directory).stdout.decode()
    (one,) = json.loads(run(BUSCAP, "report", "--json", directory).stdout)["overview"]["recordings"]
    equal((one["first_record"], one["missing"], one["missing_segments"]), (firsts[2], 0, 0))
    row = json.loads(run(BUSCAP, "info", "-j", directory).stdout)
    equal((row["first_record"], row["missing"], row["missing_segments"]), (firsts[2], 0, 0))


# Numbers of the segments that are removed, that of one that is here but can't be read, and the numbers that are named.
@pytest.mark.parametrize("removed, unread, named", [([3], 2, [3]), ([3], 4, [3]), ([], 3, []), ([2, 4], 3, [2, 4]),
                                                     ([1, 2], 0, ["1 to 2"]), ([5, 6], 7, ["5 to 6"])])
def test_next_to_an_unreadable_segment_the_number_is_unknown(tmp, removed, unread, named):
    directory, _ = prepare(tmp, removed, None)
    path = directory / harness.segments(recording())[unread].name
    wanted = [f"segment{'s' * (' ' in str(which))} {which} {'are' if ' ' in str(which) else 'is'} not here" for which in named]
    for damage in (random.Random(1).randbytes(10000), b""):
        path.write_bytes(damage)
        for command, operands in COMMANDS.items():
            words = {"{}": directory, "OTHER": other(), "SAME": directory}
            done = run(BUSCAP, command, *(words.get(word, word) for word in operands))
            text = (done.stdout if command == "verify" else b"").decode() + done.stderr.decode()
            found = said(text)
            equal(sorted(found) if command == "diff" else found, sorted(wanted * 2) if command == "diff" else wanted, (command, text))
            if damage:
                assert path.name in text and done.returncode in (1, 2, 3), (command, done.returncode, text)
        overview = json.loads(run(BUSCAP, "report", "--json", directory).stdout)["overview"]
        (one,) = overview["recordings"]
        equal((one["missing"], one["missing_segments"]), (0, len(removed)))
        equal([one["records"] for one in overview["holes"]], [None] * len(named))
        # The picture has all in one: nothing is known of either.
        equal(sum(column["is_hole"] for column in overview["columns"]), unread not in (0, 7))


def test_a_file_of_another_segment_does_not_hide_a_hole(tmp):
    directory, firsts = prepare(tmp, [], None)
    harness.segments(directory)[3].write_bytes(other().read_bytes())
    for command, operands in COMMANDS.items():
        words = {"{}": directory, "OTHER": other(), "SAME": directory}
        done = run(BUSCAP, command, *(words.get(word, word) for word in operands))
        found = said(done.stdout.decode() if command == "verify" else "", done.stderr.decode())
        equal(found, [hole(firsts, 3, 3)] * (2 if command == "diff" else 1), (command, done.stderr.decode()))
        assert b"by its header it is" in done.stderr and done.returncode in (1, 2, 3), (command, done)


def test_a_search_names_only_the_holes_that_it_reached(tmp):
    directory, firsts = prepare(tmp, [3], None)
    tell = [hole(firsts, 3, 3)]
    start = json.loads(run(BUSCAP, "report", "--json", directory).stdout)["overview"]
    (gone,) = [column for column in start["columns"] if column["is_hole"]]
    middle, before, after = (f"+{ns / 1e9:.9f}" for ns in ((gone["from"] + gone["to"]) // 2, gone["from"] // 2, gone["to"] + 10**6))
    for options, holes in ((["--last", "1"], []), (["--first", "1"], []), (["--count"], tell), (["--last", str(firsts[7])], tell),
                           (["--count", "--to", before], []), (["--count", "--from", after], []), (["--count", "--from", middle], tell),
                           (["--count", "--from", middle, "--to", middle[:-1] + "9"], tell)):
        done = run(BUSCAP, "find", *options, "0-", directory)
        equal((said(done.stderr.decode()), done.returncode), (holes, 3 if holes else 0), (options, done.stderr.decode()))


def test_no_column_covers_a_hole(tmp):
    """Any holes, in pictures of any part in any number of columns."""
    dice = random.Random(1)
    record(tmp, 1000, 80)
    paths = harness.segments(tmp)
    assert len(paths) > 30, len(paths)
    firsts = [json.loads(line)["first_record"] for line in run(BUSCAP, "info", "-j", *paths).stdout.splitlines()]
    ends = [*firsts[1:], 512 * 1000]
    units = set()
    for _ in harness.some(range(150), 15):
        few = dice.randrange(1, 4)
        kept = sorted(dice.sample(range(len(paths)), dice.choice((dice.randrange(2, len(paths)), len(paths) - few))))
        holes = [(ends[a], firsts[b]) for a, b in zip(kept, kept[1:]) if b - a > 1]
        options = ["--columns", str(dice.choice((16, 32, 100, 512)))]
        whole = dice.random() < 0.5
        if not whole:
            low, high = sorted(dice.uniform(0, 2.5) for _ in range(2))
            options += ["--from", f"+{low}", "--to", f"+{high + 0.001}"]
        done = run(BUSCAP, "report", "--json", *options, *(paths[i] for i in kept))
        if done.returncode == 1:
            assert b"no records in this range" in done.stderr, done.stderr
            continue
        equal(done.returncode, 3 if holes else 0, done.stderr)
        overview = json.loads(done.stdout)["overview"]
        columns = overview["columns"]
        units.add(overview["unit"])
        assert len(columns) <= int(options[1]), len(columns)
        if whole:
            equal(sum(column["missing"] for column in columns), sum(b - a for a, b in holes), "missing")
            equal(sum(column["records"] for column in columns), sum(ends[i] - firsts[i] for i in kept), "records")
        own = [column for column in columns if column["is_hole"]]
        if whole and 2 * len(holes) < int(options[1]):
            equal(len(own), len(holes), "columns of their own")
        for column in own:
            assert any(a == column["first_record"] and b - a == column["missing"] for a, b in holes), column
            for one in columns:
                if not one["is_hole"]:
                    assert one["to"] <= column["from"] or one["from"] >= column["to"], (one["from"], one["to"], column)
    assert len(units) >= 2, units
