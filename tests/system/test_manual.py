"""Compares the manual pages with the programs: commands, options, keys, formats, exit codes, paths, signals and
variables; runs the examples."""

import collections
import os
import re
import shlex
import signal
import subprocess
import tempfile

import pytest

import harness
import settings as setting_tables
from harness import BUILD, BUSCAP, BUSCAPD, ROOT, equal, need, run
from manual_page import Page, displays, flags, items, line_text

pytestmark = pytest.mark.documents

MAN = ROOT / "docs/man"
PAGES = ("buscapd.8", "buscap.1", "buscapd.conf.5", "buscap-formats.5")

# Manuals of other projects that ours refer to.
OTHERS = {("lz4", "1"), ("xxhsum", "1"), ("valgrind", "1"), ("systemctl", "1"), ("journalctl", "1"),
          ("systemd-escape", "1"), ("udev", "7"), ("fdatasync", "2"), ("nohup", "1")}

# Variables read by libraries.
BY_LIBRARIES = {"buscap.1": {"LC_ALL", "LC_CTYPE", "LANG", "TERM"},
                "buscapd.8": {"LISTEN_FDS", "LISTEN_PID", "WATCHDOG_USEC", "WATCHDOG_PID"}}


def page(name):
    return Page((MAN / name).read_text())


def program_text(program, *argv):
    done = run(need(program), *argv)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode()


def table(program):
    """--options: command -> (operands, [(short, long, metavar)]), without the configuration's keys."""
    commands = {}
    for row in program_text(program, "--options").splitlines():
        command, short, long, metavar, _, _ = row.split("\t")
        if command == "config":
            continue
        operands, options = commands.setdefault(command, ("", []))
        if short or long:
            options.append((short, long, metavar))
        else:
            commands[command] = (metavar, options)
    return commands


def differ(what, got, wanted):
    """Messages on the differences of two lists."""
    got, wanted = collections.Counter(got), collections.Counter(wanted)
    return ([f"{what}: {one} is only in the page" for one in sorted(got - wanted, key=str)]
            + [f"{what}: {one} is missing from the page" for one in sorted(wanted - got, key=str)])


def source_text(*folders):
    """The text of the C files, with adjacent string literals joined."""
    text = "".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.[ch]")))
    return re.sub(r'"\s*(?:BC_VERSION)?\s*"', "", text)


# ---- options


def option_of(head):
    """(short, long, metavar) of the head of an item, or None if it is not an option."""
    found = re.fullmatch(r"(?:-(\w))?(?:, )?(?:--([\w-]+))?(?: ?(\[=\S+\]|\S+))?", head)
    if not head.startswith("-") or not found:
        return None
    short, long, metavar = (part or "" for part in found.groups())
    return short, long, metavar.replace("[=", "[")


def options_in(lines):
    return [option for head, _ in items(lines) if (option := option_of(head))]


def shown(option):
    short, long, metavar = option
    return " ".join(part for part in (short and "-" + short, long and "--" + long, metavar) if part)


def names(options):
    return {flag for short, long, _ in options for flag in (short and "-" + short, long and "--" + long) if flag}


def wrong_options_of_daemon(p, commands):
    wanted = commands["-"][1]
    got = options_in(p.parts["OPTIONS", None])
    problems = differ("buscapd", map(shown, got), map(shown, wanted))
    for section, lines in p.sections.items():
        problems += [f"{section}: buscapd has no {flag}" for flag in flags(lines) - names(wanted)]
    missing = names(wanted) - flags(p.sections["SYNOPSIS"])
    long_of = {"-" + short: "--" + long for short, long, _ in wanted if short and long}
    for short, long in long_of.items():
        if (short in missing) != (long in missing):
            missing -= {short, long}
    return problems + [f"SYNOPSIS: {flag} is missing" for flag in sorted(missing)]


def wrong_options_of_tool(p, commands):
    """Compares the options in each command's section, without the options common to all commands."""
    common = options_in(p.parts["OPTIONS", None])
    own = commands["-"][1]
    of_all = [("h", "help", "")]
    of_asking = [("", "socket", "PATH")]
    problems = differ("buscap", map(shown, common), map(shown, own + of_all + of_asking))
    problems += differ("COMMANDS", p.subsections("COMMANDS"), set(commands) - {"-"})
    everything = {flag for other, (_, more) in commands.items() for flag in names(more) if other != "-"}
    for command, (_, options) in commands.items():
        if command == "-" or ("COMMANDS", command) not in p.parts:
            continue
        lines = p.parts["COMMANDS", command]
        wanted = [option for option in options if option not in of_all + of_asking]
        problems += differ(command, map(shown, options_in(lines)), map(shown, wanted))
        known = names(options) | (everything if ".Cm formats Fl -matrix ." in lines else set())
        problems += [f"{command}: has no {flag}" for flag in flags(lines) - known]
    everything |= names(own)
    for section, lines in p.sections.items():
        problems += [f"{section}: no command has {flag}" for flag in flags(lines) - everything]
    return problems


