"""buscap-ship: the catalogue of many hosts in ClickHouse. docs/fleet.md is its manual.

A catalogue has three tables: `pages` (how often a segment touches a page), `events` (gaps, marks, triggers) and
`segments` (which node has which file). Rows are sets: the same row may be sent any number of times. A segment's row in
`segments` is sent after its other rows are known to be stored, so whoever sees it sees those. The database is the only
state: a run asks what it has of this node, sends what is missing and marks what has gone, and can be killed at any point.
"""

import argparse
import http.client
import os
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from . import Damaged, Segment, parse_name, segments

SETTINGS = {"insert_distributed_sync": 1, "load_balancing": "in_order", "insert_deduplicate": 0, "wait_end_of_query": 1}
TIMEOUT_S = 180
MAX_SKEW_S = 60
REBOOT_S = 10  # the server's clock is read in seconds
DAY_S = 86400
WEEK_NS = 7 * DAY_S * 10**9

TABLES = {  # columns, engine's version, partition, key
    "segments": ("node String, host String, recording String, label String, segment UInt32, seal String, path String, "
                 "bytes UInt64, first_record UInt64, records UInt64, since_ns Int64, until_ns Int64, clock_hz UInt64, "
                 "pages UInt32, events UInt32, lost UInt64, skew_s Int64, boot String, present UInt8, version UInt64",
                 "version", f"intDiv(until_ns, {WEEK_NS})", "node, recording, segment"),
    "pages": ("place UInt32, places UInt32, host String, recording String, segment UInt32, until DateTime('UTC'), "
              "fetches UInt64, reads UInt64, writes UInt64, others UInt64",
              None, "toMonday(until)", "place, host, recording, segment"),
    "events": ("host String, recording String, segment UInt32, number UInt32, kind String, record UInt64, tick UInt64, "
               "epoch UInt32, at_ns Int64, cause String, lost UInt64, exact UInt8, duration_ns UInt64, text String",
               None, None, "recording, segment, number"),
}
COLUMNS = {table: [column.split()[0] for column in columns.split(", ")] for table, (columns, *_) in TABLES.items()}
# Of today's ClickHouse; 18.16 has none of them.
CODECS = {"String": "LowCardinality(String)", "UInt32": "UInt32 CODEC(T64, ZSTD)", "UInt64": "UInt64 CODEC(T64, ZSTD)",
          "Int64": "Int64 CODEC(Delta, ZSTD)", "DateTime('UTC')": "DateTime('UTC') CODEC(DoubleDelta, ZSTD)"}
PLAIN = {"seal", "path", "text"}  # hardly any two are equal


class Refused(Exception):
    """The database, or this program, refuses: the first line of why."""


class Unreachable(Exception):
    """No answer from the database."""


def statements(database, cluster, has_codecs):
    """Returns the statements that make the tables."""
    on = f" ON CLUSTER {cluster}" if cluster else ""
    made = [f"CREATE DATABASE IF NOT EXISTS {database}{on}"]
    for table, (columns, version, partition, key) in TABLES.items():
        if has_codecs:
            pairs = (column.split(" ") for column in columns.split(", "))
            columns = ", ".join(f"{name} {kind if name in PLAIN else CODECS.get(kind, kind)}" for name, kind in pairs)
        where = [f"'/clickhouse/tables/{{shard}}/{database}_{table}', '{{replica}}'"] if cluster else []
        arguments = ", ".join([*where, *filter(None, [version])])
        engine = f"{'Replicated' if cluster else ''}ReplacingMergeTree({arguments})"
        here = f"{database}.{table}{'_here' if cluster else ''}"
        made.append(f"CREATE TABLE IF NOT EXISTS {here}{on} ({columns})\nENGINE = {engine}"
                    + (f" PARTITION BY {partition}" if partition else "") + f" ORDER BY ({key})")
        if cluster:
            made.append(f"CREATE TABLE IF NOT EXISTS {database}.{table}{on} AS {here}\n"
                        f"ENGINE = Distributed({cluster}, {database}, {table}_here, cityHash64(recording, segment))")
    return made


def escaped(value):
    """Returns a value as TabSeparated has it. Names of files may be any bytes."""
    names = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\0": r"\0"}
    return re.sub(r"[\\\t\n\r\0]", lambda one: names[one[0]], str(value)).encode(errors="surrogateescape")


def unescaped(field):
    names = {"t": "\t", "n": "\n", "0": "\0", "b": "\b", "f": "\f", "r": "\r"}
    return re.sub(r"\\(.)", lambda one: names.get(one[1], one[1]), field.decode(errors="surrogateescape"))


def quoted(value):
    """Returns a string or a number as SQL has it."""
    return "'" + re.sub(r"([\\'])", r"\\\1", value) + "'" if isinstance(value, str) else str(value)


