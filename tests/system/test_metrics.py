"""/metrics: parsed strictly, as promtool does, and compared with the status."""

import contextlib
import json
import random
import re
import shutil
import socket as sockets

import pytest

import tables
from api_harness import daemon_in, send
from harness import BUSCAP, ROOT, Daemon, Faults, check_counts, equal, need, run, wait_until
from usb_harness import Board

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


class Metric:
    def __init__(self):
        self.type = self.help = None
        self.samples = {}  # labels, sorted -> value


def parse_labels(text):
    """Parses the labels between the braces."""
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, text[at:]
        value = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], found[2])
        assert found[1] not in labels, f"{found[1]} twice in {text}"
        labels[found[1]] = value
        at = found.end()
        if at < len(text):
            assert text[at] == "," and at + 1 < len(text), text[at:]
            at += 1
    return tuple(sorted(labels.items()))


def parse_number(text):
    if re.fullmatch(r"\d+", text):
        return int(text)
    assert re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", text), text
    return float(text)


def check_metric(name, metric):
    assert metric.help and metric.help[0].isupper() and metric.help.endswith("."), (name, metric.help)
    assert metric.samples, f"{name} has no sample"
    equal(metric.type, "counter" if name.endswith("_total") else "gauge", name)
    values = set(metric.samples.values())
    if name.endswith("_info"):
        equal(values, {1}, name)
    names = {tuple(key for key, _ in labels) for labels in metric.samples}
    equal(len(names), 1, f"the samples of {name} have the same labels")
    if names == {(name,)}:
        assert values == {0, 1}, f"the states of {name}"


def parse_metrics(body):
    """Parses the text format 0.0.4 strictly, as promtool does. Returns the metrics by name."""
    text = body.decode("utf-8")
    lines = text.split("\n")
    equal(lines.pop(), "", "the last line")
    metrics, name = {}, None
    for line in lines:
        if line.startswith("# "):
            _, word, of, rest = line.split(" ", 3)
            if of != name:
                assert of not in metrics, f"the lines of {of} are not contiguous"
                assert NAME.fullmatch(of), of
                name, metrics[of] = of, Metric()
            assert word in ("TYPE", "HELP"), line
            assert not metrics[of].samples, f"{line} after a sample"
            assert getattr(metrics[of], word.lower()) is None, f"duplicate line: {line}"
            setattr(metrics[of], word.lower(), rest)
            continue
        found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
        assert found and found[1] == name, line
        labels = parse_labels(found[2] or "")
        assert labels not in metrics[name].samples, f"duplicate line: {line}"
        metrics[name].samples[labels] = parse_number(found[3])
    for name, metric in metrics.items():
        check_metric(name, metric)
    return metrics


class Metrics:
    """Values by name, without the prefix."""

    def __init__(self, body):
        found = parse_metrics(body)
        assert all(name.startswith("buscapd_") for name in found), list(found)
        self.metrics = {name.removeprefix("buscapd_"): metric for name, metric in found.items()}
        self.asked = set()

    def of(self, name):
        assert self.has(name), f"{name} is missing"
        self.asked.add(name)
        return self.metrics[name].samples

    def value(self, name, **labels):
        return self.of(name)[tuple(sorted(labels.items()))]

    def has(self, name):
        return name in self.metrics

    def labels(self, name):
        """The labels of an info metric."""
        return [dict(labels) for labels in self.of(name + "_info")]

    def state(self, name):
        states = [dict(labels)["buscapd_" + name] for labels, value in self.of(name).items() if value == 1]
        equal(len(states), 1, f"exactly one state of {name} is 1")
        return states[0]


FIGURES = [row for row in tables.figures() if row.metric]
NUMBERS = [row for row in FIGURES if not row.label and not row.states and not row.metric.endswith("_info") and row.type != "TIME"]


def of(status, path):
    """The member at a path; None if it, or the object that should have it, is null or missing."""
    for word in path.split("."):
        status = status and status.get(word)
    return status


