"""pytest plugin: the CPU time of each test and its children, which repeats where wall time does not.

A test has a budget: 1 s for a system test, 4 s for one in a browser, 3 s for a C program. Budgets are in seconds of a
reference machine; a fixed recording at the start of a run tells how much faster this one is. Each run prints the sum and
the most expensive tests. Only `make ci` fails a test, at three times its budget: what needs more is marked
"nightly", or has a smaller default form."""

import os
import pathlib
import resource
import subprocess
import tempfile

import pytest

import harness

BUDGET_S = {"system": 1, "program": 3, "browser": 4}
SANITIZED_PROGRAM_S = 5  # system tests have no budget with sanitizers
EXCESS = 3
MOST_EXPENSIVE = 10
MEAN_S = 0.4  # of the tests of `make test`, with the time in which a core waits, to tell how long they take
REFERENCE_S = 0.56  # on the reference machine
REFERENCE_SAMPLES = 4_000_000
SCALE = "BUSCAP_CPU_SCALE"  # in the environment of the processes that run the tests


def cpu_seconds(*who):
    used = [resource.getrusage(one) for one in who or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def reference_seconds():
    """Returns the CPU time of a fixed recording, the best of three. 0 if it fails."""

    def once():
        before = cpu_seconds(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as directory:
            sim = harness.popen([harness.BUSCAP, "sim", "-n", REFERENCE_SAMPLES, "-O", "bcp1"], stdout=subprocess.PIPE)
            recorded = harness.run(harness.BUSCAPD, "--once", "--source", "file:-", "-o", directory, stdin=sim.stdout)
            sim.stdout.close()
            is_ok = sim.wait() == 0 and recorded.returncode == 0
        return cpu_seconds(resource.RUSAGE_CHILDREN) - before if is_ok else 0

    try:
        return min(once() for _ in range(3))
    except OSError:
        return 0


def running_seconds(pid):
    """Returns the CPU time of the descendants that still run, for example of a browser that several tests share."""
    total = 0
    try:
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                fields = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + running_seconds(child)
    except OSError:
        pass  # one has ended
    return total


class CpuBudget:
    def __init__(self, config):
        self.is_worker = hasattr(config, "workerinput")
        self.rows = []
        if SCALE not in os.environ and not harness.is_sanitized() and not config.option.collectonly:
            own = reference_seconds()
            os.environ[SCALE] = str(REFERENCE_S / own if own else 1)
        self.scale = float(os.environ.get(SCALE, 1))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if node.gateway.id == "gw0":
            seconds = len(ids) * MEAN_S / self.scale / harness.CORES
            text = f"{round(seconds / 60)} minutes" if seconds > 90 else "a minute" if seconds > 30 else "half a minute"
            node.config.pluginmanager.get_plugin("terminalreporter").write_line(
                f"{len(ids):,} tests, about {text} on this machine" if ids else "no test has this name")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.before = cpu_seconds() + running_seconds(os.getpid())
        yield

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when != "teardown":
            return
        # Less than before if a browser has ended, whose processes are not our children.
        used = self.scale * max(0, cpu_seconds() + running_seconds(os.getpid()) - self.before)
        kind = "browser" if item.get_closest_marker("browser") else "system" if item.path.suffix == ".py" else "program"
        is_sanitized = harness.is_sanitized()
        budget = SANITIZED_PROGRAM_S if is_sanitized and kind == "program" else BUDGET_S[kind]
        report.user_properties.append(("cpu", (used, budget)))
        is_judged = harness.LEVEL == "ci" and (kind == "program" or not is_sanitized)
        if is_judged and used > EXCESS * budget and report.passed:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} used {used:.1f} s of CPU time; its budget is {budget} s, see CONTRIBUTING.md"

    def pytest_runtest_logreport(self, report):
        if not self.is_worker:
            self.rows += [(*value, report.nodeid) for name, value in report.user_properties if name == "cpu"]

    def pytest_terminal_summary(self, terminalreporter):
        if not self.rows:
            return
        self.rows.sort(reverse=True)
        total = sum(used for used, _, _ in self.rows)
        terminalreporter.write_line(
            f"CPU time of the tests: {total / self.scale:.0f} s, {total:.0f} s on the reference machine; the most expensive:")
        for used, _, name in self.rows[:MOST_EXPENSIVE]:
            terminalreporter.write_line(f"  {used:6.2f} s  {name}")
        if len(self.rows) == 1:
            return
        path = harness.BUILD / "tests" / "cpu.tsv"
        path.write_text("".join(f"{used:.3f}\t{budget}\t{name}\n" for used, budget, name in self.rows))