def test_the_page_of_the_daemon_has_exactly_its_options():
    equal(wrong_options_of_daemon(page("buscapd.8"), table(BUSCAPD)), [])


def test_the_section_of_each_command_has_exactly_its_options():
    equal(wrong_options_of_tool(page("buscap.1"), table(BUSCAP)), [])


# ---- --help of each command


def test_the_usage_of_each_command_is_that_of_its_help():
    p = page("buscap.1")
    for command, (operands, _) in table(BUSCAP).items():
        if command != "-" and operands != "VERB":
            text = program_text(BUSCAP, *command.split(), "--help")
            equal([line_text(line) for line in p.parts["COMMANDS", command] if line.startswith(".D1")],
                  re.findall(r"^(?:usage:|      ) (buscap .*)$", text, re.M), command)


def test_the_option_parsers_accept_the_examples_of_the_commands():
    for _, text in displays(page("buscap.1").sections["COMMANDS"]):
        parse_only(text)


# ---- exit codes


def exit_codes(program):
    """The codes of a program. Those of one program only have its name in their comment."""
    lines = re.findall(r"BC_EXIT_\w+ = (\d),(?: */\* (buscapd?\b)?)?", (ROOT / "formats/base/exit_code.h").read_text())
    return {code for code, only in lines if only in ("", program)}


def wrong_exit_codes(p, program):
    return differ("EXIT STATUS", [head for head, _ in items(p.sections["EXIT STATUS"])], exit_codes(program))


def test_the_pages_have_every_exit_code():
    equal(wrong_exit_codes(page("buscapd.8"), "buscapd"), [])
    equal(wrong_exit_codes(page("buscap.1"), "buscap"), [])


# ---- the configuration


def known_settings():
    return setting_tables.settings(need(BUSCAPD))


def test_the_tables_of_settings_are_those_of_the_program():
    equal(list(setting_tables.outdated(need(BUSCAPD))), [], "outdated; run make docs")


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
            return text if re.search(r"SIGHUP: applied .*\n|keeping the old configuration\n", text) else None

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


# ---- formats


def formats():
    """`buscap formats`: name -> ("rw", options to read, options to write)."""
    found = {}
    for line in program_text(BUSCAP, "formats").splitlines():
        options = re.match(r" +options to (read|write): (.*)", line)
        if options:
            found[name][1 + (options.group(1) == "write")].update(options.group(2).split())
        else:
            way, name = line.split()[:2]
            found[name] = (way, set(), set())
    return found


def format_items(p):
    found = {}
    for part in p.subsections("FORMATS"):
        for head, lines in items(p.parts["FORMATS", part]):
            text = " ".join(map(line_text, lines))
            way = {"Read and": "rw", "Read onl": "r-", "Write on": "-w"}.get(text[:8], text[:8])
            read = re.search(r"Options to read: ([^.]*)\.", text)
            write = re.search(r"Options to write: ([^.]*)\.", text)
            found[head] = (way, set(read.group(1).split(", ")) if read else set(),
                           set(write.group(1).split(", ")) if write else set())
    return found


def wrong_formats(p, wanted):
    def rows(of):
        return [(name, way, *sorted("r:" + one for one in read), *sorted("w:" + one for one in write))
                for name, (way, read, write) in of.items()]

    problems = differ("format", rows(format_items(p)), rows(wanted))
    options = {head.partition("=")[0] + "=" for head, _ in items(p.sections["FORMAT OPTIONS"])}
    return problems + differ("FORMAT OPTIONS", options, {one for row in wanted.values() for one in row[1] | row[2]})


def test_the_page_has_every_format_with_its_options():
    equal(wrong_formats(page("buscap-formats.5"), formats()), [])


# ---- paths, signals, the environment


def sources_of_paths():
    folders = ["daemon", "cli", "systemd", "debian"]
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("**/*")) if path.is_file()]
    return "".join(path.read_text(errors="replace") for path in paths) + (ROOT / "Makefile").read_text()


def paths_of(p):
    """The absolute paths in FILES, up to the first variable part."""
    heads = [line_text(line) for line in p.sections.get("FILES", []) if line.startswith(".It Pa")]
    return {path.split("SERIAL")[0].split("*")[0] for head in heads for path in head.split(", ")}


def wrong_paths(p, text):
    return [f"FILES: nothing here has {path}" for path in sorted(paths_of(p))
            if path.rstrip("/") not in text.replace("@datadir@", "/usr/share").replace("$attr{serial}", "")
            and path.removeprefix("/dev/") not in text]


def test_the_paths_in_the_pages_are_in_the_sources():
    need(ROOT / "systemd/service.common")
    text = sources_of_paths()
    for name in PAGES:
        equal(wrong_paths(page(name), text), [], name)
    together = "".join("\n".join(page(name).lines) for name in PAGES)
    for path in set(re.findall(r'"(/(?:etc|run|var)/[^"%]*)"', source_text("daemon", "cli"))):
        assert path in together, f"no page mentions {path}"