class Database:
    """The database: asks it, and inserts rows."""

    def __init__(self, url, database, password_file, settings):
        parts = urllib.parse.urlsplit(url)
        self.settings, self.headers = {"database": database, **SETTINGS, **dict(settings)}, {}
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if parts.username or password_file:
            password = open(password_file, encoding="utf-8").read().rstrip("\n") if password_file else ""
            self.headers["X-ClickHouse-User"] = urllib.parse.unquote(parts.username or "default")
            self.headers["X-ClickHouse-Key"] = password

    def ask(self, query, data=b""):
        """Returns the rows of the answer, as lists of bytes."""
        parameters = urllib.parse.urlencode({**self.settings, **({"query": query} if data else {})})
        request = urllib.request.Request(f"{self.url}?{parameters}", data or query.encode(errors="surrogateescape"),
                                         self.headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return [line.split(b"\t") for line in answer.read().splitlines()]
        except urllib.error.HTTPError as error:
            try:
                text = error.read()
            except (OSError, http.client.HTTPException) as cut:
                text = getattr(cut, "partial", b"")
            line = (text.decode(errors="replace").splitlines() or [f"HTTP status {error.code}"])[0]
            is_table = any(f"Code: {code}," in line or f"Code: {code}." in line for code in (16, 47, 60, 81))
            raise Refused(line + ("; make the tables: buscap-ship --sql prints them" if is_table else "")) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.url}: {getattr(error, 'reason', error)}; is the database running?") from None

    def insert(self, table, rows):
        """Inserts rows, and asks for the last one: a body that was cut after a row is stored, and answered with 200."""
        columns = COLUMNS[table]
        body = b"".join(b"\t".join(map(escaped, row)) + b"\n" for row in rows)
        self.ask(f"INSERT INTO {table} ({', '.join(columns)}) FORMAT TabSeparated", body)
        key = TABLES[table][3].split(", ") + ["version"] * (table == "segments")
        last = dict(zip(columns, rows[-1]))
        where = " AND ".join(f"{name} = {quoted(last[name])}" for name in key)
        if self.ask(f"SELECT count() > 0 FROM {table} WHERE {where}") != [[b"1"]]:
            raise Refused(f"{table}: of {len(rows):,} rows the last one is not stored; the next run sends them again")


