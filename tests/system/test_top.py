"""buscap top in a real terminal: contents of the screen, sizes, keys, a daemon that stops; and without a terminal."""

import fcntl
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import termios
import time

import pytest

import harness
from harness import BUSCAP, Daemon, equal, need, run
from top_harness import Bus, FakeDaemon, Terminal

BLOCKS = "▁▂▃▄▅▆▇█"
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def top(directory, width, height, options=(), **more):
    return Terminal(directory, width, height, need(BUSCAP), "top", "--socket", directory / "s", *options, **more)


def line_of(text, word):
    """Returns the only line that starts with a word."""
    found = [line for line in text.splitlines() if line.startswith(word)]
    equal(len(found), 1, f"lines that start with {word!r} in\n{text}")
    return found[0]


def fits(terminal, text):
    """Returns whether the page has this size: first and last line in place, no line too long."""
    lines = text.split("\n")
    return (len(lines) == terminal.size[1] and all(len(line) <= terminal.size[0] for line in lines)
            and [n for n, line in enumerate(lines) if line.startswith("buscap top")] == [0]
            and [n for n, line in enumerate(lines) if line.startswith("q quit")] == [len(lines) - 1]
            and [n for n, line in enumerate(lines) if line.startswith("samples/s")] != [])


def check_fits(terminal):
    terminal.wait_for(lambda text: fits(terminal, text), "a page of {}x{}".format(*terminal.size))


def check_page(text, bus, has_graphs=True):
    """Checks that the page shows the values of the status."""
    assert re.match(r"buscap top  recording  up 1 h \d+ min +\d\d:\d\d:\d\d UTC\n", text), text
    assert "usb, clock 66.7 MHz" in line_of(text, "source"), text
    assert "streaming, 1209:0001 BC-0042" in line_of(text, "board"), text
    assert "20261120T194302Z-ab12cd-night-run" in line_of(text, "recording"), text
    assert "segment 3" in text and re.search(r"\d\d\.\d G records, \d\d\.\d GB, for (1 h 0 min|59 min 59 s)", text), text
    assert "10.6 hours left, 812 GB free" in line_of(text, "disk"), text
    rate, data, out = (line_of(text, word) for word in ("samples/s", "records/s", "to disk/s"))
    assert re.match(r"samples/s +4\.\d\d M\b", rate), rate
    assert re.match(r"records/s +4\.\d\d M\b", data) and re.match(r"to disk/s +1\d\.\d MB\b", out), (data, out)
    assert re.match(r"buffer     \d+ % in use, max 81 %, room for 1.3 s$", line_of(text, "buffer ")), text
    if has_graphs:
        for line in (rate, out, line_of(text, "lost/s")):
            assert re.search(f"[{BLOCKS}]", line) and " max " in line, line
    for kind, share in (("MEMREAD", "45.0"), ("FETCH", "28.0"), ("IOWRITE", "1.0")):
        assert re.search(rf"^{kind} .* {share} %", text, re.M), text
    # 2.48 M, but for when the daemon answered.
    rate_of_it = r"[\d.]+ [kM] +" if has_graphs else ""
    assert re.search(rf" 0 +{rate_of_it}55\.0 %", text), text
    assert re.search(r"0x0001f000  12\.5 %", text), text
    equal(line_of(text, "lost ").split()[1], "none" if bus.lost == 0 else f"{bus.lost:,}")


def is_whole(text):
    """Returns whether the tables cover at least a second."""
    return re.search(r" last ([1-9]|\d\d+) s,", text) and "q quit" in text and "no daemon" not in text


# ---- in a terminal


def test_the_graphs_begin_with_the_past_and_a_delay_holds_the_page_back(tmp):
    bus = Bus()
    with FakeDaemon(tmp / "s", bus) as fake, top(tmp, 100, 24, options=("-d", "1h")) as terminal:
        text = terminal.wait_for(lambda text: fits(terminal, text), "the first page")
        for word, most in (("samples/s", r"4\.\d\d M"), ("to disk/s", r"1\d\.\d MB"), ("buffered", r"\d+ %")):
            assert re.search(rf"[{BLOCKS}]{{60}} +max {most}$", line_of(text, word)), text
        equal(fake.requests.count("/v1/history"), 1)
        bus.lost = 4711
        before = fake.requests.count("/v1/mix")
        harness.wait_until(lambda: fake.requests.count("/v1/mix") >= before + 3, "three more statuses")
        equal(terminal.text(), text, "the page")
        terminal.press("s")
        terminal.wait_for(lambda text: "4,711 samples" in text and "s order: name" in text, "the page after a key")
        equal(fake.requests.count("/v1/history"), 1, "the seconds are known now")