def test_the_page_has_every_unit():
    common = need(ROOT / "systemd/service.common").read_text()
    p = page("buscapd.8")
    units = {path.name.removesuffix(".in") for path in (ROOT / "systemd").glob("buscapd*.[s]*.in")}
    equal(differ("unit", [name for head, _ in items(p.sections["SYSTEMD"]) for name in head.split(", ")], units), [])
    text = p.text("SYSTEMD")
    patterns = {"SuccessExitStatus": r"Exit status (\d) counts as success",
                "RestartPreventExitStatus": r"After (\d and \d) the service is not restarted"}
    for key, pattern in patterns.items():
        wanted = re.search(f"^{key}=(.*)$", common, re.M).group(1)
        equal(re.search(pattern, text).group(1).replace(" and ", " "), wanted, key)
    assert p.text("FILES").count("metrics.conf") == len(list((ROOT / "systemd").glob("metrics.conf.in")))


def signal_sources():
    return (ROOT / "daemon/main/signals.c").read_text()


def wrong_signals(p, text):
    handled = set(re.findall(r"\{(SIG[A-Z]+), ", text))
    handled |= set(re.findall(r"SIG[A-Z0-9]+", text.partition("int ignored[] = ")[2].partition(";")[0]))
    assert len(handled) > 10
    got = {name for head, _ in items(p.sections["SIGNALS"]) for name in head.split(", ")}
    return differ("signal", got - {"SIGKILL"}, handled)


def test_the_page_has_every_signal_that_the_daemon_handles():
    equal(wrong_signals(page("buscapd.8"), signal_sources()), [])


def variables(folder):
    return set(re.findall(r'getenv\("(\w+)"\)', source_text(folder)))


def wrong_variables(p, wanted):
    got = {name for head, _ in items(p.sections["ENVIRONMENT"]) for name in head.split(", ")}
    return differ("variable", got, wanted)


def test_the_pages_have_every_environment_variable():
    equal(wrong_variables(page("buscap.1"), variables("cli") | BY_LIBRARIES["buscap.1"]), [])
    equal(wrong_variables(page("buscapd.8"), variables("daemon") | BY_LIBRARIES["buscapd.8"]), [])


# ---- references


def test_cross_references_exist():
    ours = {tuple(name.rsplit(".", 1)) for name in PAGES}
    for name in PAGES:
        p = page(name)
        for line in p.lines:
            if not line.startswith(".Xr "):
                continue
            _, to, section = line.split()[:3]
            assert (to, section) in ours | OTHERS, f"{name}: {to}({section}) is not a manual"
            assert (to, section) != tuple(name.rsplit(".", 1)), f"{name}: names itself"
        seen = [line.split()[2] + line.split()[1] for line in p.sections["SEE ALSO"] if line.startswith(".Xr ")]
        equal(seen, sorted(seen), f"{name}: the order of SEE ALSO")
        for document in re.findall(r"^\.Pa (\S+\.md)", "\n".join(p.lines), re.M):
            assert (ROOT / "docs" / document).exists(), f"{name}: docs/{document} does not exist"
        titles = set(p.sections) | {part for _, part in p.parts}
        for title in re.findall(r"^\.Sx (.*?)(?: [.,;:])?$", "\n".join(p.lines), re.M):
            assert title in titles, f"{name}: there is no section {title}"


# ---- formatting


def test_mandoc_reports_no_error():
    need("mandoc")
    for name in PAGES:
        done = run("mandoc", "-T", "lint", MAN / name)
        # References to manuals that are not installed here are fine.
        faults = [line for line in done.stdout.decode().splitlines()
                  if "referenced manual not found" not in line and "outdated mandoc.db" not in line]
        equal(faults, [], name)


def test_groff_reports_no_error():
    need("groff")
    for name in PAGES:
        done = run("groff", "-mandoc", "-ww", "-Tutf8", "-Kutf8", "-z", "-rLL=78n", MAN / name)
        equal((done.returncode, done.stderr.decode()), (0, ""), name)


def test_no_line_is_longer_than_a_terminal():
    need("mandoc")
    for name in PAGES:
        text = run("mandoc", "-T", "utf8", "-O", "width=80", MAN / name).stdout.decode()
        long = [line for line in re.sub(".\b", "", text).splitlines() if len(line) > 80]
        equal(long, [], name)


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


def check_examples(name, directory):
    script, count = "", 0
    for comment, text in displays(page(name).sections["EXAMPLES"]):
        kind, _, _ = comment.partition(":")
        assert kind in ("run", "parse", "conf"), f"{name}: the comment must start with run, parse or conf: {text}"
        count += 1
        if kind == "run":
            script += text
        elif kind == "parse":
            parse_only(text)
        else:
            (directory / "conf").write_text(text)
            done = run(need(BUSCAPD), "-c", directory / "conf", "--check-config")
            equal(done.returncode, 0, f"{text}{done.stderr.decode()}")
    assert count
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
