"""The manual pages: mandoc and groff accept them, they mention what the programs have, and their examples run. The settings
that change at SIGHUP are the documented ones."""

import os
import re
import shlex
import signal
import subprocess
import tempfile

import pytest

import harness
import tables
from harness import BUILD, BUSCAP, BUSCAPD, ROOT, equal, need, run

pytestmark = pytest.mark.documents

PAGES = {"buscapd.8": BUILD / "man/buscapd.8", "buscap.1": BUILD / "man/buscap.1",
         "buscapd.conf.5": BUILD / "man/buscapd.conf.5", "buscap-formats.5": ROOT / "docs/man/buscap-formats.5"}


def rendered(name):
    """The page as a terminal shows it."""
    need("mandoc")
    return re.sub(".\b", "", run("mandoc", "-T", "utf8", "-O", "width=80", need(PAGES[name])).stdout.decode())


# ---- the pages


def test_mandoc_and_groff_report_no_error():
    need("mandoc")
    need("groff")
    for name, path in PAGES.items():
        done = run("mandoc", "-T", "lint", need(path))
        # References to manuals that are not installed here are fine.
        faults = [line for line in done.stdout.decode().splitlines()
                  if "referenced manual not found" not in line and "outdated mandoc.db" not in line]
        equal(faults, [], name)
        done = run("groff", "-mandoc", "-ww", "-Tutf8", "-Kutf8", "-z", "-rLL=78n", path)
        equal((done.returncode, done.stderr.decode()), (0, ""), name)


def test_no_line_is_longer_than_a_terminal():
    for name in PAGES:
        equal([line for line in rendered(name).splitlines() if len(line) > 80], [], name)


def test_the_pages_have_every_option_format_and_environment_variable():
    def missing(name, words):
        text = rendered(name)
        return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]

    def options(program):
        rows = (line.split("\t") for line in run(need(program), "--options").stdout.decode().splitlines())
        return {"--" + row[2] for row in rows if row[0] != "config" and row[2]}

    def variables(folder):
        text = "".join(path.read_text() for path in (ROOT / folder).rglob("*.c"))
        return set(re.findall(r'getenv\("(\w+)"\)', text))

    equal(missing("buscap.1", options(BUSCAP) | variables("cli")), [])
    equal(missing("buscapd.8", options(BUSCAPD) | variables("daemon")), [])
    formats = re.findall(r"^[r-][w-] (\S+)", run(need(BUSCAP), "formats").stdout.decode(), re.M)
    assert len(formats) > 10
    equal(missing("buscap-formats.5", formats), [])


# ---- the configuration


def known_settings():
    return tables.settings(need(BUSCAPD))


def test_generated_tables_and_build_dependencies_are_current():
    equal(list(tables.outdated(need(BUSCAPD))), [], "outdated; run make docs")


def test_the_documented_attrs_are_those_that_samples_get(tmp):
    attrs = {"I_FETCH": 3, "D_READ": 3, "WRITE_BACK": 3, "D_WRITE": 1}
    text = next(row.default for row in known_settings() if row.key == "attr.CYCLE")
    equal(text, "3 for I_FETCH, D_READ and WRITE_BACK, 1 for D_WRITE, 0 for all others")
    done = run(need(BUSCAPD), "-c", "/dev/null", "--once", "--source", "sim:rate=max,count=1000", "-o", tmp / "t")
    equal(done.returncode, 0, done.stderr.decode())
    facts = run(BUSCAP, "info", *harness.segments(tmp / "t")).stdout.decode()
    numbers = re.search(r"attr ([\d ]+)$", facts, re.M).group(1).split()
    names_ = ("- INT_ACK - SPECIAL - IO_READ - IO_WRITE I_FETCH NC_I_FETCH - - D_READ NC_D_READ WRITE_BACK "
              "D_WRITE").split()
    for name, number in zip(names_, numbers, strict=True):
        equal(int(number), attrs.get(name, 0), name)


