"""Runs the recorder's threads in many orders: tests/reliability/schedules.c. A round is one schedule.

To prove that wrong orders are found, each bug in PLANTED is put into a copy of its source file; the same program linked
with that copy must report it.
"""

import os
import pathlib
import re
import shlex
import subprocess

import torture

import harness
from harness import BUILD

PROGRAM = BUILD / "tests/reliability/schedules"
LIBRARIES = [BUILD / f"lib{name}.a" for name in ("daemon", "capture", "formats")]
PACKAGES = "libuv jansson liblz4 zlib libzstd liblzma libxxhash libdeflate libelf inih libmicrohttpd libusb-1.0 libsystemd".split()
FAULTS = ("none", "slow", "full", "all")  # of the disk
PART = 250  # schedules per process
PLANTED_MOST = 20_000

# name: (file, right, wrong), once or more
PLANTED = {
    "a worker takes a chunk before it has an output": (  # packed chunks would return it
        "daemon/ingest/encoder.c",
        """	while ((out = bc_queue_pop(q->outputs)) != NULL) {
		slot = bc_queue_pop(q->chunks);
		if (slot == NULL) {
			bc_queue_push(q->outputs, out);
			break;
		}
""",
        """	while ((slot = bc_queue_pop(q->chunks)) != NULL) {
		out = bc_queue_pop(q->outputs);
""",
        "daemon/ingest/pipeline.c", "bytes > ROOM || out->is_last", "bytes > 0"),
    "a slot is free before it is encoded": (
        "daemon/ingest/encoder.c",
        """		encode_slot(out, slot, &worker->compressor);
		q->on_encoded(q->context, out, slot);
""",
        """		q->on_encoded(q->context, out, slot);
		encode_slot(out, slot, &worker->compressor);
"""),
    "a slot is free while packed chunks are in it": (
        "daemon/ingest/pipeline.c", "slot != NULL && --slot->packed == 0;", "slot != NULL && slot->packed-- != 0;"),
    "a recording ends before its segments are sealed": (
        "daemon/store/rotator.c", "r->ended != NULL && r->ended->sealing == 0", "r->ended != NULL"),
    "closing a queue wakes one thread": (
        "daemon/base/queue.c", "pthread_cond_broadcast(&q->changed);", "pthread_cond_signal(&q->changed);"),
    "a woken thread does not check the queue again": (
        "daemon/base/queue.c",
        """	while (q->count == 0 && !q->is_closed)
		pthread_cond_wait(&q->changed, &q->lock);
""",
        """	if (q->count == 0 && !q->is_closed)
		pthread_cond_wait(&q->changed, &q->lock);
"""),
    "a wake-up without a free slot is taken for one": (
        "daemon/ingest/pipeline.c",
        """	if (!p->needs_slot || bc_queue_count(&p->free_slots) == 0)
		return;
	p->needs_slot = false;
""",
        """	bool is_needed = p->needs_slot;
	p->needs_slot = false;
	if (!is_needed || bc_queue_count(&p->free_slots) == 0)
		return;
"""),
}


def schedules(program, first, count, faults):
    """Returns (schedules run, steps, losses that the disk refused to record, None or the report of the schedule that
    broke a rule)."""
    done = harness.run(program, first, count, faults)
    if done.returncode == 0:
        return *map(int, re.findall(r"\d+", done.stdout.decode())), None
    text = done.stderr.decode(errors="replace")
    seed = re.search(r"^schedule (\d+):", text, re.M)
    ran = int(seed[1]) - first + 1 if seed else 0
    return ran, 0, 0, text[:2000] or f"exit code {done.returncode}"


def run_part(options, first, count, faults):
    ran, steps, refused, report = schedules(PROGRAM, first, count, faults)
    if report:
        options.violation(f"{PROGRAM.name} {first + ran - 1} 1 {faults} -v: {report}")
    return ran, steps, refused


def make_planted(directory, name):
    """Builds the program with a bug. Returns its path."""
    sources = []
    for file, right, wrong in zip(*[iter(PLANTED[name])] * 3):
        text = (harness.ROOT / file).read_text()
        assert text.count(right) == 1, f"{file} has changed; adapt PLANTED: {name}"
        sources.append(directory / f"planted-{pathlib.Path(file).name}")
        sources[-1].write_text(text.replace(right, wrong))
    packages = subprocess.run(["pkg-config", "--cflags", "--libs", *PACKAGES], check=True, capture_output=True, text=True)
    program = directory / "planted"
    command = [*shlex.split(os.environ.get("CC", "gcc")), "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-w", "-pthread",
               "-I", harness.ROOT, "-o", program, *sources, PROGRAM.with_suffix(".o"), *LIBRARIES,
               *shlex.split(packages.stdout), "-lm", "-ldl"]
    done = harness.run(*command)
    assert done.returncode == 0, done.stderr.decode()
    return program


def find_planted(options, directory, name):
    """Returns the number of schedules until the bug was found."""
    program = make_planted(directory, name)
    number = 0
    for first in range(1, PLANTED_MOST, PART):
        faults = FAULTS[first // PART % 2]
        ran, _, _, report = schedules(program, first, PART, faults)
        number += ran
        if report and schedules(PROGRAM, first + ran - 1, 1, faults)[3] is None:
            return name, number
    options.violation(f"a planted bug was not found in {PLANTED_MOST} schedules: {name}")
    return None


def run(options):
    parts = [(1 + options.seed * 10**9 + at, min(PART, options.rounds - at), FAULTS[at // PART % len(FAULTS)])
             for at in range(0, options.rounds, PART)]
    results = options.each(lambda directory, *part: run_part(options, *part), parts)
    found = options.each(lambda directory, name: find_planted(options, directory, name), [(name,) for name in PLANTED])
    figures = {
        "schedules": sum(ran for ran, _, _ in results),
        "steps": sum(steps for _, steps, _ in results),
        "losses that a failing disk refused to record, logged": sum(refused for _, _, refused in results),
        "planted bugs found": f"{len(found)} of {len(PLANTED)}",
    }
    for name, number in found:
        figures[f"schedules until found: {name}"] = number
    return figures


if __name__ == "__main__":
    torture.main(run, short=4000, long=100_000)
