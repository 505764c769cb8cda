"""What buscap dump selects and appends, compared with tests/support/cut_model.py and with all of its lines."""

import csv
import random

import pytest

import harness
from cut_model import SELECTORS, Selection, buscap, read, record_file, rich_stream, utc
from harness import equal


def dump(*argv, code=0):
    out, err = buscap("dump", *argv, code=code)
    return out.decode().splitlines(), err


def of_kind(lines, kind):
    return [line for line in lines if line.startswith(kind)]


def appended(form, recording, r):
    """What follows a record's line."""
    ns, start = (at.wall_hz // recording.clock_hz for at in (r, recording.records[0]))
    since = abs(ns - start)
    return {"delta": "", "tick": f"\t{r.tick}", "wall": "\t" + utc(ns),
            "relative": f"\t{'-' if ns < start else ''}{since // 10**9}.{since % 10**9:09}"}[form]


def test_segments_by_every_selector_and_form_of_time(tmp):
    selected = 0
    seeds = harness.some(range(3), 3)
    for seed in seeds:
        path = record_file(tmp, rich_stream(seed), clock_hz=66000000)
        source = read(path)
        plain, _ = dump("--plain", path)
        equal(len(plain), len(source.records), "lines")
        rng = random.Random(seed)
        for which in [(name,) for name in SELECTORS] + [tuple(rng.sample(SELECTORS, rng.randrange(0, 5))) for _ in range(14)]:
            wanted = Selection(rng, source, which)
            form = rng.choice(("delta", "tick", "relative", "wall"))
            expected = [plain[r.number] + appended(form, source, r) for r in source.records if wanted.matches(r)]
            got, err = dump("--plain", "--time", form, *wanted.options, path)
            equal((got, err), (expected, "" if expected else "buscap dump: no record matches\n"), f"{wanted.options} as {form}")
            # Gaps don't depend on the records' fields.
            lines, _ = dump("-t", form, *wanted.options, path)
            equal([line for line in lines if not line.startswith("#")], expected, f"{wanted.options}, not plain")
            if which and not {"addr", "types", "procs"} & set(which):
                gaps = sum(wanted.is_in_range(source.records[g.record]) for g in source.gaps)
                equal(len(of_kind(lines, "# gap")), gaps, f"gaps by {wanted.options}")
            selected += len(expected)
    assert 3 * selected > 10000 * len(seeds), selected


@pytest.mark.asan
def test_segments_without_a_sealed_index_or_through_a_pipe(tmp):
    path = record_file(tmp, rich_stream(5), clock_hz=66000000)
    data = path.read_bytes()
    source = read(path)
    torn = tmp / "torn.byu.lz4.partial"
    torn.write_bytes(data[:-100])
    rng = random.Random(5)
    for which in (("ticks", "types"), ("wall", "addr"), ("numbers", "procs"), ("epochs",)):
        wanted = Selection(rng, source, which)
        options = ["--time", "wall", *wanted.options]
        expected, _ = dump(*options, path)
        got = harness.run(harness.BUSCAP, "dump", *options, "-", data=data)
        equal((got.stdout.decode().splitlines(), got.returncode), (expected, 0), f"{options} through a pipe")
        equal(dump(*options, torn, code=None)[0], expected, f"{options} without an index")


@pytest.mark.asan
def test_other_formats_by_every_selector_they_have(tmp):
    """As cut selects, which tests/system/test_cut.py compares with a model."""
    segment = record_file(tmp, rich_stream(8), clock_hz=66000000)
    source = read(segment)
    stream = tmp / "x.bcp1"
    stream.write_bytes(rich_stream(8))
    rng = random.Random(8)
    files = {"bcp1": stream}
    for kind in ("byu", "raw6", "byu16", "byu24", "din", "laplace"):
        files[kind] = tmp / f"x.{kind}"
        buscap("convert", "-O", kind, "-o", files[kind], stream, code=None)
    for kind, path in files.items():
        lines = [line for line in dump("-I", kind, path, code=None)[0] if not line.startswith("#")]
        has = [name for name in SELECTORS if name != "wall"
               and not (name in ("procs", "ticks", "epochs") and kind in ("din", "raw6"))
               and not (name == "epochs" and kind != "bcp1")]
        first = 1 if kind == "din" else 0
        for which in harness.some([(name,) for name in has] + [tuple(rng.sample(has, 2)) for _ in range(4)], 3):
            options = Selection(rng, source, which).options
            out, _ = buscap("cut", "-I", kind, *options, "-O", "csv", path, code=None)
            kept = {int(row["number"]) for row in csv.DictReader(out.decode().splitlines()) if row.get("kind", "reference") == "reference"}
            got = [line for line in dump("-I", kind, *options, path, code=None)[0] if not line.startswith("#")]
            equal(got, [line for number, line in enumerate(lines, first) if number in kept], f"{kind} by {options}")


def test_times_that_a_file_does_not_have(tmp):
    path = record_file(tmp, rich_stream(10))
    lines, _ = dump("--plain", "--time", "wall", path)
    equal({line.rsplit("\t", 1)[1] for line in lines}, {"-"}, "without a clock rate")
