"""buscap stats: figures compared with those computed here from the records read by tests/support/reference.py."""

import collections
import itertools
import json
import random
import re
import struct

import harness
import locality
import reference
from cut_model import SELECTORS, Selection, read, record_file, rich_stream
from harness import equal
from test_cli import TYPES, buscap, make_segments, simulate
from test_diff import tarmac_lines

MEMORY = {0: "fetched", 1: "read", 2: "read", 3: "written"}


def stats(*argv, code=0, data=None):
    """Returns the JSON object and the messages."""
    text, err = buscap("stats", "--json", *argv, code=code, data=data)
    assert text.endswith("\n") and text.count("\n") == 1, text
    return json.loads(text), err


def records_of(data):
    return [struct.unpack_from("<I4BI", data, at) for at in range(0, len(data) - 11, 12)]


def counted(rows, key):
    return {row[key]: row["references"] for row in rows}


def check_totals(result, records):
    """Records: (addr, type, size, attr, proc, time)."""
    equal(result["entries"], len(records), "entries")
    equal(result["references"], len(records), "references")
    equal(result["bytes"], sum(r[2] for r in records), "bytes")
    for member, key, column in (("types", "type", 1), ("sizes", "size", 2), ("attrs", "attr", 3),
                                ("processors", "proc", 4)):
        equal(counted(result[member], key), dict(collections.Counter(r[column] for r in records)), member)
    for row in result["types"]:
        equal(row["name"], TYPES.get(row["type"]), "name")
        equal(row["bytes"], sum(r[2] for r in records if r[1] == row["type"]), "bytes of a type")


