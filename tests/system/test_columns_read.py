"""What buscap wrote as csv or ndjson is read back as it was, and csv of other programs by the names of its columns."""

import csv
import io
import json
import random

import pytest

import test_matrix
from harness import BUSCAP, equal, need, run
from test_columns import make_recording


def convert(given, target, data, code=0):
    """Returns the output and the messages."""
    done = run(need(BUSCAP), "convert", *(("-I", given) if given else ()), "-O", target, "-", data=data)
    equal(done.returncode, code, done.stderr)
    return done.stdout, done.stderr.decode()


def rows(data):
    return list(csv.reader(io.StringIO(data.decode("latin-1"), newline="")))


@pytest.mark.parametrize("form", ("csv", "ndjson"))
def test_a_recording_is_read_back(tmp, form):
    """Records, gaps, triggers and epochs; the times of day, too."""
    paths, *_ = make_recording(tmp, ",clock_hz=66000000")
    whole = {target: run(BUSCAP, "convert", "-O", target, *paths).stdout for target in ("csv", "ndjson", "byu")}
    for target, wanted in whole.items():
        equal(convert(None, target, whole[form])[0], wanted, f"{form} to {target}")
    (tmp / "in").write_bytes(whole[form])
    got = []
    for name, sources in (("direct", paths), ("back", [tmp / "in"])):
        done = run(BUSCAP, "convert", "-O", "segment:clock_hz=66000000", "-o", tmp / f"{name}.byu.lz4", *sources)
        equal(done.returncode, 0, done.stderr)
        got.append(run(BUSCAP, "convert", "-O", "ndjson", tmp / f"{name}.byu.lz4").stdout)
    equal(*got, "segment")


@pytest.mark.parametrize("form", ("csv", "ndjson"))
def test_traces_of_all_formats_are_read_back(form):
    for name in test_matrix.SOURCES:
        if name in ("csv", "ndjson", "lines"):
            continue
        data = test_matrix.SOURCES[name]()
        through = convert(name, form, data)[0]
        for target in ("csv", "ndjson"):
            equal(convert(None, target, through)[0], convert(name, target, data)[0], f"{name} by {form} to {target}")
        if name not in ("lackey", "vcd"):
            equal(convert(form, name, through)[0], data, f"{name} by {form}")


def test_random_records_keep_all_their_fields():
    dice = random.Random(5)
    data = b"".join(bytes(dice.randrange(256) for _ in range(8)) + dice.choice(
        (b"\xff\xff\xff\xff", b"\0\0\0\0", bytes(dice.randrange(256) for _ in range(4)))) for _ in range(3000))
    for form in ("csv", "ndjson"):
        through = convert("byu", form, data)[0]
        equal(convert(form, form, through)[0], through, form)
        equal(convert(form, "byu", through)[0], convert("byu", "byu", data)[0], form)


def test_text_is_unquoted_and_unescaped():
    """Line ends, quotes, and bytes that are not UTF-8. A row may be cut into blocks anywhere."""
    dice = random.Random(6)
    pieces = [b"\n", b'"', b'""', b",", b"\\", b"\t", b"\x01", b"\r\n", b"\xff", "\u00e9\u20ac\U0001f600".encode(), b"a", b" "]
    texts = [b"a" + b"".join(dice.choice(pieces) for _ in range(dice.randrange(60))) + b"z" for _ in range(20000)]
    table = b"kind,number,tick,epoch,text\n" + b"".join(b'mark,%d,%d,0,"%s"\n' % (i, i, text.replace(b'"', b'""')) for i, text in enumerate(texts))
    objects = convert("csv", "ndjson", table)[0]
    equal([json.loads(line)["number"] for line in objects.splitlines()], list(range(len(texts))))
    for got in (convert("csv", "csv", table)[0], convert("ndjson", "csv", objects)[0]):
        back = [row[-1].encode("latin-1") for row in rows(got)[1:]]
        equal(back, texts)
    equal(convert("ndjson", "ndjson", objects)[0], objects)