def test_the_first_page_appears_at_once_however_long_the_delay(tmp):
    # The program's clock is younger than the delay.
    with FakeDaemon(tmp / "s", Bus()), top(tmp, 80, 24, ("-d", "1h"), env=harness.MovedClock(tmp, up_s=60).env) as terminal:
        terminal.wait_for(lambda text: fits(terminal, text) and "samples/s" in text, "the first page")


def test_p_pauses_and_catches_up_later(tmp):
    bus = Bus()
    with FakeDaemon(tmp / "s", bus), top(tmp, 80, 24) as terminal:
        terminal.wait_for(is_whole, "the page")
        terminal.press("p")
        before = terminal.wait_for(lambda text: "paused" in text and "p resume" in text and text == terminal.text(), "the pause")
        bus.lost = 4711
        time.sleep(1.5)
        equal(terminal.text(), before, "the paused screen")
        terminal.resize(100, 24)
        text = terminal.wait_for(lambda text: len(text.split("\n")[0]) == 100 and text == terminal.text(), "the paused page, wider")
        equal(line_of(text, "lost "), "lost       none")
        terminal.press("p")
        text = terminal.wait_for(lambda text: "paused" not in text and "4,711" in text and "max 4.71 k" in text, "the resumed page")
        assert re.match(r"lost       4,711 samples, last \d", line_of(text, "lost ")), text
        # The graph shows it too.
        assert "max 4.71 k" in line_of(text, "lost/s"), text


def test_the_question_mark_shows_the_keys_and_any_key_returns(tmp):
    with FakeDaemon(tmp / "s", Bus()), top(tmp, 80, 24) as terminal:
        terminal.wait_for(is_whole, "the page")
        for back in ("?", "x", "Down"):
            terminal.press("?")
            for key in ("q  quits", "p  pauses", "s  sorts the tables", "?  shows these keys"):
                terminal.wait_for(lambda text, key=key: key in text, f"the key {key}")
            terminal.press(back)
            terminal.wait_for(lambda text: "pauses the display" not in text and "samples/s" in text, "the page again")
        for order in ("name", "share"):
            terminal.press("s")
            terminal.wait_for(lambda text, order=order: f"s order: {order}" in text, "the other order")


def test_q_and_ctrl_c_restore_the_terminal(tmp):
    for key in ("q", "C-c"):
        place = tmp / key
        place.mkdir()
        with FakeDaemon(place / "s", Bus()), Terminal(
                place, 80, 24, "sh", "-c", f"trap : INT; echo before; stty -a >{place}/was; {shlex.quote(str(need(BUSCAP)))} top --socket {place}/s; "
                f"echo exit=$?; stty -a >{place}/half; mv {place}/half {place}/is; sleep 60") as terminal:
            text = terminal.wait_for(is_whole, "the page")
            assert "before" not in text, text
            terminal.press(key)
            text = terminal.wait_for(lambda text: "exit=0" in text, "the end")
            assert "before" in text and "samples/s" not in text, text
            harness.wait_until((place / "is").exists, "the terminal's settings")
            equal((place / "is").read_text(), (place / "was").read_text(), "the terminal's settings")


def test_a_daemon_that_stops_and_restarts_is_shown(tmp):
    bus = Bus()
    with top(tmp, 80, 24) as terminal:
        equal(terminal.wait_end(), 6)
    with FakeDaemon(tmp / "s", bus):
        terminal = top(tmp, 80, 24)
        (tmp / "code").unlink()
        terminal.__enter__()
        try:
            terminal.wait_for(is_whole, "the page")
        except BaseException:
            terminal.__exit__()
            raise
    try:
        text = terminal.wait_for(lambda text: "no daemon" in text, "no daemon")
        assert "recording  up" not in text, text
        text = terminal.wait_for(lambda text: re.search(r"\(([3-9]|\d\d+) s\)", text) and "buscapd" in text.split("\n")[2],
                                 "the time without a daemon, and what to do about it")
        assert re.search(r"no status since \d\d:\d\d:\d\d UTC \(\d+ s\), reconnecting", text.split("\n")[1]), text
        assert "samples/s" in text and "MEMREAD" in text, text  # as it was
        check_fits(terminal)
        bus.started = time.monotonic() - 7
        bus.lost = 33
        with FakeDaemon(tmp / "s", bus):
            text = terminal.wait_for(lambda text: "no daemon" not in text and "recording  up" in text
                                     and "recording  up 1 h" not in text and "33 samples" in text, "the new daemon")
            # Earlier losses of the new daemon belong to no second.
            assert line_of(text, "lost ") == "lost       33 samples, 1 gap, buffer 33", text
            assert "max 0" in line_of(text, "lost/s"), text
            terminal.press("q")
            equal(terminal.wait_end(), 0)
    finally:
        terminal.__exit__()


