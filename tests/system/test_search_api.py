"""GET /v1/find and GET /v1/recordings/ID/records: what they find, and that nothing else suffers."""

import contextlib
import itertools
import json
import os
import random
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness
from api_harness import Api, Stream, daemon_in, send
from cut_model import buscap
from harness import BUSCAPD, equal, run, wait_until

WAITING = 8  # searches at a time


def search(tmp, path="/v1/find", **query):
    """Returns the lines of a complete search and its end."""
    while True:
        start = time.monotonic()
        with Stream(tmp / "socket", f"{path}?{urllib.parse.urlencode(query)}", "SearchLine") as stream:
            *lines, last = stream.rest()
        if last["end"]["cut_off"] != "time limit":
            return lines, last["end"]
        assert time.monotonic() - start >= 60, last  # else the machine is busy: again


def record(out, seed, *options, count=200_000):
    """Records the simulated bus. Returns the id."""
    done = run(BUSCAPD, "--once", "--no-socket", "--source", f"sim:rate=max,count={count},seed={seed}", "-o", out, "-b",
               "filesize:200K", *options)
    assert done.returncode in (0, 4), done.stderr.decode()
    return max(path.name for path in out.iterdir() if path.name.endswith(".byu.lz4"))[:23]


def of_the_tool(out, *options):
    """What buscap finds."""
    text, _ = buscap("find", "--json", *options, out, code=None)
    return [json.loads(line) for line in text.splitlines()]


def test_it_finds_what_the_tool_finds(tmp):
    out = tmp / "out"
    ids = [record(out, 1), record(out, 2, "--set", "recording.metadata.run=2")]
    dice = random.Random(1)
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        everything = of_the_tool(out, "--first", "5000", "0-ffffffff")
        last = of_the_tool(out, "--last", "1", "0-ffffffff")[0]
        for _ in harness.some(range(40), 3):
            one = dice.choice(everything)
            addr = int(one["addr"], 16) & ~0xFFF
            query = {"addr": f"{addr:x}-{addr + dice.choice((0, 0xFFF, 0xFFFF)):x}"}
            if dice.random() < 0.3:
                query["type"] = dice.choice(("read", "write", "fetch,IOREAD"))
            if dice.random() < 0.3:
                query["from"] = dice.choice((f"@{one['tick']}", one["time"]))
            if dice.random() < 0.3:
                query["to"] = dice.choice((f"@{one['tick'] + 100_000}", last["time"]))
            if dice.random() < 0.3:
                query["context"] = str(dice.randrange(4))
            query[dice.choice(("first", "last"))] = str(dice.randrange(1, 50))
            options = [word for name, value in query.items() if name != "addr" for word in (f"--{name}", value)]
            lines, end = search(tmp, **query)
            equal(lines, of_the_tool(out, *options, query["addr"]), f"{query}")
            equal((end["matches"], end["damaged_places"], end["cut_off"]),
                  (sum(not line["is_context"] for line in lines), 0, None), f"{query}")
        matches = int(buscap("find", "--count", "0-ffffffff", out)[0])
        equal(search(tmp, count="true")[1]["matches"], matches, "all records")
        equal(len(search(tmp)[0]), 1000, "records without a limit in the query")
        for id in ids:
            lines, end = search(tmp, f"/v1/recordings/{id}/records", records="1000-1099")
            equal([(line["recording"], line["number"]) for line in lines], [(id, n) for n in range(1000, 1100)], "a page")
        api = Api(tmp / "socket")
        api.bad("GET", f"/v1/recordings/{ids[0][:-1]}/records", status=404, words="no such recording")
        api.bad("GET", "/v1/recordings/current/records", status=404, words="nothing is being recorded")
        equal(daemon.stop(), 0)


