"""The catalogue of docs/fleet.md on a cluster: `make check-fleet`; with --short, one shard of two and fewer faults.

Three nodes record at the same time. buscap-ship sends what they have to six servers in three shards of two (18.16, with
ZooKeeper), while it, the servers, ZooKeeper and the network between them fail in each way that can be made here. After each
fault, a run without faults must give exactly the rows of the files. A reader polls every replica all the time: a segment
that is listed must have all its pages. Controls without one of the measures must find what the measure prevents.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import harness
import rowbinary
from cluster import Cluster, Engine, Refused, Servers
from harness import BUSCAP, BUSCAPD, ROOT, equal, need, run

sys.path.insert(0, str(ROOT / "python"))
import numpy as np  # noqa: E402

import buscap  # noqa: E402

SHIPPER = pathlib.Path(__file__).with_name("shipper.py")
QUORUM = ("--set", "insert_quorum=2", "--set", "insert_quorum_timeout=2000")


def note(text):
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


BEGAN = time.monotonic()


# ---- what is in the files


def record(directory, source, *options):
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", source, "-o", directory, *options)
    assert done.returncode in (0, 4), done.stderr


def make_nodes(directory, count):
    """Records on three nodes at the same time: segments of some seconds, and one recording with gaps. Returns their
    directories."""
    nodes = [directory / name for name in ("cap1", "cap2", "cap3")]
    for seed, node in enumerate(nodes, 1):
        done = run(need(BUSCAP), "sim", "-n", count, "-s", seed, "-a", 2, "-O", "bcp1", "-o", directory / f"{node.name}.bcp1")
        equal(done.returncode, 0, done.stderr)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:  # with a slower clock, so that it takes minutes
        list(pool.map(lambda node: record(node, f"file:{node}.bcp1,clock_hz=2000000", "-b", "filesize:1M"), nodes))
    for node in nodes:
        for path in sealed(fresh(directory, "gaps", 1)):
            path.rename(node / path.name)
        (directory / "gaps").rmdir()
    return nodes


SEEDS = iter(range(100, 10**6))


def fresh(directory, name, n):
    """Makes a directory with n small recordings that no database has seen: a segment whose rows another node has sent can
    lack none."""
    place = directory / name
    place.mkdir()

    def make(seed):
        record(directory / f"{seed}", f"sim:rate=max,count=5000,agents=2,loss=0.1,seed={seed}")
        for path in sealed(directory / f"{seed}"):
            path.rename(place / path.name)
        shutil.rmtree(directory / f"{seed}")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(make, [next(SEEDS) for _ in range(n)]))
    return place


FACTS = {}  # of a file


def facts(path):
    """Returns (recording, segment, seal, records by class, number of events) of a segment file, from its records."""
    path = pathlib.Path(path)
    if path.name not in FACTS:
        segment = buscap.Segment(path)
        classes, events = np.zeros(4, "i8"), 0
        for chunk in segment.chunks:
            classes += np.bincount(np.array([0, 1, 1, 2, *[3] * 12, 1, 2, *[3] * 238])[chunk.records["type"]], minlength=4)
            events += sum(event.kind != "anchor" for event in chunk.events)
        FACTS[path.name] = (segment.header["recording"], segment.header["segment"], path.read_bytes()[-40:-32].hex(),
                            tuple(classes.tolist()), events)
    return FACTS[path.name]


def sealed(directory):
    return harness.segments(directory, ".byu.lz4")


# ---- running the shipper


class Fleet:
    """A cluster, and what should be in its catalogue: `nodes` has the directory of each node name."""

    def __init__(self, cluster, database="lab", options=QUORUM, sql=()):
        self.cluster, self.database, self.options = cluster, database, options
        self.nodes, self.gone = {}, collections.defaultdict(set)
        done = run(ROOT / "python/buscap-ship", "--sql", "--database", database, *sql,
                   *(("--cluster", "lab") if cluster.keeper else ()))
        equal(done.returncode, 0, done.stderr)
        self.statements = done.stdout.decode().split(";\n")[:-1]
        for statement in self.statements:
            self.ask(statement, "default")

    def ask(self, query, database=None, server=0):
        return self.cluster.servers[server].rows(query, database or self.database)

    def argv(self, node, directory, faults=None, url=None, options=None):
        url = url or self.cluster.servers[0].url
        return [sys.executable, SHIPPER, json.dumps(faults or {}), "--url", url, "--database", self.database, "--node", node,
                *(self.options if options is None else options), directory]

    def ship(self, node, directory, wanted=0, **more):
        """Runs the shipper to its end. Returns what it says."""
        self.nodes[node] = directory
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        env |= more.pop("env", {})
        done = run(*self.argv(node, directory, **more), env=env)
        text = (done.stdout + done.stderr).decode()
        assert wanted is None or done.returncode == wanted, (done.returncode, text)
        return done.returncode, text

    def settle(self, node, directory):
        """Runs the shipper until it succeeds: in 18.16, writers with a quorum refuse each other now and then."""
        harness.wait_until(lambda: self.ship(node, directory, wanted=None)[0] == 0, f"{node} is complete", 90, 0.2)

    def wanted(self):
        """Returns the rows that the catalogue must have."""
        files, rows = {}, []
        for node, directory in self.nodes.items():
            here = {path.name: facts(path) for path in sealed(directory)}
            files |= here
            rows += [(node, *one[:3], 1) for one in here.values()]
            rows += [(node, *FACTS[name][:3], 0) for name in self.gone[node] - set(here)]
        files |= {name: FACTS[name] for names in self.gone.values() for name in names}
        return sorted(rows), sorted(files.values())

    def check(self, what):
        """Compares the catalogue, as each server tells it, with the files."""
        rows, files = self.wanted()
        pages = sorted((recording, segment, *classes) for recording, segment, _, classes, _ in files)
        events = sorted((recording, segment, n) for recording, segment, *_, n in files if n)
        for server in self.cluster.servers:
            ask = lambda query, server=server: server.rows(query, self.database)  # noqa: E731
            equal(sorted(ask("SELECT node, recording, segment, seal, present FROM segments FINAL")), [
                (node, recording, segment, int(seal) if seal.isdigit() else seal, present)
                for node, recording, segment, seal, present in rows], f"{what}: segments")
            equal(sorted(ask("SELECT recording, segment, sum(fetches), sum(reads), sum(writes), sum(others) FROM pages FINAL "
                             "GROUP BY recording, segment")), pages, f"{what}: pages")
            equal(sorted(ask("SELECT recording, segment, count() FROM events FINAL GROUP BY recording, segment")), events,
                  f"{what}: events")
        note(f"{what}: {len(rows)} files, exact on {len(self.cluster.servers)} server{'s' * (len(self.cluster.servers) > 1)}")

    def unfinished(self):
        """Returns how many listed segments lack pages, on any server, as that server's own tables have it."""
        found = 0
        suffix = "_here" if self.cluster.keeper else ""
        for server in self.cluster.servers:
            with contextlib.suppress(OSError, Refused):
                listed = server.rows(f"SELECT recording, segment, pages FROM segments{suffix} FINAL WHERE present = 1", self.database)
                pages = server.rows(f"SELECT recording, segment, uniqExact(place) FROM pages{suffix} GROUP BY recording, "
                                    "segment", self.database)
                have = {row[:2]: row[2] for row in pages}
                found += sum(have.get(row[:2], 0) < row[2] for row in listed)
        return found


