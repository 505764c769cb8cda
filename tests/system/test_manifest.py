"""The manifest REC.xxh128, which `xxhsum -c` reads. A failing manifest never harms the recording."""

import json
import os
import shutil
import signal

import harness
from harness import BUSCAPD, Daemon, Faults, each, equal, info, run, verify

SAMPLES = 340000
# No partial chunks, on a slow machine too.
SWEEP = ("--source", f"sim:rate=max,count={SAMPLES}", "-b", "filesize:600K", "--set", "pipeline.flush=1h")
KEEP = ("--set", "output.keep_raw=yes")


def lines(manifest):
    """{name: hash}. Checks that lines are whole and names unique."""
    text = manifest.read_text()
    assert text.endswith("\n"), text
    pairs = [line.split("  ") for line in text.splitlines()]
    assert len({name for _, name in pairs}) == len(pairs), text
    return {name: digest for digest, name in pairs}


def check(directory):
    """Checks that the manifests list all sealed files and that xxhsum accepts them."""
    harness.need("xxhsum")
    files = sorted(path.name for path in directory.glob("*.lz4"))
    named = []
    for manifest in sorted(directory.glob("*.xxh128")):
        recorded = lines(manifest)
        assert all(name.startswith(manifest.name.removesuffix(".xxh128") + "-0") for name in recorded), recorded
        done = run("xxhsum", "--strict", "-c", manifest.name, cwd=directory)
        equal(done.returncode, 0, done.stdout.decode() + done.stderr.decode())
        equal(done.stdout.count(b": OK"), len(recorded), done.stdout.decode())
        named += recorded
    equal(sorted(named), files, "files in the manifests")
    return files


def test_xxhsum_checks_every_file_in_the_manifest(tmp):
    for name, options in (("plain", ()), ("raw", KEEP)):
        out = tmp / name
        done = run(BUSCAPD, "--once", *SWEEP, "-o", out, *options)
        equal(done.returncode, 0, done.stderr.decode())
        files = check(out)
        assert len(files) >= 2, files
        equal(len(list(out.glob("*.xxh128"))), 1, "manifests")
    assert any(".bcp1." in file for file in files), files
    # A changed byte is found.
    victim = tmp / "plain" / check(tmp / "plain")[0]
    changed = bytearray(victim.read_bytes())
    changed[len(changed) // 2] ^= 1
    victim.write_bytes(changed)
    done = run("xxhsum", "-c", next((tmp / "plain").glob("*.xxh128")).name, cwd=tmp / "plain")
    assert done.returncode != 0 and f"{victim.name}: FAILED".encode() in done.stdout, done.stdout


def test_each_recording_has_its_own_manifest(tmp):
    for _ in range(3):
        done = run(BUSCAPD, "--once", *SWEEP, "-o", tmp / "out")
        equal(done.returncode, 0, done.stderr.decode())
    check(tmp / "out")
    equal(len(list((tmp / "out").glob("*.xxh128"))), 3, "manifests")


def test_recovered_files_get_their_lines(tmp):
    def one(directory, torn, options):
        out = directory / "out"
        with Daemon("--source", "sim:rate=2M", "-b", "filesize:600K", "-o", out, *options,
                    socket=directory / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: len(harness.segments(out)) >= 2 and list(out.glob("*.partial")), "a segment")
            daemon.stop(signal.SIGKILL)
        (manifest,) = out.glob("*.xxh128")
        if torn:
            # A torn line, as after a power failure.
            with manifest.open("ab") as file:
                file.write(b"0123456789abcdef0123")
        left = len(list(out.glob("*.byu.lz4.partial")))
        done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out)
        equal(done.returncode, 0, done.stderr.decode())
        # A segment sealed just before the kill may be missing.
        named = lines(manifest)
        recording = manifest.name.removesuffix(".xxh128")
        files = {path.name for path in out.glob(f"{recording}*.lz4")}
        assert files.issuperset(named) and len(files) - len(named) <= 1, (files, named)
        recovered = [name for name in files if f"{name}: left open".encode() in done.stderr]
        # A segment without a chunk is not recovered.
        deleted = [line for line in done.stderr.splitlines() if b".byu." in line and line.endswith(b", deleted")]
        equal(len([name for name in recovered if ".byu." in name]) + len(deleted), left,
              f"recovered, and empty; {named} {done.stderr}")
        assert set(recovered) <= set(named), (recovered, named, done.stderr)
        equal(run("xxhsum", "--strict", "-c", manifest.name, cwd=out).returncode, 0, "xxhsum")

    each(one, [(torn, options) for torn in (False, True) for options in ((), KEEP)], workers=2)


