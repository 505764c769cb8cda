"""buscap record delete: what is deleted, what is refused, and what an error leaves."""

import contextlib
import os
import pty
import shutil

import harness
from harness import BUSCAP, Daemon, Faults, equal, one_line, run


@contextlib.contextmanager
def two_recordings(tmp):
    """A daemon with a recording of three segments and one in progress. Yields (out, the first one's id, the other's)."""
    out = tmp / "out"
    with Daemon("-o", out, "--source", "sim:rate=100k", "-b", "filesize:100K", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: len(harness.segments(out)) >= 3, "three segments are sealed")
        equal(buscap(tmp, "record", "stop").returncode, 0)
        equal(buscap(tmp, "record", "start").returncode, 0)
        first = harness.segments(out)[0].name[:23]
        current = daemon.status()["recording"]["id"]
        harness.wait_until(lambda: list(out.glob(f"{current}*")), "the next recording has a file")
        yield out, first, current
        equal(daemon.stop(), 0, daemon.err)


def buscap(tmp, *words, **options):
    env = {**os.environ, "BUSCAP_SOCKET": str(tmp / "socket"), **options.pop("env", {})}
    return run(BUSCAP, *words, env=env, **options)


def delete(tmp, *words, code=0, **options):
    done = buscap(tmp, "record", "delete", *words, **options)
    equal(done.returncode, code, done.stderr)
    return done.stdout.decode(), done.stderr.decode()


def test_whole_recordings_are_deleted_but_not_the_current_one(tmp):
    with two_recordings(tmp) as (out, first, current):
        its = harness.segments(out, prefix=first)
        _, err = delete(tmp, "--yes", first, current, code=1)
        one_line(err, f"recording {current}: in progress")
        _, err = delete(tmp, first, code=2, stdin=harness.subprocess.DEVNULL)
        one_line(err, "--yes")
        _, err = delete(tmp, "--yes", its[0], code=2)
        one_line(err, f"{its[0]}: not the id of a recording")
        _, err = delete(tmp, "--yes", first, first[:-1], code=2)
        one_line(err, f"recording {first}: given twice")
        _, err = delete(tmp, "--yes", "2", code=1)  # both begin with it
        one_line(err, f"recording {current}: in progress")
        equal(harness.segments(out, prefix=first), its, "nothing is deleted by any of these")
        text, err = delete(tmp, "--yes", first[:-1])
        assert text.startswith(f"{first}: deleted {len(its)} files, ") and err == "", (text, err)
        equal(harness.segments(out, prefix=first), [])
        listed = buscap(tmp, "record", "list").stdout.decode()
        assert first not in listed and current in listed, listed
    equal(run(BUSCAP, "verify", out).returncode, 0)


def test_a_terminal_is_asked(tmp):
    with two_recordings(tmp) as (out, first, _):
        its = harness.segments(out, prefix=first)
        for answer, code, left in ((b"n\n", 1, its), (b"\n", 1, its), (b"yes\n", 0, [])):
            here, there = pty.openpty()
            os.write(here, answer)
            _, err = delete(tmp, first, code=code, stdin=there)
            os.close(here)
            os.close(there)
            assert f"Delete {first} ({len(its)} files, " in err, err
            equal(harness.segments(out, prefix=first), left)


def test_a_file_of_somebody_else_keeps_the_recording(tmp):
    with two_recordings(tmp) as (out, first, _):
        its = harness.segments(out, prefix=first)
        foreign = out / its[0].name.replace("-00000.", "-00007.")
        equal(run(BUSCAP, "cut", "--records", "0-10", "-o", foreign, its[0]).returncode, 0)
        _, err = delete(tmp, "--yes", first, code=1)
        one_line(err, f"{foreign.name}: not written by buscapd for this recording", "nothing is deleted")
        equal(harness.segments(out, prefix=first), [*its, foreign])
        foreign.unlink()
        torn = out / its[1].name.replace("-00001.", "-00008.")  # a segment under the name of another
        shutil.copy(its[1], torn)
        delete(tmp, "--yes", first, code=1)
        equal(harness.segments(out, prefix=first), [*its, torn])


def test_an_error_leaves_the_end_of_the_recording(tmp):
    """Nothing is missing in what is left: a recording may begin later."""
    with two_recordings(tmp) as (out, first, _):
        its = harness.segments(out, prefix=first)
        faults = Faults(tmp, out, "unlinkat:2:EIO")
        _, err = delete(tmp, "--yes", first, code=1, env=faults.env)
        one_line(err, its[1].name, "can't delete: Input/output error", f"deleted before: 1 of {len(its)} files")
        equal(harness.segments(out, prefix=first), its[1:])
        equal(run(BUSCAP, "verify", *its[1:]).returncode, 0)
        delete(tmp, "--yes", first)
        equal(harness.segments(out, prefix=first), [])
