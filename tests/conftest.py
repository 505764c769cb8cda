"""pytest configuration: temporary directory, levels, time limits, C test programs."""

import contextlib
import ctypes
import faulthandler
import gc
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest
from xdist.scheduler import LoadGroupScheduling

import harness
from cpu_budget import CpuBudget
from flaky import Flaky

# A shell without job control, or nohup, starts the tests with these ignored, and programs would inherit that.
for number in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# A test that exceeds this limit fails with a traceback. If it still does not end, a minute later its process exits with
# the stacks of all threads, and xdist starts another process.
LIMIT_S = (4 if harness.NIGHTLY else 2) * harness.TIMEOUT_S

MEMORY_KEPT = 100 << 20
memory_kept = MEMORY_KEPT


@pytest.fixture
def tmp():
    """A new directory with a short path, because the path of a Unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        yield pathlib.Path(directory)


# ---- selection and order of tests


def is_worker(config):
    return hasattr(config, "workerinput")


def pytest_configure(config):
    os.chdir(harness.ROOT)
    config.real_stderr = os.dup(2)  # not captured yet
    if not is_worker(config):
        # All temporary files of a run are in one directory, so that those of killed processes are removed too.
        config.directory = tempfile.TemporaryDirectory(prefix="buscap-", ignore_cleanup_errors=True)
        os.chmod(config.directory.name, 0o711)
        os.environ["TMPDIR"] = tempfile.tempdir = config.directory.name
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
        # A shell ignores it in background jobs, and programs inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for plugin in (CpuBudget(config), Flaky()):
        config.pluginmanager.register(plugin)


def pytest_unconfigure(config):
    if not is_worker(config):
        config.directory.cleanup()


def is_of_level(item):
    """Returns whether the test belongs to this level: "nightly" tests only to that, "ci" tests not to "test"."""
    if any("::" in argument for argument in item.config.args):
        return True  # asked for by name
    if item.get_closest_marker("nightly"):
        return harness.LEVEL == "nightly"
    return harness.LEVEL != "test" or not item.get_closest_marker("ci")


def pytest_collection_modifyitems(config, items):
    config.hook.pytest_deselected(items=[item for item in items if not is_of_level(item)])
    items[:] = filter(is_of_level, items)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip("needs root"))
    # C programs mostly compute, Python tests mostly wait: spread the programs over the first half of the run.
    order = {}
    for is_program in (True, False):
        group = [item for item in items if isinstance(item, ProgramTest) == is_program]
        order |= {item: n / len(group) / (1 + is_program) for n, item in enumerate(group)}
    items.sort(key=order.get)


def memory_mb():
    """Returns how much memory this process and its children may use."""
    free = re.search(r"^MemAvailable: *([0-9]+)", pathlib.Path("/proc/meminfo").read_text(), re.M)
    sizes = [int(free[1]) >> 10]
    group = pathlib.Path("/sys/fs/cgroup", pathlib.Path("/proc/self/cgroup").read_text().split("::/")[-1].strip())
    for limit in (one / "memory.max" for one in (group, *group.parents)):
        if limit.exists() and (text := limit.read_text().strip()) != "max":
            sizes.append(int(text) >> 20)
    return min(sizes)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Tests mostly wait: six more at a time than there are cores; fewer with sanitizers, where they compute more. Each may
    take 200 MB."""
    more = {"thread": 1}.get(harness.BUILD.name, 4 if harness.is_sanitized() else 6)
    return max(1, min(harness.CORES + more, memory_mb() // 200))


class OneAhead(LoadGroupScheduling):
    """Queues only one test per process, so that no test waits for a long one while another process is idle."""

    def _reschedule(self, node):
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return OneAhead(config, log) if config.getoption("dist") == "loadgroup" else None


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def return_memory():
    """Gives freed memory back to the system: after a test of large files, an allocator may keep hundreds of megabytes, in
    each process that runs tests. What cannot be given back is not tried again until a tenth more is in use."""
    global memory_kept
    if resident_bytes() > memory_kept:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        memory_kept = max(MEMORY_KEPT, resident_bytes() * 11 // 10)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    limit = item.get_closest_marker("timeout").args[0] + 60
    faulthandler.dump_traceback_later(limit, exit=True, file=item.config.real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
    return_memory()


# ---- C programs


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.name.startswith("test_") and file_path.parent.name != "support":
        return Program.from_parent(parent, path=file_path)
    return None


class Program(pytest.File):
    def collect(self):
        item = ProgramTest.from_parent(self, name=self.path.stem)
        if re.search(r"^TEST_THREADS;", self.path.read_text(), re.M):
            item.add_marker("threads")
        yield item


class ProgramTest(pytest.Item):
    """All tests of a cmocka program."""

    def runtest(self):
        path = harness.BUILD / self.path.relative_to(harness.ROOT).with_suffix("")
        if not path.exists():
            pytest.fail(f"{path} does not exist; build it with make check", pytrace=False)
        with tempfile.TemporaryFile() as out:
            program = subprocess.Popen(
                [path], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = program.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
                program.wait()
                out.seek(0)
                text = out.read().decode(errors="replace")
                print(text)
        self.user_properties.append(("c_tests", len(re.findall(r"^\[       OK \]", text, re.M))))
        for name in sorted(set(re.findall(r"^\[ *SKIPPED *\] (\w+)$", text, re.M | re.I))):
            harness.note(f"{name} skipped")
        if code != 0:
            pytest.fail(f"exit code {code}" if code > 0 else signal.Signals(-code).name, pytrace=False)

    def repr_failure(self, excinfo):
        return excinfo.exconly()

    def reportinfo(self):
        return self.path, 0, self.name


# ---- the summary


def pytest_terminal_summary(terminalreporter):
    """Prints the lines of harness.note(), which are for developers, and the number of C tests that passed."""
    programs = tests = 0
    for report in sum(terminalreporter.stats.values(), []):
        if getattr(report, "when", None) != "call":
            continue
        for line in report.capstdout.splitlines():
            if line.startswith("  | ") and harness.LEVEL != "test":
                terminalreporter.write_line(f"{pathlib.Path(report.nodeid.partition('::')[0]).stem}{line[1:]}")
        for name, value in report.user_properties:
            if name == "c_tests":
                programs += 1
                tests += value
    if programs:
        terminalreporter.write_line(f"{tests} C tests passed; each C program counts as one test below")