def test_columns_are_found_by_name():
    """In any order; others are ignored and counted."""
    dice = random.Random(7)
    table = rows(convert("byu", "csv", test_matrix.byu())[0])
    for _ in range(20):
        order = dice.sample(range(len(table[0])), len(table[0]))
        lines = [[row[i] for i in order] + ["more" if row is table[0] else "1"] for row in table]
        got, err = convert("csv", "csv", "".join(",".join(line) + "\r\n" for line in lines).encode())
        equal(rows(got), table)
        assert "200 values of other columns ignored" in err, err
    got, _ = convert("csv", "csv", b'"addr", type\n 0x10 , memread\n20,W\n')
    equal(got, b"number,type,addr\n2,MEMREAD,0x10\n3,MEMWRITE,0x20\n")
    got, err = convert("ndjson", "csv", b'{"addr":"0x10","x":{"y":["]"]},"type":"FETCH","size":null}\n')
    equal((got, "1 value of other columns ignored" in err), (b"number,type,addr\n1,FETCH,0x10\n", True))


def test_foreign_csv_is_read_by_the_names_of_its_columns():
    text = b'Time [s],RW,"Address ""A""",n,cpu\n0.0000015,R,0x10,4,1\n1.5e-3,write,ffff,0x8,0\n3,FETCH,"20",1,2\r\n'
    layout = 'csv:time:s=Time [s],addr=Address "A",type=RW,size=n,proc=cpu'
    equal(convert(layout, "csv", text), (b"number,tick,type,addr,size,proc\n2,1500,MEMREAD,0x10,4,1\n"
                                         b"3,1500000,MEMWRITE,0xffff,8,0\n4,3000000000,FETCH,0x20,1,2\n", ""))
    for form, ticks in (("", "7"), (":x", "7"), (":ps", "7"), (":ns", "7"), (":us", "7000"), (":ms", "7000000")):
        equal(convert(f"csv:time{form}=t,addr:d=a,type=b", "csv", b"a,b,t\n18,ior,7\n")[0],
              f"number,tick,type,addr\n2,{ticks},IOREAD,0x12\n".encode(), form)
    _, err = convert("csv:addr=Adress,type=RW", "csv", text, 3)
    assert 'line 1, column 1: no column Adress; the columns are Time [s],RW,"Address' in err, err
    for layout, why in (("csv:adr=a,type=b", "adr=a: expected time, tick, addr"), ("csv:addr=a", "addr= and type= are needed"),
                        ("csv:time:q=t,addr=a,type=b", "time:q: expected x, d or"), ("csv:addr=a,type=b,addr=c", "addr: given twice"),
                        ("csv:addr=a,type:x=b", "type:x: expected"), ("csv:", "expected time"), ("csv:addr=,type=b", "expected time"),
                        ("csv:time=a,tick=b,addr=c,type=d", "tick: given twice"), ("csv:" + 30 * "addr=a,", "given twice")):
        assert why in convert(layout, "csv", b"a,b\n", 2)[1], layout


# A line after a header or alone, and where and what is wrong with it.
MALFORMED = {
    "csv": [("MEMREAD,0x10", 13, "expected 3 cells"), ("MEMREAD,1,1,1", 13, "expected 3 cells"), ("MEMREAD,,1", 11, "addr: expected a value"),
            ("READING,1,1", 1, "type: expected a type"), ("MEMREAD,1\0,1", 9, "addr: expected a hex"), ("MEMREAD,1,4294967296", 11, "size: expected a decimal"),
            ("MEMREAD,10000000000000000,1", 9, "addr: expected a hex"), ("MEMREAD,1,-1", 11, "size: expected a decimal"), ("MEMREAD,1,1.5", 11, "size"),
            ('MEMREAD,"1"0,1', 9, "quotes around a whole cell"), ('MEMREAD,1"",1', 9, "addr"), ("OTHER,1,1", 1, "type: expected a letter"),
            ("MEMREAD," + "," * 9990, 11, "expected 3 cells")],
    "ndjson": [("[1]", 1, "expected an object"), ("{}", 2, "expected a key"), ('{"addr":1}', 11, "type: expected a value"),
               ('{"type":"FETCH","addr":1,"addr":2}', 33, "each key once"), ('{"type":"FETCH","addr":{"a":1}}', 32, "addr: expected a value"),
               ('{"type":"FETCH","addr":[[[[[', 29, "expected a value that ends"), ('{"type":"FETCH","addr":1', 25, "expected a comma, or }"),
               ('{"type":"FETCH","addr":1}}', 25, "expected a comma, or }"), ('{"type":"FETCH","addr":"\\ud800"}', 25, "expected a value"),
               ('{"type":"FETCH","addr":"1', 26, "expected a value"), ('{"type":"FETCH","addr":1e3x}', 24, "addr: expected a hex"),
               ('{"kind":"ref","type":"FETCH","addr":1}', 10, "kind: expected a kind"), ('{"kind":"gap","tick":1}', 24, "cause: expected a value"),
               ('{"kind":"gap","cause":"moon","lost":1}', 24, "cause: unknown word"), ('{"kind":"mark","tick":9223372036854775808}', 23, "tick below 2^63"),
               ('{"kind":"kernel","tick":1,"tag":"F","rest":"1\\nF 2 3"}', 45, "rest: expected text of one line"),
               ('{"kind":"mark","tick":1,"text":"%s"}' % ("x" * 4097), 33, "text: expected text of at most"),
               ('{"type":"FETCH","addr":1,"bus_addr":1}', 37, "expected the whole sample"), ('{"type":"FETCH","addr":1,"size":1\0}', 34, "expected a comma")],
}


