"""buscap diff against GNU diff: how many lines of random edits each of them reports."""

import json
import math
import random
import struct
import subprocess

import pytest

import harness
from harness import BUSCAP, ROOT, equal, need, run

DATA = ROOT / "../shared/data"
SCRIPTS = 1000
GROUPS = 10 if harness.NIGHTLY else 1  # tests, each within its time limit
LONGEST = 50_000


def records(data):
    return [data[at : at + 12] for at in range(0, len(data) // 12 * 12, 12)]


def sources():
    """Returns the entries of traces by kind: lines, or records of 12 bytes."""
    done = run(need(BUSCAP), "sim", "-O", "byu", "--count", "60k", "--seed", "4")
    found = {"sim": records(done.stdout), "lackey": loops()}
    if (DATA / "byu/pentium2-slice.tr").exists():
        found["byu"] = records((DATA / "byu/pentium2-slice.tr").read_bytes())
        found["tarmac"] = (DATA / "tarmac/quicksort.tarmac").read_text().splitlines()
    return found


def loops():
    """References of a program that loops, in lackey's form."""
    dice = random.Random(3)
    lines = []
    while len(lines) < 60_000:
        base, body = dice.randrange(40) * 0x1000, dice.randrange(3, 60)
        for _ in range(dice.randrange(1, 80)):
            lines += [f"I  {base + 4 * n:x},4" for n in range(body)]
            lines.append(f" L {0x100000 + dice.randrange(4096) * 8:x},8")
    return lines


def size(dice, most):
    return max(1, min(most, int(math.exp(dice.uniform(0, math.log(LONGEST))))))


def others(dice, kind, base, count):
    """Entries from elsewhere in the trace, or that are nowhere in it."""
    if dice.random() < 0.5:
        at = dice.randrange(max(1, len(base) - count))
        return base[at : at + count]
    if kind == "tarmac":
        return [f"{dice.randrange(9999)} clk IT ({dice.randrange(9999)}) {dice.randrange(1 << 30) * 4:08x} "
                f"{dice.randrange(1 << 32):08x} O EL3h_s : NOP" for _ in range(count)]
    if kind == "lackey":
        return [f" S {dice.randrange(1 << 40):x},8" for _ in range(count)]
    return [struct.pack("<I4BI", dice.randrange(1 << 32), 3, 4, 0, 0, dice.randrange(1, 30)) for _ in range(count)]


def edited(dice, kind, base):
    out = list(base)
    for _ in range(dice.choice((1, 1, 2, 3, 5))):
        edit = dice.choice(("insert", "delete", "replace", "move", "loop", "burst", "prefix"))
        count = size(dice, len(out) // 2)
        at = dice.randrange(len(out) - count + 1)
        if edit == "insert":
            out[at:at] = others(dice, kind, base, count)
        elif edit == "delete":
            del out[at : at + count]
        elif edit == "replace":
            out[at : at + count] = others(dice, kind, base, count)
        elif edit == "move":
            block = out[at : at + count]
            del out[at : at + count]
            to = max(0, min(len(out), at + dice.choice((-1, 1)) * size(dice, len(out))))
            out[to:to] = block
        elif edit == "loop":
            count = min(count, 500)
            out[at:at] = out[at : at + count] * dice.randrange(1, 10)
        elif edit == "burst":
            for _ in range(min(count, 300)):
                place = min(len(out) - 1, at + dice.randrange(2000))
                what = dice.choice(("change", "delete", "insert"))
                out[place : place + (what != "insert")] = [] if what == "delete" else others(dice, kind, base, 1)
        else:
            out[:0] = others(dice, kind, base, count)
        if len(out) < 10:
            return list(base)
    return out


def line(kind, entry, has_times):
    """The line of an entry for GNU diff."""
    if isinstance(entry, bytes):
        return entry.hex() if has_times else entry[:8].hex()
    return entry if has_times or kind != "tarmac" else entry.split(None, 2)[2]


def write(path, entries, kind, has_times):
    if isinstance(entries[0], bytes):
        path.write_bytes(b"".join(entries))
    else:
        path.write_text("".join(entry + "\n" for entry in entries))
    lines = path.with_suffix(".lines")
    lines.write_text("".join(line(kind, entry, has_times) + "\n" for entry in entries))
    return lines


def one(tmp, number, traces):
    """Returns how many changed lines buscap and GNU diff report."""
    dice = random.Random(number)
    kind = dice.choice(sorted(traces))
    entries = dice.choice((500, 3000, 20_000, 60_000))
    at = dice.randrange(max(1, len(traces[kind]) - entries))
    base = traces[kind][at : at + entries]
    has_times = dice.random() < 0.5
    texts = [write(tmp / "a.trace", base, kind, has_times),
             write(tmp / "b.trace", edited(dice, kind, base), kind, has_times)]
    gnu = subprocess.run(["diff", *texts], stdout=subprocess.PIPE, timeout=harness.TIMEOUT_S).stdout
    options = ["-I", kind if kind in ("tarmac", "lackey") else "byu"]
    if not has_times and kind != "lackey":
        options += ["--ignore", "time"]
    done = run(BUSCAP, "diff", *options, "--json", tmp / "a.trace", tmp / "b.trace")
    assert done.returncode in (0, 1), done.stderr.decode()
    last = json.loads(done.stdout.splitlines()[-1])
    ours = 2 * last["changed"] + last["only_a"] + last["only_b"]
    theirs = sum(x[:1] in b"<>" for x in gnu.splitlines())
    # Entries of the same time in a different order are not a difference.
    equal(ours + last["reordered"] == 0, theirs == 0, f"whether there are differences, script {number}")
    return ours, theirs


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_edits_are_reported_as_briefly_as_by_gnu_diff(tmp, group):
    traces = sources()
    ratios = []
    for number in harness.some(range(group, SCRIPTS, GROUPS), 100):
        ours, gnu = one(tmp, number, traces)
        ratios.append((ours / gnu if gnu else 1, number))
    ratios.sort()
    assert ratios[-1][0] <= 1.3, f"(changed lines against GNU diff, script): {ratios[-5:]}"
    assert ratios[len(ratios) // 2][0] <= 1, f"median {ratios[len(ratios) // 2]}"