@pytest.mark.asan
def test_a_plus_in_a_time_need_not_be_escaped(tmp):
    record(tmp / "out", 1, count=20_000)
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        counts = []
        for first, last in (("+1ms", "+2ms"), ("%2B1ms", "%2B2ms"), ("+1ms", "%2B2ms")):
            with Stream(tmp / "socket", f"/v1/find?from={first}&to={last}&count=true", "SearchLine") as stream:
                counts.append(stream.rest()[-1]["end"]["matches"])
        wanted = of_the_tool(tmp / "out", "--from", "+1ms", "--to", "+2ms", "--first", "20000", "0-ffffffff")
        equal(counts, [len(wanted)] * 3)
        assert counts[0] > 0, counts
        Api(tmp / "socket").bad("GET", "/v1/find?from=+soon", words="from=+soon: not a duration")
        equal(daemon.stop(), 0)


@pytest.mark.asan
def test_invalid_queries_say_what_is_wrong(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        for query, words in (("first=0", "first=0: must be 1 to 10000"), ("last=10001", "1 to 10000"), ("first=x", "first=x"),
                             ("first=1&last=1", "exclude each other"), ("last=1&count=true", "exclude each other"),
                             ("count=1", "true or false"), ("count=true&context=1", "count excludes context"),
                             ("context=1001", "0 to 1000"), ("records=5-4", "range of record numbers"),
                             ("records=", "range"), ("records=-", "range"), ("records=1-x", "range"),
                             ("from=soon", "from=soon: not a time"), ("to=2026-02-31", "no such date"),
                             ("from=@5&to=@4", "to=@4: the end is before the start"), ("addr=5-4", "addr=5-4"),
                             ("port=e0&type=read", "given twice"), ("last=1&last=2", "given twice"), ("page=1", "page: unknown")):
            for path in ("/v1/find", "/v1/recordings/x/records"):
                api.bad("GET", f"{path}?{query}", words=words)
        for path in ("/v1/recordings//records", "/v1/recordings/a/b/records", "/v1/recordings/x/records/", "/v1/find/"):
            api.bad("GET", path, status=404)
        equal(send(tmp / "socket", "GET", f"/v1/recordings/{'x' * 300}/records").status, 404)
        api.bad("POST", "/v1/find", status=405)
        equal(daemon.stop(), 0)


def test_records_are_found_while_they_are_being_recorded(tmp):
    with daemon_in(tmp, "-b", "filesize:500K", "-b", "files:1000", source=f"sim:rate={harness.rate(300_000)}", mode="always") as daemon:
        daemon.wait_ready()
        wait_until(lambda: len(harness.segments(tmp / "out")) >= 2, "two segments are sealed")
        seen = 0
        for _ in harness.some(range(20), 2):
            durable = daemon.status()["counts"]["durable"]
            lines, end = search(tmp, last="1")
            equal(end["cut_off"], None)
            assert lines[0]["number"] >= max(seen, durable - 1), (lines, seen, durable)
            seen = lines[0]["number"]
            number = random.Random(seen).randrange(seen)
            lines, end = search(tmp, f"/v1/recordings/{lines[0]['recording']}/records", records=str(number))
            equal([line["number"] for line in lines], [number], f"{end}, {os.listdir(tmp / 'out')}")
            lines, end = search(tmp, "/v1/recordings/current/records", last="1")
            assert lines[0]["number"] >= seen and end["segments"] >= 2, (lines, end, seen)
        assert daemon.stop() in (0, 4)


@pytest.mark.asan
def test_damage_is_reported_and_the_rest_is_found(tmp):
    out = tmp / "out"
    id = record(out, 3)
    path = sorted(out.glob("*.byu.lz4"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    intact = int(buscap("find", "--count", "0-ffffffff", out, code=3)[0])
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        lines, end = search(tmp, f"/v1/recordings/{id}/records", count="true")
        equal((len(lines), end["damaged_places"], end["matches"]), (1, 1, intact), "damage")
        assert lines[0]["damage"]["file"] == str(path) and "damaged" in lines[0]["damage"]["what"], lines
        equal(daemon.stop(), 0)


def open_search(tmp, streams, query):
    """Starts a search as soon as there is a place for it. Returns the response."""
    answers = []

    def is_accepted():
        connection = harness.Connection(tmp / "socket", harness.TIMEOUT_S)
        connection.request("GET", f"/v1/find?{query}")
        answer = connection.getresponse()
        if answer.status == 200:
            streams.callback(connection.close)
            answers.append(answer)
        else:
            connection.close()
        return answer.status == 200

    wait_until(is_accepted, "the search is accepted")
    return answers[0]


def test_a_slow_client_is_cut_off(tmp):
    record(tmp / "out", 4)
    with daemon_in(tmp) as daemon, contextlib.ExitStack() as streams:
        daemon.wait_ready()
        slow = open_search(tmp, streams, "first=10000")  # reads nothing of it
        # It is cut off, after which there is an answer.
        last = json.loads(open_search(tmp, streams, "last=1").read().splitlines()[-1])
        equal((last["end"]["matches"], last["end"]["cut_off"]), (1, None))
        last = json.loads(slow.read().splitlines()[-1])
        equal(last["end"]["cut_off"], "slow client")
        equal(daemon.stop(), 0)


def test_the_daemon_stops_during_a_search(tmp):
    record(tmp / "out", 5)
    with daemon_in(tmp, "--set", "socket.find_rate=1K") as daemon:
        daemon.wait_ready()
        with Stream(tmp / "socket", "/v1/find?count=true", "SearchLine") as running:
            with Stream(tmp / "socket", "/v1/find?count=true", "SearchLine"):
                equal(daemon.stop(), 0)
                assert all("end" not in line for line in running.rest())


def test_excess_searches_are_refused_and_a_disconnected_client_frees_its_place(tmp):
    record(tmp / "out", 6)
    with daemon_in(tmp, "--set", "socket.find_rate=1K") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        for _ in range(5):
            with contextlib.ExitStack() as streams:
                for _ in range(WAITING):
                    open_search(tmp, streams, "count=true")
                api.bad("GET", "/v1/find", status=503, words="too many searches: the limit is 8, or 6 other")
        equal(daemon.stop(), 0)


def test_a_thousand_searches_lose_no_samples(tmp):
    # What there is to search stays small, however long it takes.
    bounds = ("-b", "filesize:2M", "-b", "files:3", "--set", "pipeline.buffer=256M")
    with daemon_in(tmp, *bounds, source=f"sim:rate={harness.rate(400_000)},agents=2", mode="always") as daemon:
        daemon.wait_ready()
        wait_until(lambda: daemon.status()["counts"]["durable"] > 100_000, "records are durable")
        answered, refused = [], []

        def ask(seed):
            dice = random.Random(seed)
            first = dice.randrange(1 << dice.choice((10, 14, 20))) << 12
            path = f"/v1/find?addr={first:x}-{first + 0xFFF:x}&last=1"
            response = send(tmp / "socket", "GET", path)
            (answered if response.status == 200 else refused).append((first, response))

        with ThreadPoolExecutor(40) as clients:  # while some wait for an answer, others are refused
            list(clients.map(ask, range(1000)))
        seeds = itertools.count(1000)
        with ThreadPoolExecutor(WAITING) as clients:  # all wait for their turn
            while len(answered) < 25:
                list(clients.map(ask, itertools.islice(seeds, 25 - len(answered))))
        harness.note(f"{len(answered)} searches answered, {len(refused)} refused")
        for _, response in refused:
            equal((response.status, "too many searches" in response.json()["error"]), (503, True))
        for first, response in answered:
            *hits, last = map(json.loads, response.body.splitlines())
            if last["end"]["cut_off"] == "time limit":
                continue  # the machine is busy
            equal((last["end"]["matches"], last["end"]["damaged_places"], last["end"]["cut_off"]), (len(hits), 0, None))
            assert all(first - 32 < int(hit["addr"], 16) <= first + 0xFFF for hit in hits), hits
        counts = harness.check_counts(daemon.status())
        equal((counts["dropped"]["buffer"], counts["dropped"]["disk"]), (0, 0), f"{counts}")
        assert daemon.stop() in (0, 4)
