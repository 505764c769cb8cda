"""Checks the format rowbinary with two servers of ClickHouse, a part of `make check-fleet`.

Creates the table of docs/clickhouse.md, loads traces written by `buscap convert -O rowbinary`, and compares counts, sums,
types and absolute times with tests/support/reference.py and `buscap stats --json`. Then distributes recordings over both
servers.
"""

import collections
import json
import os
import re
import struct
import subprocess
import time

import reference
from cluster import Cluster
from harness import BUSCAP, ROOT, equal, need, run

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
    with Cluster(directory, shards=2) as cluster:
        server, second = cluster.servers
        for statement in blocks("The table"):
            server.ask(statement)
            second.ask(statement)
        bcp1 = directory / "bus.bcp1"
        done = run(need(BUSCAP), "sim", "-n", "300000", "-a", "2", "-O", "bcp1", "-o", bcp1)
        equal(done.returncode, 0, done.stderr)
        print(check_session(server, 1, "simulated bus, bcp1", [bcp1], reference.decode_bcp1(bcp1.read_bytes())))
        for query in blocks("Queries"):
            assert server.ask(query), f"empty result:\n{query}"
        size = server.rows("SELECT sum(bytes), sum(rows) FROM system.parts WHERE table = 'bus' AND active")[0]
        print(f"on disk: {size[0]} bytes for {size[1]} rows")
        check_loading(server, directory)
        check_sharding(cluster.servers)