# A non-default value for each key; a trigger needs both of its keys.
OTHER_VALUES = {
    "source.source": "sim:rate=30k", "usb.id": "1209:0002", "usb.serial": "A1", "usb.port": "1-2",
    "usb.protocol": "raw6", "usb.link": "ftdi", "usb.transfers": "17", "usb.transfer_size": "128K", "usb.transfer_timeout": "1s",
    "usb.clock_hz": "1000", "usb.wait": "11s", "usb.silence": "11s", "usb.silence_action": "restart",
    "usb.back_off": "101ms", "usb.back_off_max": "6s", "usb.ftdi_latency": "17ms", "usb.ftdi_mode": "fifo",
    "output.dir": "elsewhere", "output.label": "x", "output.compression": "fast",
    "output.sealed_command": "/bin/true",
    "output.sealed_timeout": "2h", "recording.record": "on-demand", "recording.flight_time": "11s",
    "recording.flight_size": "1M", "recording.sampling": "1s/2s", "recording.metadata.KEY": "x",
    "filter.keep": "proc=0", "filter.keep.NAME": "proc=0", "filter.leave_out": "proc=1",
    "filter.leave_out.NAME": "proc=1", "rotation.filesize": "1G", "rotation.duration": "1h",
    "rotation.interval": "1h", "rotation.files": "100", "stop.duration": "1h", "stop.records": "1000000000",
    "stop.filesize": "100G", "space.max_use": "100G", "space.keep_free": "1K", "space.max_age": "1d",
    "pipeline.buffer": "65M", "pipeline.workers": "1", "pipeline.flush": "2s", "pipeline.sync": "201ms",
    "pipeline.stuck": "61s", "mapping.invalid": "keep", "mapping.size": "v1.0", "mapping.attr.CYCLE": "7",
    "socket.path": "elsewhere.sock", "socket.group": "nobody", "socket.connections": "65",
    "socket.reserve": "record", "socket.metrics_listen": "127.0.0.1:1", "log.level": "debug",
    "names.symbols": str(BUSCAP), "space.disk_low": "2h",
    "trigger NAME.when": "gap", "trigger NAME.action": "mark", "trigger NAME.pre": "0", "trigger NAME.post": "0",
    "trigger NAME.text": "x", "trigger NAME.holdoff": "1s",
}
NOT_OF_A_SIMULATED_BUS = {"source.speed"}


class Reloaded:
    """A daemon that reloads changed configurations."""

    def __init__(self, directory):
        self.directory = directory
        self.conf = directory / "conf"
        self.log = directory / "log"
        self.position = 0
        self.base = {"source.source": "sim:rate=20k", "output.dir": directory / "out",
                     "socket.path": directory / "sock", "pipeline.workers": "2", "usb.id": "1209:0001"}

    def __enter__(self):
        self.write({})
        self.process = harness.popen([need(BUSCAPD), "-c", str(self.conf)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "wb"))
        harness.wait_until(self.answers, "the daemon answers")
        return self

    def answers(self):
        try:
            return harness.status(self.directory / "sock")
        except AssertionError:
            return None

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait(harness.TIMEOUT_S)

    def write(self, settings):
        text = ""
        for key, value in {**self.base, **settings}.items():
            section, _, name = key.partition(".")
            text += f"[{section}]\n{name.replace('CYCLE', 'SPECIAL')} = {value}\n"
        self.conf.write_text(text)

    def reload(self, settings):
        """Reloads. Returns the keys or sections logged as needing a restart: "usb.", "socket.path"."""
        self.write(settings)
        self.process.send_signal(signal.SIGHUP)

        def lines():
            text = self.log.read_text()[self.position:]
            return text if re.search(r"SIGHUP: (?:applied .*|nothing to apply)\n|keeping the old configuration\n", text) else None

        text = harness.wait_until(lines, f"SIGHUP is logged for {settings}")
        self.position += len(text)
        assert "keeping the old configuration" not in text, text
        return [re.sub(r"^\[(.*)\]$", r"\1.", name)
                for name in re.findall(r"warning: SIGHUP: (.*) has changed, but needs a restart", text)]


def test_sighup_changes_exactly_the_documented_settings(tmp):
    problems = []
    (tmp / "names").write_text("a0000-bffff frame buffer\n")
    other_values = {**OTHER_VALUES, "names.map": str(tmp / "names")}
    with Reloaded(tmp) as d:
        for row in known_settings():
            key = f"{row.section}.{row.key}"
            if row.sighup == "" or key in NOT_OF_A_SIMULATED_BUS:
                continue
            values = {key: other_values[key]}
            if row.section == "trigger NAME":
                values = {"trigger NAME.when": "gap", "trigger NAME.action": "mark", **values}
            said = d.reload(values)
            if any(key.startswith(name) for name in said) != (row.sighup == "no"):
                problems.append(f"{key}: SIGHUP: {row.sighup}; the daemon says {said}")
    equal(problems, [])


