"""What the Python tests share: programs, the daemon, and faults below it."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from http.client import HTTPConnection, HTTPException

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
BUSCAPD = BUILD / "buscapd"
BUSCAP = BUILD / "buscap"
# Sanitizers slow a program down, and so may a machine that has other things to do; none of the time-outs is a
# measurement: they only end a test that would never end.
TIMEOUT_S = 360 if BUILD.parent.name == "build" else 180


# Whether long sweeps visit every case.
LONG = bool(os.environ.get("BUSCAP_LONG"))


def some(cases, n):
    """Every n-th of the cases; with BUSCAP_LONG all."""
    return list(cases)[:: 1 if LONG else n]


def in_turn(cases, number):
    """One of the cases, by turns; with BUSCAP_LONG all."""
    return cases if LONG else [cases[number % len(cases)]]


# Every program that a test starts, and what that program starts in turn, has this in its environment.
MARK = "BUSCAP_TEST_PROCESS"

# Waits until its standard input ends, which is when the test process has ended, however that came about, and kills all
# processes that still have the mark: hooks and servers that have left their parent too.
GUARD = r"""
import os, signal, sys
mark = sys.argv[1].encode()
sys.stdin.buffer.read()
found = True
while found:
    found = False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if mark in environ.read().split(b"\0"):
                    os.kill(int(pid), signal.SIGKILL)
                    found = True
        except OSError:
            pass
"""


def _start_guard():
    os.environ[MARK] = f"{os.getpid()}-{time.time_ns()}"
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GUARD, f"{MARK}={os.environ[MARK]}"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", env={}, start_new_session=True)


_guard = _start_guard()


def popen(argv, env=None, **options):
    """subprocess.Popen of a program that ends with the test process."""
    if env is not None:
        env = {**env, MARK: os.environ[MARK]}
    return subprocess.Popen([str(a) for a in argv], env=env, **options)


def need(path):
    """Skips the running test if a file or program is not there. Returns the path."""
    __tracebackhide__ = True
    if not pathlib.Path(path).exists():
        pytest.skip(f"{os.path.relpath(path, ROOT)} is not there")
    return path


def note(text):
    """Prints a line that the summary of the run repeats, also if the test passes."""
    print(f"  | {text}", flush=True)


def equal(got, wanted, what=""):
    """Fails with both values, the first difference for bytes and lists."""
    if got == wanted:
        return
    where = ""
    if isinstance(got, (bytes, list)) and isinstance(wanted, type(got)):
        n = min(len(got), len(wanted))
        at = next((i for i in range(n) if got[i] != wanted[i]), n)
        where = f" first at {at} (lengths {len(got)} and {len(wanted)}):"
        got, wanted = got[max(at - 2, 0) : at + 10], wanted[max(at - 2, 0) : at + 10]
    raise AssertionError(f"{what}:{where} got {got!r}, wanted {wanted!r}")


def run(*argv, data=None, timeout=TIMEOUT_S, **options):
    """Runs a program to its end: a CompletedProcess with stdout and stderr in bytes. Past the time-out it is
    killed and the test fails."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    if data is not None:
        options["stdin"] = subprocess.PIPE
    with popen(argv, **options) as process:
        try:
            out, err = process.communicate(data, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if argv[0] == BUSCAPD and err is not None:
        check_sound(done.stderr)
    return done


def lz4_dc(paths):
    """What `cat PATHS | lz4 -dc` gives."""
    packed = b"".join(pathlib.Path(path).read_bytes() for path in paths)
    if not packed:
        return b""
    done = run("lz4", "-dc", data=packed)
    equal(done.returncode, 0, f"lz4 -dc: {done.stderr.decode()}")
    return done.stdout


def segments(directory, suffix=".byu.lz4", prefix=""):
    """The segment files of a directory, in order."""
    return sorted(pathlib.Path(directory).glob(f"{prefix}*{suffix}"))


@contextlib.contextmanager
def being(user, group, extra_groups):
    """Root is somebody else within the block, as far as the kernel tells the other end of a socket."""
    own = os.getegid(), os.getgroups()
    os.setgroups(extra_groups)
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own[0])
        os.setgroups(own[1])


class Connection(HTTPConnection):
    """HTTP over a Unix socket; `who` are the arguments of being()."""

    def __init__(self, path, timeout, who=None):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)
        self.who = who

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        with being(**self.who) if self.who else contextlib.nullcontext():
            self.sock.connect(self.path)


def exchange(socket_path, method, path, body=None, headers=None, timeout=TIMEOUT_S, who=None):
    """Sends a request. Returns (status, headers, body in bytes); the names of headers are in lower case."""
    connection = Connection(socket_path, timeout, who)
    try:
        try:
            connection.request(method, path, body, headers or {})
        except (BrokenPipeError, ConnectionResetError):
            pass  # it is refused before the whole body has come; the answer is there
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def http(socket_path, path, method="GET", body=None):
    """A request over the Unix socket. Returns (status, body in bytes)."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        code, _, text = exchange(socket_path, method, path, body, headers)
    except (OSError, HTTPException) as why:
        raise AssertionError(f"{method} {path}: {why!r}") from why
    return code, text


def status(socket_path):
    """GET /v1/status as an object."""
    code, body = http(socket_path, "/v1/status")
    equal(code, 200, body.decode(errors="replace"))
    return json.loads(body)


def wait_until(condition, what, timeout=TIMEOUT_S):
    """Waits until condition() is true, and returns what it gave."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.02)