class Reader:
    """Polls unfinished() in a thread."""

    def __init__(self, fleet):
        self.fleet, self.polls, self.unfinished, self.end = fleet, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.end.wait(0.02):
            self.unfinished += self.fleet.unfinished() > 0
            self.polls += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


class Proxy:
    """A proxy before a server. `mode`: "cut" sends the server half the rows of each INSERT into pages, and passes its answer
    on; "fail" answers every third request with 500."""

    def __init__(self, url, mode):
        proxy, count = self, iter(range(1 << 30))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if mode == "fail" and next(count) % 3 == 2:
                    self.reply(500, b"Bad gateway\n")
                    return
                if mode == "cut" and "INTO+pages" in self.path:
                    body = body[: body.rindex(b"\n", 0, len(body) // 2) + 1]
                try:
                    with urllib.request.urlopen(url + self.path, body) as answer:
                        self.reply(200, answer.read())
                except urllib.error.HTTPError as error:
                    self.reply(error.code, error.read())

            def reply(self, code, body):
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        proxy.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


# ---- what docs/fleet.md promises


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / "docs/fleet.md").read_text(), re.M | re.S)


def latest_writes(nodes):
    """Returns the time of the last write to each page, from all records."""
    latest = {}
    for path in (path for node in nodes for path in sealed(node)):
        for chunk in buscap.Segment(path).chunks:
            writes = chunk.records["type"] == 3
            order = np.argsort(chunk.times[writes], kind="stable")
            latest_here = dict(zip((chunk.records["addr"][writes][order] >> 12).tolist(), chunk.times[writes][order].tolist()))
            for page, time_ns in latest_here.items():
                latest[page] = max(latest.get(page, 0), time_ns)
    return latest


