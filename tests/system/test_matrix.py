"""Every cell of the conversion matrix (`buscap formats --matrix`, docs/formats.md): lossless conversions round-trip,
lossy ones lose exactly what the cell lists, and impossible ones fail."""

import functools
import re
import struct
import zlib

import pytest

from harness import BUSCAP, BUSCAPD, ROOT, run


# A trace of each format, with everything that the format can hold.

def samples():
    """Bus samples (address, byte enables, control): every cycle type, including invalid and special cycles."""
    rows = []
    for cycle in range(16):
        for be in (0x00, 0xFE, 0xF0, 0x7F, 0xE7, 0xFF):
            rows.append((0x1000 * (cycle + 1) + 8 * len(rows), be, cycle << 4))
    for be in (0xFE, 0xFD, 0xFB, 0xF7, 0xEF, 0xDF):
        rows.append((0, be, 3 << 4))
        rows.append((0x10, be, 3 << 4))
    return rows


def raw6():
    return b"".join(struct.pack(">IBB", *row) for row in samples())


def bcp1():
    """Two processors, a loss before the second frame, and a restart of the board."""
    out = b""
    rows = samples()
    for sequence, (start, tick, flags, lost) in enumerate(((0, 100, 1, 0), (40, 5000, 3, 17), (80, 50, 5, 0))):
        part = rows[start:start + 40]
        body = b"".join(struct.pack(">IBB", a, be, c | i % 2) + struct.pack("<H", 3 if i else 0)
                        for i, (a, be, c) in enumerate(part))
        header = b"BCP1" + struct.pack("<HBBIIQI", flags, 0, 0, sequence, len(part), tick, lost)
        out += header + struct.pack("<I", zlib.crc32(header)) + body + struct.pack("<I", zlib.crc32(body))
    header = b"BCP1" + struct.pack("<HBBIIQI", 8, 0, 0, 3, 0, tick + 3 * (len(part) - 1), 0)
    return out + header + struct.pack("<I", zlib.crc32(header))


TYPES = [0, 1, 2, 3, 0x10, 0x11, 0x20, 0x21, 0x22, 0x23, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0xF4]


def byu(layout="<IBBBBI"):
    rows = []
    for i in range(200):
        kind = TYPES[i % len(TYPES)]
        rows.append((0x10000 + 8 * i, kind, (0, 1, 4, 8, 16, 32)[i % 6], i % 8, i % 4,
                     0xFFFFFFFF if i == 0 else i * i))
    return b"".join(struct.pack(layout, *row) for row in rows)


def laplace():
    return b"".join(struct.pack("<cQBII", letter, 0x123456789ABCDEF0 + 3 * i, 1 << i % 4, i % 3, 0x9A8B7000 + i)
                    for i, letter in enumerate([b"r", b"w", b"f", b"i", b"x", b"Q"] * 20))


def laplace_text():
    return b"r 123456789abcdef0 4 9f8e7 9a8b7c6d\nr 123456789abcdef1 4 9a8b7 8888ffff3e456a21\n" \
        b"w 123456789abcdef2 8 0 0\nf 123456789abcdef3 10 1 ffff\ni 123456789abcdef4 3 1 2\nx 123456789abcdef5 1 1 1\n"


def laplace_events():
    return b"F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\n"


def cis501():
    rows = [(1, 0x48d1de, -1, -1, 13, "-", "-", "-", 0, 0, 0x48d1e2, 0, "SET", "ADD"),
            (2, 0x48d1de, -1, -1, 13, "R", "-", "-", 1, 0, 0x48d1e2, 0, "SET", "ADD_IMM"),
            (1, 0x48d1e2, -1, 5, 45, "-", "-", "L", -264, 0x7fffe7ff048, 0x48d1e9, 0, "CMP", "LOAD"),
            (1, 0x48d1f9, -1, -1, -1, "-", "T", "-", 54, 0, 0x48d1fb, 0x48d231, "JMP", "JMP_IMM"),
            (1, 0x48d231, 3, 4, -1, "W", "-", "S", 0, 0x12ff228, 0x48d234, 0, "MOV", "STORE")]
    return "".join("%d %6x %2d %2d %2d %c %c %c %9d %12x %12x %12x %-8s %s\n" % row for row in rows).encode()