def test_a_silent_daemon_is_reported_and_keys_still_work(tmp):
    class Silent(Bus):
        silent = False

        def status(self):
            while self.silent:
                time.sleep(0.05)
            return super().status()

    bus = Silent()
    with FakeDaemon(tmp / "s", bus), top(tmp, 80, 24) as terminal:
        terminal.wait_for(is_whole, "the page")
        bus.silent = True
        try:
            text = terminal.wait_for(lambda text: "no daemon" in text, "no daemon")
            assert "reconnecting\nno status received\n" in text, text
            terminal.press("?")
            terminal.wait_for(lambda text: "pauses the display" in text, "the keys")
            terminal.press("x")
        finally:
            bus.silent = False
        terminal.wait_for(lambda text: "no daemon" not in text and "recording  up" in text, "the status again")
        bus.silent = True
        try:
            terminal.press("q")
            equal(terminal.wait_end(), 0)
        finally:
            bus.silent = False


def test_without_events_the_status_is_requested_every_second(tmp):
    bus = Bus()
    with FakeDaemon(tmp / "s", bus, ("/v1/status", "/v1/mix")) as fake, top(tmp, 80, 24) as terminal:
        text = terminal.wait_for(is_whole, "the page")
        check_page(text, bus)
        # It asks for the events again if a status takes too long.
        harness.wait_until(lambda: fake.requests.count("/v1/status") >= 3 * fake.requests.count("/v1/events"), "requests for the status")


def test_problems_stand_out_with_and_without_colours(tmp):
    bus = Bus()
    bus.lost = 5
    bus.disk_error = "can't write: no space left on device"
    for env, has_colour in (({}, True), ({"NO_COLOR": "1"}, False)):
        with FakeDaemon(tmp / "s", bus), top(tmp, 80, 24, env=env) as terminal:
            terminal.wait_for(is_whole, "the page")
            drawn = terminal.colours()
            # Red, or else reversed.
            for words in ("recording, disk stuck", "5 samples", "stuck: can't write: no space left on device"):
                style = re.findall(r"\x1b\[([\d;]*)m", drawn[: drawn.index(words)])
                style = ";".join(style[-3:]).split(";")
                assert ("31" if has_colour else "7") in style, (words, style)
            colours = [word for word in re.findall(r"\x1b\[([\d;]*)m", drawn) for word in word.split(";")
                       if re.fullmatch(r"[34][0-7]", word)]
            equal(bool(colours), has_colour, drawn)


def read_for(fd, seconds):
    """Returns what the program writes to a terminal in this time."""
    data = b""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            data += os.read(fd, 65536)
    return data


def test_a_refresh_sends_only_changes(tmp):
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    try:
        with FakeDaemon(tmp / "s", Bus()):
            process = harness.popen(
                [need(BUSCAP), "top", "--socket", tmp / "s"], stdin=other, stdout=other, stderr=subprocess.PIPE,
                env={**UTF8, "TERM": "xterm-256color"})
            try:
                first = read_for(main, 2.5)
                seconds = 5
                then = read_for(main, seconds)
                os.write(main, b"q")
                read_for(main, 0.5)
                equal(process.wait(harness.TIMEOUT_S), 0)
            finally:
                process.kill()
                process.communicate()
    finally:
        os.close(main)
        os.close(other)
    harness.note(f"80x24: {len(first)} bytes for the first page, {len(then) // seconds} a second afterwards")
    # One that was held up reports a lost daemon and repaints the page.
    assert b"no status" in then or len(then) // seconds < 80 * 24, len(then)


# ---- without a terminal


