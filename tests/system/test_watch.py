"""Filters, sampling and triggers in whole recordings, compared with the same bus recorded without them."""

import csv
import io
import json
import signal
import typing

import harness
from harness import BUSCAP, BUSCAPD, Daemon, equal, run

# It is sent as fast as it is read, so the trace is the same each time; only the board loses samples.
BUS = "sim:rate=max,count=80000,seed=5,agents=2,loss=0.3,corrupt=0.05"


class Reference(typing.NamedTuple):
    tick: int
    epoch: int
    kind: str
    addr: int
    size: int
    attr: int
    proc: int


def rows_of(paths):
    """The contents of a recording, in order: a Reference, or a tuple for a gap, mark or trigger."""
    done = run(BUSCAP, "convert", "-O", "csv", "-o", "-", *paths)
    equal(done.returncode, 0, done.stderr)
    rows = []
    lines = csv.reader(io.StringIO(done.stdout.decode()))
    header = next(lines)
    tick, epoch, kind, type_, addr, size, attr, proc, cause, lost, exact, text = map(header.index, (
        "tick", "epoch", "kind", "type", "addr", "size", "attr", "proc", "cause", "lost", "exact", "text"))
    for row in lines:
        if row[kind] == "reference":
            rows.append(Reference(int(row[tick]), int(row[epoch]), row[type_], int(row[addr], 16), int(row[size]),
                                  int(row[attr]), int(row[proc])))
        elif row[kind] == "gap":
            rows.append(("gap", row[cause], row[lost], row[exact]))
        elif row[kind] in ("mark", "trigger"):
            rows.append((row[kind], row[text]))
    return rows


def once(directory, *settings, source=BUS):
    """The rows of a recording with these settings, and its counts."""
    argv = [word for setting in settings for word in ("--set", setting)]
    done = run(BUSCAPD, "--once", "--source", source, "-o", directory, *argv)
    assert done.returncode in (0, 3, 4), done.stderr
    harness.check_sound(done.stderr)
    counts = json.loads(done.stdout)["counts"]
    harness.check_counts({"counts": counts})
    paths = harness.segments(directory)
    equal(run(BUSCAP, "verify", *paths).returncode, 0)
    return rows_of(paths), counts


def references(rows):
    return [row for row in rows if isinstance(row, Reference)]


def is_match(row, port):
    return isinstance(row, Reference) and row.kind == "IOWRITE" and row.addr <= port < row.addr + row.size


def test_a_filter_keeps_matching_records_with_their_ticks_and_every_gap(tmp):
    whole, _ = once(tmp / "whole")
    kept, counts = once(tmp / "kept", "filter.keep=type=read,write", "filter.keep.io=type=IO_WRITE",
                        "filter.leave_out=proc=1 addr=0-ffffff")
    wanted = [row for row in whole if not isinstance(row, Reference) or (
        row.kind in ("MEMREAD", "MEMREADINV", "MEMWRITE", "IOWRITE") and not (
            row.proc == 1 and row.addr - (row.addr % row.size if row.size in (16, 32) else 0) <= 0xffffff))]
    equal(kept, wanted)
    equal(counts["dropped"]["filtered"], len(references(whole)) - len(references(kept)))
    assert 0 < len(references(kept)) < len(references(whole))
    assert len(kept) - len(references(kept)) > 5, "the records include gaps"


def losses(rows):
    """The sum of the losses of all gaps of a cause, since adjacent gaps are merged."""
    sums = {}
    for row in rows:
        if not isinstance(row, Reference):
            sums[row[1]] = sums.get(row[1], 0) + int(row[2])
    return sums


def test_sampling_keeps_the_start_of_each_period_of_bus_time(tmp):
    whole, _ = once(tmp / "whole")
    for sampling, width, period in (("1ms/10ms", 66000, 660000), ("0.00001/0.0001", 660, 6600)):
        kept, counts = once(tmp / str(width), f"recording.sampling={sampling}")
        equal(references(kept), [row for row in references(whole) if row.tick % period < width])
        equal(losses(kept), losses(whole))
        equal(counts["dropped"]["filtered"], len(references(whole)) - len(references(kept)))
        assert 0 < len(references(kept)) < len(references(whole)) / 5


def test_a_write_to_a_port_makes_a_mark_before_it(tmp):
    whole, _ = once(tmp / "whole")
    marked, _ = once(tmp / "marked", "trigger roi.when=port=20", "trigger roi.action=mark",
                     "trigger roi.text=ä \"here\"")
    wanted = []
    for row in whole:
        if is_match(row, 0x20):
            wanted.append(("mark", 'ä "here"'))
        wanted.append(row)
    equal(marked, wanted)
    assert len(marked) - len(whole) > 5


def test_filtered_records_trigger_nothing(tmp):
    kept, _ = once(tmp / "kept", "filter.leave_out=type=IO_WRITE", "trigger roi.when=port=20",
                   "trigger roi.action=mark")
    assert not [row for row in kept if row == ("mark", "roi")]


def test_a_reload_changes_filters_and_triggers_immediately(tmp):
    config = tmp / "c.conf"
    config.write_text("[filter]\nkeep = type=IO_WRITE\n[trigger roi]\nwhen = port=43\naction = mark\n")
    with Daemon("-c", config, "--source", "sim:rate=50k,count=1M,seed=5", "-o", tmp / "live",
                socket=tmp / "s") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > 0, "records are written")
        config.write_text("[filter]\nkeep = type=read\n[trigger all]\nwhen = proc=0\naction = mark\nholdoff = 1ms\n")
        daemon.process.send_signal(signal.SIGHUP)
        before = daemon.status()["counts"]["received"]
        harness.wait_until(lambda: daemon.status()["counts"]["received"] > before + 20_000, "the daemon continues")
        equal(daemon.status()["triggers"], 1)
        equal(daemon.stop(), 0)
    rows = rows_of(harness.segments(tmp / "live"))
    kinds = [row.kind == "IOWRITE" for row in references(rows)]
    change = kinds.index(False)
    assert all(kinds[:change]) and not any(kinds[change:])
    assert {row.kind for row in references(rows)} == {"IOWRITE", "MEMREAD"}
    assert ("mark", "all") in rows and rows.index(("mark", "all")) >= change
    ticks = [row.tick for row in references(rows)]
    equal(ticks, sorted(ticks))
