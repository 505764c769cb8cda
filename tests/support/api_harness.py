"""What the tests of the socket share: requests, and the OpenAPI description that answers are held against."""

import json
import re

import harness
from harness import BUSCAPD, Daemon, equal, run

DESCRIPTION = json.loads((harness.ROOT / "docs/openapi.json").read_text())
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Answer:
    """What came back: status, headers by lower-case names, body in bytes."""

    @classmethod
    def parse(cls, text):
        self = cls()
        self.status, self.headers = 100, {}
        while self.status == 100:  # of Expect: 100-continue
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


def _in_bytes(body):
    if body is None or isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def send(socket, method, path, body=None, content="application/json", timeout=harness.TIMEOUT_S, **who):
    """A request over a connection of its own. `body`: a text, or what becomes JSON; `who` asks: harness.being()."""
    headers = {"Content-Type": content} if body is not None and content else {}
    answer = Answer()
    answer.status, answer.headers, answer.body = harness.exchange(
        socket, method, path, _in_bytes(body), headers, timeout, who)
    return answer


def curl(socket, method, path, body=None, content="application/json", args=(), timeout=harness.TIMEOUT_S):
    """The same by curl, with more of its arguments."""
    argv = ["curl", "-sSi", "--globoff", "--path-as-is", "--max-time", str(timeout), "--unix-socket", str(socket)]
    argv += ["-I"] if method == "HEAD" else ["-X", method]
    data = _in_bytes(body)
    if data is not None:
        argv += ["--data-binary", "@-", "-H", f"Content-Type: {content}" if content else "Content-Type:"]
    done = run(*argv, *args, "http://localhost" + path, data=data)
    equal(done.returncode, 0, f"curl: {done.stderr.decode()}")
    return Answer.parse(done.stdout)


# ---- the description


def _type_of(value):
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


def _problems_of_values(schema, value, at):
    text = isinstance(value, str)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    checks = [
        ("enum", lambda wanted: value in wanted), ("const", lambda wanted: value == wanted),
        ("pattern", lambda wanted: not text or re.search(wanted, value)),
        ("minLength", lambda wanted: not text or len(value) >= wanted),
        ("maxLength", lambda wanted: not text or len(value) <= wanted),
        ("minimum", lambda wanted: not number or value >= wanted),
        ("maximum", lambda wanted: not number or value <= wanted),
        ("exclusiveMinimum", lambda wanted: not number or value > wanted),
        ("maxItems", lambda wanted: not isinstance(value, list) or len(value) <= wanted),
    ]
    for word, holds in checks:
        if word in schema and not holds(schema[word]):
            yield f"{at}: {value!r} is against {word} {schema[word]!r}"


KNOWN_WORDS = {"$ref", "type", "required", "properties", "additionalProperties", "items", "oneOf", "enum", "const",
               "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "maxItems", "description",
               "format", "discriminator"}


def problems(schema, value, at="$"):
    """What of a value is against a schema of JSON Schema 2020-12, as far as the description uses it: sentences."""
    unknown = set(schema) - KNOWN_WORDS
    assert not unknown, f"{at}: this validator doesn't know {unknown}"
    if "$ref" in schema:
        yield from problems(find(schema["$ref"]), value, at)
        return
    if "oneOf" in schema:
        each = [list(problems(one, value, at)) for one in schema["oneOf"]]
        if sum(not some for some in each) != 1:
            best = min(each, key=len)
            yield f"{at}: not one of the {len(each)}: {value!r:.300}; the nearest: {best}"
        return
    wanted = schema.get("type")
    if wanted is not None:
        wanted = {wanted} if isinstance(wanted, str) else set(wanted)
        if not _type_of(value) & wanted:
            yield f"{at}: {value!r} is no {wanted}"
            return
    yield from _problems_of_values(schema, value, at)
    if isinstance(value, dict):
        yield from _problems_of_object(schema, value, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from problems(schema["items"], item, f"{at}[{i}]")


def find(reference):
    """What a $ref names."""
    node = DESCRIPTION
    for word in reference.removeprefix("#/").split("/"):
        node = node[word]
    return node


def schema(name):
    return {"$ref": f"#/components/schemas/{name}"}


def check(name, value):
    """The value is of that schema."""
    found = list(problems(schema(name), value))
    assert not found, f"{name}: {found[:5]}"
    return value


def template(path):
    """The described path that a request's is of, or None."""
    path = path.partition("?")[0]
    if path in DESCRIPTION["paths"]:
        return path
    for one in DESCRIPTION["paths"]:
        if "{" in one and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one), path):
            return one
    return None


def described_methods(path, with_head=True):
    """The methods of a described path; HEAD goes with GET, but for the streams."""
    methods = {word.upper() for word in DESCRIPTION["paths"][path]}
    types = DESCRIPTION["paths"][path].get("get", {}).get("responses", {}).get("200", {}).get("content", {})
    if with_head and "GET" in methods and "application/x-ndjson" not in types:
        methods.add("HEAD")
    return methods


class Api:
    """A daemon's socket, every answer of which is held against the description. `seen`: (method, path, status)."""

    def __init__(self, socket):
        self.socket = socket
        self.seen = set()

    def ask(self, method, path, body=None, **options):
        """Returns the answer, which is as described. With `args` it is curl that asks."""
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
        """The object of a good answer, to a body that is as described."""
        if isinstance(body, dict):
            described = DESCRIPTION["paths"][template(path)][method.lower()]["requestBody"]
            found = list(problems(described["content"]["application/json"]["schema"], body))
            assert not found, f"{method} {path} {body!r}: {found[:5]}"
        answer = self.ask(method, path, body, **options)
        equal(answer.status, status, f"{method} {path} {body!r}: {answer.body!r}")
        return answer.json()

    def bad(self, method, path, body=None, status=400, words=(), **options):
        """The sentence of a refusal, which has these words."""
        answer = self.ask(method, path, body, **options)
        equal(answer.status, status, f"{method} {path} {body!r:.200}: {answer.body!r}")
        sentence = answer.json()["error"]
        for word in [words] if isinstance(words, str) else words:
            assert word in sentence, f"{method} {path} {body!r:.200}: {word!r} is not in {sentence!r}"
        return sentence


class Stream:
    """A stream that is being read. Within the block its head has come: what happens from then on is in it."""

    def __init__(self, socket, path, name):
        self.name = name
        self.path = path
        self.objects = []
        self._connection = harness.Connection(socket, harness.TIMEOUT_S)

    def read(self):
        """The next object, or None at the end."""
        line = self._answer.readline()
        if not line:
            return None
        assert line.endswith(b"\n"), line
        self.objects.append(check(self.name, json.loads(line)))
        return self.objects[-1]

    def until(self, condition, most=100000):
        """Reads until an object for which condition() holds, and returns it."""
        for _ in range(most):
            found = self.read()
            assert found is not None, f"the stream has ended; the last: {self.objects[-3:]}"
            if condition(found):
                return found
        raise AssertionError(f"not within {most} objects")

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


def daemon_in(tmp, *argv, mode="on-demand", source="sim:rate=200k", **options):
    """A daemon that waits to be asked, unless `mode` says otherwise."""
    return Daemon("-o", tmp / "out", "--source", source, "--set", f"recording.record={mode}", *argv,
                  socket=tmp / "socket", **options)
