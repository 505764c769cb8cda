"""buscap web: who is served, what the paths return, and that clients and a lost daemon do no harm."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import urllib.parse

import pytest

import harness
from api_harness import Api, daemon_in
from cut_model import buscap
from harness import BUSCAP, BUSCAPD, equal, need, run, wait_until
from web_harness import REFUSED, Web

pytestmark = pytest.mark.threads

PATHS = ("/", "/data/overview", "/data/events", "/data/files", "/data/find", "/data/locality", "/data/live", "/data/history")
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
           "x-frame-options": "DENY", "cross-origin-resource-policy": "same-origin"}


@pytest.fixture(autouse=True)
def no_daemon(tmp, monkeypatch):
    """The default socket must not be that of a daemon on this host."""
    monkeypatch.setenv("BUSCAP_SOCKET", str(tmp / "no-socket"))


def record(out, *options, count=100_000, seed=1):
    done = run(BUSCAPD, "--once", "--no-socket", "--source", f"sim:rate=max,count={count},seed={seed},loss=0.3", "-o", out, "-b",
               "filesize:200K", *options)
    assert done.returncode in (0, 4), done.stderr.decode()
    return out


def recorded(count=100_000):
    """A recording for all tests. Copy what you change."""
    return harness.shared(f"web-{count}", lambda new: record(new, count=count))


@contextlib.contextmanager
def web_on(*options, directory=None):
    with Web(directory or recorded(), *options) as web:
        yield web
        equal(web.stop(), 0, web.err)
        equal(web.err, b"")


# ---- who is served


def test_every_path_needs_the_token():
    with web_on() as web:
        wrong = web.token[:-1] + ("0" if web.token[-1] != "0" else "1")
        for path in (*PATHS, "/favicon.ico", "/data", "/data/", "//", "/nothing"):
            for query in ("", "?token=", f"?token={wrong}", f"?token={web.token}0", f"?token={web.token[:-1]}", f"?Token={web.token}",
                          f"?token={web.token}&token={web.token}", f"?token={web.token}&token={wrong}"):
                answer = web.send_as_is(path + query, Cookie=f"token={web.token}")
                equal((answer.status, answer.body), (403, REFUSED), path + query)
            answer = web.send(path)
            equal(answer.status, (503 if path == "/data/history" else 200) if path in PATHS else 404, path)


def test_each_run_has_a_token_that_no_response_contains():
    with web_on() as web:
        answer = web.send("/")
        assert answer.body.startswith(b"<!DOCTYPE html>") and answer.type() == "text/html"
        assert web.token.encode() not in answer.body and "set-cookie" not in answer.headers
        with Web(recorded()) as other:
            assert other.token != web.token and other.port != web.port
            equal(other.send_as_is(f"/?token={web.token}").status, 403)
            equal(other.send("/").status, 200)
            equal(other.stop(), 0)


def test_every_response_has_the_headers():
    with web_on() as web:
        for path in (*PATHS, "/nothing", "/data/find?first=x"):
            for send, method in ((web.send, "GET"), (web.send_as_is, "GET"), (web.send, "POST")):
                answer = send(path, method)
                for name, value in HEADERS.items():
                    equal(answer.headers.get(name), value, f"{name} of {method} {path}: {answer.status}")
                policy = answer.headers["content-security-policy"]
                assert "frame-ancestors 'none'" in policy, policy
                assert "unsafe" not in policy and "http" not in policy, policy
                equal("default-src 'none'" in policy, path != "/" or answer.status != 200, policy)


def test_other_hosts_and_origins_are_refused():
    with web_on() as web:
        good = {"Host": [web.host, f"localhost:{web.port}"], "Origin": [f"http://{web.host}"],
                "Sec_Fetch_Site": ["same-origin", "none"]}
        bad = {"Host": ["evil.example", f"evil.example:{web.port}", f"127.0.0.1.evil.example:{web.port}", "127.0.0.1", "localhost",
                        f"127.0.0.2:{web.port}", f"127.0.0.1:{web.port + 1}", f"[::1]:{web.port}", f"0.0.0.0:{web.port}", "", None],
               "Origin": ["null", "http://evil.example", f"https://{web.host}", f"http://evil.example:{web.port}",
                          f"http://localhost:{web.port}", f"http://{web.host}.evil.example", "http://127.0.0.1:1", ""],
               "Sec_Fetch_Site": ["cross-site", "same-site", ""]}
        for name in good:
            for value in good[name]:
                equal(web.send("/data/live", **{name: value}).status, 200, f"{name}: {value}")
            for value in bad[name]:
                for path in ("/", "/data/live"):
                    answer = web.send(path, **{name: value})
                    assert answer.status in ((400, 403) if name == "Host" and not value else (403,)), (name, value, answer.status)
        twice = f"GET {web.allowed('/')} HTTP/1.1\r\nHost: {web.host}\r\n%s\r\nConnection: close\r\n\r\n"
        for header in ("Host: evil.example", f"Host: {web.host}", f"Origin: http://{web.host}\r\nOrigin: http://evil.example",
                       "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site"):
            status = int(web.ask((twice % header).encode()).split()[1])
            assert status in (400, 403), (header, status)
        old = web.ask(f"GET {web.allowed('/')} HTTP/1.0\r\n\r\n".encode())
        assert b" 403 " in old.split(b"\r\n")[0], old


@pytest.mark.root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_another_user_of_the_host_is_refused():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with web_on() as web:
        for path in (*PATHS, "/nothing"):
            done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-sS", "-w", "%{http_code}",
                       f"http://{web.host}{path}")
            equal((done.returncode, done.stdout), (0, REFUSED + b"403"), path)


def test_no_path_leads_out_of_the_page(tmp):
    (tmp / "secret").write_text("a secret")
    out = shutil.copytree(recorded(), tmp / "out")
    with web_on(directory=out) as web:
        name = harness.segments(out)[0].name
        for path in ("/../secret", "/%2e%2e/secret", "/..%2fsecret", "/data/../../secret", "/data/..%2f..%2fsecret", "/data/%2e%2e/",
                     "//etc/passwd", "/etc/passwd", "/%00", "/data/live%00.html", "/data/live?%00", "/data/overview/", "/data//overview", f"/{name}",
                     f"/data/{name}", f"/data/..{tmp}/secret", "/\\..\\secret", "/%5c..%5csecret", "/./", "http://evil.example/",
                     "/data/live;x", "/" + "x" * 5000, "/" + "../" * 500 + "etc/passwd"):
            answer = web.send(path)
            assert answer.status in (400, 404) or path == "http://evil.example/", (path, answer.status)
            assert b"a secret" not in answer.body and b"root:" not in answer.body, path
        # A link in the directory is not followed.
        count = len(harness.segments(out))
        link, fifo, outside = (name.replace("-00000", f"-{count + i:05}") for i in range(3))
        os.symlink(tmp / "secret", out / link)
        os.mkfifo(out / fifo)
        shutil.copy(out / name, tmp / "outside")
        os.symlink(tmp / "outside", out / outside)
        assert b"a secret" not in web.send("/data/overview").body
        for query in ("count=true", "addr=fffff000-ffffffff&count=true"):
            damage = [line["damage"] for line in web.lines(f"/data/find?{query}") if "damage" in line]
            equal(sorted(os.path.basename(one["file"]) for one in damage), [link, fifo, outside], query)
        equal([os.path.basename(one["file"]) for one in web.get("/data/overview")["damage"]], [link, fifo, outside])


# ---- what the paths return


def find_both(web, out, dice, everything):
    """Compares a random search with that of the tool."""
    one = dice.choice(everything)
    addr = int(one["addr"], 16) & ~0xFFF
    query = {"addr": f"{addr:x}-{addr + dice.choice((0, 0xFFF, 0xFFFF)):x}", dice.choice(("first", "last")): str(dice.randrange(1, 50))}
    for name, values in (("type", ("read", "write", "fetch,IOREAD")), ("from", (f"@{one['tick']}", one["time"])),
                         ("context", ("0", "1", "3"))):
        if dice.random() < 0.3:
            query[name] = dice.choice(values)
    options = [word for name, value in query.items() if name != "addr" for word in (f"--{name}", value)]
    *lines, end = web.lines("/data/find?" + urllib.parse.urlencode(query))
    text, _ = buscap("find", "--json", "--map", "pc", *options, query["addr"], out)
    equal(lines, [json.loads(line) for line in text.splitlines()], query)
    equal(end["end"]["matches"], sum(not line["is_context"] for line in lines), query)


def test_it_finds_what_the_tool_finds():
    out = recorded()
    with web_on("--map", "pc") as web:
        everything = [json.loads(line) for line in buscap("find", "--json", "--first", "5000", "0-ffffffff", out)[0].splitlines()]
        dice = random.Random(1)
        for _ in range(20):
            find_both(web, out, dice, everything)
        equal(len(web.lines("/data/find")), 1001, "matches without a limit, and the end")
        (end,) = web.lines("/data/find?count=true")
        equal(end["end"], {"matches": int(buscap("find", "--count", "0-ffffffff", out)[0]),
                           "segments": len(harness.segments(out)), "damaged_places": 0, "cut_off": None})


def test_a_search_that_finds_too_much_is_cut_off():
    with web_on(directory=recorded(300_000)) as web:
        answer = web.send("/data/find?type=IOREAD,IOWRITE&first=10000&context=1000")
        *lines, end = answer.body.splitlines()
        end = json.loads(end)
        if harness.is_sanitized() and end["end"]["cut_off"] == "time limit":
            return  # too slow to find too much
        equal(end["end"]["cut_off"], "too long")
        assert 15 << 20 < len(answer.body) <= 16 << 20 and len(lines) > 20_000
        equal(web.lines("/data/find?type=IOREAD,IOWRITE&count=true")[-1]["end"]["cut_off"], None)


def test_curves_of_what_a_search_finds_are_those_of_stats():
    out = recorded()
    names = ("working_set", "miss_ratio")
    with web_on() as web:
        for conditions in ({}, {"proc": "0", "type": "read"}, {"addr": "0-fffff"}, {"records": "1000-5000"}, {"from": "+10ms", "to": "+30ms"}):
            options = (word for name, value in conditions.items() for word in (f"--{name}", value))
            wanted = json.loads(buscap("stats", "--json", "--working-set", "--miss-ratio", *options, out, code=None)[0])
            assert wanted["miss_ratio"], conditions
            got = web.get("/data/locality" + "?" * bool(conditions) + urllib.parse.urlencode(conditions))
            equal({name: got[name] for name in names}, {name: wanted[name] for name in names}, conditions)
        equal(web.send("/data/locality?recording=other").status, 404)
        equal(web.send("/data/locality?type=ioread&figure=miss-ratio").status, 404)


def test_wrong_parameters_are_named():
    with web_on() as web:
        for query, words in (
                ("overview?from=x", "from=x: must be a time in ns since 1970"), ("overview?from=", "from=: "),
                ("overview?to=1.5", "to=1.5"), ("overview?from=9223372036854775808", "from=9223372036854775808"),
                ("overview?from=--1", "from=--1"), ("overview?from=-", "from=-"), ("overview?from=2&to=1", "from: must not be after to"),
                ("overview?place_from=-1", "place_from=-1: must be 0 to 1114111"), ("overview?place_to=1114112", "0 to 1114111"),
                ("overview?place_from=2&place_to=1", "place_from: must not be above place_to"),
                ("overview?columns=0", "columns=0: must be 1 to 512"), ("overview?columns=513", "1 to 512"),
                ("overview?rows=1", "rows=1: must be 2 to 1024"), ("overview?rows=1025", "2 to 1024"), ("overview?rows=1%00", "zero byte"),
                ("overview?rows=5&rows=5", "given twice"), ("overview?row=5", "row: unknown query parameter"),
                ("overview?file=/etc/passwd", "file: unknown"), ("overview?=5", "unknown"), ("overview?" + "&".join(f"x{n}=1" for n in range(20)), "too many"),
                ("events?from=now", "from=now"), ("events?columns=5", "columns: unknown"), ("events?from=5&to=4", "after to"),
                ("locality?figure=timeline", "figure=timeline: must be working-set or miss-ratio"), ("locality?first=1", "first: unknown"),
                ("locality?proc=x", "proc=x"), ("find?first=0", "first=0: must be 1 to 10000"), ("find?first=1&last=1", "exclude each other"), ("find?addr=5-4", "addr=5-4"),
                ("find?last=10001", "1 to 10000"), ("find?last=1&count=true", "exclude each other"), ("find?count=1", "true or false"),
                ("find?count=true&context=1", "count excludes context"), ("find?context=1001", "0 to 1000"), ("find?records=5-4", "range"),
                ("find?records=-", "range"), ("find?records=1-x", "range"), ("find?to=2026-02-31", "no such date"),
                ("find?from=@5&to=@4", "to=@4: the end is before the start"),
                ("find?addr=x&addr=y", "given twice"), ("find?dir=/", "dir: unknown"), ("find?from=soon", "not a time"),
                ("find?type=" + "%3Cscript%3E", "type"), ("live?since=-1", "since=-1: must be 0 to"), ("live?since=x", "since=x"),
                ("live?x", "x: unknown"), ("history?x=1", "x: unknown")):
            answer = web.send(f"/data/{query}")
            equal(answer.status, 400, query)
            assert words in answer.json()["error"], (query, answer.body)
            equal(answer.type(), "application/json")
        equal(web.send("/?x=1").status, 400)


def test_the_overview_is_that_of_the_report():
    out = recorded()
    with web_on("--map", "pc") as web:
        whole = web.get("/data/overview?columns=40&rows=30")
        report = json.loads(buscap("report", "--json", "--map", "pc", "--columns", "40", "--rows", "30", out, code=None)[0])
        assert set(whole) == set(report["overview"])
        for member, value in whole.items():
            equal(value, report["overview"][member], member)
        equal(web.get("/data/events"), report["events"])
        equal(sum(column["records"] for column in whole["columns"]), sum(one["records"] for one in whole["recordings"]))
        files = len(harness.segments(out))
        equal(web.get("/data/files"), {"paths": [str(out)], "files": files, "read": files})
        origin, end = int(whole["origin_ns"]), whole["extent"]["to"]
        half = web.get(f"/data/overview?from={origin}&to={origin + end // 2}&columns=3&rows=4&place_from=0&place_to=255")
        assert len(half["columns"]) <= 3 and len(half["rows"]) <= 4 and half["to"] == end // 2, half
        assert all(row["place"] < 256 for row in half["rows"])
        events = web.get(f"/data/events?from={origin - 1}&to={origin + end // 2}")
        assert all(event["time"] <= end // 2 for event in events["events"])
        equal(web.get("/data/events?from=-5&to=-4")["events"], [])


# ---- the daemon


def wait_connected(web):
    return wait_until(lambda: (now := web.live())["state"] == "connected" and now, "the daemon")


def test_without_a_directory_it_is_that_of_the_daemon_even_if_that_was_given_a_relative_one(tmp, monkeypatch):
    monkeypatch.chdir(tmp)
    with harness.Daemon("-o", "out", "--source", "sim:rate=20k", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        monkeypatch.chdir("/")
        with Web(socket=tmp / "socket") as web:
            wait_until(lambda: web.get("/data/overview")["recordings"], "a recording")
            live = wait_until(lambda: (now := web.live())["mix"] and now, "the mix")
            equal((live["state"], live["error"], live["status"]["status"]["directory"]), ("connected", None, str(tmp / "out")))
            equal(os.path.dirname(live["status"]["status"]["recording"]["path"]), str(tmp / "out"), "the segment's path")
            assert all(page["name"] is None for page in live["mix"]["pages"])

            def history():
                answer = web.send("/data/history")  # 503 if the daemon was too slow
                return answer.status == 200 and answer.json()

            equal(wait_until(history, "the history")["minutes"]["interval_seconds"], 60)
            wait_until(lambda: (now := history()) and sum(filter(None, now["seconds"]["received_samples"])) > 0, "a second of history")
            equal(web.stop(), 0, web.err)
        assert daemon.stop() in (0, 4)


def test_without_a_readable_directory_it_shows_what_the_daemon_does(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        (tmp / "out").rename(tmp / "away")
        with Web(socket=tmp / "socket") as web:
            equal(web.log_so_far(), f"buscap web: {tmp / 'out'}: can't open: No such file or directory; showing only what the daemon does now\n")
            wait_connected(web)
            equal(web.get("/data/overview")["recordings"], [])
            equal(web.get("/data/events")["events"], [])
            equal(web.lines("/data/find")[-1]["end"]["segments"], 0)
            equal(web.stop(), 0, web.err)
        (tmp / "away").rename(tmp / "out")
        assert daemon.stop() in (0, 4)


def test_an_open_segment_is_shown(tmp):
    rate = harness.rate(300_000)
    with daemon_in(tmp, "-b", "filesize:500K", source=f"sim:rate={rate}", mode="always") as daemon:
        daemon.wait_ready()
        wait_until(lambda: len(harness.segments(tmp / "out")) >= 1, "a sealed segment")
        with Web(tmp / "out", socket=tmp / "socket") as web:
            seen, states = 0, set()
            for _ in range(10):
                durable = daemon.status()["counts"]["durable"]
                (one,) = web.get("/data/overview")["recordings"]
                assert one["records"] >= max(seen, durable), (one, seen, durable)
                states.add(one["state"])
                equal(web.get("/data/overview?columns=1")["damage"], [])
                seen = one["records"]
                *_, hit, end = web.lines("/data/find?last=1")
                assert hit["number"] >= durable - 1 and end["end"]["cut_off"] is None
            equal(states, {"recording"}, "between two segments, too")
            wait_until(lambda: web.get("/data/overview")["recordings"][0]["state"] == "recording", "a segment is being written")
            equal(web.stop(), 0, web.err)
        assert daemon.stop() in (0, 4)


def test_a_lost_daemon_is_reported_and_found_again(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        web = stack = contextlib.ExitStack()
        web = stack.enter_context(Web(socket=tmp / "socket"))
        wait_connected(web)
        daemon.stop()
    with stack:
        lost = wait_until(lambda: (now := web.live())["state"] == "disconnected" and str(tmp / "socket") in now["error"] and now, "the loss")
        assert lost["status"] is None and lost["mix"] is None, lost
        answer = web.send("/data/history")
        assert answer.status == 503 and str(tmp / "socket") in answer.json()["error"]
        equal(web.send("/data/overview").status, 200, "recordings need no daemon")
        with daemon_in(tmp) as daemon:
            daemon.wait_ready()
            found = wait_connected(web)
            assert found["status"]["status"]["version"] and found["seq"] >= lost["seq"], found
            os.kill(daemon.process.pid, signal.SIGKILL)
            daemon.wait()
        wait_until(lambda: web.live()["state"] == "disconnected", "the loss")
        equal(web.stop(), 0, web.err)


def test_events_are_numbered_and_kept(tmp):
    with daemon_in(tmp, mode="always") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Web(socket=tmp / "socket") as web:
            before = wait_connected(web)["seq"]
            for n in range(30):
                api.good("POST", "/v1/marks", {"text": str(n)}, status=201)
                web.live()  # without a request for ten seconds, it stops following the daemon

            def marks(live):
                return [event["mark"]["text"] for event in live["events"] if event["event"] == "mark"]

            after = wait_until(lambda: len(marks(now := web.live(before))) == 30 and now, "30 marks")
            equal(marks(after), [str(n) for n in range(30)])
            equal(len(after["events"]), after["seq"] - before)
            equal(marks(web.live(after["seq"])), [])
            equal(web.live(2**62)["events"], [])
            equal(web.stop(), 0)
        assert daemon.stop() in (0, 4)


# ---- the command


def test_with_a_port_the_link_stays_the_same_until_its_token_is_deleted(tmp):
    env = {"XDG_STATE_HOME": str(tmp / "state")}
    with Web(recorded(), env=env) as web:
        equal(web.stop(), 0, web.err)
    assert not (tmp / "state").exists(), "a link to any port is not kept"
    options = ("--port", web.port, recorded())
    with Web(*options, env=env) as first:
        equal(first.port, web.port)
        assert first.token != web.token
        done = run(need(BUSCAP), "web", *options, env={**os.environ, **env})
        equal((done.returncode, done.stderr.decode()),
              (1, f"buscap web: {web.host}: can't listen: Address already in use; choose another --port\n"))
        equal(first.stop(), 0, first.err)
    with Web(*options, env=env) as same:
        equal((same.host, same.token), (first.host, first.token))
        equal(same.stop(), 0, same.err)
    (tmp / "state/buscap/web-token").unlink()
    with Web(*options, env=env) as other:
        equal(other.send_as_is(f"/?token={first.token}").status, 403)
        token = tmp / "state/buscap/web-token"
        equal(token.read_text(), f"{other.token}\n")
        equal(other.stop(), 0, other.err)
    token.chmod(0o644)
    with Web(*options, env=env) as warned:
        assert warned.token != other.token
        equal(warned.log_so_far(), f"buscap web: warning: the link is valid for this run only: {token}: "
              "other users can read or change it; delete it\n")
        equal(warned.stop(), 0)


def test_open_starts_the_browser_with_a_page_that_redirects_and_is_for_the_user_only(tmp):
    seen, opener = tmp / "seen", tmp / "bin/xdg-open"
    opener.parent.mkdir()
    opener.write_text(f"#!/bin/sh\necho \"$@\" >{tmp}/new; stat -c %a \"$1\" >>{tmp}/new; cat \"$1\" >>{tmp}/new; mv {tmp}/new {seen}; exit 3\n")
    opener.chmod(0o755)
    env = {"XDG_STATE_HOME": str(tmp / "state"), "PATH": f"{opener.parent}:{os.environ['PATH']}"}
    failed = "buscap web: --open: xdg-open failed; open the link yourself\n"
    with Web("--open", recorded(), env=env) as web:
        wait_until(seen.exists, "the browser")
        path, mode, page = seen.read_text().split("\n", 2)
        assert path.startswith(f"{tmp}/state/buscap/web-") and path.endswith(".html"), path
        equal(mode, "600")
        assert f'<meta http-equiv="refresh" content="0; url=http://{web.host}/?token={web.token}">' in page, page
        wait_until(lambda: web.log_so_far() == failed, "the message")
        equal(web.send("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status, 200)
        equal(web.stop(), 0)
    equal(list((tmp / "state/buscap").iterdir()), [])
    with Web("--open", recorded(), env={**env, "PATH": str(tmp)}) as web:
        wait_until(lambda: "can't run xdg-open: No such file or directory; install the package xdg-utils" in web.log_so_far(), "the message")
        equal(web.send("/").status, 200)
        equal(web.stop(), 0)


def test_an_address_that_others_can_reach_is_warned_about(tmp):
    env = {"XDG_STATE_HOME": str(tmp / "state")}
    with Web("--listen", "0.0.0.0", record(tmp / "out", count=1000)) as web:
        equal(web.address, "127.0.0.1")
        assert "warning: other hosts can connect" in web.log_so_far()
        for host, status in ((web.host, 200), (f"10.1.2.3:{web.port}", 200), (f"evil.example:{web.port}", 403)):
            equal(web.send("/", Host=host).status, status, host)
        equal(web.stop(), 0)
    with Web("--listen", "0.0.0.0", "--port", web.port, tmp / "out", env=env) as again:
        assert again.token != web.token and not (tmp / "state").exists(), "a link that others can read is not kept"
        equal(again.stop(), 0)


def test_an_empty_directory_and_a_late_recording(tmp):
    (tmp / "out").mkdir()
    with Web(tmp / "out") as web:
        equal(web.get("/data/overview")["recordings"], [])
        equal(web.get("/data/events")["events"], [])
        equal(web.lines("/data/find")[-1]["end"]["segments"], 0)
        record(tmp / "out", count=1000)
        (one,) = web.get("/data/overview")["recordings"]
        assert one["state"] in ("sealed", "recovered") and one["records"] > 0
        shutil.rmtree(tmp / "out")
        for path in ("overview", "events", "find"):
            answer = web.send(f"/data/{path}")
            assert answer.status == 500 and "No such file" in answer.json()["error"], (path, answer.body)
        equal(web.stop(), 0)


def test_a_signal_ends_it_while_files_are_read(tmp):
    """One file has no index and takes hours to read."""
    out = shutil.copytree(recorded(), tmp / "out")
    files = harness.segments(out)
    os.truncate(files[1], 1 << 43)
    with Web(out) as web, contextlib.ExitStack() as stack:
        def is_refused(path="/data/find?addr=ffffffff"):  # which only a file without an index can have
            one = stack.enter_context(web.connect())
            one.settimeout(0.03)
            with contextlib.suppress(TimeoutError, ConnectionError):
                one.sendall(f"GET {web.allowed(path)} HTTP/1.1\r\nHost: {web.host}\r\n\r\n".encode())
                return b" 503 " in one.recv(100)
            return False

        assert not is_refused("/data/overview")
        wait_until(lambda: web.get("/data/files") == {"paths": [str(out)], "files": len(files), "read": 1}, "one file is read")
        wait_until(is_refused, "four searches")
        equal(web.stop(signal.SIGINT), 0, web.err)


# ---- clients that do harm


def test_huge_and_malformed_heads_are_refused():
    with web_on() as web:
        start = f"GET {web.allowed('/data/live')} HTTP/1.1\r\nHost: {web.host}\r\n"
        for data in (start + "X: " + "x" * 1_000_000 + "\r\n\r\n", start + "X: y\r\n" * 100_000 + "\r\n",
                     "GET /" + "x" * 1_000_000 + " HTTP/1.1\r\n\r\n", start + "Cookie: " + "a=b; " * 100_000 + "\r\n\r\n",
                     "\r\n" * 50_000, "x" * 100_000, "\0" * 1000, "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"):
            answer = web.ask(data.encode())
            assert b" 200 " not in answer.partition(b"\r\n")[0] and len(answer) < 10_000, (data[:50], answer[:200])
        equal(web.send("/").status, 200)
        assert harness.memory_kib(web.process.pid, "VmRSS") < (1 << 20 if harness.is_sanitized() else 128 << 10)


def test_a_client_that_does_not_read_delays_no_one():
    with web_on() as web, contextlib.ExitStack() as stack:
        for _ in range(20):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect((web.address, web.port))
            one.sendall(f"GET {web.allowed('/data/find?first=10000')} HTTP/1.1\r\nHost: {web.host}\r\n\r\n".encode())
        for path in ("/", "/data/overview", "/data/live"):
            equal(web.send(path).status, 200, path)
        wait_until(lambda: web.send("/data/find?last=1").status == 200, "a search")