def tarmac():
    return b"""Tarmac Text Rev 3t
100 clk IT (135) 00008000 d2a00028 O EL3h_s : MOV      x8,#0x10000
100 clk R X8 0000000000010000
110 clk cpu1 IT (135) 00008004:000000008004 f9420100 O EL3h_s : LDR      x0,[x8,#0x400]
110 clk cpu1 MR8 00010400:000000010400 01234567_89abcdef
111 clk cpu1 MR4X 00010400:000000010400_NS 01234567
120 clk IS (12) 0000802c 1afb T svc_s : SUBNE    r3,r7,r3
120 clk MW4 0000ab34 00000000
"""


def din():
    return b"0 1000\n1 ffffffffffffffff\n2 408ed4\n3 0\n4 20\n"


def xdin():
    return b"r 1000 4\nw ffffffffffffffff 1\ni 408ed4 10\nm 0 2\nc 20 20\nv 40 20\n"


def lackey():
    return b"==12== Lackey\nI  0023C790,2\n L BE80199C,4\n S BE80199C,4\n M 0025747C,1\nI  1ffefffe80,8\n==12==\n"


LINES = "lines:{time} {proc} {type:r=read|w=write|f=fetch|m=modify|x=misc|F=flush|c=COPYBACK|o=ioread|d=DEFERREPLY} {addr} {size} {data}"


def lines():
    return "".join(f"{10 * i} {i % 3} {'rwfmxFcod'[i % 9]} {0x1000 + 8 * i:x} 4 {i:x}\n" for i in range(40)).encode()


def table(form):
    """Entries of all the other formats, with the ticks of Laplace's made small."""
    objects = b"".join(run(BUSCAP, "convert", "-I", LINES if name == "lines" else name, "-O", "ndjson", "-", data=make()).stdout
                       for name, make in SOURCES.items() if name not in ("csv", "ndjson"))
    return run(BUSCAP, "convert", "-I", "ndjson", "-O", form, "-", data=objects.replace(b'"tick":131176846746', b'"tick":')).stdout


def vcd():
    """Our own, without processors' scopes: every type, a gap and a mark."""
    out = "$comment\n\tunknown clock rate: a tick is shown as 1 ns\n$end\n$timescale 1 ns $end\n$scope module bus $end\n"
    for bits, ident, name in ((64, "=", "seq"), (64, ">", "addr"), (9, "?", "type"), (32, "@", "size"), (8, "A", "attr"), (16, "B", "proc")):
        out += f"$var wire {bits} {ident} {name} [{bits - 1}:0] $end\n"
    out += "$upscope $end\n$enddefinitions $end\n$comment time 0 is tick 7 $end\n#0\n0x\n0y\nb0 w\n"
    for i in range(200):
        types = [*TYPES, 0x100, 0x101, 0x102, 0x103, 0x104]
        out += f"#{i * i}\n" if i % 9 else "x=\nb111 w\n1x\nsbuffer v\n" if i == 99 else "1y\nsa\\040b v\n" if i == 18 else ""
        out += f"b{i:b} =\nb{0x10000 + 8 * i:b} >\nb{types[i % len(types)]:b} ?\nb{(0, 1, 4, 8, 16, 32)[i % 6]:b} @\nb{i % 8:b} A\nb{i % 6:b} B\n"
    return (out + f"#{i * i + 1}\n").encode()


SOURCES = {"raw6": raw6, "bcp1": bcp1, "byu": byu, "byu16": lambda: byu("<QBBBBI"),
           "byu24": lambda: byu("<QBBBB4xQ"), "byu-be": lambda: byu(">IBBBBI"), "laplace": laplace,
           "laplace-text": laplace_text, "laplace-events": laplace_events, "cis501": cis501, "tarmac": tarmac,
           "din": din, "xdin": xdin, "lackey": lackey, "lines": lines, "vcd": vcd, "csv": lambda: table("csv"),
           "ndjson": lambda: table("ndjson")}


FORMS = ["segment", *SOURCES]


def source(directory, form):
    path = directory / ("source.byu.lz4" if form == "segment" else f"source.{form}")
    if path.exists():
        return path
    if form == "segment":
        bcp = directory / "of.bcp1"
        bcp.write_bytes(bcp1())
        out = directory / "recording"
        done = run(BUSCAPD, "--once", "--source", f"file:{bcp}", "-o", out, "--set", "mapping.invalid=keep")
        assert done.returncode == 4, done.stderr
        path.write_bytes(next(out.glob("*.byu.lz4")).read_bytes())
    else:
        path.write_bytes(SOURCES[form]())
    if form == "vcd":  # as buscap writes it
        raw = path.rename(directory / "raw.vcd")
        done = run(BUSCAP, "convert", "-O", "vcd", "-o", path, raw)
        assert done.returncode == 0, done.stderr
    return path


