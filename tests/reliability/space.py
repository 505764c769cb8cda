"""The space rules among other files: records into a directory with segments of earlier runs, some with other hard links,
some held open by readers, and with foreign files whose names end like a segment's, on file systems that show freed space
at once, late or never, while another program writes and the clock is stepped.

No foreign file may be touched. Not more may be deleted than is short, plus one segment; files with other links only by
the rules about the directory itself; and the recording must go on as long as something is left to delete.

A round is one recording. As root, also on tmpfs, ext4 and btrfs. Control: a daemon that forgets what it has deleted,
because it is started again each second, must be found to delete too much; so must a deleted foreign file."""

import contextlib
import os
import pathlib
import shutil
import time

import torture  # first: it sets the paths of the modules

import pytest  # noqa: E402

import harness  # noqa: E402
import test_space  # noqa: E402
from harness import Daemon, Faults, LoopDisk, MovedClock, SmallDisk, equal  # noqa: E402

MIB = 1 << 20
STALE_FREE = 1 << 31  # what tests/support/faultfs.c says
SECONDS = 4
DAY = 86400


def make_old(directory):
    """Records what the cases start with: two recordings of several segments. Returns the paths, oldest first."""
    out = directory / "old"
    for seed in (1, 2):
        test_space.record(out, f"sim:rate=max,count=600k,seed={seed}", "-b", "filesize:200K")
    return harness.segments(out)


@contextlib.contextmanager
def disk(directory, kind):
    """A directory on a file system of this kind, and the environment of the daemon."""
    if kind == "stale":
        out = directory / "out"
        out.mkdir()
        yield out, Faults(directory, out, "fstatvfs:stale").env
        return
    with SmallDisk(directory, "64M") if kind == "tmpfs" else LoopDisk(directory, kind, 256 * MIB) as path:
        yield path, {}


def free_of(path, kind):
    space = os.statvfs(path)
    return STALE_FREE if kind == "stale" else space.f_bavail * space.f_frsize


def on_disk(path):
    """Returns the bytes that a file has on the disk; 0 if it has been sealed or deleted meanwhile."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def joined(*environments):
    """The environment of several preloaded libraries."""
    env = {name: value for one in environments for name, value in one.items()}
    return {**env, "LD_PRELOAD": " ".join(one["LD_PRELOAD"] for one in environments if "LD_PRELOAD" in one)}


class Case:
    """The files before the recording."""

    def __init__(self, rng, disk, kind, old, has_links):
        self.out = disk / "rec"
        self.out.mkdir()
        self.old = [pathlib.Path(shutil.copy2(path, self.out)) for path in old]
        for path in self.old:
            os.utime(path, (time.time() - rng.uniform(1, 20) * DAY,) * 2)
        self.foreign = test_space.put_foreign(self.out, self.old[0])
        self.linked = [path for path in self.old if has_links and rng.random() < 0.3]
        for path in self.linked:
            os.link(path, disk / f"link-{path.name}")
        self.readers = [path.open("rb") for path in self.old if rng.random() < 0.3]
        if kind == "btrfs":
            os.sync()
        self.free = free_of(disk, kind)
        self.sizes = {path: on_disk(path) for path in self.old}

    def close(self):
        for reader in self.readers:
            reader.close()

    def deleted(self):
        return [path for path in self.old if not path.exists()]

    def new(self):
        return [path for path in self.out.iterdir() if path not in self.old and path.name not in self.foreign]

    def check_foreign(self, err):
        test_space.check_foreign(self.out, self.foreign, err)

    def check_keep_free(self, need, err):
        """need: the bytes that were short at most, with what was recorded meanwhile."""
        deleted = self.deleted()
        assert not set(deleted) & set(self.linked), f"a file with another link was deleted in vain; {err}"
        most = need + max(self.sizes.values())
        got = sum(self.sizes[path] for path in deleted)
        assert got <= most, f"{got:,} bytes in {len(deleted)} of {len(self.old)} files deleted, needed {need:,}; {err}"
        kept = [path for path in self.old if path.exists() and path not in self.linked]
        assert not deleted or not kept or deleted[-1] < kept[0], f"not the oldest: {deleted}; {err}"
        return len(deleted), bool(kept)


def options_of(case, rng, rule, short):
    if rule == "keep_free":
        return ("--set", f"space.keep_free={case.free + short}")
    if rule == "files":
        return ("-b", f"files:{rng.randrange(2, 12)}")
    return ("--set", "space.max_age=30d")


def goes_on(daemon):
    """Waits until more records are written, or the daemon says that it can't. Returns the status."""
    before = daemon.status()["counts"]["written"]

    def status():
        now = daemon.status()
        return now if now["disk"]["stuck"] or now["counts"]["written"] > before else None

    return harness.wait_until(status, "the recording goes on or is stuck")