def last_writes_are_found(fleet, directory, nodes, n):
    """The script last-write, for n random pages, against all records; with an ssh that runs everything here."""
    tools = directory / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "last-write").write_text(blocks("bash")[0])
    (tools / "ssh").write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] || exit 9\nshift 3\necho searched >&2\nexec sh -c "$*"\n')
    (tools / "buscap").unlink(missing_ok=True)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tools / "buscap").symlink_to(BUSCAP)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "no_proxy": "127.0.0.1",
           "CATALOGUE": f"{fleet.cluster.servers[0].url}/?database={fleet.database}"}
    latest = latest_writes(nodes)

    def searched(page):
        done = run("last-write", f"{(page << 12) + 0x123:x}", env=env)
        equal(done.returncode, 0, done.stderr.decode())
        ns = latest[page]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + f".{ns % 10**9:09}Z"
        equal(done.stdout.decode().split()[0], stamp, f"page {page:x}: {done.stdout.decode()}")
        return done.stderr.count(b"searched")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        files = list(pool.map(searched, random.Random(5).sample(sorted(latest), n)))
    note(f"last-write: {n} of {n} pages as in all records; files searched: {sum(files) / n:.1f}, at most {max(files)}")
    assert max(files) <= 4, collections.Counter(files)


def queries_answer(fleet):
    """Each SELECT of the document. Returns the answers."""
    answers = [fleet.ask(query) for query in blocks("sql") if query.startswith("SELECT")]
    assert sum(map(bool, answers)) >= len(answers) - 2, answers  # two look for what is not here
    return answers


def document_is_right(cluster, directory, nodes, *sql):
    """What the document says, from its first command on, with one server."""
    with cluster:
        fleet = Fleet(cluster, options=(), sql=sql)
        for node in nodes:
            done = run(ROOT / "python/buscap-ship", "--url", cluster.servers[0].url, "--database", "lab", "--node", node.name,
                       node, env={**os.environ, "no_proxy": "127.0.0.1"})
            equal((done.returncode, done.stderr), (0, b""))
            fleet.nodes[node.name] = node
        fleet.check(f"sent to ClickHouse {cluster.servers[0].ask('SELECT version()').strip()}")
        last_writes_are_found(fleet, directory, nodes, 5)
        queries_answer(fleet)
        fleet.ship("cap9", nodes[0])
        for statement in blocks("sql"):
            if statement.startswith("ALTER"):
                fleet.ask(statement)
        harness.wait_until(lambda: fleet.ask("SELECT count() FROM segments WHERE node = 'cap9'") == [(0,)], "a node is deleted")
        del fleet.nodes["cap9"]
        fleet.check("the statements of docs/fleet.md")


# ---- faults


def killed_at_each_step(fleet, directory):
    """SIGKILL before and after each request of a run that sends two segments and marks one as gone."""
    place = fresh(directory, "steps", 3)
    files = sealed(place)
    aside = directory / "aside"
    aside.mkdir()
    for path in files[1:]:
        path.rename(aside / path.name)
    fleet.settle("steps", place)
    facts(files[0])
    files[0].unlink()
    fleet.gone["steps"] = {files[0].name}
    for path in files[1:]:
        (aside / path.name).rename(path)
    kills = 0
    for when in ("kill_before", "kill_after"):
        for step in range(40):
            code, text = fleet.ship("steps", place, wanted=None, faults={when: step})
            equal(fleet.unfinished(), 0, f"{when} {step}")
            assert code in (0, 1, -signal.SIGKILL), (code, text)
            kills += code == -signal.SIGKILL
            if code == 0:
                break
    fleet.settle("steps", place)
    assert kills >= 12, kills
    fleet.check(f"{kills} SIGKILLs, before and after each request")


