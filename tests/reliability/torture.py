"""What the torture programs share: options, cases run side by side, violations, and the printed figures.

A program is a file NAME.py in this directory:

    def one_case(directory, seed): ...      # raises AssertionError if a promise is broken
    def run(options):
        results = options.each(one_case, [(seed,) for seed in range(options.rounds)])
        return {"kills": len(results)}

    if __name__ == "__main__":
        torture.main(run, short=30, long=1000)

It prints lines `NAME: figure = value` and exits with 1 if any promise was broken. The same seed repeats the same cases.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/system")]

import pytest  # noqa: E402


class Options:
    """Given to run(). rounds: what one round is, the program says. directory: temporary, with a short path."""

    def __init__(self, name, arguments, directory):
        self.name = name
        self.seed = arguments.seed
        self.rounds = arguments.rounds
        self.is_long = arguments.long
        self.jobs = arguments.jobs
        self.directory = directory
        self.violations = 0
        self._most_printed = arguments.print
        self.left_out = 0
        self._end = time.monotonic() + arguments.seconds if arguments.seconds else None
        self._lock = threading.Lock()

    def rng(self, *what):
        """Returns a generator of random numbers that depends only on the seed and on `what`."""
        return random.Random("/".join(map(str, (self.seed, *what))))

    def say(self, text):
        with self._lock:
            print(f"{self.name}: {text}", flush=True)

    def violation(self, text):
        """Reports a broken promise. The program goes on with the next case."""
        with self._lock:
            self.violations += 1
            number = self.violations
        if number <= self._most_printed:
            self.say(f"VIOLATION: {text}")

    @property
    def is_over(self):
        """Whether the time given with --seconds has passed, or the program was interrupted."""
        return self._end is not None and time.monotonic() > self._end

    @contextlib.contextmanager
    def attempt(self, label):
        """Reports an exception in the block as a violation, with this label."""
        try:
            yield
        except pytest.skip.Exception:
            raise
        except Exception:
            self.violation(f"{label}: {traceback.format_exc(limit=-3)}")

    def each(self, function, cases, per_job=1):
        """Calls function(directory, *case) for each case, per_job x --jobs at a time (more than one if they mostly wait),
        each with an empty directory. Exceptions are violations. Returns the results of the cases that returned one."""

        def one(case):
            if self.is_over:
                with self._lock:
                    self.left_out += 1
                return None
            directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
            try:
                with self.attempt(f"case {case}"):
                    return function(directory, *case)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
            return None

        with concurrent.futures.ThreadPoolExecutor(per_job * self.jobs) as pool:
            try:
                return [result for result in pool.map(one, cases) if result is not None]
            except BaseException:
                self._end = 0  # the running cases end soon
                pool.shutdown(cancel_futures=True)
                raise


def _text(value):
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main(run, short, long):
    """Runs a program's run(options) and exits. short, long: the number of rounds of both forms."""
    program = sys.modules["__main__"]
    name = pathlib.Path(program.__file__).stem
    parser = argparse.ArgumentParser(prog=name, description=program.__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", default=bool(os.environ.get("LONG")),
                        help=f"the long form: {long:,} rounds instead of {short:,}; also LONG=1")
    parser.add_argument("--rounds", type=int, help="the number of rounds; also ROUNDS=N")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or 1), help="repeats a run; also SEED=N")
    parser.add_argument("--seconds", type=float, help="starts no case after this time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases at a time")
    parser.add_argument("--print", type=int, default=20, help="the number of violations to print")
    arguments = parser.parse_args()
    if arguments.rounds is None:
        arguments.rounds = int(os.environ.get("ROUNDS") or (long if arguments.long else short))
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    os.chdir(ROOT)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="buscap-", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o711)
        tempfile.tempdir = os.environ["TMPDIR"] = directory
        options = Options(name, arguments, pathlib.Path(directory))
        try:
            figures = run(options)
        except pytest.skip.Exception as why:
            print(f"{name}: skipped: {why}", flush=True)
            sys.exit(0)
        except KeyboardInterrupt:
            print(f"{name}: interrupted", flush=True)
            sys.exit(130)
        except (AssertionError, OSError, subprocess.SubprocessError):
            options.violation(traceback.format_exc(limit=-4))
            figures = {}
    figures = {**figures, "violations": options.violations}
    if options.left_out:
        figures["cases left out for lack of time"] = options.left_out
    figures["seed"] = arguments.seed
    figures["CPU time (s)"] = round(_cpu_seconds())
    figures["time (s)"] = round(time.monotonic() - start)
    for figure, value in figures.items():
        options.say(f"{figure} = {_text(value)}")
    sys.exit(1 if options.violations else 0)