def one_round(directory, options, old, number):
    rng = options.rng("round", number)
    kind = rng.choice(options.kinds)
    rule = rng.choice(("keep_free", "keep_free", "files", "max_age"))
    short = rng.randrange(MIB // 4, 2 * MIB)
    with disk(directory, kind) as (path, env):
        case = Case(rng, path, kind, old, has_links=rng.random() < 0.5)
        clock = MovedClock(directory)
        argv = ("--source", "sim:rate=50k,count=10M", "-o", case.out, "-b", "filesize:100K", "--set", "pipeline.flush=100ms",
                *test_space.SMALL, *options_of(case, rng, rule, short))
        other, lowest, recorded = 0, case.free, 0
        with Daemon(*argv, socket=directory / "socket", env=joined(env, clock.env)) as daemon:
            daemon.wait_ready()
            goes_on(daemon)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                if rng.random() < 0.05 and kind != "stale":
                    more = rng.randrange(MIB // 4)
                    (path / f"other{other}").write_bytes(os.urandom(more))
                    other += more
                if rng.random() < 0.05:
                    clock.move(rng.choice((-1, 1)) * rng.choice((5, 900, 7200, 400 * DAY)))
                lowest = min(lowest, free_of(path, kind))
                recorded = max(recorded, sum(on_disk(new) for new in case.new()))
                time.sleep(0.05)
            status = goes_on(daemon)
            code = daemon.stop()
        case.close()
        err = daemon.err.decode()
        case.check_foreign(f"{kind}, {rule}; {err}")
        recorded += sum(on_disk(new) for new in case.new())
        keep = case.free + short
        need = max(short + other, keep - lowest) + recorded + MIB // 2
        count = len(case.deleted())
        if rule == "keep_free":
            count, can_delete = case.check_keep_free(need, f"{kind}; {err}")
            assert count != 0, f"{kind}: nothing deleted; {err}"
            assert not can_delete or not status["disk"]["stuck"], f"{kind}: stuck; {err}"
            assert code == 0 or not can_delete, f"{kind}: exit code {code}; {err}"
        elif rule == "max_age":
            equal(count, 0, f"{kind}: none is older than 30 days; {err}")
        harness.verify([new for new in case.new() if new.name.endswith(".byu.lz4")])
        return kind, rule, count, len(case.foreign)


def forgets(directory, options, old):
    """Control: the daemon is started again each second. Returns whether the check notices."""
    rng = options.rng("control")
    with disk(directory, "stale") as (path, env):
        case = Case(rng, path, "stale", old, has_links=False)
        argv = ("--source", "sim:rate=50k,count=10M", "-o", case.out, "--set", f"space.keep_free={case.free + MIB // 4}")
        for _ in range(6):
            with Daemon(*argv, socket=directory / "socket", env=env) as daemon:
                daemon.wait_ready()
                test_space.wait_written(daemon, 1)
                daemon.stop()
        case.close()
        try:
            case.check_keep_free(MIB // 4 + sum(on_disk(new) for new in case.new()) // 6, "")
        except AssertionError:
            return True
        return False


def deletes_foreign(directory, options, old):
    """Control: a foreign file is deleted. Returns whether the check notices."""
    with disk(directory, "stale") as (path, _):
        case = Case(options.rng("control"), path, "stale", old, has_links=False)
        case.close()
        (case.out / next(iter(case.foreign))).unlink()
        try:
            case.check_foreign("")
        except AssertionError:
            return True
        return False


def usable(directory, kinds):
    """The file systems that can be mounted here."""
    found = []
    for kind in kinds:
        place = directory / f"try-{kind}"
        place.mkdir()
        with contextlib.suppress(pytest.skip.Exception), disk(place, kind):
            found.append(kind)
    return found


def run(options):
    old = make_old(options.directory)
    kinds = ["stale"] + (usable(options.directory, ("tmpfs", "ext4", "btrfs")) if os.geteuid() == 0 else [])
    options.kinds = kinds
    rounds = options.each(lambda directory, number: one_round(directory, options, old, number),
                          [(number,) for number in range(options.rounds)], per_job=3)
    controls = options.each(lambda directory, control: control(directory, options, old), [(forgets,), (deletes_foreign,)])
    if not all(controls) or len(controls) != 2:
        options.violation("a control was not noticed")
    return {"recordings": len(rounds), "file systems": ", ".join(kinds),
            "segments deleted by keep_free": sum(one[2] for one in rounds if one[1] == "keep_free"),
            "foreign files among them, untouched": sum(one[3] for one in rounds),
            "controls noticed": f"{sum(controls)} of 2"}


if __name__ == "__main__":
    torture.main(run, short=24, long=1000)
