"""buscap-ship against a stand-in for ClickHouse: what it sends, and what it does when something is wrong. tests/fleet has
real servers, which are killed."""

import importlib
import os
import re
import shutil
import socket
import sys

import pytest

import harness
import page_reference
import reference
from catalogue import Catalogue
from harness import BUSCAPD, ROOT, equal, need, run
from test_metrics import parse_metrics


@pytest.fixture
def ship(monkeypatch):
    for module in ("numpy", "lz4.frame", "xxhash"):
        harness.need_module(module)
    monkeypatch.syspath_prepend(ROOT / "python")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    return importlib.import_module("buscap.ship")


@pytest.fixture
def catalogue(ship):
    with Catalogue(ship.COLUMNS) as one:
        yield one


def make_recordings(directory):
    for seed in (1, 2):
        done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"sim:rate=max,count=200000,loss=0.02,seed={seed}", "-o",
                   directory, "-b", "filesize:100K")
        assert done.returncode in (0, 4), done.stderr


@pytest.fixture
def lab(tmp):
    """A directory with two recordings."""
    place = tmp / "lab"
    shutil.copytree(harness.shared("ship", make_recordings), place)
    return place


class Shipped(str):
    """What a run has printed on standard error; `code` is its exit code."""


@pytest.fixture
def send(ship, catalogue, lab, capsys):
    def run_it(*options, node="cap1", url=None, place=lab):
        code = ship.main(["--url", url or catalogue.url, "--node", node, *map(str, options), str(place)])
        said = Shipped(capsys.readouterr().err)
        said.code = code
        return said

    return run_it


def inserts(catalogue):
    return [found[1] for query in catalogue.log if (found := re.match(r"INSERT INTO (\w+)", query))]


def present(catalogue, node="cap1"):
    return {path for path, flag in catalogue.rows(f"SELECT path, present FROM segments FINAL WHERE node = '{node}'") if flag}


def paths(lab):
    return {str(path) for path in harness.segments(lab)}


def test_pages_and_events_are_those_of_the_records(catalogue, send, lab):
    equal(send(), "")
    for path in harness.segments(lab):
        segment = reference.read_segment(path)
        records = b"".join(chunk.records for chunk in segment.chunks)
        where = f"recording = '{segment.header['recording']}' AND segment = {segment.header['segment']}"
        wanted = page_reference.count(records)[1]
        for place, places, *four in catalogue.rows(f"SELECT place, places, fetches, reads, writes, others FROM pages WHERE {where}"):
            inside = [wanted.pop(one) for one in list(wanted) if place <= one < place + places]
            equal(four, [sum(column) for column in zip(*inside)], f"{path}: place {place}")
        equal(wanted, {}, "places without a row")
    gaps = catalogue.rows("SELECT sum(lost) FROM events WHERE kind = 'gap'")
    equal(gaps, catalogue.rows("SELECT sum(lost) FROM segments"), "lost")
    assert gaps[0][0] > 0, gaps
    equal(len(catalogue.rows("SELECT * FROM events WHERE kind = 'end'")), 2, "ends")


def has_no_events(catalogue, path):
    return catalogue.rows(f"SELECT events FROM segments WHERE path = '{path}'") == [(0,)]


def test_a_segments_row_comes_last_and_a_second_run_sends_nothing(catalogue, send, lab):
    equal((send(), send().code), ("", 0))
    equal(present(catalogue), paths(lab))
    sent = inserts(catalogue)
    equal(sent.count("segments"), len(paths(lab)))
    for before, table in zip(sent, sent[1:]):
        assert table == "pages" or (before, table) in (("pages", "events"), ("pages", "segments"), ("events", "segments")), sent


def test_a_segment_that_is_not_sealed_is_left_out_without_a_message(catalogue, send, lab):
    last = harness.segments(lab)[-1]
    last.rename(f"{last}.partial")
    said = send()
    equal((said, said.code), ("", 0))
    equal(present(catalogue), paths(lab))


