"""Support for all Python tests: running programs and the daemon, and injecting faults."""

import collections
import concurrent.futures
import contextlib
import fcntl
import importlib
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
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
_STATIC = BUILD / "tests/buscap"  # the same, starts faster: mk/tests.mk
if _STATIC.exists() and _STATIC.stat().st_mtime_ns >= BUSCAP.stat().st_mtime_ns:
    BUSCAP = _STATIC
# Generous, because sanitizers and a busy machine slow programs down. Timeouts only end hanging tests; they measure
# nothing.
TIMEOUT_S = 360 if BUILD.parent.name == "build" else 180


CORES = len(os.sched_getaffinity(0))


def is_sanitized():
    """Returns whether the programs are built with sanitizers, which need more memory and time."""
    return BUILD.name in ("address-undefined", "address", "undefined", "thread")


# How much is tested: "test" (by every newcomer), "ci" (for every change) or "nightly" (everything). At night, sanitizers
# see all tests, but not every case of a sweep.
LEVEL = os.environ.get("BUSCAP_LEVEL", "test")
NIGHTLY = LEVEL == "nightly" and not is_sanitized()


def some(cases, n):
    """Returns every n-th case, or all at night."""
    return list(cases)[:: 1 if NIGHTLY else n]


# In the environment of every program that a test starts, and of its descendants.
MARK = "BUSCAP_TEST_PROCESS"

# Waits until its standard input ends, which happens when the test process ends for any reason. Then kills all processes
# that have the mark, including hooks and servers that have detached from their parent.
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


_commands = collections.Counter()  # that each test has started


def _looks_for_leaks(argv):
    """Returns whether this program should, with AddressSanitizer. That takes longer than most commands do, so only one
    in five of a test's commands does, beginning with the first; the daemon always does, and all do at night. A traced
    program can't."""
    if argv[0] == "strace":
        return False
    if argv[0] != BUSCAP or LEVEL == "nightly":
        return True
    test = os.environ.get("PYTEST_CURRENT_TEST")
    _commands[test] += 1
    return _commands[test] % 5 == 1


def popen(argv, env=None, **options):
    """Like subprocess.Popen, but the program is killed when the test process ends."""
    env = {**(os.environ if env is None else env), MARK: os.environ[MARK]}
    if not _looks_for_leaks(argv):
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return subprocess.Popen([str(a) for a in argv], env=env, **options)


OPTIONAL = ("promtool",)  # `make deps-ci` does not install it


def need(path):
    """Skips the current test if a file does not exist, or a program is not in PATH. `make ci` has installed the programs:
    there the test fails. Returns the path. The summary has one line for all tests that lack the same."""
    found = pathlib.Path(shutil.which(path) or path) if isinstance(path, str) else path
    if not found.exists():
        name = os.path.relpath(path, ROOT)
        if "/" in name:
            pytest.skip(f"{name} is not there")
        (pytest.skip if LEVEL == "test" or path in OPTIONAL else pytest.fail)(f"{path} is not installed")
    return found


def need_module(name):
    """Skips the current test if a Python module is not installed."""
    try:
        importlib.import_module(name)
    except ImportError:
        pytest.skip(f"the module {name} is not installed")


def note(text):
    """Prints a line that the summary of the run repeats, even if the test passes."""
    print(f"  | {text}", flush=True)


CRASHES = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)


class Corrupt(AssertionError):
    """What was recorded is wrong. Such a test is never repeated: flaky.py."""


def equal(got, wanted, what=""):
    """Fails unless the values are equal. Prints both; for bytes and lists, the part around the first difference. Many
    bytes are records."""
    if got == wanted:
        return
    where = ""
    kind = Corrupt if isinstance(got, bytes) and isinstance(wanted, bytes) and len(wanted) > 1200 else AssertionError
    if isinstance(got, (bytes, list)) and isinstance(wanted, type(got)):
        n = min(len(got), len(wanted))
        at = next((i for i in range(n) if got[i] != wanted[i]), n)
        where = f" first at {at} (lengths {len(got)} and {len(wanted)}):"
        got, wanted = got[max(at - 2, 0) : at + 10], wanted[max(at - 2, 0) : at + 10]
    raise kind(f"{what}:{where} got {got!r}, wanted {wanted!r}")