def test_the_number_of_workers_is_that_of_the_cores(tmp):
    with Reloaded(tmp) as d:
        del d.base["pipeline.workers"]
        cores = min(os.sysconf("SC_NPROCESSORS_ONLN"), 64)
        equal(d.reload({}), [] if cores == 2 else ["pipeline.workers"])


# ---- examples


def split_commands(text):
    """The simple commands of a script as lists of words, without redirections."""
    text = text.replace("\\\n", " ")
    for line in re.split(r"[\n|;&]+(?![0-9])", re.sub(r"\|\s*\n", "| ", text)):
        line = re.sub(r"\d*>&?\s*\S+|<\s*\S+|\|\|.*", "", line)
        words = shlex.split(re.sub(r"^\s*(until|do|then)\b", "", line))
        if words:
            yield words


def parse_only(text):
    """Checks the commands of a script with the option parsers only."""
    checked = run("sh", "-n", "-c", text)
    equal(checked.returncode, 0, checked.stderr.decode())
    for words in split_commands(text):
        if words[0] == "buscap":
            done = run(need(BUSCAP), *words[1:], "--help")
        elif words[0] == "buscapd":
            more = [] if "--source" in words else ["--source", "sim"]
            done = run(need(BUSCAPD), "-c", "/dev/null", *words[1:], *more, "--check-config")
        else:
            continue
        equal(done.returncode, 0, f"{words}: {done.stderr.decode()}")


def run_script(text, directory):
    """Runs a script in its own session. Returns exit code and output."""
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    env.pop("BUSCAP_SOCKET", None)
    with tempfile.TemporaryFile() as log:
        process = harness.popen(["sh", "-eu", "-c", text + "wait\n"], cwd=directory, env=env,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait(harness.TIMEOUT_S)
        finally:
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        log.seek(0)
        return code, log.read().decode(errors="replace")


def examples(name):
    """(kind, text) of each example; the comment before it says what it is."""
    text = need(PAGES[name]).read_text().partition(".Sh EXAMPLES\n")[2].partition("\n.Sh ")[0]
    found = re.findall(r'^\.\\" (\w+).*\n\.Bd .*\n((?:.*\n)*?)\.Ed$', text, re.M)
    assert len(found) == text.count(".Bd ") > 0, f"{name}: a comment, run, parse or conf, precedes each example"
    return [(kind, re.sub(r"\\(.)", lambda escape: {"e": "\\", "&": ""}.get(escape[1], escape[1]), example))
            for kind, example in found]


def check_examples(name, directory):
    script = ""
    for kind, text in examples(name):
        if kind == "run":
            script += text
        elif kind == "parse":
            parse_only(text)
        else:
            equal(kind, "conf")
            (directory / "conf").write_text(text)
            done = run(need(BUSCAPD), "-c", directory / "conf", "--check-config")
            equal(done.returncode, 0, f"{text}{done.stderr.decode()}")
    if script:
        if harness.is_sanitized():
            pytest.skip("with sanitizers the programs don't keep up with the examples' rates")
        need("lz4")
        for attempt in range(3):
            here = directory / str(attempt)
            here.mkdir()
            code, output = run_script(script, here)
            if code == 0 or not re.search("samples (are being )?lost", output):
                break
            harness.note(f"the machine was too busy for the examples of {name}")
        equal(code, 0, f"{script}\n{output}")


@pytest.mark.nightly
def test_the_examples_of_buscapd_work(tmp):
    check_examples("buscapd.8", tmp)


@pytest.mark.nightly
def test_the_examples_of_buscap_work(tmp):
    check_examples("buscap.1", tmp)


def test_the_examples_of_the_configuration_work(tmp):
    check_examples("buscapd.conf.5", tmp)


def test_the_examples_of_the_formats_work(tmp):
    check_examples("buscap-formats.5", tmp)