def test_without_a_terminal_one_page_is_printed(tmp):
    bus = Bus()
    with FakeDaemon(tmp / "s", bus):
        for env, is_ascii in ((UTF8, False), ({**UTF8, "LC_ALL": "C"}, True)):
            done = run(need(BUSCAP), "top", "--socket", tmp / "s", env=env)
            equal((done.returncode, done.stderr), (0, b""))
            text = done.stdout.decode()
            check_page(text, bus, has_graphs=False)
            equal(text.isascii(), is_ascii, text)
            assert "\x1b" not in text and "q quit" not in text, text
            assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines()), text
            equal(len(set(re.findall("0x[0-9a-f]{8}", text))), 32, text)
            assert "since the daemon started" in text and "more" not in text, text
        wide = run(BUSCAP, "top", "--socket", tmp / "s", env={**UTF8, "COLUMNS": "150"}).stdout.decode()
        equal(max(len(line) for line in wide.splitlines()), 150)
        # $BUSCAP_SOCKET works too.
        done = run(BUSCAP, "top", env={**UTF8, "BUSCAP_SOCKET": str(tmp / "s")})
        equal(done.returncode, 0, done.stderr)
        with open("/dev/full", "w") as full:
            done = run(BUSCAP, "top", "--socket", tmp / "s", stdout=full)
        equal(done.returncode, 1, done.stderr)


def test_a_terminal_that_cannot_move_the_cursor_gets_one_page(tmp):
    with FakeDaemon(tmp / "s", Bus()):
        for number, (options, env) in enumerate((((), {"TERM": "dumb"}), ((), {"TERM": "no-such"}), (("--once",), {}))):
            place = tmp / str(number)
            place.mkdir()
            with Terminal(place, 80, 60, "sh", "-c", f"{shlex.quote(str(need(BUSCAP)))} top --socket {tmp}/s {' '.join(options)}; "
                          "echo exit=$?; sleep 60", env=env) as terminal:
                text = terminal.wait_for(lambda text: "exit=0" in text, "the end")
                assert "samples/s" in text and "q quit" not in text, text


def test_a_missing_daemon_is_exit_code_6_with_advice(tmp):
    done = run(need(BUSCAP), "top", "--socket", tmp / "none")
    equal(done.returncode, 6)
    err = done.stderr.decode()
    assert err.startswith(f"buscap top: {tmp}/none: ") and err.count("\n") == 1, err
    assert "buscapd" in err and "$BUSCAP_SOCKET" in err, err
    equal(done.stdout, b"")


def test_another_server_on_the_socket_is_an_error(tmp):
    class Other(Bus):
        def status(self):
            return {"hello": "world"}

    with FakeDaemon(tmp / "s", Other()):
        done = run(need(BUSCAP), "top", "--socket", tmp / "s")
        equal((done.returncode, done.stdout), (1, b""))
        equal(done.stderr.decode(), "buscap top: unexpected response; the server on this socket is not buscapd\n")


# ---- with a real daemon


@pytest.mark.threads
def test_top_shows_the_state_of_a_real_daemon(tmp):
    out = tmp / "out"
    out.mkdir()
    rate = harness.rate(400_000)
    with Daemon("-o", out, "--source", f"sim:rate={rate},agents=3", socket=tmp / "s") as daemon:
        daemon.wait_ready()
        has_mix = harness.http(tmp / "s", "/v1/mix")[0] == 200
        with top(tmp, 120, 40) as terminal:
            text = terminal.wait_for(
                lambda text: re.search(r"^samples/s +[\d.]+ k", text, re.M) and "q quit" in text and str(out) in text, "the page")
            status = daemon.status()
            assert status["recording"]["id"] in line_of(text, "recording"), text
            assert str(out) in text and "lost       none" in text, text
            # 78 ticks for a sample of three processors.
            assert f"clock {78 * rate / 1e6:#.3g} MHz" in line_of(text, "source"), text
            if has_mix:
                text = terminal.wait_for(lambda text: re.search(r"^MEMREAD ", text, re.M)
                                         and len(re.findall(r" [012] +[\d.]+ k +\d+\.\d %", text)) == 3, "what is on the bus")
                assert re.search(r"0x\w{8} +≥?\d", text), text
            for width, height in ((80, 24), (200, 50)):
                terminal.resize(width, height)
                check_fits(terminal)
            equal(daemon.stop(), 0)
            text = terminal.wait_for(lambda text: "no daemon" in text, "no daemon")
            terminal.press("q")
            equal(terminal.wait_end(), 0)
    if not has_mix:
        pytest.skip("this daemon has no /v1/mix; all other checks passed")
