"""A stand-in for ClickHouse's HTTP port, with the tables of buscap-ship in SQLite. It understands what buscap-ship asks."""

import http.server
import re
import sqlite3
import threading
import time
import urllib.parse


def _unescaped(field):
    names = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0"}
    return re.sub(rb"\\(.)", lambda one: names.get(one[1], one[1]), field).decode(errors="surrogateescape")


def _escaped(value):
    names = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "'": "\\'"}
    return re.sub(r"[\\\t\n\r']", lambda one: names[one[0]], str(value)).encode(errors="surrogateescape")


class Catalogue:
    """`fail(query)` may return an error for a query; `cut(table, body)` may shorten what is inserted. `log` has the queries,
    `last` the parameters and headers of the last one."""

    def __init__(self, tables):
        self.lines, self.log, self.last = sqlite3.connect(":memory:", check_same_thread=False), [], None
        self.fail, self.cut, self.clock_s = (lambda query: None), (lambda table, body: body), lambda: int(time.time())
        self.lines.text_factory = lambda data: data.decode(errors="surrogateescape")
        for table, columns in tables.items():
            self.lines.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        self.numbers = {"place", "places", "segment", "fetches", "reads", "writes", "others", "bytes", "records",
                        "first_record", "since_ns", "until_ns", "clock_hz", "pages", "events", "lost", "skew_s", "present",
                        "version", "number", "record", "tick", "epoch", "at_ns", "exact", "duration_ns"}
        catalogue = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
                catalogue.last = parameters, dict(self.headers)
                query = parameters.get("query") or body.decode(errors="surrogateescape")
                catalogue.log.append(query)
                error = catalogue.fail(query)
                answer = (error + "\nmore\n").encode() if error else catalogue.answer(query, body)
                self.send_response(500 if error else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def insert(self, table, columns, body):
        rows = [line.split(b"\t") for line in self.cut(table, body).split(b"\n")[:-1]]
        rows = [[int(field) if name in self.numbers else _unescaped(field).encode(errors="surrogateescape")
                 for name, field in zip(columns, row, strict=True)] for row in rows]
        marks = ", ".join("CAST(? AS TEXT)" if name not in self.numbers else "?" for name in columns)
        self.lines.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def answer(self, query, body):
        insert = re.fullmatch(r"INSERT INTO (\w+) \((.*)\) FORMAT TabSeparated", query)
        if insert:
            self.insert(insert[1], insert[2].split(", "), body)
            return b""
        return b"".join(b"\t".join(map(_escaped, row)) + b"\n" for row in self.rows(query))

    def rows(self, query):
        """Returns the rows of a query in ClickHouse's SQL."""
        latest = "(SELECT *, max(version) FROM segments GROUP BY node, recording, segment)"
        for pattern, text in ((r"toUnixTimestamp\(now\(\)\)", str(self.clock_s())), ("segments FINAL", latest),
                              (r"any\((\w+)\)", r"ifnull(max(\1), '')"), (r"uniqExact\((\w+)\)", r"count(DISTINCT \1)"),
                              ("GLOBAL IN", "IN")):
            query = re.sub(pattern, text, query)
        strings = []

        def bind(found):
            strings.append(re.sub(r"\\(.)", r"\1", found[1]).encode(errors="surrogateescape"))
            return "CAST(? AS TEXT)"

        return self.lines.execute(re.sub(r"'((?:[^'\\]|\\.)*)'", bind, query), strings).fetchall()