def test_a_copy_sealed_by_a_killed_start_gets_its_line_at_the_next(tmp):
    done = run(BUSCAPD, "--once", *SWEEP, "-o", tmp)
    equal(done.returncode, 0, done.stderr.decode())
    segment = harness.segments(tmp)[-1]
    (manifest,) = tmp.glob("*.xxh128")
    kept = [line for line in manifest.read_text().splitlines(True) if segment.name not in line]
    manifest.write_text("".join(kept))
    shutil.copy(segment, f"{segment}.partial")
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", tmp)
    equal(done.returncode, 0, done.stderr.decode())
    assert b"already recovered by an earlier run; deleted" in done.stderr, done.stderr
    check(tmp)


def test_a_start_killed_before_it_adds_a_line_leaves_that_to_the_next(tmp):
    def one(directory, is_sealed):
        out = directory / "out"
        done = run(BUSCAPD, "--once", *SWEEP, "-o", out)
        equal(done.returncode, 0, done.stderr.decode())
        segment = harness.segments(out)[-1]
        next(out.glob("*.xxh128")).unlink()
        segment.rename(f"{segment}.partial")
        if is_sealed:
            shutil.copy(f"{segment}.partial", segment)
        faults = Faults(directory, out, "openat:kill")
        argv = (BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out)
        done = run(*argv, env={**os.environ, **faults.env, "FAULTFS_ENDING": ".xxh128"})
        equal(done.returncode, -signal.SIGKILL, done.stderr.decode())
        equal(run(*argv).returncode, 0, "the next start")
        assert segment.name in lines(next(out.glob(f"{segment.name[:23]}*.xxh128"))), sorted(out.iterdir())

    each(one, [(False,), (True,)], workers=2)


def test_retention_deletes_the_manifest_of_a_deleted_recording(tmp):
    out = tmp / "out"
    done = run(BUSCAPD, "--once", *SWEEP, "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    (old,) = out.glob("*.xxh128")
    done = run(BUSCAPD, "--once", *SWEEP, "-b", "files:2", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    assert not old.exists()
    (manifest,) = out.glob("*.xxh128")
    # The lines of deleted segments of the recording stay.
    assert set(lines(manifest)) >= {path.name for path in harness.segments(out)}


RULES = [f"{call}:{action}" for call in ("openat", "pwrite", "fdatasync") for action in ("ENOSPC", "EIO", "EACCES")]
RULES += ["pwrite:short", "pwrite:1:ENOSPC", "pwrite:2+:ENOSPC", "fdatasync:slow", "openat:1:EROFS"]


def test_a_manifest_that_cannot_be_written_does_no_harm(tmp):
    expected = harness.sim_records(SAMPLES)

    def one(directory, rules):
        out = directory / "out"
        faults = Faults(directory, out, rules)
        done = run(BUSCAPD, "--once", *SWEEP, *KEEP, "-o", out,
                   env={**os.environ, **faults.env, "FAULTFS_ENDING": ".xxh128"})
        err = done.stderr.decode()
        equal(done.returncode, 0, err)
        assert any(call[2] != "ok" for call in faults.calls()), "no call failed"
        counts = harness.check_counts(json.loads(done.stdout))
        equal((counts["written"], counts["durable"]), (len(expected) // 12,) * 2, "written, durable")
        verify(harness.segments(out))
        equal(harness.lz4_dc(harness.segments(out)), expected, "records")
        segments = info(harness.segments(out))
        assert all(not segment["gaps"]["count"] for segment in segments), segments
        if "short" in rules or "slow" in rules:
            check(out)
        else:
            # Logged once per reason, not per file.
            equal(err.count("can't add the hash of"), 1, err)

    each(one, [(rules,) for rules in harness.some(RULES, 4)])


def test_a_failed_line_is_missing_and_the_others_are_whole(tmp):
    def one(directory, rules, why):
        out = directory / "out"
        faults = Faults(directory, out, rules)
        done = run(BUSCAPD, "--once", *SWEEP, "-o", out,
                   env={**os.environ, **faults.env, "FAULTFS_ENDING": ".xxh128"})
        equal(done.returncode, 0, done.stderr.decode())
        (manifest,) = out.glob("*.xxh128")
        files = {path.name for path in harness.segments(out)}
        missing = files - set(lines(manifest))
        equal(len(missing), 1, "files without a line")
        assert f"can't add the hash of {missing.pop()}: {why}" in done.stderr.decode(), done.stderr
        equal(run("xxhsum", "--strict", "-c", manifest.name, cwd=out).returncode, 0, "xxhsum")

    each(one, [("pwrite:2:ENOSPC", "No space left"), ("fdatasync:2:EIO", "Input/output error")])