def utc(ns):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(min(max(ns // 10**9, 0), 2**32 - 1)))


class Contents:
    """What the catalogue has of a segment file. Raises Damaged."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.seek(0, 2)
            file.seek(max(self.bytes - 40, 0))
            self.seal = file.read(8).hex()
        segment = Segment(path)
        header, chunks = segment.header, segment.chunks
        self.host, self.recording, self.segment = header.get("host") or "", header["recording"], header["segment"]
        self.label, self.clock_hz = header.get("label") or "", header["source"].get("clock_hz", 0)
        if parse_name(path)[:2] != (self.recording, self.segment):
            raise Damaged(path, 11, f"the header is of {self.recording}, segment {self.segment}; rename the file")
        self.records = sum(map(len, chunks))
        self.first_record = chunks[0].first_record if chunks else header["first"]["record"]
        self.since_ns = chunks[0].time_at(0) if chunks else header["first"]["wall_ns"]
        self.until_ns = max([self.since_ns, *(chunk.time_at(len(chunk)) for chunk in chunks if len(chunk))])
        self.key, until = (self.recording, self.segment), utc(self.until_ns)
        self.page_rows = [(place, places, self.host, *self.key, until, *counts)
                          for place, places, *counts in segment.page_counts().tolist()]
        events = [(chunk, event) for chunk in chunks if chunk.info["events"] for event in chunk.events
                  if event.kind != "anchor"]
        self.event_rows = [
            (self.host, *self.key, number, event.kind, chunk.first_record + event.position, chunk.tick_at(event.position),
             chunk.epoch, chunk.time_at(event.position), event.cause, event.value if event.kind == "gap" else 0,
             int(event.exact), event.duration_ns, event.text) for number, (chunk, event) in enumerate(events)]
        self.pages, self.events = len(self.page_rows), len(self.event_rows)
        self.lost = sum(event.value for _, event in events if event.kind == "gap")


class Run:
    """One run. `known`: this node's rows of `segments`, by recording and number. `code`: the exit code so far."""

    def __init__(self, database, node):
        self.database, self.node = database, node
        self.code = self.sent = self.gone = self.damaged = 0
        self.boot = os.environ.get("BUSCAPD_BOOT_ID", "")  # the service can't see /proc/sys
        if not self.boot:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                self.boot = file.read().strip().replace("-", "")
        self.now_s = int(database.ask("SELECT toUnixTimestamp(now())")[0][0])
        self.began = time.monotonic()
        self.skew_s = int(time.time()) - self.now_s
        if abs(self.skew_s) > MAX_SKEW_S:
            side = "ahead of" if self.skew_s > 0 else "behind"
            say(f"warning: this host's clock is {abs(self.skew_s):,} s {side} the database's, and so are the times in "
                "its recordings; set the clock")
        self.refuse_clone()
        rows = database.ask(f"SELECT {', '.join(COLUMNS['segments'])} FROM segments FINAL WHERE node = {quoted(node)}")
        rows = (dict(zip(COLUMNS["segments"], map(unescaped, row))) for row in rows)
        self.known = {(row["recording"], int(row["segment"])): row for row in rows}

    def refuse_clone(self):
        """Refuses if another boot has written this node's rows since this one began: two machines have one name."""
        since = int((self.now_s - time.clock_gettime(time.CLOCK_BOOTTIME) + REBOOT_S) * 1000)
        ((count, boot),) = self.database.ask(
            f"SELECT count(), any(boot) FROM segments WHERE node = {quoted(self.node)} AND boot != '{self.boot}' "
            f"AND version > {since}")
        if int(count):
            raise Refused(f"node {self.node}: another machine (boot {boot.decode()}) ships under this name too; nothing "
                          "was sent. Give one another name with --node, then see docs/fleet.md")

    def put(self, key, row):
        """Writes a row of `segments`. Its version is the server's time, in ms, but never falls."""
        now = int((self.now_s + time.monotonic() - self.began) * 1000)
        row |= {"boot": self.boot, "version": max(now, int(self.known.get(key, {}).get("version", 0)) + 1)}
        self.database.insert("segments", [[row[column] for column in COLUMNS["segments"]]])

    def send(self, one, path, is_repair):
        where = f"recording = {quoted(one.recording)} AND segment = {one.segment}"
        for table, number, rows, where in (("pages", "place", one.page_rows, f"{where} AND until = '{utc(one.until_ns)}'"),
                                           ("events", "number", one.event_rows, where)):
            if rows:
                self.database.insert(table, rows)
            # The last row may be one that was there before.
            if rows and is_repair and int(self.database.ask(
                    f"SELECT uniqExact({number}) FROM {table} WHERE {where}")[0][0]) < len(rows):
                raise Refused(f"{table}: not all of {len(rows):,} rows are stored; the next --check sends them again")
        self.put(one.key, {**vars(one), "node": self.node, "path": path, "skew_s": self.skew_s, "present": 1})
        self.sent += 1

    def is_known(self, key, path):
        """True if the database has this file, by its name and size: sealed segments don't change."""
        row = self.known.get(key, {"present": "0"})
        return row["present"] == "1" and row["path"] == path and int(row["bytes"]) == os.stat(path).st_size

    def stored(self, table, number, where="1"):
        """Returns how many different numbers (rows) a table has of each of this node's segments."""
        rows = self.database.ask(
            f"SELECT recording, segment, uniqExact({number}) FROM {table} WHERE {where} AND (recording, segment) GLOBAL IN "
            f"(SELECT recording, segment FROM segments WHERE node = {quoted(self.node)}) GROUP BY recording, segment")
        return {(unescaped(recording), int(segment)): int(count) for recording, segment, count in rows}

    def load_counts(self):
        """Sets `counts`, of all rows of pages and events. One week of pages at a time: they are many."""
        self.counts = [self.stored("events", "number"), {}]
        for monday in {(int(row["until_ns"]) // 10**9 // DAY_S + 3) // 7 * 7 - 3 for row in self.known.values()}:
            since, until = (utc(day * DAY_S * 10**9) for day in (monday, monday + 7))
            self.counts[1] |= self.stored("pages", "place", f"until >= '{since}' AND until < '{until}'")

    def check(self, one):
        """Returns what of a known segment differs in the database, or ""."""
        row, counts = self.known[one.key], [counts.get(one.key, 0) for counts in self.counts]
        if row["seal"] != one.seal:
            return f"its seal is {one.seal}, in the catalogue {row['seal']}"
        missing = [f"{wanted - n:,} of {wanted:,} rows of {table} are missing in the catalogue"
                   for table, n, wanted in zip(("events", "pages"), counts, (one.events, one.pages)) if n < wanted]
        return "; ".join(missing)

    def visit(self, key, path, is_check):
        is_known = self.is_known(key, path)
        if is_known and not is_check:
            return
        one = Contents(path)
        what = self.check(one) if is_known else ""
        if what or not is_known:
            self.send(one, path, is_repair=bool(what))
        if what:
            self.fail(1, f"{path}: {what}; sent again")

    def fail(self, code, text):
        self.code = 1 if 1 in (code, self.code) else code
        say(text)

    def run(self, directories, is_check):
        files = {name[:2]: segment.path for segment in segments(*directories)
                 if (name := parse_name(segment.path)) and not name[2]}
        if is_check:
            self.load_counts()
        was_unreachable = False
        for key, path in files.items():
            try:
                self.visit(key, path, is_check)
                was_unreachable = False
            except FileNotFoundError:
                pass  # deleted since it was listed
            except Damaged as error:
                self.damaged += 1
                self.fail(3, f"{error}; not in the catalogue")
            except (OSError, ImportError, Refused) as error:
                self.fail(1, f"{path}: {getattr(error, 'strerror', None) or error}")
            except Unreachable as error:
                if was_unreachable:
                    raise
                was_unreachable = True
                self.fail(1, f"{path}: {error}")
        for key, row in self.known.items():
            if row["present"] == "1" and key not in files:
                self.put(key, {**row, "segment": key[1], "present": 0})
                self.gone += 1
        self.files = len(files)


def write_metrics(path, run):
    """Writes a file for the textfile collector of node_exporter, if the catalogue has all that is whole."""
    rows = (("complete_timestamp_seconds", "When the catalogue last had all sealed segments of this node.", time.time()),
            ("segments", "Sealed segments here.", run.files), ("damaged_segments", "Of these, damaged.", run.damaged),
            ("clock_skew_seconds", "This host's clock minus the database's.", run.skew_s))
    with open(f"{path}.new", "w", encoding="ascii") as file:
        for name, text, value in rows:
            name = f"buscap_ship_{name}"
            file.write(f"# HELP {name} {text}\n# TYPE {name} gauge\n{name} {value:.0f}\n")
    os.rename(f"{path}.new", path)


def say(text):
    print(f"buscap-ship: {text}", file=sys.stderr)


def assignment(text):
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text}: must be NAME=VALUE")
    return name, value


def parse(argv):
    parser = argparse.ArgumentParser(prog="buscap-ship", allow_abbrev=False, description=(
        "Sends what the sealed segments below DIR contain to the catalogue, a database in ClickHouse: page counts and events, "
        "not records. Can be killed and repeated at any time. A node's directories go into one command."), epilog=(
            "Exit code: 0 ok, 1 failed or refused, 2 wrong usage, 3 damaged segments (the others were sent), 6 can't reach "
            "the database. Manual: docs/fleet.md"))
    parser.add_argument("--url", help="the HTTP port of ClickHouse: http://[USER@]HOST:8123")
    parser.add_argument("--database", default="default", metavar="NAME", help="its database (default: default)")
    parser.add_argument("--node", default=socket.gethostname(), metavar="NAME", help="this machine (default: its host name)")
    parser.add_argument("--password-file", metavar="FILE", help="the password of USER, on one line")
    parser.add_argument("--set", type=assignment, action="append", default=[], metavar="NAME=VALUE",
                        help="a setting of ClickHouse, such as insert_quorum=2; can be repeated")
    parser.add_argument("--metrics", metavar="FILE", help="write FILE for node_exporter when the catalogue is complete")
    parser.add_argument("--check", action="store_true", help="compare the catalogue with the files and send again what "
                        "differs; exit code 1 if anything did")
    parser.add_argument("--sql", action="store_true", help="print the statements that make the tables")
    parser.add_argument("--cluster", metavar="NAME", help="with --sql: replicated and distributed tables")
    parser.add_argument("--codecs", action="store_true", help="with --sql: half the size; not for ClickHouse 18.16")
    parser.add_argument("directories", nargs="*", metavar="DIR", help="recordings, such as /var/lib/buscapd")
    args = parser.parse_args(argv)
    if args.sql == bool(args.url) or args.sql == bool(args.directories):
        parser.error("give --url and directories, or --sql without them")
    if args.url and not args.url.startswith(("http://", "https://")):
        parser.error(f"--url {args.url}: must begin with http:// or https://")
    if not re.fullmatch(r"\w+", args.database):
        parser.error(f"--database {args.database}: must be letters, digits and _")
    if not args.sql and (args.cluster or args.codecs):
        parser.error("--cluster and --codecs are for --sql")
    return args


def main(argv=None):
    args = parse(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if args.sql:
        print("".join(f"{statement};\n" for statement in statements(args.database, args.cluster, args.codecs)), end="")
        return 0
    for directory in args.directories:
        if not os.path.isdir(directory):
            say(f"{directory}: not a directory; nothing was sent")
            return 1
    try:
        run = Run(Database(args.url, args.database, args.password_file, args.set), args.node)
        run.run(map(os.path.abspath, args.directories), args.check)
        if run.sent or run.gone:
            print(f"node {args.node}: {run.sent:,} segment{'s' * (run.sent != 1)} sent, {run.gone:,} marked as gone")
        if args.metrics and run.code in (0, 3):
            write_metrics(args.metrics, run)
    except Unreachable as error:
        say(error)
        return 6
    except (Refused, OSError, ValueError) as error:
        say(error)
        return 1
    return run.code
