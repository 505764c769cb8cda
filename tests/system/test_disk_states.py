"""The model of a disk that loses power, which make torture-powercut uses: what is synced is in every state, and anything
else is missing in some."""

import os
import random

import harness
from disk_states import SECTOR, Call, Disk, read_log
from harness import Faults, equal

STATES = 200
OLD, NEW = b"o" * 3 * SECTOR, b"n" * 4 * SECTOR


def call(kind, name, inode=1, offset=0, data=b"", new_name=""):
    return Call(kind, inode, offset, data, name, new_name, 0)


def states(*calls, files=None):
    disk = Disk(files)
    for one in calls:
        disk.advance(one)
    rng = random.Random(1)
    return [disk.state(rng)[0] for _ in range(STATES)]


def test_synced_data_under_a_synced_name_is_in_every_state():
    found = states(call("create", "a"), call("pwrite", "a", data=NEW), call("fdatasync", "a"), call("fsync", "."),
                   call("pwrite", "a", offset=len(NEW), data=OLD))
    assert all(files["a"][: len(NEW)] == NEW for files in found)
    equal({len(files["a"]) // SECTOR for files in found}, {4, 5, 6, 7}, "lengths")


def test_without_a_sync_the_file_or_its_data_is_missing_in_some_state():
    found = states(call("create", "a"), call("pwrite", "a", data=NEW), call("fdatasync", "a"))
    equal({len(files) for files in found}, {0, 1}, "files")
    found = states(call("create", "a"), call("pwrite", "a", data=NEW), call("fsync", "."))
    contents = {files["a"] for files in found}
    assert {b"", NEW, bytes(len(NEW))} <= contents, contents
    torn = [c for c in contents if b"n" in c and b"\0" in c]
    assert torn and all(len({*c[at : at + SECTOR]}) == 1 for c in torn for at in range(0, len(c), SECTOR)), torn


def test_a_rename_is_lost_or_not_but_never_in_half():
    found = states(call("renameat2", "a", new_name="b"), files={"a": OLD})
    equal({tuple(files) for files in found}, {("a",), ("b",)}, "names")
    assert all([*files.values()] == [OLD] for files in found)
    found = states(call("renameat2", "a", new_name="b"), call("unlinkat", "c"), files={"a": OLD, "c": NEW})
    equal({tuple(sorted(files)) for files in found}, {("a", "c"), ("a",), ("b", "c"), ("b",)}, "in any order")


def test_an_overwritten_sector_is_old_or_new():
    found = states(call("pwrite", "a", offset=SECTOR, data=NEW[:SECTOR]), files={"a": OLD})
    equal({files["a"] for files in found}, {OLD, OLD[:SECTOR] + NEW[:SECTOR] + OLD[2 * SECTOR :]}, "contents")


def test_the_number_of_a_deleted_file_may_be_used_again():
    found = states(call("unlinkat", "a"), call("create", "b", inode=7), call("unlinkat", "b"),
                   call("create", "c", inode=7), call("pwrite", "c", inode=7, data=NEW), files={"a": OLD})
    assert all(files.get("a", OLD) == OLD and files.get("b", b"") == b"" for files in found)


def test_the_calls_of_a_daemon_are_recorded_with_their_data(tmp):
    out = tmp / "out"
    out.mkdir()
    log = tmp / "log"
    done = harness.run(harness.BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1000", "-o", out,
                       env={**os.environ, **Faults(tmp, out).env, "FAULTFS_RECORD": str(log)})
    equal(done.returncode, 0, done.stderr.decode())
    disk = Disk()
    for one in read_log(log):
        disk.advance(one)
    # With every name and all data on the disk, the state is the directory.
    rng = random.Random(1)
    actual = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix != ".lock"}
    assert any({name: data for name, data in disk.state(rng)[0].items() if name in actual} == actual
               for _ in range(STATES)), actual.keys()
