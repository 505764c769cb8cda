"""For tests of the socket: requests, and validation of responses against docs/openapi.json."""

import contextlib
import json
import os
import re
import threading

import harness
from harness import Daemon, equal, run

DESCRIPTION = json.loads((harness.ROOT / "docs/openapi.json").read_text())
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Response:
    """A response: status, headers with lower-case names, body in bytes."""

    @classmethod
    def parse(cls, text):
        self = cls()
        self.status, self.headers = 100, {}
        while self.status == 100:  # for Expect: 100-continue
            head, _, text = text.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            self.status = int(lines[0].split()[1])
            self.headers = {name.lower(): value.strip() for name, _, value in
                            (line.partition(":") for line in lines[1:])}
        self.body = text
        return self

    def json(self):
        return json.loads(self.body)

    def type(self):
        return self.headers.get("content-type", "").partition(";")[0]


def _encode(body):
    if body is None or isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def send(socket, method, path, body=None, content="application/json", timeout=harness.TIMEOUT_S, headers=None, **user):
    """Sends a request on a new connection. `body`: text, bytes, or a value to be sent as JSON. `user`: see
    harness.being()."""
    headers = {"Content-Type": content, **(headers or {})} if body is not None and content else headers or {}
    answer = Response()
    answer.status, answer.headers, answer.body = harness.exchange(
        socket, method, path, _encode(body), headers, timeout, user)
    return answer


def curl(socket, method, path, body=None, content="application/json", args=(), timeout=harness.TIMEOUT_S):
    """Like send(), with curl and more arguments for it."""
    argv = ["curl", "-sSi", "--globoff", "--path-as-is", "--max-time", str(timeout), "--unix-socket", str(socket)]
    argv += ["-I"] if method == "HEAD" else ["-X", method]
    data = _encode(body)
    if data is not None:
        argv += ["--data-binary", "@-", "-H", f"Content-Type: {content}" if content else "Content-Type:"]
    done = run(*argv, *args, "http://localhost" + path, data=data)
    equal(done.returncode, 0, f"curl: {done.stderr.decode()}")
    return Response.parse(done.stdout)


# ---- the description


def _types_of(value):
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    return {{float: "number", str: "string", list: "array", dict: "object"}[type(value)]}


def _problems_of_object(schema, value, at):
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}: {name} is missing"
    for name, member in value.items():
        if name in known:
            yield from problems(known[name], member, f"{at}.{name}")
        elif others is False:
            yield f"{at}: {name} is not described"
        elif others is not True:
            yield from problems(others, member, f"{at}.{name}")


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Whether a value keeps to a limit, by the word for it.
VALUE_WORDS = {
    "enum": lambda limit, value: value in limit,
    "const": lambda limit, value: value == limit,
    "pattern": lambda limit, value: not isinstance(value, str) or re.search(limit, value),
    "minLength": lambda limit, value: not isinstance(value, str) or len(value) >= limit,
    "maxLength": lambda limit, value: not isinstance(value, str) or len(value) <= limit,
    "minimum": lambda limit, value: not _is_number(value) or value >= limit,
    "maximum": lambda limit, value: not _is_number(value) or value <= limit,
    "exclusiveMinimum": lambda limit, value: not _is_number(value) or value > limit,
    "maxItems": lambda limit, value: not isinstance(value, list) or len(value) <= limit,
}


def _problems_of_values(schema, value, at):
    for word in VALUE_WORDS.keys() & schema.keys():
        if not VALUE_WORDS[word](schema[word], value):
            yield f"{at}: {value!r} violates {word} {schema[word]!r}"


def _may_match(schema, value):
    """Returns False if a member of the value, such as the name of an event, excludes the schema."""
    properties = (find(schema["$ref"]) if "$ref" in schema else schema).get("properties", {})
    return not isinstance(value, dict) or all(
        "const" not in properties.get(name, {}) or properties[name]["const"] == member for name, member in value.items())


KNOWN_WORDS = {"$ref", "type", "required", "properties", "additionalProperties", "items", "oneOf", "description", "format",
               "discriminator", *VALUE_WORDS}


def problems(schema, value, at="$"):
    """Yields the violations of a JSON Schema (2020-12) by a value. Supports the keywords that the description uses."""
    assert schema.keys() <= KNOWN_WORDS, f"{at}: unknown keywords {schema.keys() - KNOWN_WORDS}"
    if "$ref" in schema:
        yield from problems(find(schema["$ref"]), value, at)
        return
    if "oneOf" in schema:
        known = [one for one in schema["oneOf"] if _may_match(one, value)] or schema["oneOf"]
        each = [list(problems(one, value, at)) for one in known]
        if sum(not some for some in each) != 1:
            best = min(each, key=len)
            yield f"{at}: matches none of {len(each)} schemas, or several: {value!r:.300}; best match: {best}"
        return
    types = schema.get("type")
    if types is not None:
        types = {types} if isinstance(types, str) else set(types)
        if not _types_of(value) & types:
            yield f"{at}: {value!r} is not of type {types}"
            return
    yield from _problems_of_values(schema, value, at)
    if isinstance(value, dict):
        yield from _problems_of_object(schema, value, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from problems(schema["items"], item, f"{at}[{i}]")


def find(reference):
    """Returns the object that a $ref refers to."""
    node = DESCRIPTION
    for word in reference.removeprefix("#/").split("/"):
        node = node[word]
    return node


def schema(name):
    return {"$ref": f"#/components/schemas/{name}"}


def check(name, value):
    """Checks a value against a named schema and returns it."""
    found = list(problems(schema(name), value))
    assert not found, f"{name}: {found[:5]}"
    return value


def template(path):
    """Returns the path template of a request path, or None."""
    path = path.partition("?")[0]
    if path in DESCRIPTION["paths"]:
        return path
    for one in DESCRIPTION["paths"]:
        if "{" in one and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one), path):
            return one
    return None