def report_crash(argv, code, err):
    """Prints a line if a program crashed or a sanitizer has stopped it, whatever the test then says: flaky.py."""
    text = err if isinstance(err, str) else (err or b"").decode(errors="replace")
    if -code in CRASHES or "Sanitizer" in text or "runtime error:" in text:
        print(f"CRASHED: {argv[0]}: exit code {code}\n{text[-20000:]}")


def run(*argv, data=None, timeout=TIMEOUT_S, **options):
    """Runs a program to its end. Returns a CompletedProcess with stdout and stderr in bytes. After the timeout, kills
    the program and raises TimeoutExpired."""
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
    report_crash(done.args, done.returncode, err)
    if argv[0] == BUSCAPD and err is not None:
        check_sound(done.stderr)
    return done


def in_terminal(*argv):
    """Runs a program with a terminal as its output. Returns what that shows, a few lines."""
    try:
        ours, theirs = os.openpty()
    except OSError as why:
        pytest.skip(f"no terminal: {why}")
    done = run(*argv, stdout=theirs)
    os.close(theirs)
    equal(done.returncode, 0, f"{argv}: {done.stderr}")
    text = b""
    with contextlib.suppress(OSError):  # EIO at the end
        while piece := os.read(ours, 65536):
            text += piece
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def shared(name, make):
    """Returns a directory that make(directory) fills once in a run, for the tests of all processes. Copy what you
    change."""
    path = pathlib.Path(tempfile.gettempdir(), "shared", name)
    path.parent.mkdir(exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            make(new)
            new.rename(path)
    return path


def unpacker(path):
    return "zstd" if ".byu.zst" in pathlib.Path(path).name else "lz4"


def lz4_dc(paths):
    """Returns the output of `cat PATHS | lz4 -dc`, or of zstd -dc if the files are .byu.zst."""
    packed = b"".join(pathlib.Path(path).read_bytes() for path in paths)
    if not packed:
        return b""
    program = unpacker(paths[0])
    done = run(program, "-dc", data=packed)
    equal(done.returncode, 0, f"{program} -dc: {done.stderr.decode()}")
    return done.stdout


def segments(directory, suffix=".byu.[lz][zs][t4]", prefix=""):
    """Returns the segment files of a directory, in order."""
    return sorted(pathlib.Path(directory).glob(f"{prefix}*{suffix}"))


@contextlib.contextmanager
def being(user, group, extra_groups):
    """Runs the block as another user, so that the peer of a socket sees that user's credentials. Requires root."""
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
    """HTTP over a Unix socket. `who`: arguments of being(), as a dictionary."""

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
    """Sends a request. Returns (status, headers, body in bytes). Header names are in lower case."""
    connection = Connection(socket_path, timeout, who)
    try:
        try:
            connection.request(method, path, body, headers or {})
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the whole body was sent; the response has arrived
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def http(socket_path, path, method="GET", body=None):
    """Sends a request to the Unix socket. Returns (status, body in bytes)."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        code, _, text = exchange(socket_path, method, path, body, headers)
    except (OSError, HTTPException) as why:
        raise AssertionError(f"{method} {path}: {why!r}") from why
    return code, text


def status(socket_path):
    """Returns the response of GET /v1/status as an object."""
    code, body = http(socket_path, "/v1/status")
    equal(code, 200, body.decode(errors="replace"))
    return json.loads(body)


def wait_until(condition, what, timeout=TIMEOUT_S, pause=0.02):
    """Waits until condition() is true, with pauses that grow with the time waited. Returns its value."""
    start = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - start
        if waited > timeout:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(max(pause, min(0.2, waited / 50)))


class Daemon:
    """A program that runs until it is stopped. The default program is buscapd.

    with Daemon("-o", directory, "--source", "sim", socket=path) as daemon:
        daemon.wait_ready()
        ...
        code = daemon.stop()

    stop() sends SIGTERM. If the program still runs at the end of the block, it is killed. After stop(), `out` and `err`
    have its standard output and error."""

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
        self.start()
        return self

    def start(self, **options):
        self.process = popen(self.argv, stdin=self.stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, **options)
        for pipe in (self.process.stdout, self.process.stderr):
            os.set_blocking(pipe.fileno(), False)

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._collect()
        report_crash(self.argv, self.process.returncode, self.err)
        self.process.stdout.close()
        self.process.stderr.close()
        if exception[0] is not None and exception[0] is not pytest.skip.Exception:
            print(f"{' '.join(self.argv)}: exit {self.process.returncode}\n{self.err.decode(errors='replace')}")
        elif exception[0] is None:
            check_sound(self.err)

    def _collect(self):
        """Reads what is in the pipes. Processes that the program has left behind may keep them open."""
        self.out += self.process.stdout.read() or b""
        self.err += self.process.stderr.read() or b""

    def wait(self, timeout=TIMEOUT_S):
        """Waits until the program ends. Returns the exit code."""
        end = time.monotonic() + timeout
        while True:
            self._collect()
            try:
                code = self.process.wait(min(0.1, max(0, end - time.monotonic())))
                self._collect()
                return code
            except subprocess.TimeoutExpired:
                if time.monotonic() >= end:
                    raise

    def stop(self, signal_number=signal.SIGTERM, timeout=TIMEOUT_S):
        """Sends the signal and waits. Returns the exit code."""
        self.process.send_signal(signal_number)
        return self.wait(timeout)

    def status(self):
        return status(self.socket)

    def log_so_far(self):
        """Returns its standard error so far."""
        self._collect()
        return self.err.decode()

    def wait_uptime(self, seconds):
        """Waits until it has run this much longer, by its own clock, which it reports in tenths of a second."""
        end = self.status()["uptime_seconds"] + seconds + 0.1
        wait_until(lambda: self.status()["uptime_seconds"] >= end, f"{seconds} s pass")

    def wait_ready(self):
        """Waits until the socket responds. Returns the status."""

        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with exit code {self.process.returncode}")
            try:
                return self.status()
            except AssertionError:
                return None

        return wait_until(answers, "the daemon's socket answers")


# ---- support for tests of the daemon


def ask(socket_path, request=b"GET /v1/status HTTP/1.0\r\n\r\n", timeout=TIMEOUT_S):
    """Sends bytes to the socket. Returns the whole response."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(str(socket_path))
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def check_counts(status_object):
    """Checks that the counts of a status add up, as they must at any time. Returns the counts."""
    counts = status_object["counts"]
    equal(counts["received"], counts["written"] + counts["in_flight"] + sum(counts["dropped"].values()),
          f"the identity of the counts; {counts}")
    assert counts["durable"] <= counts["written"], counts
    return counts


class Watch:
    """Polls the status of a daemon in a thread for the duration of a with block, up to 20 times per second. Every
    request must succeed and its counts must add up; with may_end, the daemon may end. `last` is the latest status. It
    is set when the block starts."""

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
                if self.may_end and (not answer or answer.startswith(b"HTTP/1.1 503 ")):
                    return
                sample = json.loads(answer.partition(b"\r\n\r\n")[2])
                check_counts(sample)
                if self.last:
                    assert sample["counts"]["written"] >= self.last["counts"]["written"], (self.last, sample)
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
        """Waits until `more` more samples have arrived."""
        wanted = self.samples + more
        wait_until(lambda: self.samples >= wanted or self._problem, f"{more} more samples of the status")

    def check(self):
        """Raises what has failed."""
        if self._problem is not None:
            raise self._problem

    def finish(self):
        """Stops polling, because the daemon is about to end."""
        self._end.set()
        self._thread.join()

    def __exit__(self, *exception):
        self.finish()
        if exception[0] is None:
            self.check()


def preloaded(aside, name):
    """The value of LD_PRELOAD for a library of the tests. It may not contain a blank, the folder of the project may."""
    link = pathlib.Path(aside, f"{name}.so")
    link.unlink(missing_ok=True)
    link.symlink_to(need(BUILD / f"tests/{name}.so"))
    return str(link)


class Faults:
    """Injects faults into a daemon's calls on the files of a directory (tests/support/faultfs.c). Pass `env` to the
    Daemon. set() changes the rules while it runs. calls() returns the calls: (kind, number, result, file name)."""

    def __init__(self, aside, watched, rules=""):
        self._control = pathlib.Path(aside, "faults")
        self._log = pathlib.Path(aside, "calls")
        self.set(rules)
        self.env = {
            "LD_PRELOAD": preloaded(aside, "faultfs"), "FAULTFS_DIR": os.path.realpath(watched),
            "FAULTFS_CONTROL": str(self._control), "FAULTFS_LOG": str(self._log),
        }

    def set(self, rules):
        whole = self._control.with_suffix(".new")
        whole.write_text(rules)
        whole.rename(self._control)

    def calls(self):
        if not self._log.exists():
            return []
        whole = self._log.read_text().rpartition("\n")[0]  # the last line may be half written
        lines = (line.split(" ", 3) for line in whole.splitlines())
        return [(kind, int(number), done, pathlib.Path(path).name) for kind, number, done, path in lines]


class Preload:
    """A preloaded library (tests/support/NAME.c) that a test controls while the program runs, with `words` 64-bit
    numbers. Pass `env` to the Daemon."""

    def __init__(self, aside, name, words):
        path = pathlib.Path(aside, name)
        path.write_bytes(bytes(8 * words))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * words)
        self.env = {"LD_PRELOAD": preloaded(aside, name), f"{name.upper()}_CONTROL": str(path)}

    def _get(self, i):
        return struct.unpack_from("<q", self._map, 8 * i)[0]

    def _set(self, i, value):
        struct.pack_into("<q", self._map, 8 * i, value)


