"""Checks the format rowbinary with ClickHouse: `make check-clickhouse`, not part of CI.

Starts two servers of Debian's package on loopback, with configuration and data in a temporary directory. Creates the
table of docs/clickhouse.md, loads traces written by `buscap convert -O rowbinary`, and compares counts, sums, types and
absolute times with tests/support/reference.py and `buscap stats --json`. Then distributes recordings over both servers.
The servers are always terminated, at the latest after two minutes.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import reference
from harness import BUSCAP, ROOT, equal, need, run

SECONDS = 120
CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <http_port>{port}</http_port>
  <tcp_port>{tcp_port}</tcp_port>
  <listen_host>127.0.0.1</listen_host>
  <path>{path}/data/</path>
  <tmp_path>{path}/tmp/</tmp_path>
  <mark_cache_size>16777216</mark_cache_size>
  <users_config>{path}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <remote_servers><trace_cluster>{shards}</trace_cluster></remote_servers>
</yandex>
"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default/></profiles>
  <users><default><password></password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default></users>
  <quotas><default/></quotas>
</yandex>
"""


def install():
    if shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin"):
        return
    done = subprocess.run(["tests/tools/deps.sh", "--", "clickhouse-server:clickhouse-server"], cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit("clickhouse-server is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server of a cluster. tcp_ports: the ports of all servers."""

    def __init__(self, directory, tcp_ports, number):
        self.port = free_port()
        directory.mkdir()
        shards = "".join(SHARD.format(port=port) for port in tcp_ports)
        (directory / "config.xml").write_text(
            CONFIG.format(port=self.port, tcp_port=tcp_ports[number], path=directory, shards=shards))
        (directory / "users.xml").write_text(USERS)
        self.log = open(directory / "log", "wb")
        program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen(
            ["timeout", "--foreground", str(SECONDS), program, f"--config-file={directory}/config.xml"],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        end = time.monotonic() + 60
        while True:
            try:
                self.version = self.ask("SELECT version()").strip()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    sys.exit(f"no response from the server:\n{pathlib.Path(self.log.name).read_text()[-3000:]}")
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def ask(self, query, data=None, settings=""):
        """Sends a query. Returns the result as text."""
        url = f"http://127.0.0.1:{self.port}/?{settings}query={urllib.parse.quote(query)}"
        request = urllib.request.Request(url, data=data if data is not None else b"", method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=SECONDS) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as why:
            raise AssertionError(f"{query}: {why.read().decode()}") from None

    def rows(self, query):
        return [tuple(map(int, line.split("\t"))) for line in self.ask(query).splitlines()]


def blocks(name):
    """Returns the SQL statements below a heading of docs/clickhouse.md."""
    text = (ROOT / "docs/clickhouse.md").read_text()
    part = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", part, re.S)


def expect(records):
    """Returns (addr, reqtype, size, attr, proc, time) of each record."""
    return list(struct.iter_unpack("<I4BI", records))


def check_session(server, session, name, argv, expected):
    start = time.monotonic()
    done = run(need(BUSCAP), "convert", "-O", f"rowbinary:session={session}", *argv)
    assert done.returncode in (0, 3), done.stderr
    server.ask("INSERT INTO bus FORMAT RowBinary", done.stdout)
    seconds = time.monotonic() - start
    rows = expect(expected.records)
    where = f"WHERE session = {session}"
    equal(server.rows(f"SELECT count(), sum(size), sum(addr), min(seq), max(seq), uniqExact(seq) FROM bus {where}"),
          [(len(rows), sum(r[2] for r in rows), sum(r[0] for r in rows), 0, len(rows) - 1, len(rows))], "counts and sums")
    mix = collections.Counter(r[1] for r in rows)
    sizes = collections.Counter(r[1] for r in rows for _ in range(r[2]))
    equal(server.rows(f"SELECT reqtype, count(), sum(size) FROM bus {where} GROUP BY reqtype ORDER BY reqtype"),
          [(kind, mix[kind], sizes[kind]) for kind in sorted(mix)], "types")
    for column, name_of in ((3, "attr"), (4, "proc")):
        counts = collections.Counter(r[column] for r in rows)
        equal(server.rows(f"SELECT {name_of}, count() FROM bus {where} GROUP BY {name_of} ORDER BY {name_of}"),
              sorted(counts.items()), name_of)
    equal(server.rows(f"SELECT t, addr, reqtype, size, attr, proc, time FROM bus {where} ORDER BY seq"),
          [(tick, *row) for tick, row in zip(expected.ticks, rows)], "rows")
    line = f"{name}: {len(rows)} rows, converted and loaded in {seconds:.2f} s; counts, sums, types and rows are correct"
    return line + check_stats(argv, rows, mix, sizes)


def check_stats(argv, rows, mix, sizes):
    """Compares with `buscap stats`, which also counts invalid cycles."""
    done = run(BUSCAP, "stats", "--json", "--full", *argv)
    if done.returncode not in (0, 3):
        return "; buscap stats failed, not compared"
    stats = json.loads(done.stdout)
    types = {t["type"]: (t["references"], t["bytes"]) for t in stats["types"] if t["type"] < 0xF0}
    equal(types, {kind: (mix[kind], sizes[kind]) for kind in mix}, "stats: types")
    procs = collections.Counter(r[4] for r in rows)
    invalid = sum(t["references"] for t in stats["types"] if t["type"] >= 0xF0)
    equal(sum(p["references"] for p in stats["processors"]), sum(procs.values()) + invalid, "stats: processors")
    return "; buscap stats agrees"


def script_of_document(directory):
    """The loading script of docs/clickhouse.md."""
    text = (ROOT / "docs/clickhouse.md").read_text()
    (script,) = re.findall(r"```bash\n(.*?)```", text, re.S)
    path = directory / "load-bus"
    path.write_text(script)
    return path


def check_loading(server, directory):
    """The script loads a recording, again and segment by segment; one that ends early changes nothing."""
    script = script_of_document(directory)
    tools = directory / "bin"
    tools.mkdir()
    early = tools / "buscap"

    def load(session, *files, end="exec"):
        # A convert that ends after 1000 rows, killed or not.
        early.write_text(f'#!/bin/bash\n[ "$1" = convert ] || exec {BUSCAP} "$@"\n'
                         + {"exec": f'exec {BUSCAP} "$@"\n', "kill": f'{BUSCAP} "$@" | head -c 32000; kill -9 $$\n',
                            "lie": f'{BUSCAP} "$@" | head -c 32000; exit 0\n'}[end])
        early.chmod(0o755)
        env = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", CLICKHOUSE_URL=f"http://127.0.0.1:{server.port}/")
        return subprocess.run(["bash", script, str(session), *files], env=env, capture_output=True, timeout=60, check=False)

    done = run(need(BUSCAP), "convert", "-I", "byu", "-O", "segment", "-o", directory / "one.byu.lz4",
               data=run(BUSCAP, "sim", "-n", "50000", "-O", "byu").stdout)
    equal(done.returncode, 0, done.stderr)
    count = "SELECT count(), min(seq), max(seq), uniqExact(seq) FROM bus WHERE session = {}"
    for end in ("kill", "lie"):
        done = load(50, directory / "one.byu.lz4", end=end)
        assert done.returncode != 0, (end, done.stderr)
        equal(server.rows(count.format(50))[0][0], 0, f"{end}: rows in bus")
    rows = len(run(BUSCAP, "convert", "-O", "byu", directory / "one.byu.lz4").stdout) // 12
    for _ in range(2):
        done = load(50, directory / "one.byu.lz4")
        equal(done.returncode, 0, done.stderr)
        equal(server.rows(count.format(50)), [(rows, 0, rows - 1, rows)], "rows in bus")
    equal(load(50, directory / "one.byu.lz4", end="kill").returncode != 0, True, "killed again")
    equal(server.rows(count.format(50))[0][0], rows, "rows in bus after a load that failed")
    print(f"\nthe script loaded {rows} rows, twice; a convert that ended early changed nothing")


def check_sharding(servers):
    """Inserts rows on one server. They must be stored on the server that their session selects, and visible on both."""
    one, two = servers
    for server in servers:
        for statement in blocks("Several servers"):
            server.ask(statement)
    trace = run(need(BUSCAP), "sim", "-n", "20000", "-O", "byu").stdout
    sessions = range(100, 106)
    for session in sessions:
        rows = run(BUSCAP, "convert", "-I", "byu", "-O", f"rowbinary:session={session}", data=trace).stdout
        one.ask("INSERT INTO bus_all FORMAT RowBinary", rows, "insert_distributed_sync=1&")
    count = len(trace) // 12
    query = "SELECT session, count(), sum(addr) FROM {} WHERE session >= 100 GROUP BY session ORDER BY session"
    total = sum(r[0] for r in expect(trace))
    wanted = [(session, count, total) for session in sessions]
    for number, server in enumerate(servers):
        equal(server.rows(query.format("bus")), [w for w in wanted if w[0] % 2 == number], f"server {number}")
        equal(server.rows(query.format("bus_all")), wanted, f"all rows, from server {number}")
    print(f"\n{len(wanted)} sessions of {count} rows on two servers: each on one server, all visible on both")


def check(directory):
    ports = [free_port(), free_port()]
    with Server(directory / "one", ports, 0) as server, Server(directory / "two", ports, 1) as second:
        print(f"clickhouse-server {server.version}")
        for statement in blocks("The table"):
            server.ask(statement)
            second.ask(statement)
        bcp1 = directory / "bus.bcp1"
        done = run(need(BUSCAP), "sim", "-n", "300000", "-a", "2", "-O", "bcp1", "-o", bcp1)
        equal(done.returncode, 0, done.stderr)
        print(check_session(server, 1, "simulated bus, bcp1", [bcp1], reference.decode_bcp1(bcp1.read_bytes())))
        for query in blocks("Queries"):
            answer = server.ask(query)
            assert answer, f"empty result:\n{query}"
            print(f"\n{query.strip()}\n{answer.rstrip()}")
        size = server.rows("SELECT sum(bytes), sum(rows) FROM system.parts WHERE table = 'bus' AND active")[0]
        print(f"\non disk: {size[0]} bytes for {size[1]} rows")
        check_loading(server, directory)
        check_sharding([server, second])


if __name__ == "__main__":
    install()
    with tempfile.TemporaryDirectory(prefix="buscap-clickhouse-") as temporary:
        check(pathlib.Path(temporary))
    print("all checks passed")