@functools.cache
def matrix():
    """Returns the text, {(from, to): cell}, {letter: name}, {(from, to): letters that single entries may lose}."""
    text = run(BUSCAP, "formats", "--matrix").stdout.decode()
    lines = text.splitlines()
    targets = [cell.strip() for cell in lines[0].split("|")[2:-1]]
    cells, maybe = {}, {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        row = [cell.strip() for cell in line.split("|")[1:-1]]
        for target, cell in zip(targets, row[1:]):
            cells[row[0], target], _, may = cell.partition(" (")
            maybe[row[0], target] = may.rstrip(")")
    return text, cells, dict(re.findall(r"^- (\w): (.*)$", text, re.M)), maybe


def convert(form, path, target, out, *options, extra=""):
    return run(BUSCAP, "convert", "-I", LINES if form == "lines" else form, "-i", path, "-O", target + extra, "-o", out, *options, text=True)


def extra_of(target):
    """Without a map an address of more than 32 bits is an error, not a loss."""
    return ":map=pages" if target in ("bcp1", "raw6") else ""


def suffix(target):
    return ".byu.lz4" if target == "segment" else f".{target}"


WIDE = {"laplace-text", "din", "xdin", "lackey", "cis501", "csv", "ndjson"}  # their samples here have 64-bit addresses
NARROW = {"segment", "byu", "byu-be", "laplace", "rowbinary"}


def narrowed(directory, form, path, target):
    """Removes 64-bit addresses from the trace if the target has only 32 bits."""
    if form not in WIDE or target not in NARROW:
        return path
    narrow = directory / f"narrow.{form}"
    wide = re.compile(rb"8888ffff3e456a21|ffffffffffffffff|1ffefffe80|7fffe7ff048")
    narrow.write_bytes(b"".join(line for line in path.read_bytes().splitlines(True) if not wide.search(line)))
    return narrow


TEXTS = ["laplace-text", "laplace-events", "cis501", "tarmac", "din", "xdin", "lackey"]


def test_dump_prints_each_format_in_its_text_form(tmp):
    for form in TEXTS:
        path = source(tmp, form)
        own = path.read_bytes()
        if form == "lackey":  # without valgrind's own messages
            own = re.sub(rb"==.*\n", b"", own).replace(b"C", b"c").replace(b"BE", b"be")
        assert run(BUSCAP, "dump", "-I", form, path).stdout == own, form
    binary = run(BUSCAP, "dump", "-I", "laplace", source(tmp, "laplace")).stdout.splitlines()
    assert binary[0] == b"r 123456789abcdef0 1 0 9a8b7000" and len(binary) == 120
    lines = run(BUSCAP, "dump", "-I", "din", "--records", "2-3", source(tmp, "din")).stdout
    assert lines == b"1 ffffffffffffffff\n2 408ed4\n"


def test_the_documentation_has_the_same_matrix():
    text, *_ = matrix()
    assert text in (ROOT / "docs/formats.md").read_text(), "docs/formats.md: run buscap formats --matrix"


def test_every_readable_format_has_a_row_and_every_writable_one_a_column():
    _, cells, *_ = matrix()
    listed = run(BUSCAP, "formats").stdout.decode()
    rows = re.findall(r"^([r-])([w-]) (\S+)", listed, re.M)
    assert {f for r, _, f in rows if r == "r"} == {f for f, _ in cells} == set(FORMS)
    assert {f for _, w, f in rows if w == "w"} == {t for _, t in cells}
    assert {f for f, _ in cells} == set(SOURCES) | {"segment"}


def test_lossless_conversions_round_trip(tmp):
    _, cells, letters, maybe = matrix()
    readable = {f for f, _ in cells}
    for (form, target), cell in cells.items():
        if cell != "=":
            continue
        path = narrowed(tmp, form, source(tmp, form), target)
        out = tmp / f"{form}-{target}{suffix(target)}"
        done = convert(form, path, target, out, "--strict", extra=extra_of(target) if form in WIDE else "")
        refused = re.search(r"would lose the ([^,]*),", done.stderr)
        if refused:  # an entry loses what the matrix says that single entries may lose
            assert refused[1] in {letters[letter] for letter in maybe[form, target]}, (form, target, done.stderr)
            done = convert(form, path, target, out)
        assert done.returncode == 0, (form, target, done.stderr)
        assert "has no" not in done.stderr, (form, target, done.stderr)
        assert out.stat().st_size > 0, (form, target)
        if target in readable and form not in ("lackey", "lines", "segment"):
            back = tmp / f"{form}-{target}-back{suffix(form)}"
            done = convert(target, out, form, back)
            assert done.returncode == 0, (form, target, done.stderr)
            assert back.read_bytes() == path.read_bytes(), (form, target)


TYPE_TRAITS = {"FETCH": "fetch", "MODIFY": "modify", "MISC": "miscellaneous reference", "CACHEFLUSH": "cache flush", "OTHER": "type letter"}
TYPE_TRAITS |= dict.fromkeys(("COPYBACK", "INVALIDATE"), "copy-back or invalidation")
TYPE_TRAITS |= dict.fromkeys("IOREAD IOWRITE INTA CNTRLAGNTRES BRTRACEREC SHUTDOWN FLUSH HALT SYNC FLUSHACK STOPCLKACK".split(),
                             "bus cycle other than a memory access")
TYPE_TRAITS |= dict.fromkeys((f"0xf{digit}" for digit in "0246ab"), "invalid bus cycle")


def reported_types(err):
    """The traits of types that were written as others or left out: "MISC written as MEMREAD (2), 0xf4 left out (1)"."""
    names = re.findall(r"([A-Z]\w+|0x\w\w) (?:written as [A-Z a-z]+|left out) \([\d,]+\)", err)
    return {TYPE_TRAITS.get(name, "request of the P6 bus only") for name in names}


@pytest.mark.parametrize("number", range(3))
def test_lossy_conversions_report_losses_and_strict_fails(tmp, number):
    _, cells, letters, maybe = matrix()
    unreported = []
    for (form, target), cell in cells.items():
        if form not in FORMS[number::3]:
            continue
        if cell in ("=", "-"):
            continue
        path = narrowed(tmp, form, source(tmp, form), target)
        out = tmp / f"{form}-{target}{suffix(target)}"
        done = convert(form, path, target, out, extra=extra_of(target))
        assert done.returncode == 0, (form, target, done.stderr)
        reported = set(re.findall(r"has no ([^:]*):", done.stderr)) | reported_types(done.stderr)
        listed_losses = {letters[letter] for letter in cell}
        if target == "laplace-events":
            reported.discard("type letter")  # of the references, which are left out: its events have one
        assert reported <= listed_losses, (form, target, reported - listed_losses)
        partly = set(re.findall(r"can't hold every ([^:]*):|has only the (time)s between", done.stderr))
        partly = {"".join(words) for words in partly}
        if form in ("csv", "ndjson"):
            partly.discard("time")  # their ticks go back where the next trace begins
        assert partly <= {letters[letter] for letter in maybe[form, target]}, (form, target, partly)
        if target == "tarmac":
            listed_losses.discard("size")  # only references without a size lose it
        if form in ("csv", "ndjson") and target in ("laplace-events", "cis501"):
            listed_losses &= reported  # references are left out, with what they have
        if not listed_losses <= reported and form != "segment":
            unreported.append((form, target, sorted(listed_losses - reported)))
        if reported:
            out.unlink()
            done = convert(form, path, target, out, "--strict", extra=extra_of(target))
            assert done.returncode == 1 and "--strict" in done.stderr, (form, target, done.stderr)
    # The traces have everything that their formats can hold, so every loss in the matrix must occur.
    assert not unreported, unreported


def test_impossible_conversions_fail_with_a_reason(tmp):
    _, cells, *_ = matrix()
    for (form, target), cell in cells.items():
        if cell != "-":
            continue
        out = tmp / f"{form}-{target}{suffix(target)}"
        done = convert(form, source(tmp, form), target, out)
        assert done.returncode == 2, (form, target, done.stderr)
        assert re.search(r"can't convert \S+ to \S+: ", done.stderr), (form, target, done.stderr)
        assert not out.exists()