def model_memory(records, line=32, page=4096, is_bus=True):
    """Returns (lines by kind of access, pages, touches by 2^k, first touches). A bus burst covers its aligned block."""
    lines, pages = collections.defaultdict(set), collections.defaultdict(set)
    last, reuse = {}, collections.Counter()
    first = n = 0
    for addr, reqtype, size, *_ in records:
        if reqtype not in MEMORY:
            continue
        n += 1
        if is_bus and size in (16, 32):
            addr -= addr % size
        end = min(addr + max(size, 1) - 1, (1 << 64) - 1)
        for number in range(addr // line, end // line + 1):
            lines[number].add(MEMORY[reqtype])
            pages[number * line // page].add(MEMORY[reqtype])
            if number in last:
                reuse[(n - last[number] - 1).bit_length()] += 1
            else:
                first += 1
            last[number] = n
    return lines, pages, reuse, first


def check_memory(result, records, line=32, page=4096):
    lines, pages, reuse, first = model_memory(records, line, page)
    for name, found, each in (("lines", lines, line), ("pages", pages, page)):
        wanted = {"bytes_each": each, "touched": len(found), "at_least": False}
        for how in ("read", "written", "fetched"):
            wanted[how] = sum(how in ways for ways in found.values())
        equal(result["footprint"][name], wanted, name)
    equal(result["reuse"]["first"], first, "first touches")
    touches = first + sum(reuse.values())
    equal(result["reuse"]["touches"], touches, "touches")
    total, wanted = 0, []
    for k in range(max(reuse, default=-1) + 1):
        total += reuse[k]
        wanted.append((1 << k, total))
    equal([(row["references"], row["touches"]) for row in result["reuse"]["within"]], wanted, "reuse")
    for row in result["reuse"]["within"]:
        assert abs(row["share"] - row["touches"] / touches) < 1e-9, row


def check_time(result, epochs, idle=1000, burst=8):
    """Epochs: lists of (tick, True if the interval before it is known)."""
    known = []
    runs = []
    for ticks in epochs:
        before = None
        for tick, is_known in ticks:
            interval = tick - before if is_known and before is not None else None
            before = tick
            if interval is not None:
                known.append(interval)
            if interval is not None and interval <= burst:
                runs[-1] += 1
            else:
                runs.append(1)
    time = result["time"]
    equal(time["references"], sum(map(len, epochs)), "references with a tick")
    equal(time["ticks"], sum(ticks[-1][0] - ticks[0][0] for ticks in epochs), "ticks")
    equal(time["epoch_count"], len(epochs), "epochs")
    for row, ticks in zip(time["epochs"], epochs):
        equal((row["references"], row["first_tick"], row["last_tick"]),
              (len(ticks), ticks[0][0], ticks[-1][0]), "an epoch")
    intervals = time["intervals"]
    equal((intervals["known"], intervals["ticks"]), (len(known), sum(known)), "intervals")
    equal((intervals["shortest"], intervals["longest"]), (min(known), max(known)), "intervals")
    by_power = collections.Counter(n.bit_length() for n in known)
    equal([row["intervals"] for row in intervals["by_power_of_two"]],
          [by_power[i] for i in range(max(by_power) + 1)], "intervals by length")
    idles = [n for n in known if n > idle]
    equal(time["idles"], {"longer_than": idle, "idles": len(idles), "ticks": sum(idles),
                          "longest": max(idles, default=0)}, "idles")
    runs = [n for n in runs if n >= 2]
    equal(time["bursts"], {"interval_at_most": burst, "bursts": len(runs), "references": sum(runs),
                           "longest": max(runs, default=0)}, "bursts")


def check_windows(result, epochs):
    elapsed, place = [], 0
    for ticks in epochs:
        elapsed += [place + tick - ticks[0][0] for tick, _ in ticks]
        place = elapsed[-1]
    windows = result["time"]["windows"]
    counts = collections.Counter(at // windows["ticks"] for at in elapsed)
    n = (place + 1) // windows["ticks"]
    equal(windows["windows"], n, "windows")
    counts = [counts[i] for i in range(n)]
    equal((windows["most_references"], windows["fewest_references"]), (max(counts), min(counts)), "windows")


def plain_epochs(*files):
    """The epochs of BYU files. A time of 0xFFFFFFFF is unknown."""
    epochs = []
    for records in files:
        tick, ticks = 0, []
        for record in records:
            tick += record[5] if record[5] != reference.NO_DELTA else 0
            ticks.append((tick, record[5] != reference.NO_DELTA))
        epochs.append(ticks)
    return epochs


def recorded_epochs(recorded):
    lossy = {gap[0] for gap in recorded.gaps}
    starts = sorted(recorded.epochs.values()) + [len(recorded.ticks)]
    return [[(recorded.ticks[i], i not in lossy and i not in recorded.inexact) for i in range(a, b)]
            for a, b in zip(starts, starts[1:]) if a != b]


def number(text):
    """Returns a number of the page, which has commas."""
    value = int(text.replace(",", ""))
    equal(text, f"{value:,}")
    return value


def numbers_of(text, title):
    """Returns the table below a title: {name: first number}."""
    part = text.split(f"\n{title}", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return {m[1].strip(): number(m[2]) for m in (re.match(r"  (.{22}) +([\d,]+)", row) for row in part) if m}


# ---- usage


def test_an_empty_trace_has_no_statistics():
    for name in ("byu", "din", "raw6"):
        result, _ = stats("-I", name, data=b"")
        equal((result["entries"], result["references"], result["bytes"], result["types"]), (0, 0, 0, []), name)
        equal(result["time"], None, name)
        text, _ = buscap("stats", "-I", name, data=b"")
        assert text.startswith(f"{name}: 0 "), text


# ---- the figures


def test_plain_byu_is_counted(tmp):
    for seed, options in ((1, {}), (2, {"strange": 0.3}), (3, {"no_delta": 0.1}), (4, {"first_has_delta": True})):
        data, _ = reference.make_byu(random.Random(seed), 3000, **options)
        records = records_of(data)
        path = tmp / f"{seed}.byu"
        path.write_bytes(data)
        result, _ = stats("-I", "byu", path)
        check_totals(result, records)
        check_memory(result, records)
        check_time(result, plain_epochs(records))
        check_windows(result, plain_epochs(records))


def check_locality(result, records, line=32, page=4096):
    lines, pages = ([locality.blocks(r[0], r[2], each, True) for r in records if r[1] in MEMORY] for each in (line, page))
    locality.check_working_set(result["working_set"], list(enumerate(lines, 1)), list(enumerate(pages, 1)), len(lines))
    locality.check_misses(result["miss_ratio"], [number for span in lines for number in span], line)


def check_windows_of_ticks(rows, records, line, page):
    times = list(itertools.accumulate(0 if r[5] == 0xFFFFFFFF else r[5] for r in records[1:]))
    moments = [1, *(1 + time for time in times)]
    lines, pages = ([(at, locality.blocks(r[0], r[2], each, True)) for at, r in zip(moments, records) if r[1] in MEMORY]
                    for each in (line, page))
    locality.check_working_set(rows, lines, pages, moments[-1], unit="ticks")


LOCALITY = ("--working-set", "--miss-ratio")


def test_working_sets_and_misses_are_those_of_all_windows_and_caches():
    rng = random.Random(31)
    for count, span, line, page in ((1, 1, 32, 4096), (2, 1, 1, 1), (40, 90, 8, 16), (300, 3000, 32, 512), (300, 60, 4, 4)):
        for _ in range(3):
            records = [(rng.randrange(span) + (rng.random() < 0.1) * 0xFFFFF000, rng.choice((0, 1, 2, 3, 3, 5)),
                        rng.choice((0, 1, 4, 8, 16, 32)), 0, 0, rng.choice((0, 0, 1, 2, 7, 30))) for _ in range(count)]
            records[0] = (records[0][0], 0, *records[0][2:])
            data = b"".join(struct.pack("<I4BI", *record) for record in records)
            plain, _ = stats("-I", "byu", "--line", line, "--page", page, data=data)
            result, _ = stats("-I", "byu", "--line", line, "--page", page, *LOCALITY, data=data)
            check_locality(result, records, line, page)
            rest = {name: value for name, value in result.items() if name not in ("working_set", "miss_ratio")}
            equal(rest, plain, "the rest")
            timed, _ = stats("-I", "byu", "--line", line, "--page", page, "--working-set=ticks", data=data)
            check_windows_of_ticks(timed.pop("working_set"), records, line, page)
            equal(timed, rest, "the rest")


def test_windows_of_ticks_cross_epochs_and_may_be_long():
    def average(touches, end, window):
        """Of one block in all windows within 1 to `end`: there are too many to look at each."""
        without = sum(max(later - earlier - window, 0) for earlier, later in zip([0, *touches], [*touches, end + 1]))
        return 1 - without / (end - window + 1)

    rows = (("0", 0, "FETCH", 0), ("10", 0, "FETCH", 0x10000), ("5", 0, "MEMREAD", 0), ("40000000000000", 0, "MEMWRITE", 0x20000),
            ("40000000000007", 0, "IOREAD", 0x80), ("3", 1, "FETCH", 0x10000), (str(1 << 59), 1, "FETCH", 0), (str((1 << 59) + 1), 1, "FETCH", 0))
    end, last, touches = 1, None, collections.defaultdict(list)
    for tick, epoch, name, addr in rows:
        end += max(int(tick) - last[0], 0) if last and last[1] == epoch else 0
        last = int(tick), epoch
        if name != "IOREAD":
            touches[addr].append(end)
    text = "kind,number,tick,epoch,type,addr,size\n" + "".join(
        f"reference,{number},{tick},{epoch},{name},{addr:#x},4\n" for number, (tick, epoch, name, addr) in enumerate(rows))
    result, _ = stats("-I", "csv", "--working-set=ticks", data=text.encode())
    equal([row["ticks"] for row in result["working_set"]], [1 << k for k in range(end.bit_length())])
    for row in result["working_set"]:
        wanted = sum(average(one, end, row["ticks"]) for one in touches.values())
        assert abs(row["lines"] - wanted) < 1e-9 and row["pages"] == row["lines"], (row, wanted)
    over, _ = stats("-I", "csv", "--working-set=ticks", data=text.replace(str((1 << 59) + 1), str((1 << 64) - 1)).encode())
    equal([over["working_set"][-1]["ticks"], over["working_set"][-1]["lines"] <= 3], [1 << 60, True])


def test_options_set_the_length_of_lines_pages_idles_and_bursts():
    data, _ = reference.make_byu(random.Random(5), 2000)
    records = records_of(data)
    for line, page, idle, burst in ((1, 1, 0, 0), (8, 64, 500, 20), (64, 1 << 20, 998, 999), (1 << 32, 1 << 40, 1, 2)):
        result, _ = stats("-I", "byu", "--line", line, "--page", page, "--idle", idle, "--burst", burst, data=data)
        check_memory(result, records, line, page)
        check_time(result, plain_epochs(records), idle, burst)


def test_several_files_and_pipes_are_counted_as_one_file(tmp):
    parts = [reference.make_byu(random.Random(seed), 700)[0] for seed in range(3)]
    paths = []
    for i, part in enumerate(parts):
        paths.append(tmp / f"{i}.byu")
        paths[-1].write_bytes(part)
    result, _ = stats("-I", "byu", *paths)
    records = records_of(b"".join(parts))
    equal(result["files"], 3, "files")
    check_totals(result, records)
    check_memory(result, records)
    check_time(result, plain_epochs(*map(records_of, parts)))
    check_windows(result, plain_epochs(*map(records_of, parts)))
    one, _ = stats("-I", "byu", paths[0])
    for argv in ((), ("-",)):
        equal(stats("-I", "byu", *argv, data=parts[0])[0], one, "through a pipe")


def test_dialects_are_counted_with_all_their_bits():
    for dialect in ("byu16", "byu24", "byu-be"):
        data, _ = reference.make_byu(random.Random(6), 1500, dialect)
        result, _ = stats("-I", dialect, data=data)
        records = records_of(reference.make_byu(random.Random(6), 1500)[0])
        check_totals(result, records)
        check_memory(result, records)
        check_time(result, plain_epochs(records))
    high = struct.pack("<Q4B4xQ", (1 << 63) + 5, 3, 8, 6, 2, 1 << 40) * 2
    result, _ = stats("-I", "byu24", data=high)
    equal((result["entries"], result["footprint"]["addr_low"], result["footprint"]["addr_high"]),
          (2, hex((1 << 63) + 5), hex((1 << 63) + 12)), "addresses")
    equal(result["time"]["ticks"], 1 << 40, "a long time")
    equal((result["attrs"][0]["p6"], result["attrs"][0]["low_two_bits"]), ("write-protected", "write-protected"), "attr 6")


def test_a_recording_with_losses_is_counted(tmp):
    rng = random.Random(11)
    seen = collections.Counter()
    for seed in range(8):
        data, _ = reference.make_bcp1(rng, reference.random_features(rng, 3000))
        paths = make_segments(tmp, data)
        if not paths:
            continue
        recorded = reference.read_segments(paths)
        records = records_of(recorded.records)
        if not records:
            continue
        result, _ = stats("--full", *paths)
        check_totals(result, records)
        check_memory(result, records)
        check_headers(paths, records, result)
        if len(records) > len(recorded_epochs(recorded)):
            check_some_time(result, recorded)
        gaps = result["events"]
        equal(gaps["gaps"], recorded.gap_events, "gaps")
        equal(gaps["lost"], sum(gap[2] for gap in recorded.gaps), "lost")
        equal(gaps["triggers"], len(recorded.triggers), "triggers")
        lost = collections.Counter()
        for _, cause, n, _ in recorded.gaps:
            lost[cause] += n
        equal({cause: row["lost"] for cause, row in gaps["causes"].items()}, dict(lost), "causes")
        seen["gaps"] += gaps["gaps"] != 0
        seen["epochs"] += result["time"]["epoch_count"] > 1
        assert not result["time"]["drift"]["is_known"], result
    assert seen["gaps"] and seen["epochs"], seen


def check_some_time(result, recorded):
    epochs = recorded_epochs(recorded)
    if any(known for ticks in epochs for _, known in ticks[1:]):
        check_time(result, epochs)
    if result["time"]["windows"]["windows"] != 0:
        check_windows(result, epochs)


# ---- the headers of chunks


def expected_headers(records):
    """The figures of memory that chunk headers give, from the records."""
    names = {0: "fetch", 1: "read", 2: "read", 3: "write", 16: "ioread", 17: "iowrite"}
    classes = dict.fromkeys(("fetch", "read", "write", "other", "ioread", "iowrite"), 0)
    hot = collections.Counter()
    for addr, reqtype, *_ in records:
        classes[names.get(reqtype, "other")] += 1
        if reqtype in MEMORY:
            hot[addr & ~4095] += 1
    pages = model_memory(records)[1]
    footprint = {"references": sum(hot.values()), "other_references": len(records) - sum(hot.values()),
                 "pages": {"bytes_each": 4096, "touched": len(pages), "at_least": False,
                           **{how: sum(how in ways for ways in pages.values()) for how in ("read", "written", "fetched")}}}
    return classes, footprint, [{"addr": addr, "references": n} for addr, n in sorted(hot.items())]


def only_known(full, headers):
    """The members of `full` that `headers` has."""
    if not isinstance(headers, dict) or not isinstance(full, dict):
        return full
    return {name: only_known(full[name], value) for name, value in headers.items() if name not in ("classes", "hot_pages")}


def check_headers(paths, records, full):
    headers, err = stats(*paths)
    equal((headers.pop("classes"), headers["footprint"], headers.pop("hot_pages")), expected_headers(records), "memory")
    equal(headers, only_known(full, headers), "with and without records")
    for name in ("bytes", "types", "sizes", "attrs", "processors", "reuse"):
        assert name not in headers and name in full, name
    assert "intervals" not in (headers["time"] or {}) and "lines" not in headers["footprint"]
    return err


def test_chunk_headers_give_the_figures_of_the_records(tmp):
    rng = random.Random(7)
    addresses = {"near": lambda: rng.randrange(1 << 15), "wide": lambda: rng.randrange(1 << 32), "last": lambda: 0xFFFFFFFF}
    for name, address in addresses.items():  # fine; coarse; crossed
        plain, path = tmp / f"{name}.byu", tmp / f"{name}.byu.lz4"
        sizes = (1, 8, 32) if name == "near" else (0, 2, 16, 255)
        plain.write_bytes(b"".join(struct.pack("<I4BI", address() & (~31 if name == "near" else ~0), rng.choice((0, 1, 2, 3, 16, 17, 0x21, 0xF3)),
                                               rng.choice(sizes), 0, 0, 5) for _ in range(12000)))
        buscap("convert", "-I", "byu", "-O", "segment", "-o", path, plain)
        check_headers([path], records_of(plain.read_bytes()), stats("--full", path)[0])
    # Several recordings, with epochs, marks and other rates.
    paths = [record_file(tmp, rich_stream(seed), clock_hz=hz) for seed, hz in ((34, 66000000), (35, 66000000), (36, 50000000))]
    for some in (paths[:1], paths[:2], paths):
        check_headers(some, [r for path in some for r in records_of(reference.read_segments([path]).records)], stats("--full", *some)[0])
    equal(stats(data=paths[0].read_bytes())[0], stats(paths[0])[0], "through a pipe")


def test_records_are_not_read_if_the_headers_suffice(tmp):
    path, = make_segments(tmp, simulate("--count", "200000"))
    wanted, _ = stats(path)
    data = bytearray(path.read_bytes())
    for chunk in reference.read_segment(path).chunks:
        assert chunk.pages[0] == 0, "a single page in each region, and none is crossed"
        data[data.index(chunk.frame) + 1000] ^= 1
    path = tmp / "damaged.byu.lz4"
    path.write_bytes(data)
    equal(stats(path)[0], wanted)
    assert "wrong checksum" in stats("--full", path, code=3)[1]
    # One that was not sealed, and is torn.
    torn = tmp / "torn.byu.lz4"
    torn.write_bytes(data[: len(data) // 2])
    result, err = stats(torn, code=3)
    assert "torn" in err and 0 < result["references"] < wanted["references"], err


def test_the_page_of_the_headers_has_their_figures(tmp):
    paths = make_segments(tmp, simulate("--count", "20000"))
    result, _ = stats(*paths)
    text, _ = buscap("stats", *paths)
    equal(numbers_of(text, "references by class"), result["classes"], "classes")
    hot = sorted(result["hot_pages"], key=lambda row: -row["references"])[:20]
    equal(list(numbers_of(text, "hottest pages").items()), [("0x%08x" % row["addr"], row["references"]) for row in hot], "hot pages")
    assert text.endswith("--full adds bytes, types, sizes, memory types, processors,\nlines, reuse and intervals from the records.\n"), text


# ---- a part of a trace


def of_a_part(result):
    """Without what a cut does not keep: the number of gaps that come together, and the chunks."""
    for gaps in (result["events"], *result["events"]["causes"].values()):
        del gaps["gaps"], gaps["inexact_gaps"]
    if result["time"]:
        result["time"].pop("drift", None)
    return {member: result[member] for member in result if member != "format"}


def check_part(tmp, path, options, cut_options=("-O", "segment")):
    """Compares the statistics of a part with those of the file that cut writes."""
    out = tmp / "part.byu.lz4"
    buscap("cut", *options, *cut_options, "-o", out, path)
    wanted, _ = stats("--full", out)
    part, err = stats(*options, path)
    equal("no record matches" in err, part["references"] == 0, err)
    equal(of_a_part(part), of_a_part(wanted), options)
    out.unlink()
    return part["references"]


def test_a_part_has_the_statistics_of_its_cut(tmp):
    found = collections.Counter()
    for seed in harness.some(range(30, 33), 2):
        path = record_file(tmp, rich_stream(seed), clock_hz=66000000)
        source = read(path)
        rng = random.Random(seed)
        plain = tmp / "x.byu"
        plain.write_bytes(reference.make_byu(rng, 3000, no_delta=0.01)[0])
        for which in [(name,) for name in SELECTORS] + [tuple(rng.sample(SELECTORS, 2)) for _ in range(7)]:
            options = Selection(rng, source, which).options
            found[which[0]] += check_part(tmp, path, options)
            if not {"epochs", "wall"} & set(which):
                check_part(tmp, plain, ["-I", "byu", *options])
    simulated = make_segments(tmp, simulate("--count", "20000"))[0]
    for options in (["--port", "0-ffff"], ["--region", "interrupt"]):
        found[options[0]] += check_part(tmp, simulated, options)
    assert all(found[name] for name in (*SELECTORS, "--port", "--region")), found


def test_a_part_of_a_text_has_the_statistics_of_its_cut(tmp):
    path = tmp / "x.xdin"
    rng = random.Random(1)
    path.write_text("".join(f"{rng.choice('rwi')} {rng.randrange(1 << 16):x} 4\n" for _ in range(1000)))
    for options in (["--records", "10-99"], ["--type", "fetch"], ["--addr", "0-fff"]):
        assert check_part(tmp, path, ["-I", "xdin", *options], ["-O", "xdin"]) > 10, options


def test_a_selection_of_everything_changes_nothing(tmp):
    whole = record_file(tmp, rich_stream(34), clock_hz=66000000)
    recordings = whole.read_bytes() + record_file(tmp, rich_stream(35), clock_hz=66000000).read_bytes()
    for options, data in (([], recordings), (["-I", "byu"], reference.make_byu(random.Random(3), 1000)[0])):
        equal(stats(*options, "--records", "0-", data=data), stats(*options, "--full", data=data), options)


def test_an_empty_part_says_what_the_input_has(tmp):
    path = record_file(tmp, rich_stream(35), clock_hz=66000000)
    for options, has in ((["--records", "99999-"], "has records 0 to "), (["--from", "2001-02-03", "--to", "2001-02-04"], "is from 20")):
        result, err = stats(*options, path)
        equal(result["references"], 0, "references")
        harness.one_line(err, f"no record matches; the input {has}")
    plain = tmp / "x.byu"
    plain.write_bytes(reference.make_byu(random.Random(3), 100)[0])
    text, err = buscap("stats", "-I", "byu", "--from", "12:00", plain, code=2)
    equal((text, err), ("", "buscap stats: byu has no time of day: --from and --to need segments\n"), "without times")


# ---- damage, memory, real traces


def test_text_and_json_agree(tmp):
    path = tmp / "x.byu"
    data, _ = reference.make_byu(random.Random(8), 4000)
    path.write_bytes(data)
    result, _ = stats("-I", "byu", path)
    text, _ = buscap("stats", "-I", "byu", path)
    assert text.startswith("byu: 4,000 records\n"), text
    equal(numbers_of(text, "references by type"),
          {row["name"] or "0x%02x" % row["type"]: row["references"] for row in result["types"]}, "types")
    equal(numbers_of(text, "by processor"), {str(r["proc"]): r["references"] for r in result["processors"]}, "processors")
    equal(numbers_of(text, "by size"),
          {"%u byte%s" % (r["size"], "" if r["size"] == 1 else "s"): r["references"] for r in result["sizes"]}, "sizes")
    types = {}
    for match in re.finditer(r"\n  (\d) [a-z][^%]*? ([\d,]+) +\d+\.\d+ %", text.split("by memory type")[1]):
        types[int(match[1])] = number(match[2])
    equal(types, counted(result["attrs"], "attr"), "memory types")
    assert "4 write-combining (P6), uncacheable (low two bits)" in text, text
    reuse = numbers_of(text, "reuse:")
    equal(reuse.pop("first touch"), result["reuse"]["first"], "first touches")
    equal(reuse, {f"{row['references']:,}": row["touches"] for row in result["reuse"]["within"]}, "reuse")
    assert f"{result['time']['ticks']:,} ticks" in text, text
    few, _ = buscap("stats", "-I", "byu", "--top", "2", path)
    assert f"and {len(result['types']) - 2} more" in few, few


def test_ticks_are_converted_to_seconds_if_the_clock_rate_is_known(tmp):
    data, _ = reference.make_byu(random.Random(9), 100)
    result, _ = stats("-I", "byu", data=data)
    assert result["time"]["ticks_per_second"] == 0 and "seconds" not in result["time"], result["time"]
    result, _ = stats("-I", "byu", "--clock-hz", "66M", data=data)
    equal(result["time"]["ticks_per_second"], 66000000, "rate")
    assert abs(result["time"]["seconds"] - result["time"]["ticks"] / 66e6) < 1e-12, result["time"]
    text, _ = buscap("stats", "-I", "byu", "--clock-hz", "66M", data=data)
    assert re.search(r"duration +[\d,]+ ticks \([0-9.]+ (us|ms)\)", text), text


# ---- micro-ops and instructions


def test_a_laplace_trace_is_counted_by_letter_and_space():
    rng = random.Random(12)
    entries, tick = [], 0xFFFFFFFFFF
    for _ in range(2000):
        tick += rng.choice((0, 1, 5, 40, 3000))
        entries.append((rng.choice("rwfZ"), tick, rng.choice((1, 4, 8, 70)), rng.choice((7, 0x12345678, 9)),
                        (rng.randrange(64) << 12) + rng.randrange(64)))
    text = "".join("%s %x %x %x %x\n" % entry for entry in entries)
    result, _ = stats("-I", "laplace-text", data=text.encode())
    equal(counted(result["letters"], "letter"), {ord("Z"): sum(e[0] == "Z" for e in entries)}, "letters")
    equal(counted(result["sizes"], "size"), dict(collections.Counter(e[2] for e in entries)), "sizes")
    equal((result["without_attr"], result["without_proc"]), (2000, 2000), "fields that Laplace lacks")
    check_time(result, [[(entry[1], True) for entry in entries]])
    check_windows(result, [[(entry[1], True) for entry in entries]])
    # Each space has separate addresses.
    touched = {(e[3], byte // 32) for e in entries for byte in range(e[4], e[4] + e[2])}
    equal(result["footprint"]["lines"]["touched"], len(touched), "lines")
    page, _ = buscap("stats", "-I", "laplace-text", data=text.encode())
    types = numbers_of(page, "references by type")
    named = [row for row in result["types"] if row["name"] != "OTHER"]
    equal(types, {"'Z'": result["letters"][0]["references"], **{row["name"]: row["references"] for row in named}})
    equal(sum(types.values()), 2000, "the page's references")
    equal({name: number(moved) for name, moved in re.findall(r"^  (\S+) .* % +([\d,]+) bytes$", page, re.MULTILINE)},
          {row["name"]: row["bytes"] for row in named}, "the page's bytes")


def test_a_tarmac_trace_is_counted():
    lines = tarmac_lines(3000)
    words = collections.Counter(line.split()[2] for line in lines)
    result, _ = stats("-I", "tarmac", data="".join(lines).encode())
    got = result["instructions"]
    equal((got["executed"], got["skipped"], got["mnemonics"]["total"]), (words["IT"], words["IS"], words["IT"]), "instructions")
    types = counted(result["types"], "name")
    equal((types["MEMREAD"], types["MEMWRITE"]), (words["MR4"], words["MW4"]), "accesses")
    equal(result["registers"]["total"], words["R"], "registers")


# ---- two runs


SERIES = ("time.epochs", "reuse.within", "working_set", "miss_ratio")  # they end with the trace


def simulated(directory, seed, count):
    path = directory / f"{seed}.bcp1"
    path.write_bytes(simulate("--seed", str(seed), "--count", str(count)))
    return path


def figures_of(value, path="", found=None, tables=None):
    """The figures of the JSON object by their paths, and the paths of tables of counts."""
    found, tables = ({}, set()) if found is None else (found, tables)
    if isinstance(value, dict):
        for name, one in value.items():
            figures_of(one, f"{path}.{name}" if path else name, found, tables)
    elif isinstance(value, list):
        tables |= {path} - set(SERIES)
        for i, row in enumerate(value):
            first, key = next(iter(row.items()))
            key = f"0x{key:08x}" if first == "addr" else row.get("name") or key
            if path == "time.epochs":
                first, key = None, i
            figures_of({name: one for name, one in row.items() if name != first and isinstance(one, (int, float))},
                       f"{path}.{key}", found, tables)
    else:
        found[path] = value
    return found, tables


def difference(a, b):
    """What --compare has for a figure."""
    if any(isinstance(one, (bool, str, type(None))) for one in (a, b)):
        return {"a": a, "b": b, "difference": None, "percent": None}
    return {"a": a, "b": b, "difference": b - a, "percent": 100 * (b - a) / abs(a) if a else None}


def expected_comparison(a, b):
    (a, tables_a), (b, tables_b) = figures_of(a), figures_of(b)

    def value(run, tables, name):
        is_counted = any(name.startswith(f"{table}.") for table in tables_a & tables_b)
        return run.get(name, 0 if is_counted else None)
    return {name: difference(value(a, tables_a, name), value(b, tables_b, name)) for name in a | b}


def check_comparison(a, b, *options):
    wanted = expected_comparison(stats(*options, *a)[0], stats(*options, *b)[0])
    found, _ = stats("--compare", *options, *a, *b)
    equal(set(found), set(wanted), "figures")
    for name, row in wanted.items():
        for column, number in row.items():
            is_close = isinstance(number, float) and abs(found[name][column] - number) <= 1e-9 * max(1, abs(number))
            assert is_close or found[name][column] == number, (name, column, found[name], row)
    return found


def test_two_runs_are_compared_figure_by_figure(tmp):
    paths = [simulated(tmp, 1, 4000), simulated(tmp, 2, 5000)]
    found = check_comparison(paths[:1], paths[1:], "--working-set", "--miss-ratio", "--map", "pc")
    equal(found["references"], {"a": 4000, "b": 5000, "difference": 1000, "percent": 25})
    end = found["working_set.4096.lines"]
    equal((end["a"], end["b"] > 0, end["difference"]), (None, True, None), "a window longer than a run")
    equal(check_comparison(paths[:1], paths[:1])["references"]["difference"], 0)
    check_comparison(paths[:1], paths[1:], "--records", "0-999", "--type", "read")


def test_what_a_run_does_not_have_counts_0_in_it(tmp):
    paths = [tmp / "1.byu", tmp / "2.byu"]
    runs = [simulate("--count", "2000", out_format="byu"), reference.make_byu(random.Random(7), 1000)[0]]
    for path, data in zip(paths, runs):
        path.write_bytes(data)
    found = check_comparison(paths[:1], paths[1:], "-I", "byu")
    records = [records_of(data) for data in runs]
    for member, column in (("sizes", 2), ("attrs", 3), ("processors", 4)):
        counts = [collections.Counter(record[column] for record in run) for run in records]
        for value in counts[0] | counts[1]:
            a, b = counts[0][value], counts[1][value]
            equal(found[f"{member}.{value}.references"],
                  {"a": a, "b": b, "difference": b - a, "percent": found[f"{member}.{value}.references"]["percent"]})
            equal(found[f"{member}.{value}.references"]["percent"] is None, a == 0, "a percentage of 0")
        assert any(counts[0][value] == 0 for value in counts[1]), member


def test_two_recordings_are_compared_by_their_headers(tmp):
    dirs = [record_file(tmp, simulated(tmp, seed, 30000).read_bytes()).parent for seed in (1, 2)]
    found = check_comparison(dirs[:1], dirs[1:])
    assert any(name.startswith("hot_pages.") for name in found), found
    check_comparison(dirs[:1], dirs[1:], "--full")
    # A trace of another format is read as a whole: what the headers lack is unknown.
    found = check_comparison(dirs[:1], [simulated(tmp, 3, 2000)])
    equal((found["bytes"]["a"], found["bytes"]["difference"]), (None, None))
    equal(found["classes.fetch"]["b"], None)


def test_the_page_of_two_runs_has_the_figures_that_differ_most(tmp):
    paths = [simulated(tmp, seed, 20000) for seed in (1, 2)]
    found, _ = stats("--compare", *paths)
    page, _ = buscap("stats", "--compare", "--top", "3", *paths)
    lines = {line[:32].strip(): line[32:] for line in page.splitlines()[1:]}
    for name in ("references", "footprint.lines.read", "reuse.first"):
        words = [f"{found[name][side]:,}" for side in ("a", "b")]
        if found[name]["difference"]:
            words += [f"{found[name]['difference']:+,}", f"{found[name]['percent']:+.2f}", "%"]
        else:
            words += ["0"]
        equal(lines[name].split(), words, name)
    types = {name: abs(row["difference"]) for name, row in found.items() if name.startswith("types.") and (row["a"] or row["b"])}
    shown = [name for name in lines if name.startswith("types.")]
    equal(sorted(map(types.get, shown)), sorted(types.values())[-3:], "the types that differ most")
    rest = page[page.index(shown[-1]) :].splitlines()[1]
    equal(rest, f"and {len(types) - 3} more")


def test_comparing_needs_two_runs(tmp):
    path = simulated(tmp, 1, 10)
    for operands in ([], [path], [path] * 3):
        _, err = buscap("stats", "--compare", *operands, code=2)
        assert "--compare needs two operands" in err, err
    _, err = buscap("stats", "--compare", path, tmp / "none", code=1)
    assert "check the name" in err, err