def check_texts(metrics, status):
    equal(metrics.labels("build"), [{"version": status["version"]}])
    equal(metrics.state("state"), status["state"])
    equal(metrics.state("mode"), status["mode"])
    equal(metrics.labels("source"), [{"kind": status["source"]["kind"], "name": status["source"]["name"]}])
    recording = status["recording"]
    equal(metrics.has("recording_info"), recording is not None, "recording")
    if recording is not None:
        equal(metrics.labels("recording"), [{"id": recording["id"], "label": recording["label"] or "", "path": recording["path"] or ""}])
        equal(metrics.has("recording_metadata_info"), recording["metadata"] != {}, "metadata")
        if recording["metadata"]:
            equal({row["key"]: row["value"] for row in metrics.labels("recording_metadata")}, recording["metadata"])
    if status["disk"]["last_error"] is not None:
        equal(metrics.labels("disk_error"), [{"error": status["disk"]["last_error"]}])


def check_equal(metrics, status):
    """Checks that all metrics equal the status, except those that change with time."""
    check_texts(metrics, status)
    for row in NUMBERS:
        value = of(status, row.path)
        equal(metrics.has(row.metric), value is not None, row.path)
        if row.metric == "uptime_seconds":
            assert 0 <= metrics.value(row.metric) - value < 3600
        elif row.metric == "clients":
            assert metrics.value(row.metric) >= 1
        elif value is not None:
            equal(metrics.value(row.metric), value, row.path)
    for row in FIGURES:
        if row.type == "COUNTS":
            for name, value in of(status, row.path).items():
                equal(metrics.value(row.metric, **{row.label: name}), value, f"{row.path}.{name}")
    equal({name for name in metrics.metrics if name not in metrics.asked and not name.startswith("recording")}, set(),
          "metrics that are not compared with the status")


# As Prometheus sends it: it would prefer OpenMetrics.
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