@pytest.mark.parametrize("damage", ("torn", "damaged", "renamed"))
def test_a_damaged_segment_is_named_and_the_others_are_sent(catalogue, send, lab, damage):
    first = harness.segments(lab)[0]
    data = bytearray(first.read_bytes())
    if damage == "torn":
        first.write_bytes(data[: len(data) // 2])
    elif damage == "damaged":
        data[-100] ^= 1  # of the index
        first.write_bytes(data)
    else:
        first.write_bytes(harness.segments(lab)[1].read_bytes())
    said = send()
    equal(said.code, 3, said)
    assert said.startswith(f"buscap-ship: {first}: ") and said.count("\n") == 1, said
    equal(present(catalogue), paths(lab) - {str(first)})


def test_a_segment_that_gets_damaged_later_is_not_marked_as_gone(catalogue, send, lab):
    send()
    first = harness.segments(lab)[0]
    first.write_bytes(first.read_bytes()[:-1])
    equal(send().code, 3)
    equal(present(catalogue), paths(lab))


@pytest.mark.parametrize("has_counts", (True, False))
def test_without_a_whole_page_summary_the_counts_come_from_chunks_or_records(catalogue, send, lab, monkeypatch, has_counts):
    send()
    query = "SELECT recording, segment, sum(fetches), sum(writes) FROM pages GROUP BY recording, segment"
    wanted = sorted(catalogue.rows(query))
    catalogue.lines.execute("DELETE FROM pages")
    for path in harness.segments(lab):
        data = bytearray(path.read_bytes())
        summary = data.rindex(bytes.fromhex("562a4d18"))
        data[summary + 20] ^= 1
        path.write_bytes(data)
    if not has_counts:
        monkeypatch.setattr(sys.modules["buscap.segment"], "parse_counts", lambda *_: None)
    said = send(node="cap2")
    equal((said, said.code), ("", 0))
    equal(sorted(catalogue.rows(query)), wanted)


def test_a_file_that_vanishes_is_passed_over(ship, catalogue, send, lab, monkeypatch):
    first, second = harness.segments(lab)[:2]
    opened = ship.Contents.__init__

    def vanishing(self, path):
        if path == str(first):
            first.unlink()
        opened(self, path)
        if path == str(second):
            second.unlink()

    monkeypatch.setattr(ship.Contents, "__init__", vanishing)
    equal((send(), send().code), ("", 0))
    equal(present(catalogue), paths(lab))


def test_files_that_have_gone_are_marked_and_come_back(catalogue, send, lab):
    send()
    first = harness.segments(lab)[0]
    first.rename(lab.parent / first.name)
    equal(send().code, 0)
    equal(present(catalogue), paths(lab))
    (lab.parent / first.name).rename(first)
    equal(send().code, 0)
    equal(present(catalogue), paths(lab))


def test_versions_never_fall_when_the_servers_clock_does(catalogue, send, lab):
    send()
    now = catalogue.clock_s()
    catalogue.clock_s = lambda: now - 3600
    harness.segments(lab)[0].unlink()
    said = send()
    assert said.code == 0 and "clock is 3,6" in said, said
    equal(present(catalogue), paths(lab))


def test_an_unreachable_database_is_exit_code_6(send):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        said = send(url=f"http://127.0.0.1:{closed.getsockname()[1]}")
    equal(said.code, 6, said)
    assert "Connection refused" in said, said


def test_a_database_that_goes_away_ends_the_run(catalogue, send):
    catalogue.cut = lambda table, body: 1 // 0  # closes the connection
    said = send()
    equal(said.code, 6, said)
    equal(len(inserts(catalogue)), 2, said)


def test_an_error_is_printed_and_the_other_segments_are_sent(catalogue, send, lab):
    failed = harness.segments(lab)[0]
    refused = iter(["Code: 241, e.displayText() = DB::Exception: Memory limit exceeded"])
    catalogue.fail = lambda query: next(refused, None) if query.startswith("INSERT") else None
    said = send()
    equal((said, said.code), (f"buscap-ship: {failed}: Code: 241, e.displayText() = DB::Exception: Memory limit exceeded\n", 1))
    equal(present(catalogue), paths(lab) - {str(failed)})
    equal(send().code, 0)
    equal(present(catalogue), paths(lab))


@pytest.mark.parametrize("code", (16, 47, 60, 81))
def test_a_missing_table_or_column_names_the_option_that_prints_them(catalogue, send, code):
    catalogue.fail = lambda query: f"Code: {code}, e.displayText() = DB::Exception: Table lab.pages doesn't exist."
    said = send()
    assert said.code == 1 and "buscap-ship --sql" in said and said.count("\n") == 1, said


@pytest.mark.parametrize("table", ("pages", "events", "segments"))
def test_a_body_that_was_cut_after_a_row_is_noticed(catalogue, send, lab, table):
    catalogue.cut = lambda name, body: body[: body.rindex(b"\n", 0, -1) + 1] if name == table and b"\n" in body[:-1] else (
        b"" if name == table else body)
    said = send()
    equal(said.code, 1, said)
    assert f"{table}: of " in said and "not stored" in said, said
    equal(present(catalogue), {path for path in paths(lab) if table == "events" and has_no_events(catalogue, path)})
    catalogue.cut = lambda name, body: body
    equal(send().code, 0)
    equal(present(catalogue), paths(lab))


def test_a_clone_is_refused_before_anything_is_written_but_a_reboot_is_not(ship, catalogue, send, lab, tmp):
    send()
    catalogue.lines.execute("UPDATE segments SET boot = 'another'")
    (tmp / "empty").mkdir()
    sent = len(inserts(catalogue))
    said = send(place=tmp / "empty")
    equal(said.code, 1)
    assert "another machine (boot another)" in said, said
    equal(len(inserts(catalogue)), sent)
    catalogue.lines.execute("UPDATE segments SET version = 1000")  # before this boot
    equal(send(place=tmp / "empty").code, 0)
    equal(present(catalogue), set())


def test_a_wrong_clock_is_reported_and_stored(catalogue, send, lab):
    now = catalogue.clock_s()
    catalogue.clock_s = lambda: now + 3600
    said = send()
    equal(said.code, 0)
    assert re.search("clock is 3,(600|59.) s behind the database's", said), said
    assert -3600 <= catalogue.rows("SELECT min(skew_s) FROM segments")[0][0] < -3590


def test_a_copy_on_another_node_is_the_same_rows(catalogue, send, lab):
    send()
    send(node="cap2")
    equal(catalogue.rows("SELECT count() FROM (SELECT DISTINCT * FROM pages)") * 2, [
        (n // 2,) for n, in catalogue.rows("SELECT count() FROM pages") * 2])
    equal(present(catalogue, "cap2"), paths(lab))


def test_check_sends_what_is_missing_again(catalogue, send, lab):
    send()
    said = send("--check")
    equal((said, said.code), ("", 0))
    wanted = sorted(catalogue.rows("SELECT DISTINCT * FROM pages"))
    (recording, segment), *_ = catalogue.rows("SELECT recording, segment FROM pages ORDER BY recording, segment LIMIT 1")
    for statement, what in ((f"DELETE FROM pages WHERE recording = '{recording}' AND segment = {segment} AND place > 9", "pages"),
                            (f"DELETE FROM events WHERE recording = '{recording}'", "events"),
                            ("UPDATE segments SET seal = '00' WHERE segment = 0", "seal")):
        catalogue.lines.execute(statement)
        equal(send().code, 0, "an ordinary run")
        said = send("--check")
        assert said.code == 1 and what in said and "sent again" in said, said
        said = send("--check")
        equal((said, said.code), ("", 0))
    equal(sorted(catalogue.rows("SELECT DISTINCT * FROM pages")), wanted)


def test_metrics_are_written_when_the_catalogue_is_complete(catalogue, send, lab, tmp):
    catalogue.fail = lambda query: "Code: 1" if query.startswith("INSERT") else None
    equal(send("--metrics", tmp / "x.prom").code, 1)
    assert not (tmp / "x.prom").exists()
    catalogue.fail = lambda query: None
    first = harness.segments(lab)[0]
    first.write_bytes(first.read_bytes()[:-1])
    equal(send("--metrics", tmp / "x.prom").code, 3)
    metrics = parse_metrics((tmp / "x.prom").read_bytes())
    values = {name: value for name, metric in metrics.items() for value in metric.samples.values()}
    equal((values["buscap_ship_segments"], values["buscap_ship_damaged_segments"]), (len(paths(lab)), 1))
    assert abs(values["buscap_ship_clock_skew_seconds"]) <= 1 and values["buscap_ship_complete_timestamp_seconds"] > 1e9, values
    equal([path.name for path in tmp.iterdir() if "x.prom" in path.name], ["x.prom"])


def test_names_of_any_bytes_arrive_as_they_are(catalogue, send, lab):
    place = lab.parent / os.fsdecode(b"a'b\\c\td\ne\rf\xff")
    lab.rename(place)
    equal((send(place=place, node="o'brien\\"), send(place=place, node="o'brien\\").code), ("", 0))
    found = {path for path, in catalogue.rows("SELECT path FROM segments")}
    equal(found, paths(place))
    equal(inserts(catalogue).count("segments"), len(found), "sent once")


def test_the_user_password_and_settings_are_sent(catalogue, send, tmp):
    (tmp / "password").write_text("a b\n")
    send("--password-file", tmp / "password", "--set", "insert_quorum=2", "--database", "lab",
         url=catalogue.url.replace("//", "//me@"))
    parameters, headers = catalogue.last
    equal((headers["X-Clickhouse-User"], headers["X-Clickhouse-Key"]), ("me", "a b"))
    equal({name: parameters[name] for name in ("insert_quorum", "insert_distributed_sync", "load_balancing", "database")},
          {"insert_quorum": "2", "insert_distributed_sync": "1", "load_balancing": "in_order", "database": "lab"})


def test_a_directory_that_is_not_there_marks_nothing_as_gone(catalogue, send, lab):
    send()
    said = send(place=lab / "none")
    equal(said.code, 1)
    equal(said, f"buscap-ship: {lab / 'none'}: not a directory; nothing was sent\n")
    equal(present(catalogue), paths(lab))


@pytest.mark.parametrize("argv", ((), ("--url", "http://x"), ("--sql", "dir"), ("--url", "http://x", "--sql"),
                                  ("--url", "http://x", "--cluster", "c", "d"), ("--url", "http://x", "--set", "x", "d"),
                                  ("--url", "db:8123", "d")))
def test_wrong_usage_is_exit_code_2(ship, argv, capsys):
    with pytest.raises(SystemExit) as caught:
        ship.main(list(argv))
    equal(caught.value.code, 2)
    assert "buscap-ship: error:" in capsys.readouterr().err