class Daemon:
    """A program that runs until it is told to stop; buscapd unless said otherwise.

    with Daemon("-o", directory, "--source", "sim", socket=path) as daemon:
        daemon.wait_ready()
        ...
        code = daemon.stop()

    It is ended by its own process id, whatever happens: SIGTERM in stop(), SIGKILL when that does not help or
    the block is left early. `out` and `err` are its standard output and error after stop()."""

    def __init__(self, *argv, program=BUSCAPD, socket=None, env=None, stdin=subprocess.DEVNULL):
        self.argv = [str(program), *map(str, argv)]
        if socket is not None:
            self.argv += ["--socket", str(socket)]
        self.socket = socket
        self.env = {**os.environ, **(env or {})}
        self.stdin = stdin
        self.process = None
        self.out = self.err = b""

    def __enter__(self):
        # To files: a pipe that nobody reads would hold the daemon up.
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        self.process = popen(
            self.argv, stdin=self.stdin, stdout=self._out, stderr=self._err, env=self.env)
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._collect()
        self._out.close()
        self._err.close()
        if exception[0] is not None and exception[0] is not pytest.skip.Exception:
            print(f"{' '.join(self.argv)}: exit {self.process.returncode}\n{self.err.decode(errors='replace')}")
        elif exception[0] is None:
            check_sound(self.err)

    def _collect(self):
        # The place in the file is the program's own, too: it stays where it is.
        for name in ("out", "err"):
            fd = getattr(self, "_" + name).fileno()
            setattr(self, name, os.pread(fd, os.fstat(fd).st_size, 0))

    def wait(self, timeout=TIMEOUT_S):
        """Waits for its end. Returns the exit code."""
        code = self.process.wait(timeout)
        self._collect()
        return code

    def stop(self, signal_number=signal.SIGTERM, timeout=TIMEOUT_S):
        """Sends the signal and waits. Returns the exit code."""
        self.process.send_signal(signal_number)
        return self.wait(timeout)

    def status(self):
        return status(self.socket)

    def log_so_far(self):
        """What it has said on standard error so far."""
        self._collect()
        return self.err.decode()

    def wait_ready(self):
        """Waits until the socket answers, and returns the status."""

        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with exit code {self.process.returncode}")
            try:
                return self.status()
            except AssertionError:
                return None

        return wait_until(answers, "the daemon's socket answers")


# ---- what the tests of the daemon share


def ask(socket_path, request=b"GET /v1/status HTTP/1.0\r\n\r\n", timeout=TIMEOUT_S):
    """Sends bytes to the socket and gives everything that comes back."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(str(socket_path))
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def check_counts(status_object):
    """The identity that holds at every moment. Returns the counts."""
    counts = status_object["counts"]
    equal(counts["received"], counts["written"] + counts["in_flight"] + sum(counts["dropped"].values()),
          f"the identity of the counts; {counts}")
    assert counts["durable"] <= counts["written"], counts
    return counts


class Watch:
    """Samples the status of a daemon in a thread, 20 times a second where the machine gets to it, until left. Each
    sample must come and its counts must add up; with may_end none comes when the daemon has ended. `last` is the
    latest that came; there is one from the start."""

    def __init__(self, socket_path, period=0.05, may_end=False):
        self.socket = socket_path
        self.period = period
        self.may_end = may_end
        self.samples = 0
        self.slowest = 0.0
        self.last = None
        self._problem = None
        self._has_begun = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            self._sample_until_the_end()
        finally:
            self._has_begun.set()

    def _sample_until_the_end(self):
        while not self._end.wait(self.period):
            start = time.monotonic()
            try:
                answer = ask(self.socket)
                if self.may_end and not answer or answer.startswith(b"HTTP/1.1 503 "):
                    return
                sample = json.loads(answer.partition(b"\r\n\r\n")[2])
                check_counts(sample)
            except OSError as why:
                if not self._end.is_set() and not self.may_end:
                    self._problem = self._problem or AssertionError(f"no status: {why}")
                return
            except (AssertionError, ValueError) as why:
                self._problem = self._problem or why
                return
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.last = sample
            self.samples += 1
            self._has_begun.set()

    def __enter__(self):
        self._thread.start()
        self._has_begun.wait()
        return self

    def wait_samples(self, more):
        """Waits until the status was answered so many times more."""
        wanted = self.samples + more
        wait_until(lambda: self.samples >= wanted or self._problem, f"{more} more samples of the status")

    def finish(self):
        """No more samples: the daemon is about to end."""
        self._end.set()
        self._thread.join()

    def __exit__(self, *exception):
        self.finish()
        if exception[0] is None and self._problem is not None:
            raise self._problem


class Faults:
    """Puts faults under a daemon's file calls in a directory: see tests/support/faultfs.c. `env` is for the Daemon, set()
    changes the rules while it runs, calls() tells what was called: (kind, number, what was done, file name)."""

    def __init__(self, aside, watched, rules=""):
        self._control = pathlib.Path(aside, "faults")
        self._log = pathlib.Path(aside, "calls")
        self.set(rules)
        preload = need(BUILD / "tests/faultfs.so")
        self.env = {
            "LD_PRELOAD": str(preload), "FAULTFS_DIR": os.path.realpath(watched),
            "FAULTFS_CONTROL": str(self._control), "FAULTFS_LOG": str(self._log),
            # The library comes before the sanitizer's, which minds unless told.
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }

    def set(self, rules):
        whole = self._control.with_suffix(".new")
        whole.write_text(rules)
        whole.rename(self._control)

    def calls(self):
        if not self._log.exists():
            return []
        lines = (line.split(" ", 3) for line in self._log.read_text().splitlines())
        return [(kind, int(number), done, pathlib.Path(path).name) for kind, number, done, path in lines]


class SmallDisk:
    """A file system of a few MiB below a directory. Skips the test where mounting is not allowed."""

    def __init__(self, directory, size):
        self.path = directory / "disk"
        self.size = size

    def __enter__(self):
        self.path.mkdir()
        done = run("mount", "-t", "tmpfs", "-o", f"size={self.size}", "tmpfs", self.path)
        if done.returncode != 0:
            pytest.skip(f"a tmpfs can't be mounted: {done.stderr.decode().strip()}")
        return self.path

    def __exit__(self, *exception):
        run("umount", self.path)


def each(function, jobs, workers=6):
    """Runs function(directory, *job) for each job, some at a time: they wait for the daemon's timers mostly."""

    def one(job):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="buscap-job-"))
        try:
            function(directory, *job)
        except pytest.skip.Exception as why:
            note(f"{job} is left out: {why}")
        except Exception:
            return f"{job}: {traceback.format_exc(limit=-2)}"
        finally:
            shutil.rmtree(directory)

    assert jobs
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        failed = [problem for problem in pool.map(one, jobs) if problem]
    assert not failed, f"{len(failed)} of {len(jobs)}:\n" + "\n".join(failed[:20])