def get_metrics(socket):
    answer = send(socket, "GET", "/metrics", headers={"Accept": ACCEPT})
    equal((answer.status, answer.headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    return Metrics(answer.body)


# ---- tests


def test_the_parser_refuses_invalid_text():
    good = b"# TYPE a_x_total counter\n# HELP a_x_total A thing.\na_x_total{b=\"c\\\\d\\n\\\"\"} 5\n"
    equal(parse_metrics(good)["a_x_total"].samples, {(("b", 'c\\d\n"'),): 5})
    for wrong in (good[:-1], good + b"\n", good.replace(b"_total{", b"{"), good.replace(b" 5", b" five"), good.replace(b"\\n", b"\\q"),
                  good.replace(b"counter", b"gauge"), good.replace(b"A thing.", b""), good + good.splitlines()[-1] + b"\n",
                  good.replace(b'"c', b'c'), good.replace(b" 5\n", b" 5 \n"), good + b"# EOF\n", b"# UNIT a_x_total x\n" + good):
        with pytest.raises((AssertionError, ValueError)):
            parse_metrics(wrong)


def test_promtool_accepts_the_metrics(tmp):
    need("promtool")
    with daemon_in(tmp, "--label", "m", mode="always", source="sim:rate=max,count=200000,loss=0.5") as daemon:
        daemon.wait_ready()
        wait_until(lambda: daemon.status()["state"] == "idle", "the source's end")
        done = run("promtool", "check", "metrics", data=send(tmp / "socket", "GET", "/metrics").body)
        equal(done.returncode, 0, done.stderr)
        daemon.stop()


@pytest.mark.threads
def test_metrics_equal_the_status(tmp):
    """When the source has ended, nothing changes any more."""
    with daemon_in(tmp, "--label", "m", "-b", "files:3", "-b", "filesize:1M", mode="always", source="sim:rate=max,count=200000,loss=0.5,corrupt=0.1") as daemon:
        daemon.wait_ready()
        wait_until(lambda: daemon.status()["state"] == "idle", "the source's end")
        wait_until(lambda: daemon.status()["rates"]["samples_per_second"] == 0, "a second without samples")
        # The free space changes with other writers, and is checked every second.
        for _ in range(20):
            status, metrics = daemon.status(), get_metrics(tmp / "socket")
            after = daemon.status()
            if (after["disk"], after["rates"]) == (status["disk"], status["rates"]):
                break
        assert check_counts(status)["written"] > 0 and status["counts"]["gaps"] > 0
        check_equal(metrics, status)
        daemon.stop()


@pytest.mark.threads
def test_the_free_space_is_unknown_until_the_disk_has_answered(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out, "fstatvfs:2+:hold")  # the first one precedes the threads
    with Daemon("-o", out, "--source", "sim:rate=1k", "-b", "files:3", socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        wait_until(lambda: daemon.status()["rates"]["samples_per_second"] is not None, "a second has passed")
        disk = daemon.status()["disk"]
        equal((disk["free_bytes"], disk["ring"]["bytes"], disk["ring"]["segments"]), (None, None, None), disk)
        metrics = get_metrics(tmp / "socket")
        equal([name for name in ("disk_free_bytes", "ring_bytes", "ring_segments") if metrics.has(name)], [])
        text = run(BUSCAP, "status", "--socket", tmp / "socket").stdout.decode()
        assert "free space unknown" in text and "ring" not in text, text
        faults.set("")
        wait_until(lambda: daemon.status()["disk"]["free_bytes"], "the free space")
        equal(daemon.status()["disk"]["ring"]["segments"] is not None, True)
        equal(daemon.stop(), 0, daemon.err)


# ---- alert rules and dashboard

RULES = ROOT / "docs/alerts.yml"
DASHBOARD = json.loads((ROOT / "docs/dashboard.json").read_text())


def expressions():
    """Each expression of the rules and the dashboard, with the text that shows its labels."""
    rules = re.findall(r"^ +expr: (.*)\n((?: {8}.*\n)*)", RULES.read_text(), re.MULTILINE)
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(rules) == RULES.read_text().count("- alert:") and targets, rules
    return rules + [(target["expr"], target["legendFormat"]) for target in targets]


def check_expression(metrics, expression, text):
    """Checks that the daemon has exported the metrics and labels of an expression, and the values of labels."""
    there = {"instance", "job"}  # Prometheus adds these
    used = re.findall(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}", text)
    for name, labels in re.findall(r"buscapd_(\w+)(?:\{([^}]*)\})?(?=[\[\s)]|$)", expression):
        samples = [dict(labels) for labels in metrics.of(name)]
        there |= set(samples[0])
        for label, operator, value in re.findall(r'(\w+)(=~?)"([^"]*)"', labels):
            used.append(label)
            if operator == "=":
                assert any(sample.get(label) == value for sample in samples), f"{expression}: no {label}={value}"
    for labels in re.findall(r"(?:by|without) \(([^)]*)\)", expression):
        used += labels.split(", ")
    assert set(used) <= there, f"{expression}, {text}: no label {set(used) - there}"


@pytest.mark.threads
def test_rules_and_dashboard_use_what_the_daemon_exports(tmp):
    with Board("rate=20000") as board, daemon_in(tmp, mode="always", source="usb", program=board.PROGRAM, env=board.env) as daemon:
        daemon.wait_ready()
        wait_until(lambda: get_metrics(tmp / "socket").has("disk_time_left_seconds"), "a time until the disk is full")
        metrics = get_metrics(tmp / "socket")
        for expression, text in expressions():
            check_expression(metrics, expression, text)
        for wrong in ("buscapd_stat == 1", 'buscapd_state{buscapd_state="faild"}', 'buscapd_gaps_total{cause=~"x"}', "sum by (cause) (buscapd_gaps_total)"):
            with pytest.raises(AssertionError):
                check_expression(metrics, wrong, "")
        with pytest.raises(AssertionError):
            check_expression(metrics, "buscapd_state", "{{id}}")
        daemon.stop()


def test_promtool_accepts_the_rules_and_the_dashboard(tmp):
    need("promtool")
    done = run("promtool", "check", "rules", RULES)
    equal(done.returncode, 0, done.stderr)
    done = run("promtool", "test", "rules", ROOT / "tests/system/alerts_test.yml")
    equal(done.returncode, 0, done.stderr)
    rules = [{"record": f"x:{n}", "expr": expression.replace("$__range", "1h").replace("$__rate_interval", "1m")}
             for n, (expression, _) in enumerate(expressions())]
    (tmp / "all.yml").write_text(json.dumps({"groups": [{"name": "x", "rules": rules}]}))
    done = run("promtool", "check", "rules", tmp / "all.yml")
    equal(done.returncode, 0, done.stderr)


# ---- over TCP


def free_port():
    """A free port. It is below those that the system hands out, so that no other process is given it before it is used."""
    while True:
        port = random.randrange(10000, 32768)
        with sockets.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def get(port, path="/metrics", method="GET", host="127.0.0.1", headers=()):
    argv = ["-I"] if method == "HEAD" else ["-X", method]
    argv += [word for header in headers for word in ("-H", header)]
    done = run("curl", "-sS", "-g", "--max-time", 20, "-w", "\n%{http_code}", *argv, f"http://{host}:{port}{path}")
    equal(done.returncode, 0, f"curl: {done.stderr.decode()}")
    body, _, code = done.stdout.rpartition(b"\n")
    return int(code), body


def listening(tmp, port, host="127.0.0.1", **options):
    return daemon_in(tmp, "--set", f"socket.metrics_listen={host}:{port}", **options)


@pytest.mark.threads
def test_metrics_listen_serves_metrics_and_nothing_else(tmp):
    port = free_port()
    with listening(tmp, port) as daemon:
        daemon.wait_ready()
        code, body = get(port)
        equal(code, 200)
        equal(Metrics(body).labels("build"), get_metrics(tmp / "socket").labels("build"))
        equal(get(port, method="HEAD")[0], 200)
        for method in ("POST", "DELETE", "PUT", "PATCH"):
            equal(get(port, method=method)[0], 405, method)
        for path in ("/", "/v1/status", "/v1/events", "/v1/records", "/v1/recordings", "/v1/mix", "/metrics/", "/favicon.ico"):
            for method in ("GET", "POST"):
                code, body = get(port, path, method)
                equal(code, 404, f"{method} {path}")
                assert "only /metrics" in json.loads(body)["error"]
        equal(get(port, "/v1/recordings/current", "DELETE")[0], 404)
        addresses = run("ss", "-Hltn", f"sport = :{port}").stdout.decode().split() if shutil.which("ss") else ["", "", "", f"127.0.0.1:{port}"]
        equal(addresses[3], f"127.0.0.1:{port}", "listening address")
        assert daemon.stop() in (0, 4)


@pytest.mark.threads
def test_metrics_listen_accepts_local_host_names_only(tmp):
    """Else a web page could read the metrics in the browser of a local user (DNS rebinding)."""
    port = free_port()
    with listening(tmp, port) as daemon:
        daemon.wait_ready()
        for name in ("localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "[::1]"):
            for host in (name, f"{name}:{port}", f"{name}:80"):
                equal(get(port, headers=(f"Host: {host}",))[0], 200, host)
        for host in ("example.org", f"example.org:{port}", "localhost.example.org", "128.0.0.1", "10.0.0.1", "[::2]", "127.0.0.1.example.org",
                     "1.127.0.0", "127.1", f"localhost@example.org:{port}", "[::1", "::1"):
            for path in ("/metrics", "/v1/status"):
                code, body = get(port, path, headers=(f"Host: {host}",))
                equal(code, 421, host)
                assert json.loads(body)["error"].startswith("Host: "), body
        equal(daemon.stop(), 0)


@pytest.mark.threads
def test_a_port_in_use_is_named_in_the_error(tmp):
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with listening(tmp, port) as daemon:
            assert daemon.wait() not in (0, 4)
        assert f"127.0.0.1:{port}" in daemon.err.decode(), daemon.err