class FailingAllocations(Preload):
    """Makes a program's allocations fail: tests/support/faultalloc.c."""

    def __init__(self, aside):
        super().__init__(aside, "faultalloc", 4)

    def fail(self, first, last):
        """Counts from 0 again; the calls from number `first` to `last` fail. 0: none."""
        self._set(0, 0)
        self._set(2, 0)
        self._set(3, 0)
        self._set(1, last)
        self._set(0, first)

    @property
    def calls(self):
        return self._get(2)

    @property
    def failed(self):
        return self._get(3)


class MovedClock(Preload):
    """Moves a program's clocks: tests/support/faultclock.c. `up_s`: how long the machine appears to have been up."""

    def __init__(self, aside, seconds=0, up_s=None):
        super().__init__(aside, "faultclock", 2)
        self.move(seconds)
        if up_s is not None:
            self._set(1, int((up_s - time.monotonic()) * 10**9))

    def move(self, seconds):
        """Sets how far the time of day is from the real one."""
        self._set(0, int(seconds * 10**9))


class SmallDisk:
    """A tmpfs of this size in a directory. Skips the test if mounting is not allowed."""

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


class LoopDisk:
    """A file system of this kind and size on a loop device in a directory. Skips the test if it can't be mounted."""

    def __init__(self, directory, kind, size):
        self.image, self.path = directory / "image", directory / "disk"
        self.kind, self.size = kind, size

    def __enter__(self):
        if shutil.which(f"mkfs.{self.kind}") is None:
            pytest.skip(f"mkfs.{self.kind} is not installed")
        with self.image.open("wb") as image:
            image.truncate(self.size)
        self.path.mkdir()
        equal(run(f"mkfs.{self.kind}", "-q", self.image).returncode, 0, f"mkfs.{self.kind}")
        done = run("mount", "-o", "loop", self.image, self.path)
        if done.returncode != 0:
            pytest.skip(f"{self.kind} can't be mounted: {done.stderr.decode().strip()}")
        return self.path

    def __exit__(self, *exception):
        run("umount", self.path)