def described_methods(path, with_head=True):
    """Returns the methods of a path. GET implies HEAD, except for streams."""
    methods = {word.upper() for word in DESCRIPTION["paths"][path]}
    types = DESCRIPTION["paths"][path].get("get", {}).get("responses", {}).get("200", {}).get("content", {})
    if with_head and "GET" in methods and "application/x-ndjson" not in types:
        methods.add("HEAD")
    return methods


class Fifo:
    """A FIFO as a daemon's source, to feed known samples to it.

    with Fifo(tmp) as fifo, daemon_in(tmp, source=fifo.source) as daemon:
        daemon.wait_ready()
        fifo.send(samples)"""

    def __init__(self, tmp):
        self.path = tmp / "fifo"
        os.mkfifo(self.path)
        self.source = f"file:{self.path}"
        self._end = threading.Event()
        self._threads = []

    def _send(self, data, is_end):
        with contextlib.suppress(BrokenPipeError), open(self.path, "wb") as pipe:
            pipe.write(data)
            pipe.flush()
            if not is_end:
                self._end.wait()

    def send(self, data, is_end=True):
        """Sends the samples in a thread, as fast as the daemon reads them. After them the source ends, unless `is_end`
        is False."""
        self._threads.append(threading.Thread(target=self._send, args=(data, is_end), daemon=True))
        self._threads[-1].start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._end.set()
        for thread in self._threads:
            thread.join(harness.TIMEOUT_S)


class Api:
    """A client that validates every response against the description. `seen` has (method, path, status) of each."""

    def __init__(self, socket):
        self.socket = socket
        self.seen = set()

    def ask(self, method, path, body=None, **options):
        """Sends a request and validates the response. With `args`, uses curl."""
        by = curl if "args" in options else send
        answer = by(self.socket, method, path, body, **options)
        where = f"{method} {path} -> {answer.status} {answer.body[:300]!r}"
        known = template(path)
        if known is None or method not in described_methods(known):
            assert answer.status in (404, 405), where
            responses = {str(answer.status): find("#/components/responses/E404")}
        else:
            responses = DESCRIPTION["paths"][known]["get" if method == "HEAD" else method.lower()]["responses"]
        assert str(answer.status) in responses, f"not described: {where}"
        response = responses[str(answer.status)]
        response = find(response["$ref"]) if "$ref" in response else response
        assert answer.type() in response["content"], f"{answer.type()}: {where}"
        if answer.type() == "application/json" and method != "HEAD":
            found = list(problems(response["content"]["application/json"]["schema"], answer.json()))
            assert not found, f"{where}: {found[:5]}"
        self.seen.add((method, known, answer.status))
        return answer

    def good(self, method, path, body=None, status=200, **options):
        """Sends a valid request. Returns the object of the response, which must have this status."""
        if isinstance(body, dict):
            described = DESCRIPTION["paths"][template(path)][method.lower()]["requestBody"]
            found = list(problems(described["content"]["application/json"]["schema"], body))
            assert not found, f"{method} {path} {body!r}: {found[:5]}"
        answer = self.ask(method, path, body, **options)
        equal(answer.status, status, f"{method} {path} {body!r}: {answer.body!r}")
        return answer.json()

    def bad(self, method, path, body=None, status=400, words=(), **options):
        """Sends a request that is refused. Returns the error text, which must contain these words."""
        answer = self.ask(method, path, body, **options)
        equal(answer.status, status, f"{method} {path} {body!r:.200}: {answer.body!r}")
        error = answer.json()["error"]
        for word in [words] if isinstance(words, str) else words:
            assert word in error, f"{method} {path} {body!r:.200}: {word!r} is not in {error!r}"
        return error


class Stream:
    """A stream of objects, for a with block. The block starts when the response's head has arrived, so the stream
    contains all later events."""

    def __init__(self, socket, path, name):
        self.name = name
        self.path = path
        self.objects = []
        self._connection = harness.Connection(socket, harness.TIMEOUT_S)

    def read(self):
        """Returns the next object, or None at the end."""
        line = self._answer.readline()
        if not line:
            return None
        assert line.endswith(b"\n"), line
        self.objects.append(check(self.name, json.loads(line)))
        return self.objects[-1]

    def until(self, condition, limit=100000):
        """Reads until condition(object) is true and returns that object."""
        for _ in range(limit):
            found = self.read()
            assert found is not None, f"the stream ended; last objects: {self.objects[-3:]}"
            if condition(found):
                return found
        raise AssertionError(f"not found in {limit} objects")

    def rest(self):
        while self.read() is not None:
            pass
        return self.objects

    def __enter__(self):
        self._connection.request("GET", self.path)
        self._answer = self._connection.getresponse()
        equal(self._answer.status, 200, self.path)
        return self

    def __exit__(self, *exception):
        self._answer.close()
        self._connection.close()


def daemon_in(tmp, *argv, mode="on-demand", source="sim:rate=20k", **options):
    """A daemon that records on demand unless `mode` is given."""
    return Daemon("-o", tmp / "out", "--source", source, "--set", f"recording.record={mode}", *argv,
                  socket=tmp / "socket", **options)
