"""pytest plugin: a failed test runs once more, alone, after the others.

If it then passes, it is reported as FLAKY and does not fail the run; both outputs are in BUILD/tests/flaky.txt. Under
`make ci`, a test that was flaky before in the same week fails: the names are in ~/.cache/buscapd/flaky-YEAR-Wnn.txt.

What may be a rare defect of the product is never repeated: a sanitizer's report, a crash, a failed assert() of C, wrong
records."""

import datetime
import fcntl
import os
import pathlib
import re
import subprocess
import sys

import pytest

import harness

MOST = 10  # more failures than this are not by chance
IS_REPEAT = "BUSCAP_REPEAT"
NEVER = re.compile(
    r"CRASHED:|Sanitizer|runtime error:|Assertion `|Assertion failed|handles left open|\bCorrupt\b|"
    r"Test failed with exception|\bSIG(SEGV|ABRT|BUS|FPE|ILL)\b")


def ledger():
    year, week, _ = datetime.date.today().isocalendar()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "buscapd" / f"flaky-{year}-W{week:02}.txt"


def was_flaky_before(name):
    """Adds the name to this week's. Returns whether it was there."""
    path = ledger()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as names:
        fcntl.flock(names, fcntl.LOCK_EX)
        names.seek(0)
        is_known = name in names.read().splitlines()
        names.write(name + "\n")
    return is_known


def text_of(report):
    return f"{report.longreprtext}\n{report.caplog}\n{report.capstdout}\n{report.capstderr}"


def may_be_a_defect(report):
    """Searches the errors and the output, but not the source lines of a traceback."""
    errors = [line for line in report.longreprtext.splitlines() if not line.startswith((" ", ">"))]
    return NEVER.search("\n".join((*errors, report.capstdout, report.capstderr)))


class Flaky:
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if hasattr(session.config, "workerinput") or os.environ.get(IS_REPEAT) or reporter is None:
            return
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        reports = [report for kind in ("failed", "error") for report in reporter.stats.get(kind, [])
                   if hasattr(report, "nodeid")]
        names = {report.nodeid for report in reports}
        if not names or len(names) > MOST or session.shouldstop or session.shouldfail:
            return
        never = {report.nodeid for report in reports if may_be_a_defect(report)}
        passed = {name for name in sorted(names - never) if self.passes_alone(
            reporter, name, "\n".join(text_of(report) for report in reports if report.nodeid == name))}
        for kind in ("failed", "error"):
            left = [report for report in reporter.stats.pop(kind, []) if getattr(report, "nodeid", None) not in passed]
            if left:
                reporter.stats[kind] = left
        if passed:
            reporter.stats["flaky"] = [report for report in reports if report.nodeid in passed]
        if passed == names:
            session.exitstatus = pytest.ExitCode.OK

    def passes_alone(self, reporter, name, first):
        reporter.write_line("")
        reporter.write_line(f"{name} failed; once more, alone")
        again = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "0", re.sub(r"@\w+$", "", name)],  # without the group
            env={**os.environ, IS_REPEAT: "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if again.returncode != 0:
            return False
        with open(harness.BUILD / "tests" / "flaky.txt", "a") as out:
            out.write(f"==== {name}\n---- failed\n{first}\n---- passed alone\n{again.stdout}\n")
        if harness.LEVEL == "ci" and was_flaky_before(name):
            reporter.write_line(f"FLAKY {name}: passed alone, but was flaky before this week ({ledger()})")
            return False
        reporter.write_line(f"FLAKY {name}: passed alone; both outputs are in {harness.BUILD}/tests/flaky.txt")
        return True