def each(function, jobs, workers=6):
    """Runs function(directory, *job) for each job, several at a time: most wait for the daemon's timers."""

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


def rate(samples_a_second):
    """Returns the rate, lowered for sanitizers so that the program loses no samples."""
    return samples_a_second // {"thread": 10}.get(BUILD.name, 4) if is_sanitized() else samples_a_second


def memory_kib(pid, what="VmHWM"):
    """Returns the peak memory of a process, or another line of its status."""
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(what + ":"))


def info(paths):
    """Returns the output of `buscap info --json` for each segment."""
    if not paths:
        return []
    done = run(BUSCAP, "info", "--json", *paths)
    assert done.returncode in (0, 3), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def verify(paths):
    """Checks that the segments are sealed and every checksum matches."""
    if not paths:
        return
    done = run(BUSCAP, "verify", *paths)
    if done.returncode != 0:
        raise Corrupt(f"buscap verify: {done.stdout.decode()}{done.stderr.decode()}")


def sim_records(count, seed=1, **settings):
    """Returns the records of the simulated bus, as buscapd --source sim:count=N,seed=N must write them."""
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    done = run(BUSCAP, "sim", "-s", seed, "-n", count, "-O", "byu", *options)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


@contextlib.contextmanager
def output_of(*argv):
    """Runs a program and yields its standard output as a file. Kills the program at the end of the block."""
    with popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            yield process.stdout
        finally:
            process.kill()


