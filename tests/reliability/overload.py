"""Records more than the machine can: a source faster than the disk and the processor, small buffers, other programs on
every core. A round is one recording.

What arrives must equal what was sent, the counts must add up in every status, and each lost sample must be counted and in
a gap at its position. The source is the simulator, whose samples are known, or a capture board in software that counts
what leaves it.
"""

import contextlib
import json
import os
import random
import sys


import torture

import attack
import harness
from harness import Daemon, Faults, Watch, equal
from usb_harness import Board, Recorder

BURN = "while True: pass"


@contextlib.contextmanager
def busy(processes):
    """Keeps other programs running on the processor."""
    with contextlib.ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(harness.popen([sys.executable, "-S", "-c", BURN]))
            stack.callback(process.kill)
        yield


def settings(rng):
    """Random settings of the pipeline."""
    workers = rng.choice((1, 1, 2, 4))
    return ["--set", f"pipeline.workers={workers}", "--set", f"pipeline.buffer={6 + 3 * workers}M",
            "--set", f"pipeline.flush={rng.choice((5, 100, 1000))}ms", "-b", f"filesize:{rng.choice((100, 2000, 20000))}K"]


def simulated(directory, seed, rate, count, burners):
    """Records exactly `count` samples of the simulator. Returns (samples, lost, statuses)."""
    rng = random.Random(seed)
    out = directory / "out"
    out.mkdir()
    rules = rng.choice(("", "pwrite:slow", "fdatasync:slow", "pwrite:1+:slow,fdatasync:slow"))
    faults = Faults(directory, out, rules)
    argv = ("--once", "--source", f"sim:rate={rate},count={count}", "-o", out, *settings(rng))
    with busy(burners), Daemon(*argv, socket=directory / "socket", env=faults.env) as daemon:
        attack.wait_ready(daemon)  # it may have ended
        with Watch(daemon.socket, may_end=True) as watch:
            code = daemon.wait(600)
            watch.finish()
    log = attack.ended_well(daemon, "overload")
    counts = harness.check_counts(json.loads(daemon.out))
    lost = counts["dropped"]["buffer"] + counts["dropped"]["disk"]
    equal(code, 4 if lost else 0, log)
    equal((counts["received"], counts["in_flight"]), (count, 0), f"received, in flight; {log}")
    harness.verify(harness.segments(out))
    equal(attack.recorded(out), count - counts["dropped"]["invalid"], f"records and losses on record; {log}")
    return count, lost, watch.samples


def from_board(directory, seed, samples, burners):
    """Records from a board at its full speed. Returns (samples, lost, statuses)."""
    rng = random.Random(seed)
    with busy(burners), Board("serial=A1,rate=0") as board:
        with Recorder(directory, board, *settings(rng)) as recorder:
            recorder.wait_streaming()
            recorder.wait_more(samples)
            code = recorder.end()
        counts = harness.check_counts(recorder.final)
        lost = counts["dropped"]["buffer"] + counts["dropped"]["disk"]
        equal(code, 4 if lost else 0, recorder.log)
        sent = board.sent()
        equal(counts["received"], sent["samples"], f"received, sent; {sent}; {recorder.log}")
        equal(counts["in_flight"], 0, "in flight")
        segments = harness.segments(recorder.directory)
        harness.verify(segments)
        said = harness.info(segments)
        records = sum(segment["records"] for segment in said)
        gaps = sum(gap["lost"] for segment in said for gap in segment["causes"].values())
        equal(records, counts["written"], "records in the files, written")
        equal(records + gaps, counts["received"] - counts["dropped"]["invalid"], f"records and losses on record; {recorder.log}")
        return counts["received"], lost, recorder.watch.samples


def run(options):
    cores = os.cpu_count()
    cases = []
    for i in range(options.rounds):
        rng = options.rng(i)
        burners = rng.choice((0, cores, 2 * cores))
        if i % 3 == 2:
            cases.append(("from_board", options.seed + i, 30_000_000 if options.is_long else 3_000_000, burners))
        else:
            rate = rng.choice((3, 10, 40, 100)) * 1_000_000
            cases.append(("simulated", options.seed + i, rate, 30_000_000 if options.is_long else 1_500_000, burners))
    options.jobs = 1
    results = options.each(lambda directory, name, *case: globals()[name](directory, *case), cases)
    return {
        "recordings": len(results),
        "samples": sum(samples for samples, _, _ in results),
        "lost, each counted and on record": sum(lost for _, lost, _ in results),
        "recordings that lost samples": sum(lost != 0 for _, lost, _ in results),
        "status samples": sum(watched for _, _, watched in results),
    }


if __name__ == "__main__":
    torture.main(run, short=4, long=45)