def is_sanitized():
    """Whether the programs are built with sanitizers, which take memory and time of their own."""
    return BUILD.name in ("address-undefined", "address", "undefined", "thread")


def rate(samples_a_second):
    """A rate that a program with sanitizers keeps up with, too, where it is to lose nothing."""
    return samples_a_second // {"thread": 10}.get(BUILD.name, 4) if is_sanitized() else samples_a_second


def info(paths):
    """What `buscap info --json` says of each segment."""
    if not paths:
        return []
    done = run(BUSCAP, "info", "--json", *paths)
    assert done.returncode in (0, 3), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def verify(paths):
    """Every checksum of these segments holds, and they are sealed."""
    if not paths:
        return
    done = run(BUSCAP, "verify", *paths)
    equal(done.returncode, 0, f"buscap verify: {done.stdout.decode()}{done.stderr.decode()}")


def sim_records(count, seed=1, **settings):
    """The records of a simulated bus, as buscapd --source sim:count=N,seed=N should write them."""
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    done = run(BUSCAP, "sim", "-s", seed, "-n", count, "-O", "byu", *options)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


@contextlib.contextmanager
def output_of(*argv):
    """The standard output of a program, as a file. The program is killed at the end of the block."""
    with popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            yield process.stdout
        finally:
            process.kill()


class SimStream:
    """The records of a simulated bus one after the other, as many as are read: for outputs too long for memory."""

    def __init__(self, seed=1):
        self._program = output_of(BUSCAP, "sim", "-s", seed, "-n", 1 << 40, "-O", "byu")

    def __enter__(self):
        self._out = self._program.__enter__()
        return self

    def __exit__(self, *exception):
        self._program.__exit__(*exception)

    def read(self, records):
        """The next so many records, in bytes."""
        data = self._out.read(12 * records)
        equal(len(data), 12 * records, "bytes of the simulator")
        return data

    def skip(self, records):
        """Reads over records. Returns the sum of their delta times."""
        ticks = 0
        while records != 0:
            n = min(records, PIECE)
            ticks += sum(memoryview(self.read(n)).cast("I")[2::3])
            records -= n
        return ticks


PIECE = 100_000  # records


def compare_with_sim(paths, first=0, seed=1):
    """The records of these segments are those of the simulator from number `first` on. Returns how many there are."""
    records = 0
    with SimStream(seed) as expected:
        expected.skip(first)
        for path in paths:
            with output_of("lz4", "-dc", path) as recorded:
                while got := recorded.read(12 * PIECE):
                    equal(len(got) % 12, 0, f"{path}: odd bytes")
                    assert got == expected.read(len(got) // 12), f"{path}: not the source's records"
                    records += len(got) // 12
    return records


def check_sound(err):
    """What must stand in no daemon's log: its own mistakes, and what sanitizers say."""
    text = err.decode(errors="replace")
    for words in ("handles left open", "Assertion", "Sanitizer", "runtime error:"):
        assert words not in text, text[:20000]
    return text
