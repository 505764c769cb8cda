"""The HTTP API: every path and method, every error, and the OpenAPI description."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import harness
from api_harness import (DESCRIPTION, METHODS, Api, Fifo, Stream, curl, daemon_in, described_methods, find, send,
                         template)
from harness import BUSCAP, Daemon, Faults, check_counts, equal, info, lz4_dc, run, segments, verify, wait_until

pytestmark = pytest.mark.threads

SIM_PATHS = {"{name}": "roi", "{id}": "current"}


def path_of(described):
    """A real path for a described one."""
    for name, value in SIM_PATHS.items():
        described = described.replace(name, value)
    return described


def wait_records(api, count=1000):
    wait_until(lambda: api.good("GET", "/v1/recordings/current")["recording"]["records"] >= count, f"{count} records")


# ---- the description


@pytest.mark.documents
def test_the_description_is_complete():
    equal(DESCRIPTION["openapi"][:3], "3.1")
    references = set(re.findall(r'"\$ref": *"([^"]+)"', (harness.ROOT / "docs/openapi.json").read_text()))
    for reference in references:
        find(reference)
    for kind, things in DESCRIPTION["components"].items():
        for name in things:
            assert f"#/components/{kind}/{name}" in references or name in ("Event", "RecordLine"), f"{name} is not used"
    ids = [operation["operationId"] for path in DESCRIPTION["paths"].values() for operation in path.values()]
    equal(len(ids), len(set(ids)), "operationIds")


@pytest.mark.documents
def test_every_path_is_described_and_documented():
    source = (harness.ROOT / "daemon/api/api.c").read_text()
    routes = re.findall(r'\{"([A-Z]+)", "(/[^"]*)"', source)
    assert len(routes) > 15, routes
    ours = {(method, template(path.replace("*", "x"))) for method, path in routes}
    described = {(method, path) for path in DESCRIPTION["paths"] for method in described_methods(path, with_head=False)}
    equal(ours, described)
    document = (harness.ROOT / "docs/api.md").read_text()
    for path in DESCRIPTION["paths"]:
        assert "`" + path.replace("{name}", "NAME").replace("{id}", "ID") + "`" in document, path
    for schema in ("Status", "Recording", "Trigger", "NewRecording", "NewSnapshot", "NewTrigger"):
        for member in find(f"#/components/schemas/{schema}")["properties"]:
            assert re.search(rf'[`"]{member}["`]', document), f"{schema}: {member} is not in the document"
    for event in find("#/components/schemas/Event")["oneOf"]:
        name = find(event["$ref"])["properties"]["event"]["const"]
        assert f"`{name}`" in document, name


@pytest.mark.documents
def test_the_described_parameters_are_those_that_the_daemon_reads():
    source = (harness.ROOT / "daemon/api/api_params.c").read_text()
    read = {name: set(re.findall(r'\{"(\w+)"', members))
            for name, members in re.findall(r"static const struct member (\w+)_members\[\] = \{\n(.*?)^\};", source, re.S | re.M)}
    schemas = {"start": "NewRecording", "snapshot": "NewSnapshot", "trigger": "NewTrigger",
               "limit": "Limits", "mark": "NewMark", "note": "Note", "rotate": "Nothing"}
    described = {name: set(find(f"#/components/schemas/{schema}").get("properties", {})) for name, schema in schemas.items()}
    equal(read, described)
    (names,) = re.findall(r"records_query\[\] = \{([^}]*)NULL\};", (harness.ROOT / "daemon/api/api.c").read_text())
    described = {one["name"] for one in DESCRIPTION["paths"]["/v1/records"]["get"]["parameters"]}
    equal(set(re.findall(r'"(\w+)"', names)), described, "the query of /v1/records")
    document = (harness.ROOT / "docs/api.md").read_text()
    for name in described:
        assert f"`{name}`" in document, name


# ---- errors


@pytest.fixture(scope="module")
def idle():
    """A daemon for requests that change nothing."""
    with tempfile.TemporaryDirectory() as directory, daemon_in(pathlib.Path(directory)) as daemon:
        daemon.wait_ready()
        yield daemon
        equal(daemon.stop(), 0)


USES_IDLE = pytest.mark.xdist_group("idle")


@USES_IDLE
def test_unknown_paths_are_not_found(idle):
    api = Api(idle.socket)
    for path in ("/", "/v1", "/v1/", "/v2/status", "/v1/status/", "/v1/Status", "/v1/recordings/", "/v1/recordings/x",
                 "/v1/triggers/", "/v1/triggers/a/b", "/v1/triggers/a%2Fb", "/v1/replays",
                 "/metrics/", "/metrics/x", "/v1/%00", "/v1/status%20", "//v1/status", "/v1/../v1/status", "/%FF",
                 "/v1/" + "x" * 3000):
        for method in ("GET", "POST", "DELETE"):
            answer = send(idle.socket, method, path)
            assert answer.status == 404 or (path == "/v1/%00" and answer.status in (400, 404)), (path, answer.status)
            if answer.status == 404:
                assert len(answer.json()["error"].split()) > 3, path
    api.bad("POST", "/v1/mark", {"text": "x"}, status=404, words="did you mean /v1/marks?")
    api.bad("GET", "/v1/triggers/missing", status=404, words="trigger missing: not armed")
    api.bad("DELETE", "/v1/triggers/missing", status=404)
    api.bad("GET", "/v1/recordings/current", status=404, words="no recording is in progress")


@USES_IDLE
def test_a_target_may_be_an_absolute_url(idle):
    for server in ("http://localhost", "HTTP://[::1]:80", "https://example.org", "http://"):
        for target, status in (("/v1/status", 200), ("/v1/%73tatus", 200), ("/v1/records?limit=x", 400), ("", 404), ("/v2", 404)):
            answer = send(idle.socket, "GET", server + target)
            equal(answer.status, status, server + target)
    equal(send(idle.socket, "GET", "ftp://localhost/v1/status").status, 404)


@USES_IDLE
def test_other_methods_are_refused_with_the_allowed_ones(idle):
    for described in DESCRIPTION["paths"]:
        allowed = described_methods(described)
        for method in METHODS:
            if method in allowed:
                continue
            answer = send(idle.socket, method, path_of(described))
            equal(answer.status, 405, f"{method} {described}")
            equal(set(answer.headers["allow"].split(", ")), allowed, f"{method} {described}")
            equal(answer.type(), "application/json", f"{method} {described}")
            if method != "HEAD":
                assert "this path accepts" in answer.json()["error"]


@USES_IDLE
def test_head_is_get_without_a_body(idle):
    for described in DESCRIPTION["paths"]:
        if "HEAD" not in described_methods(described):
            continue
        head = send(idle.socket, "HEAD", path_of(described))
        get = send(idle.socket, "GET", path_of(described))
        equal((head.status, head.type(), head.body), (get.status, get.type(), b""), described)
        assert int(head.headers["content-length"]) > 0


START, NOTE, ROTATE = ("POST", "/v1/recordings"), ("PATCH", "/v1/recordings/current"), ("POST", "/v1/rotate")
MARK, SNAPSHOT, ARM = ("POST", "/v1/marks"), ("POST", "/v1/snapshot"), ("POST", "/v1/triggers")
TRIGGER = {"name": "a", "when": "gap", "action": "mark"}

BAD_BODIES = [
    (START, {"frob": 1}, ["frob: unknown member", "label"]), (START, {"label": 7}, "label: must be a string"),
    (START, {"label": ""}, "label: must have 1 to 64 bytes"), (START, {"label": "a/b"}, "label: "),
    (START, {"label": "x" * 65}, "label: "), (START, {"label": None}, "label: must be a string"),
    (START, {"metadata": []}, "metadata: must be an object"), (START, {"metadata": {"a": 1}}, "metadata.a: "),
    (START, {"metadata": {"": "x"}}, "metadata"), (START, {"metadata": {"a=b": "x"}}, "metadata"),
    (START, {"metadata": {"k": "v" * 1025}}, "metadata.k: "), (START, {"metadata": {f"k{n}": "v" * 1000 for n in range(5)}}, "metadata"), (START, {"metadata": {str(n): "" for n in range(600)}}, "longer than 4095 bytes"),
    (START, {"limits": 5}, "limits: must be an object"), (START, {"limits": {"size": 1}}, "limits.size: unknown member"),
    (START, {"limits": {"records": 0}}, "limits.records: "), (START, {"limits": {"records": 1.5}}, "limits.records: "),
    (START, {"limits": {"records": "7"}}, "limits.records: "), (START, {"limits": {"records": 2**53}}, "limits.records: "),
    (START, {"limits": {"duration": 0}}, "limits.duration: "), (START, {"limits": {"duration": "soon"}}, "limits.duration: "),
    (START, {"limits": {"duration": "1e9d"}}, "limits.duration: "), (START, {"limits": {"filesize": "1X"}}, "limits.filesize: "),
    (START, {"limits": {"filesize": -1}}, "limits.filesize: "), (START, {"pre": "later"}, "pre: "),
    (START, {"pre": -1}, "pre: "), (START, {"pre": []}, "pre: "), (START, {"pre": 0}, "pre: "),
    (START, {"triggers": {}}, "triggers: must be an array"), (START, {"triggers": [1]}, "triggers[0]: must be an object"),
    (START, {"triggers": [TRIGGER] * 17}, "triggers: must have at most 16 elements"),
    (START, {"triggers": [TRIGGER, TRIGGER]}, "triggers[1].name: already used"),
    (START, {"triggers": [{**TRIGGER, "action": "start"}]}, "triggers[0].action: "),
    (START, {"triggers": [{**TRIGGER, "frob": 1}]}, "triggers[0].frob: unknown member"),
    (NOTE, {}, "metadata: required"), (NOTE, {"metadata": {"a": None}}, "metadata.a: "), (NOTE, {"label": "x"}, "label: unknown member"),
    (ROTATE, {"now": True}, "now: unknown member; none are allowed"),
    (MARK, {}, "text: required"), (MARK, {"text": ""}, "text: must have 1 to 1024 bytes"),
    (MARK, {"text": "x" * 1025}, "text: must have 1 to 1024 bytes"), (MARK, {"text": "é" * 513}, "text: must have 1 to 1024 bytes"),
    (MARK, {"text": ["x"]}, "text: must be a string"), (MARK, {"text": "x", "at": 1}, "at: unknown member"),
    (SNAPSHOT, {"pre": "now"}, "pre: "), (SNAPSHOT, {"post": {}}, "post: "), (SNAPSHOT, {"until_stopped": 1}, "until_stopped: must be true or false"),
    (SNAPSHOT, {"post": "all"}, "post: must be a time or a size"),
    (SNAPSHOT, {"post": "1s", "until_stopped": True}, "post: can't be combined with until_stopped"),
    (SNAPSHOT, {"limits": {}}, "limits: unknown member"),
    (ARM, {}, "name: required"), (ARM, {"name": "a"}, "when: required"),
    (ARM, {"name": "a", "when": "gap"}, "action: required"), (ARM, {**TRIGGER, "name": "a b"}, "name: "),
    (ARM, {**TRIGGER, "name": "x" * 33}, "name: "), (ARM, {**TRIGGER, "name": 1}, "name: must be a string"),
    (ARM, {**TRIGGER, "when": "addr=zz"}, "when: "), (ARM, {**TRIGGER, "when": "sometimes"}, "when: "),
    (ARM, {**TRIGGER, "when": "idle"}, "when: "), (ARM, {**TRIGGER, "when": "addr=1 " * 60}, "when: "),
    (ARM, {**TRIGGER, "action": "go"}, "action: "), (ARM, {**TRIGGER, "holdoff": "x"}, "holdoff: "),
    (ARM, {**TRIGGER, "text": "x" * 257}, "text: "), (ARM, {**TRIGGER, "pre": True}, "pre: "),
    (ARM, {**TRIGGER, "action": "start", "post": "all"}, "post: "),
]

BAD_JSON = ["nothing", "[]", "7", '"x"', "null", "{", '{"text":', '{"text":"x"', '{"text":"x"}}', '{"text":"x"} {}', "{'text':'x'}",
            '{"text":"x",}', '{text:"x"}', '{"text":"a","text":"b"}', '{"text":"a\\u0000b"}', '{"text":"\\ud800"}',
            '{"text":"a\tb"}', b'{"text":"\xff"}', b'{"text":"\xc3"}', b'{"text":"a\0b"}', b"\xef\xbb\xbf{}", "[" * 60000,
            '{"text":' * 5000, '{"text":01}', '{"text":1e}']


@USES_IDLE
def test_invalid_bodies_are_refused_with_the_name_of_the_member(idle):
    before = idle.status()
    api = Api(idle.socket)
    for (method, path), body, words in BAD_BODIES:
        api.bad(method, path, body, words=words)
    after = idle.status()
    equal((after["state"], after["recording"], after["triggers"]), (before["state"], None, 0), "nothing changed")


@USES_IDLE
def test_invalid_json_is_refused(idle):
    api = Api(idle.socket)
    for text in BAD_JSON:
        for method, path in (MARK, START, NOTE, ARM, SNAPSHOT, ROTATE):
            api.bad(method, path, text)


@USES_IDLE
def test_a_body_needs_a_json_content_type_and_a_method_that_allows_it(idle):
    api = Api(idle.socket)
    for content in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json2", "json", None):
        api.bad(*MARK, {"text": "x"}, content=content, status=415, words="application/json")
    for content in ("application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;x=y"):
        api.bad(*MARK, {"text": "x"}, content=content, status=409)
    for described in DESCRIPTION["paths"]:
        for method in described_methods(described, with_head=False) & {"GET", "DELETE"}:
            api.bad(method, path_of(described), {}, words="have no body")


@USES_IDLE
def test_long_bodies_and_headers_are_refused(idle):
    socket = idle.socket
    api = Api(socket)
    fits = json.dumps({"text": "x"})
    equal(api.ask(*MARK, fits + " " * (65536 - len(fits))).status, 409, "64 KiB")
    for text in (fits + " " * (65537 - len(fits)), "x" * 1000000):
        api.bad(*MARK, text, status=413)
        api.bad(*MARK, text, status=413, args=("-H", "Transfer-Encoding: chunked"))
    equal(api.ask(*MARK, fits, args=("-H", "Transfer-Encoding: chunked")).status, 409, "chunked")
    for size in (20000, 100000):
        answer = curl(socket, "GET", "/v1/status", args=("-H", "X-Long: " + "x" * size))
        equal(answer.status, 431, f"a header of {size} bytes")
        answer = send(socket, "GET", "/" + "x" * size)
        assert answer.status in (414, 431), (size, answer.status)
    api.good("GET", "/v1/status")


@USES_IDLE
def test_invalid_queries_are_refused(idle):
    api = Api(idle.socket)
    for described in DESCRIPTION["paths"]:
        for method in described_methods(described, with_head=False):
            api.bad(method, path_of(described) + "?frob=1", words="frob: ")
    for query, words in [
        ("limit=0", "limit"), ("limit=-1", "limit"), ("limit=x", "limit"), ("limit=", "limit"), ("limit", "limit"),
        ("limit=18446744073709551616", "limit"), ("limit=1&limit=2", "limit: query parameter given twice"),
        ("addr=zz", "addr"), ("addr=2-1", "addr"), ("type=tape", "type"), ("type=0x100", "type"),
        ("proc=65536", "proc"), ("proc=x", "proc"), ("port=10000", "port"), ("port=e0&addr=1", ""), ("port=e0&type=read", ""),
        ("Limit=1", "Limit"), ("%FF=1", ""),
    ]:
        api.bad("GET", "/v1/records?" + query, words=words)


def test_operations_that_do_not_fit_the_state_are_refused(tmp):
    with daemon_in(tmp, env=Faults(tmp, tmp / "out").env) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        for (method, path), body in ((NOTE, {"metadata": {"a": "b"}}), (ROTATE, None), (MARK, {"text": "x"}), (SNAPSHOT, None),
                                     (("DELETE", "/v1/recordings/current"), None)):
            api.bad(method, path, body, status=409)
        api.good(*START, status=201)
        api.bad(*START, status=409, words="recording")
        api.bad(*SNAPSHOT, status=409)
        api.good("DELETE", "/v1/recordings/current")
        api.bad("DELETE", "/v1/recordings/current", status=409)
        api.good(*ARM, TRIGGER, status=201)
        api.bad(*ARM, TRIGGER, status=409, words="a")
        for n in range(15):
            api.good(*ARM, {**TRIGGER, "name": f"t{n}"}, status=201)
        api.bad(*ARM, {**TRIGGER, "name": "more"}, status=409, words="16")
        own = {"name": "own", "when": "type=read", "action": "stop"}
        api.bad(*START, {"triggers": [own]}, status=409, words="at most 16")
        api.good("DELETE", "/v1/triggers/t0")
        api.good(*START, {"triggers": [own]}, status=201)
        wait_until(lambda: api.good("GET", "/v1/status")["state"] == "idle", "the recording's own trigger has stopped it")
        api.good(*ARM, {**TRIGGER, "name": "t0"}, status=201)
        equal(api.good("GET", "/v1/status")["triggers"], 16)
        equal(daemon.stop(), 0)


# ---- permissions


def others(tmp):
    """A user other than the owner who can open the socket."""
    tmp.chmod(0o755)
    return {"user": 65534, "group": os.stat(tmp / "socket").st_gid, "extra_groups": []}


RESERVED = {
    "record": [(START, {}), (("DELETE", "/v1/recordings/current"), None)], "rotate": [(ROTATE, None)],
    "mark": [(MARK, {"text": "x"})], "note": [(NOTE, {"metadata": {}})], "snapshot": [(SNAPSHOT, {})],
    "trigger": [(ARM, TRIGGER), (("DELETE", "/v1/triggers/a"), None), (START, {"triggers": [TRIGGER]})],
}


@pytest.mark.root
def test_reserved_operations_are_refused_to_all_but_the_owner(tmp):
    for right, requests in RESERVED.items():
        with daemon_in(tmp, "--set", f"socket.reserve={right}") as daemon:
            daemon.wait_ready()
            other = others(tmp)
            api = Api(tmp / "socket")
            for (method, path), body in requests:
                api.bad(method, path, body, status=403, words=["reserve", right], **other)
            for described in DESCRIPTION["paths"]:
                if "HEAD" in described_methods(described):
                    assert api.ask("GET", path_of(described), **other).status in (200, 404), described
            equal(daemon.status()["recording"], None)
            for other_right, free in RESERVED.items():
                for (method, path), body in free if other_right != right else []:
                    if not isinstance(body, dict) or "triggers" not in body:
                        assert api.ask(method, path, body, **other).status != 403, (right, path)
            for (method, path), body in requests:
                assert api.ask(method, path, body).status != 403, (right, path)
            assert daemon.stop() in (0, 4)


@pytest.mark.root
def test_all_operations_can_be_reserved(tmp):
    with daemon_in(tmp, "--set", "socket.reserve=" + ",".join(RESERVED)) as daemon:
        daemon.wait_ready()
        other = others(tmp)
        api = Api(tmp / "socket")
        for described, methods in DESCRIPTION["paths"].items():
            for method in methods:
                if method != "get":
                    api.bad(method.upper(), path_of(described), status=403, **other)
        equal(daemon.stop(), 0)


# ---- operations


def test_a_recording_is_started_noted_marked_rotated_and_stopped(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        equal(api.good("GET", "/v1/recordings"), {"recordings": [], "omitted": 0})
        begun = api.good(*START, {"label": "boot", "metadata": {"run": "7", "who": "é"}}, status=201)["recording"]
        equal((begun["label"], begun["state"], begun["ended"], begun["metadata"]), ("boot", "recording", None, {"run": "7", "who": "é"}))
        assert begun["id"].endswith("-boot"), begun
        wait_records(api)
        noted = api.good(*NOTE, {"metadata": {"run": "8", "operator": "ng"}})["recording"]
        equal(noted["metadata"], {"run": "8", "who": "é", "operator": "ng"})
        mark = api.good(*MARK, {"text": 'the "relay"\nclicked'}, status=201)["mark"]
        equal(mark["text"], 'the "relay"\nclicked')
        rotated = api.good(*ROTATE)["recording"]
        equal(rotated["id"], begun["id"])
        wait_until(lambda: api.good("GET", "/v1/recordings/current")["recording"]["segments"] == 2, "a second segment")
        listed = api.good("GET", "/v1/recordings")["recordings"]
        equal([row["id"] for row in listed], [begun["id"]])
        status = api.good("GET", "/v1/status")
        equal((status["state"], status["recording"]["id"], status["recording"]["metadata"]["run"]), ("recording", begun["id"], "8"))
        ended = api.good("DELETE", "/v1/recordings/current")["recording"]
        equal((ended["id"], ended["state"], ended["reason"], ended["segments"]), (begun["id"], "sealed", "request", 2))
        files = segments(tmp / "out")
        equal(ended["path"], str(files[-1]), "the newest file")
        verify(files)
        equal(sum(row["records"] for row in info(files)), ended["records"])
        equal(len(lz4_dc(files)), 12 * ended["records"])
        marks = [(event["record"], event["text"]) for event in info(files[:1])[0]["events"] if event["kind"] == "mark"]
        equal(marks, [(mark["record"], mark["text"])], "marks before the rotation")
        dumped = run(BUSCAP, "dump", *files).stdout.decode(errors="replace").splitlines()
        at = next(n for n, line in enumerate(dumped) if line.startswith("# mark: "))
        equal(sum(not line.startswith("#") for line in dumped[:at]), mark["record"], "records before it in the dump")
        again = api.good("GET", "/v1/recordings")["recordings"]
        equal([(row["id"], row["state"], row["records"]) for row in again], [(begun["id"], "sealed", ended["records"])])
        equal((ended["ended"], again[0]["ended"]), (info(files)[-1]["end"]["ended"],) * 2, "one end, also in the file")
        equal(api.good("GET", "/v1/status")["state"], "idle")
        equal(daemon.stop(), 0)


def test_limits_end_a_recording(tmp):
    with daemon_in(tmp, source="sim:rate=200k") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        for limits, given, in_all in (
                ({"records": 54321}, {"records": 54321}, 54321), ({"duration": 0.2}, {"duration": 0.2}, None),
                ({"duration": "200ms"}, {"duration": 0.2}, None), ({"filesize": "64K"}, {"filesize": 64000}, None),
                ({"filesize": "60K", "duration": "1h"}, {"filesize": 60000, "duration": 3600}, None),
                ({"filesize": 60000}, {"filesize": 60000}, None)):
            with Stream(tmp / "socket", "/v1/events", "Event") as events:
                begun = api.good(*START, {"limits": limits}, status=201)["recording"]
                equal(begun["limits"], given, limits)
                ended = events.until(lambda event: event["event"] == "recording-ended")["recording"]
            equal((ended["id"], ended["reason"]), (begun["id"], "limit"), limits)
            if in_all:
                equal(ended["records"], in_all)
            if "filesize" in limits:  # in kB, as in buscapd -a
                assert 60_000 <= ended["bytes"] < 2_000_000, (limits, ended)
        equal(len(api.good("GET", "/v1/recordings")["recordings"]), 6)
        equal(daemon.stop(), 0)


def test_a_trigger_of_a_recording_stops_it_and_is_disarmed(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            api.good(*START, {"triggers": [{"name": "end", "when": "type=read", "action": "stop"}]}, status=201)
            ended = events.until(lambda event: event["event"] == "recording-ended")["recording"]
        equal(ended["reason"], "trigger")
        assert ended["records"] >= 1
        equal(api.good("GET", "/v1/triggers"), {"triggers": []})
        equal(daemon.stop(), 0)


def test_the_flight_recorder_is_written_out(tmp):
    with daemon_in(tmp, "--set", "recording.flight_time=10m", mode="flight") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        held = wait_until(lambda: (one := api.good("GET", "/v1/status")["flight"])["records"] > 10_000 and one, "records held")
        assert held["seconds"] > 0 and held["chunks"] >= 1, held
        equal(list((tmp / "out").glob("*.lz4*")), [], "files while all records are in memory")
        mark = api.good(*MARK, {"text": "meanwhile"}, status=201)["mark"]
        equal((mark["text"], mark["record"]), ("meanwhile", None), "a mark between recordings")
        taken = api.good(*SNAPSHOT, {"label": "hang", "metadata": {"seen": "no video"}}, status=201)["recording"]
        wait_until(lambda: api.good("GET", "/v1/status")["recording"] is None, "the snapshot is written")
        row = api.good("GET", "/v1/recordings")["recordings"][-1]
        equal((row["id"], row["label"], row["state"], row["reason"]), (taken["id"], "hang", "sealed", "request"))
        assert row["records"] > 10_000, row
        marks = [event for one in info(segments(tmp / "out")) for event in one["events"] if event["kind"] == "mark"]
        equal([event["text"] for event in marks], ["meanwhile"], "the mark is in the snapshot")
        assert 0 < marks[0]["record"] <= row["records"], marks
        going = api.good(*SNAPSHOT, {"pre": "100ms", "until_stopped": True}, status=201)["recording"]
        api.bad(*SNAPSHOT, status=409)
        wait_records(api, 20_000)
        equal(api.good("DELETE", "/v1/recordings/current")["recording"]["id"], going["id"])
        more = api.good(*SNAPSHOT, {"pre": "12KiB", "post": "2500ms"}, status=201)["recording"]
        wait_until(lambda: api.good("GET", "/v1/status")["recording"] is None, "the end")
        row = api.good("GET", "/v1/recordings")["recordings"][-1]
        equal((row["id"], row["reason"]), (more["id"], "limit"))
        assert row["records"] > 1024, row
        before = api.good(*START, {"pre": "1s"}, status=201)["recording"]
        equal(before["state"], "recording")
        api.good("DELETE", "/v1/recordings/current")
        verify(segments(tmp / "out"))
        equal(daemon.stop(), 0)


def test_without_all_its_threads_the_daemon_does_not_start_and_says_why(tmp):
    if harness.BUILD.name == "thread":
        pytest.skip("ThreadSanitizer has a thread of its own")
    source = tmp / "a.byu"
    run(BUSCAP, "sim", "-n", 1000, "-o", source)
    parts = []
    for number in range(100):
        env = {"LD_PRELOAD": harness.preloaded(tmp, "faultthread"), "FAULTTHREAD": str(number)}
        done = run(harness.BUSCAPD, "--once", "--source", f"file:{source}", "--set", "pipeline.workers=2", "-o", tmp / f"out{number}",
                   env={**os.environ, **env})
        if done.returncode == 0:
            break
        equal(done.returncode, 1, done.stderr)
        found = re.search(r"buscapd: (?:error: )?(.*can't (create threads|start: Resource temporarily unavailable)); raise the limit",
                          done.stderr.decode())
        assert found, (number, done.stderr)
        if found[1] not in parts:
            parts.append(found[1])
    unavailable = ": can't start: Resource temporarily unavailable"
    equal(parts, ["can't create threads", f"the thread that lists the directory{unavailable}",
                  f"the buffer and the threads that encode and write{unavailable}", f"file:{source}{unavailable}"])


def test_with_few_descriptors_the_daemon_works_or_says_why(tmp):
    for number in (4, 6, 20, 40, 100, 180, 260):
        out = tmp / f"out{number}"
        done = run("prlimit", f"--nofile={number}", harness.BUSCAPD, "--once", "--source", "sim:rate=max,count=1000", "-o", out,
                   "--socket", tmp / "socket")
        err = done.stderr.decode()
        assert done.returncode == 0 or done.returncode == 1 and "raise the limit" in err, (number, done.returncode, err)
        equal(done.returncode, 0 if number == 260 else 1, number)


# ---- streams


def test_events_report_all_changes_and_agree_with_the_status(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            equal(events.read()["event"], "status")
            begun = api.good(*START, {"label": "e"}, status=201)["recording"]
            wait_records(api)
            api.good(*NOTE, {"metadata": {"k": "v"}})
            mark = api.good(*MARK, {"text": "m"}, status=201)["mark"]
            api.good(*ROTATE)
            wait_until(lambda: api.good("GET", "/v1/recordings/current")["recording"]["segments"] == 2, "a second segment")
            ended = api.good("DELETE", "/v1/recordings/current")["recording"]
            events.until(lambda event: event["event"] == "status" and event["status"]["recording"] is None)
            seen = list(events.objects)
            equal(daemon.stop(), 0)
            events.rest()
        by_name = {}
        for event in events.objects:
            by_name.setdefault(event["event"], []).append(event)
        equal([event["seq"] for event in seen], list(range(seen[0]["seq"], seen[0]["seq"] + len(seen))), "numbers")
        for event in by_name["status"]:
            check_counts(event["status"])
        equal([event["recording"]["id"] for event in by_name["recording-started"]], [begun["id"]])
        equal(by_name["recording-ended"][0]["recording"], ended)
        equal([event["segment"] for event in by_name["segment-started"]], [0, 1])
        equal(sum(event["records"] for event in by_name["segment-sealed"]), ended["records"])
        equal([event["path"] for event in by_name["segment-sealed"]], list(map(str, segments(tmp / "out"))))
        equal(by_name["mark"][0]["mark"], mark)
        equal(by_name["note"][0]["metadata"], {"k": "v"})
        states = [(event["from"], event["to"]) for event in by_name["state"]]
        for one, other in zip(states, states[1:]):
            equal(one[1], other[0], "each state follows from the one before")
        equal(by_name["stopping"][0]["signal"], "SIGTERM")


FULL = "pwrite:ENOSPC,write:ENOSPC"


def request_stop(tmp):
    """Returns the curl that waits for the response."""
    return harness.popen(["curl", "-sS", "-X", "DELETE", "--unix-socket", str(tmp / "socket"), "http://localhost/v1/recordings/current"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def stuck_stop(tmp, api, faults):
    """Starts a recording, blocks the disk and stops it. Returns the curl that waits for the response."""
    api.good(*START, status=201)
    wait_records(api)
    faults.set(FULL)
    wait_until(lambda: api.good("GET", "/v1/status")["disk"]["last_error"], "the disk is full")
    waiting = request_stop(tmp)
    wait_until(lambda: api.good("GET", "/v1/status")["state"] == "draining", "the state draining")
    return waiting


def test_a_stop_waits_for_the_disk_and_is_answered_when_there_is_room(tmp):
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out")
    with daemon_in(tmp, env=faults.env) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            waiting = stuck_stop(tmp, api, faults)
            assert "No space" in events.until(lambda event: event["event"] == "disk")["error"]
            draining = api.good("GET", "/v1/recordings/current")["recording"]
            equal((draining["state"], draining["reason"]), ("draining", "request"))
            equal([row["state"] for row in api.good("GET", "/v1/recordings")["recordings"]], ["draining"])
            equal(waiting.poll(), None, "the response is pending")
            faults.set("")
            equal(events.until(lambda event: event["event"] == "disk")["stuck"], False)
            ended = json.loads(waiting.communicate(timeout=harness.TIMEOUT_S)[0])["recording"]
        equal((ended["id"], ended["state"]), (draining["id"], "sealed"))
        verify(segments(tmp / "out"))
        equal(sum(row["records"] for row in info(segments(tmp / "out"))), ended["records"])
        assert daemon.stop() in (0, 4)


def test_recordings_that_are_being_sealed_while_the_next_one_records_have_their_figures(tmp):
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out")
    with daemon_in(tmp, env=faults.env) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        faults.set("fdatasync:hold")
        stops = {}
        for _ in range(3):
            going = api.good(*START, status=201)["recording"]
            wait_records(api)
            stops[going["id"]] = request_stop(tmp)
            wait_until(lambda: api.good("GET", "/v1/status")["state"] == "draining", "the state draining")
        api.good(*START, status=201)
        wait_records(api)
        draining = {row["id"]: row for row in api.good("GET", "/v1/recordings")["recordings"] if row["id"] in stops}
        equal(sorted(draining), sorted(stops))
        for name, row in draining.items():
            equal((row["state"], row["segments"]), ("draining", 1))
            equal(pathlib.Path(row["path"]).name, f"{name}-00000.byu.lz4.partial")
            equal(pathlib.Path(row["path"]).exists(), True, row["path"])
        faults.set("")
        for name, waiting in stops.items():
            ended = json.loads(waiting.communicate(timeout=harness.TIMEOUT_S)[0])["recording"]
            equal((ended["id"], ended["records"], ended["bytes"]), (name, draining[name]["records"], draining[name]["bytes"]))
        assert daemon.stop() in (0, 4)


def test_a_recording_that_is_being_sealed_after_the_sources_end_has_ended(tmp):
    """It takes no marks, and a request to stop it only waits."""
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out", FULL)
    with Fifo(tmp) as fifo, daemon_in(tmp, mode="always", source=fifo.source, env=faults.env) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        fifo.send(run(BUSCAP, "sim", "-s", 1, "-n", 1000, "-O", "bcp1").stdout)
        wait_until(lambda: api.good("GET", "/v1/status")["state"] == "draining", "the source has ended")
        recording = api.good("GET", "/v1/recordings/current")["recording"]
        equal((recording["state"], recording["reason"]), ("draining", "source"))
        for (method, target), body in ((MARK, {"text": "late"}), (NOTE, {"metadata": {"a": "b"}}), (ROTATE, None)):
            api.bad(method, target, body, status=409, words="no recording is in progress")
        with socket.socket(socket.AF_UNIX) as stopping:
            stopping.settimeout(harness.TIMEOUT_S)
            stopping.connect(str(tmp / "socket"))
            stopping.sendall(b"DELETE /v1/recordings/current HTTP/1.0\r\n\r\n")
            api.good("GET", "/v1/status")  # it came later and has its response, so the other request waits
            faults.set("")
            answer = stopping.makefile("rb").read()
        stopped = json.loads(answer.partition(b"\r\n\r\n")[2])["recording"]
        (described,) = info(segments(tmp / "out"))
        equal((stopped["reason"], described["end"]["reason"], stopped["records"]), ("source", "source", 1000))
        assert daemon.stop() in (0, 4)


def test_a_waiting_client_is_released_when_the_disk_is_given_up(tmp):
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out")
    with daemon_in(tmp, env=faults.env) as daemon:
        daemon.wait_ready()
        waiting = stuck_stop(tmp, Api(tmp / "socket"), faults)
        daemon.process.send_signal(signal.SIGTERM)
        for _ in range(200):
            if daemon.process.poll() is not None:
                break
            time.sleep(0.2)
            daemon.process.send_signal(signal.SIGTERM)
        assert daemon.wait() not in (0, -signal.SIGKILL)
        answer = waiting.communicate(timeout=harness.TIMEOUT_S)[0]
        assert not answer or json.loads(answer)["recording"]["state"] == "open", answer


def test_live_records_equal_the_recorded_ones(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        api.good(*START, status=201)
        wait_records(api, 1)
        with Stream(tmp / "socket", "/v1/records?limit=3000", "RecordLine") as stream:
            lines = stream.rest()
        with Stream(tmp / "socket", "/v1/records?limit=200&type=read,write&addr=0-ffffffff&proc=0", "RecordLine") as stream:
            chosen = stream.rest()
        ended = api.good("DELETE", "/v1/recordings/current")["recording"]
        records = lz4_dc(segments(tmp / "out"))
        equal(sum("number" in line for line in lines), 3000)
        equal(sum("number" in line for line in chosen), 200)
        last = None
        for line in lines:
            if "skipped" in line and last is not None:
                last += line["skipped"]["records"]
            if "number" not in line:
                continue
            number = line["number"]
            assert last is None or number == last + 1, (last, line)
            last = number
            raw = records[12 * number : 12 * number + 12]
            equal(int(line["addr"], 16), int.from_bytes(raw[:4], "little"), line)
            equal((line["size"], line["attr"], line["proc"]), tuple(raw[5:8]), line)
            time_of = int.from_bytes(raw[8:], "little")
            equal(line["delta"], None if time_of == 0xFFFFFFFF else time_of, line)
        assert ended["records"] > last
        equal(daemon.stop(), 0)


# ---- all of it


def test_every_described_path_and_method_answers_as_described(tmp):
    with daemon_in(tmp, mode="flight") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        api.good("GET", "/v1/status")
        api.good("GET", "/v1/mix")
        api.good("GET", "/v1/history")
        equal(api.good("GET", "/v1/openapi.json"), DESCRIPTION)
        equal(api.ask("GET", "/metrics").status, 200)
        api.good(*ARM, TRIGGER, status=201)
        api.good("GET", "/v1/triggers")
        api.good("GET", "/v1/triggers/a")
        api.good("DELETE", "/v1/triggers/a")
        api.good(*START, status=201)
        wait_records(api)
        api.good("GET", "/v1/recordings")
        api.good(*NOTE, {"metadata": {"a": "b"}})
        api.good(*ROTATE)
        api.good(*MARK, {"text": "x"}, status=201)
        api.good("DELETE", "/v1/recordings/current")
        wait_until(lambda: api.ask(*SNAPSHOT).status == 201, "the flight recorder holds records")
        wait_until(lambda: api.good("GET", "/v1/status")["recording"] is None, "the snapshot's end")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            events.read()
            api.seen.add(("GET", "/v1/events", 200))
        with Stream(tmp / "socket", "/v1/records?limit=5", "RecordLine") as records:
            assert records.rest()
            api.seen.add(("GET", "/v1/records", 200))
        good = {(method, where) for method, where, status in api.seen if status < 300}
        equal(good, {(method, where) for where in DESCRIPTION["paths"] for method in described_methods(where, with_head=False)})
        assert daemon.stop() in (0, 4)