class SimStream:
    """The records of the simulated bus as an endless stream, for recordings that do not fit in memory."""

    def __init__(self, seed=1):
        self._program = output_of(BUSCAP, "sim", "-s", seed, "-n", 1 << 40, "-O", "byu")

    def __enter__(self):
        self._out = self._program.__enter__()
        return self

    def __exit__(self, *exception):
        self._program.__exit__(*exception)

    def read(self, records):
        """Returns the bytes of the next records."""
        data = self._out.read(12 * records)
        equal(len(data), 12 * records, "bytes of the simulator")
        return data

    def pieces(self, records):
        """Yields the bytes of the next records."""
        while records != 0:
            n = min(records, PIECE)
            yield self.read(n)
            records -= n

    def skip(self, records):
        """Skips records. Returns the sum of their delta times."""
        return sum(sum(memoryview(piece).cast("I")[2::3]) for piece in self.pieces(records))


PIECE = 100_000  # records


def compare_with_sim(paths, first=0, seed=1):
    """Checks that the segments contain the simulator's records from number `first` on. Returns their number."""
    records = 0
    with SimStream(seed) as expected:
        for _ in expected.pieces(first):
            pass
        for path in paths:
            with output_of(unpacker(path), "-dc", path) as recorded:
                while got := recorded.read(12 * PIECE):
                    if len(got) % 12 != 0 or got != expected.read(len(got) // 12):
                        raise Corrupt(f"{path}: not the source's records")
                    records += len(got) // 12
    return records


def one_line(err, *words):
    """Checks that these errors are one line of buscap with these words."""
    assert err.count("\n") == 1 and err.startswith("buscap"), f"not one line: {err!r}"
    for word in words:
        assert str(word) in err, f"{word!r} is not in {err!r}"


def check_sound(err):
    """Checks that a log has no failed assertion and no sanitizer report. Returns it as text."""
    text = err.decode(errors="replace")
    for words in ("handles left open", "Assertion", "Sanitizer", "runtime error:"):
        assert words not in text, text[:20000]
    return text