@pytest.mark.parametrize("form", MALFORMED)
def test_what_cannot_be_read_is_an_error_and_no_record(form):
    header = "type,addr,size\n" if form == "csv" else ""
    good = "MEMREAD,0x77,1" if form == "csv" else '{"kind":"reference","type":"MEMREAD","addr":"0x77","size":1}'
    for line, column, why in MALFORMED[form]:
        got, err = convert(form, "xdin", (header + good + "\n" + line + "\n" + good).encode(), 3)
        equal(got, b"r 77 1\nr 77 1\n", line[:60])
        place = f"line {2 + (form == 'csv')}, column "
        assert why in err and place in err, f"{line[:60]}: {err}"
        got_column = int(err.split(place)[1].split(":")[0])
        assert abs(got_column - column) <= 1, f"{line[:60]}: {err}"


def test_a_table_without_our_columns_or_an_end_is_an_error():
    for data, why in ((b"Time,Address\n1,2\n", "no columns of buscap's; name them: csv:addr=NAME,type=NAME; the columns are Time,Address"),
                      (b"type,addr,type\nFETCH,1,FETCH\n", "a column occurs twice"), (b",".join([b"a"] * 3000) + b"\n1\n", "more than 1,024 columns"),
                      (b'type,"addr"x\nFETCH,1\n', "text next to a quoted name")):
        got, err = convert("csv", "din", data, 3)
        assert got == b"" and f"line 1, column 1: {why}" in err, err
    start = b"type,addr\nFETCH,1\n"
    got, err = convert("csv", "din", start + b'FETCH,"2\n3\n', 3)
    assert got == b"2 1\n" and "line 3, column 1: the file ends within what begins in this line" in err, err
    got, err = convert("csv", "din", start + b'FETCH,"2\n' + b"FETCH,3\n" * 2200, 3)
    assert "expected the end of the quoted text that begins in line 3" in err and got.startswith(b"2 1\n2 3\n"), err


LONG = {
    "csv": [b'"' + b"a" * 120000 + b'",type\nfoo,1\n', b"number,type,addr\n1,MEMREAD,0x10\n" + b'"' + b"b" * 64000 + b'",MEMREAD,0x10\n'],
    "ndjson": [b'{"kind":"mark","text":"' + b"x\\n" * 25000 + b'"}\n', b'{"number":1,"type":"MEMREAD","addr":"0x10"}\n{"text":"' + b"\\n" * 40000 + b'"}\n'],
}


@pytest.mark.parametrize("form", LONG)
def test_lines_that_are_too_long_are_errors(form):
    for data in LONG[form]:
        for command in (("info", "-"), ("stats", "-I", form, "-")):
            done = run(need(BUSCAP), *command, data=data)
            assert done.returncode in (1, 3), (command, done)


def test_files_with_other_columns_are_not_mixed(tmp):
    (tmp / "a.csv").write_text("type,addr\nMEMREAD,0x10\n")
    (tmp / "b.csv").write_text("type,addr,size\nMEMREAD,0x10,4\n")
    done = run(need(BUSCAP), "convert", "-I", "csv", "-O", "csv", tmp / "a.csv", tmp / "b.csv")
    assert done.returncode == 1 and b"has columns that the file before it lacks" in done.stderr, done.stderr


def test_a_quote_inside_a_cell_is_a_character():
    rows_ = b"".join(b"%d,MEMREAD,0x10\n" % n for n in range(400))
    out, err = convert("csv", "csv", b"number,type,addr\n" + rows_[:100] + b'\nx,MEMREAD,5"\n' + rows_, code=3)
    assert out.count(b"\n") > 400, err
