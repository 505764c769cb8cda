"""make test-machine: tests the packages in a virtual machine, from installation to purge.

    run.py DEBS    DEBS is the directory with the packages; RUNS=N repeats it

Each step is a sentence and depends on the steps before it; the first failure ends the run. When the machine is off,
the recordings are compared with what the boards sent.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import steps  # noqa: E402
from harness import BUILD, ROOT  # noqa: E402
from image import ImageError, find  # noqa: E402
from machine import Machine  # noqa: E402
from usbredir_harness import Board  # noqa: E402

LIMIT_S = 4500  # per run; it only ends one that hangs
ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
SERIALS = (steps.FIRST, steps.SECOND)


class RunTimeout(Exception):
    """The run's time limit has passed."""


def _field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def depends_of(debs):
    """Returns the names of the packages that these depend on; of alternatives, the first that is not one of these."""
    own = {_field(deb, "Package") for deb in debs}
    names = set()
    for deb in debs:
        for choice in _field(deb, "Depends").split(","):
            name = re.match(r"\s*([a-z0-9+.-]*)", choice)[1]
            if name and name not in own:
                names.add(name)
    return sorted(names)


def with_version(deb, version, directory):
    """Repacks a package with a later version."""
    tree = directory / "repacked"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    text = re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text())
    control.write_text(text)
    path = directory / f"{_field(deb, 'Package')}_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, path], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return path


def print_failure(machine, why):
    print(why)
    machine.catch_up()
    print(f"---- console\n{machine.tail('console', 20)}")
    qemu = machine.tail("qemu", 20)
    if qemu:
        print(f"---- qemu\n{qemu}")
    journal = machine.tail("journal", 4000).splitlines()
    print("---- journal of buscapd\n" + "\n".join([line for line in journal if "buscap" in line][-120:]))
    print("---- journal\n" + "\n".join(journal[-60:]), flush=True)


def run_steps(context, machine):
    """Returns (passed, failed)."""
    passed = 0
    for step in steps.STEPS:
        name = step.__name__.replace("_", " ")
        start = time.monotonic()
        try:
            step(context)
        except Exception:
            print(f"FAILED  {name}", flush=True)
            print_failure(machine, traceback.format_exc())
            print(f"{len(steps.STEPS) - passed - 1} steps after it were not run")
            return passed, 1
        print(f"ok {time.monotonic() - start:5.1f} s  {name}", flush=True)
        passed += 1
    return passed, 0


def run_once(debs, image):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="buscap-machine-"))
    start = time.monotonic()
    try:
        later = {name: with_version(deb, steps.LATER, directory) for name, deb in debs.items()}
        boards = {}
        for serial in SERIALS:
            (directory / serial).mkdir()
            boards[serial] = Board(directory / serial, f"serial={serial},firmware=bench-1,agents=2,seed={len(boards) + 1},"
                                   f"rate={steps.SLOW},fifo={1 << 31}")
        with boards[steps.FIRST], boards[steps.SECOND], Machine(
                image, directory, {serial: board.path for serial, board in boards.items()},
                [*debs.values(), *later.values(), HERE / "probe", BUILD / "tests/gadget_board",
                 ROOT / "tests/tools/gadget.sh"]) as machine:
            context = steps.Context(machine, boards, debs, later, directory)
            passed, failed = run_steps(context, machine)
        return passed, failed, time.monotonic() - start
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def on_end(number, _frame):
    """Handles the first signal only, so that the cleanup is not interrupted."""
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def on_alarm(_number, _frame):
    raise RunTimeout(f"the run took longer than {LIMIT_S} s")


def main():
    debs = {}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("buscap*.deb")):
        if "-dbgsym" not in path.name:
            debs[_field(path, "Package")] = path
    if set(debs) != {"buscapd", "buscap-tools"}:
        print(f"{sys.argv[1]} must contain the packages buscapd and buscap-tools, not {sorted(debs)}: run make deb",
              file=sys.stderr)
        return 1
    signal.signal(signal.SIGALRM, on_alarm)
    for number in ENDS:
        signal.signal(number, on_end)
    passed = failed = 0
    runs = int(os.environ.get("RUNS") or 1)
    times = []
    for number in range(1, runs + 1):
        if runs > 1:
            print(f"== run {number} of {runs}", flush=True)
        try:
            image = find(depends_of(debs.values()))  # building it does not count towards the limit
            signal.alarm(LIMIT_S)
            ok, bad, seconds = run_once(debs, image)
        except ImageError as why:
            print(f"make test-machine: can't build the image: {why}", file=sys.stderr)
            return 1
        finally:
            signal.alarm(0)
        passed, failed = passed + ok, failed + bad
        times.append(seconds)
        if bad:
            break
    print(f"{passed} passed, {failed} failed; a run took {', '.join(f'{s:.0f}' for s in times)} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