def killed_at_random(fleet, directory, kills):
    """SIGKILL of shippers at random times."""
    dice, done, round_ = random.Random(1), 0, 0
    while done < kills:
        node, round_ = f"random{round_}", round_ + 1
        place = fresh(directory, node, 8)
        while done < kills and set(fleet.ask(f"SELECT count() FROM segments WHERE node = '{node}'")) != {(8,)}:
            with harness.popen(fleet.argv(node, place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(dice.uniform(0.25, 0.6))
                done += process.poll() is None
                process.kill()
            equal(fleet.unfinished(), 0, f"after {done} kills")
        fleet.settle(node, place)
    fleet.check(f"{done} SIGKILLs at random times")


def kill_servers(fleet, places, kills):
    """Kills servers, one after the other, while three shippers send. Returns (polls, polls with unfinished segments)."""
    dice, end = random.Random(2), threading.Event()

    def keep_shipping(place):
        while not end.is_set():
            server = dice.choice(fleet.cluster.servers)
            fleet.ship(place.name, place, wanted=None, url=server.url)

    with Reader(fleet) as reader, concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = [pool.submit(keep_shipping, place) for place in places]
        for i in range(kills):
            victim = fleet.cluster.servers[-1 - i % len(fleet.cluster.servers)]
            time.sleep(dice.uniform(0.1, 0.4))  # at any point of a run
            victim.kill()
            time.sleep(dice.uniform(0.1, 0.6))
            victim.start()
            victim.wait()
        end.set()
        for one in running:
            one.result()
        for place in places:
            fleet.settle(place.name, place)
    return reader.polls, reader.unfinished


def servers_killed(fleet, places, kills):
    polls, unfinished = kill_servers(fleet, places, kills)
    equal(unfinished, 0, f"polls that saw a segment without all its pages, of {polls}")
    fleet.check(f"{kills} servers killed; 0 of {polls} polls saw a segment without its pages")


def is_read_only(fleet):
    try:
        fleet.ask("SELECT count() FROM system.zookeeper WHERE path = '/'")
    except Refused:
        return True
    return False


def keeper_killed(fleet, directory):
    """ZooKeeper killed in the middle of a run, and started again."""
    place = fresh(directory, "keeper_killed", 12)
    with Reader(fleet) as reader:
        with harness.popen(fleet.argv("keeper", place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            harness.wait_until(lambda: fleet.ask("SELECT count() > 1 FROM segments WHERE node = 'keeper'") == [(1,)], "two")
            fleet.cluster.keeper.kill()
            harness.wait_until(lambda: is_read_only(fleet), "a server notices: what is sent now fails")
            fleet.cluster.keeper.start()
            fleet.cluster.keeper.wait()
            process.wait()
        fleet.settle("keeper", place)
    equal(reader.unfinished, 0, f"polls, of {reader.polls}")
    fleet.check("ZooKeeper killed")


def proxied(fleet, directory):
    place, url = fresh(directory, "proxied", 4), fleet.cluster.servers[0].url
    with Proxy(url, "cut") as proxy:
        _, text = fleet.ship("cut", place, wanted=1, url=proxy.url)
        assert "the last one is not stored" in text, text
    equal(fleet.ask("SELECT count() FROM segments WHERE node = 'cut'"), [(0,)], "listed")
    fleet.settle("cut", place)
    fleet.check("a proxy that cuts bodies after a row")
    place = fresh(directory, "failed", 4)
    with Proxy(url, "fail") as proxy:
        for _ in range(4):
            _, text = fleet.ship("fail", place, wanted=1, url=proxy.url)
        assert "Bad gateway" in text, text
        equal(fleet.unfinished(), 0)
    fleet.settle("fail", place)
    fleet.check("a proxy that answers every third request with 500")


def loaded_three_times(fleet, directory):
    """The same rows three times, with merges stopped."""
    place = fresh(directory, "thrice", 4)
    for server in fleet.cluster.servers:
        server.ask("SYSTEM STOP MERGES")
    before = fleet.ask("SELECT count() FROM pages")[0][0]
    rows = sum(len(buscap.Segment(path).page_counts()) for path in sealed(place))
    for _ in range(3):
        fleet.ship("thrice", place, faults={"without": "known"})
    equal(fleet.ask("SELECT count() FROM pages")[0][0] - before, 3 * rows, "raw rows")
    fleet.check(f"sent three times, {rows:,} rows of pages, with merges stopped")
    for server in fleet.cluster.servers:
        server.ask("SYSTEM START MERGES")


def deleted_while_sent(fleet, directory):
    """Retention deletes the oldest files during a run."""
    place = fresh(directory, "retention", 12)
    files = sealed(place)
    known = {facts(path)[:2]: path.name for path in files}
    with harness.popen(fleet.argv("retention", place), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        harness.wait_until(lambda: fleet.ask("SELECT count() FROM segments WHERE node = 'retention'") != [(0,)], "one")
        for path in files[:4] + files[-4:]:
            path.unlink()
        said = process.communicate()[1]
    equal((process.returncode, said), (0, b""), "a run while files are deleted")
    sent = fleet.ask("SELECT recording, segment FROM segments FINAL WHERE node = 'retention'")
    fleet.gone["retention"] = {known[row] for row in sent}
    fleet.settle("retention", place)
    fleet.check(f"{len(sent)} of {len(files)} sent while 8 were deleted")


def cloned(fleet, directory):
    """Another machine with the same node name; then a reboot, which is none."""
    place = fresh(directory, "cloned", 2)
    fleet.ship("clone", place, faults={"boot": "0" * 32})
    empty = directory / "empty"
    empty.mkdir()
    _, text = fleet.ship("clone", empty, wanted=1)
    assert "another machine" in text, text
    fleet.nodes["clone"] = place
    fleet.check("a clone is refused before it marks the other's files as gone")
    fleet.ship("clone", place, faults={"up_s": 0})
    fleet.check("a reboot is not refused")


def clock_set_back(fleet, directory):
    place = fresh(directory, "clock", 3)
    fleet.settle("clock", place)
    victim = sealed(place)[0]
    facts(victim)
    victim.rename(directory / victim.name)
    fleet.gone["clock"] = {victim.name}
    clock = harness.MovedClock(directory, -3600)
    _, text = fleet.ship("clock", place, env=clock.env)
    assert "3,600 s behind the database's" in text or "3,599 s behind" in text, text
    fleet.check("a clock an hour behind: a file is gone")
    (directory / victim.name).rename(victim)
    del fleet.gone["clock"]
    fleet.ship("clock", place, env=clock.env)
    fleet.check("and comes back")


def rows_lost(cluster, directory):
    """Rows vanish, as after a server has lost its disk: --check sends them again."""
    fleet, place = Fleet(cluster, "lost"), fresh(directory, "lost", 3)
    fleet.settle("lost", place)
    for (week,) in fleet.ask("SELECT DISTINCT toString(toMonday(until)) FROM pages"):
        fleet.ask(f"ALTER TABLE pages_here ON CLUSTER lab DROP PARTITION '{week}'")
    equal(fleet.ask("SELECT count() FROM pages"), [(0,)], "rows of pages")
    equal(fleet.ship("lost", place), (0, ""), "an ordinary run")
    check = (*fleet.options, "--check")
    _, text = fleet.ship("lost", place, wanted=1, options=check)
    equal(text.count(" rows of pages are missing in the catalogue; sent again\n"), 3, text)
    equal(fleet.ship("lost", place, options=check), (0, ""), "the second --check")
    fleet.check("rows lost, sent again by --check")


def column_added(cluster, directory):
    fleet = Fleet(cluster, "column")
    fleet.ask("ALTER TABLE segments_here ON CLUSTER lab ADD COLUMN note String")
    place = fresh(directory, "column", 2)
    fleet.settle("column", place)
    fleet.ask("DROP TABLE segments ON CLUSTER lab")
    for statement in fleet.statements:
        fleet.ask(statement, "default")
    equal(fleet.ask("SELECT count() FROM segments FINAL WHERE node = 'column' AND note = ''"), [(2,)], "it")
    fleet.check("a column added")


def shard_down(fleet, directory):
    both, place = fleet.cluster.servers[-2:], fresh(directory, "shard", 6)
    for server in both:
        server.kill()
    _, text = fleet.ship("shard", place, wanted=1)
    for server in both:
        server.start()
    for server in both:
        server.wait()
    fleet.settle("shard", place)
    fleet.check("one shard was down")


# ---- controls: without one of the measures, the same faults leave something unfinished


def control_ledger(cluster, directory):
    fleet, place = Fleet(cluster, "control_ledger"), fresh(directory, "control_ledger", 1)
    for step in range(3, 8):
        fleet.ship("x", place, wanted=None, faults={"without": "ledger", "kill_before": step})
    fleet.settle("x", place)
    assert fleet.unfinished() > 0
    note("control: a segment's row sent first: a kill leaves it without pages")


def control_last_row(cluster, directory):
    fleet, place = Fleet(cluster, "control_last_row"), fresh(directory, "control_last_row", 1)
    with Proxy(cluster.servers[0].url, "cut") as proxy:
        fleet.ship("x", place, url=proxy.url, faults={"without": "last_row"})
    assert fleet.unfinished() > 0
    note("control: without asking for the last row, a cut body is not noticed")


def control_quorum(cluster, directory):
    """A replica that gets the rows of one table later than those of another."""
    for options, is_wrong in ((QUORUM, False), ((), True)):
        fleet = Fleet(cluster, f"control_quorum{len(options)}", options)
        place = fresh(directory, fleet.database, 2)
        for server in cluster.servers:
            server.ask(f"SYSTEM STOP FETCHES {fleet.database}.pages_here")
        fleet.ship("x", place, wanted=0 if is_wrong else 1)
        equal(fleet.unfinished() > 0, is_wrong, f"unfinished, with {options}")
        for server in cluster.servers:
            server.ask(f"SYSTEM START FETCHES {fleet.database}.pages_here")
    note("control: without the quorum, a reader on a slow replica sees a segment without its pages")


def whole(directory, is_short):
    count, shape = (1_000_000, (1, 2)) if is_short else (3_000_000, (3, 2))
    nodes = make_nodes(directory, count)
    note(f"recorded {[len(sealed(place)) for place in nodes]} segments")
    with Cluster(directory, *shape) as cluster:
        note(f"{len(cluster.servers)} servers of ClickHouse {cluster.servers[0].ask('SELECT version()').strip()}, ZooKeeper")
        fleet = Fleet(cluster)
        for node in nodes:
            fleet.ship(node.name, node)
        fleet.check("sent")
        last_writes_are_found(fleet, directory, nodes, 20 if is_short else 200)
        queries_answer(fleet)
        if not is_short:
            for check in (column_added, rows_lost, control_ledger, control_last_row, control_quorum):
                check(cluster, directory)
            # Not in the short form: once, after a kill of a server of 18.16, no writer got its quorum any more.
            servers_killed(fleet, [fresh(directory, f"kills{i}", 40) for i in range(3)], 10)
        killed_at_each_step(fleet, directory)
        for fault in (proxied, deleted_while_sent, cloned):
            fault(fleet, directory)
        if not is_short:
            killed_at_random(fleet, directory, 20)
            for fault in (keeper_killed, loaded_three_times, clock_set_back, shard_down):
                fault(fleet, directory)
    (directory / "one").mkdir()
    document_is_right(Cluster(directory / "one"), directory, nodes)
    if not is_short:
        (directory / "rowbinary").mkdir()
        rowbinary.check(directory / "rowbinary")


def engine(directory):
    """The same document, tables (with codecs), queries and shipper with today's ClickHouse: an engine, not a cluster."""
    nodes = make_nodes(directory, 1_000_000)
    cluster = Servers([Engine(directory / "engine")])
    document_is_right(cluster, directory, nodes, "--codecs")
    with cluster:
        query = re.search(r"^    (SELECT count\(\) FROM file\((?:.|\n)*?'lz4'\))", (ROOT / "docs/fleet.md").read_text(), re.M)[1]
        wanted = sum(sum(facts(path)[3]) for path in sealed(nodes[0]))
        equal(cluster.servers[0].rows(query.replace("traces/", f"{nodes[0]}/")), [(wanted,)], query)
        note(f"{wanted:,} records read where they are")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="one shard, fewer faults")
    parser.add_argument("--engine", action="store_true", help="today's ClickHouse, which is not a cluster here")
    arguments = parser.parse_args()
    # In memory, if there is room: servers make 100,000 small files, which some disks take minutes to delete.
    is_roomy = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30
    with tempfile.TemporaryDirectory(prefix="buscap-fleet-", dir="/dev/shm" if is_roomy else None) as temporary:
        if arguments.engine:
            engine(pathlib.Path(temporary))
        else:
            whole(pathlib.Path(temporary), arguments.short)
    note("all checks passed")
