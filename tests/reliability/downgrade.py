"""Downgrades: starts the daemon on files of a future format version, sealed and open, and gives them to every command
that reads files.

The files must be kept byte for byte (under any name) and refused with a message. Extensions that the present version
allows (members, kinds of events and causes of gaps that a reader does not know) must be read.

A round is one directory of changed files."""

import json
import re
import struct

import torture  # first: it sets the paths of the modules

import harness
import reference
from harness import BUSCAP, Daemon, equal, run as run_program
from recovered import SMALL, start_again, xxh64

HEADER = 0x184D2A50
CHUNK = 0x184D2A51
FRAME = 0x184D2204


def frames(data):
    """Yields (offset, magic, end) of each skippable frame of a file, whole ones only."""
    at = len(reference.EMPTY_FRAME)
    while at + 8 <= len(data):
        magic, length = struct.unpack_from("<II", data, at)
        if magic == FRAME:
            # One block, as section 5 of docs/segment-format.md has it.
            block = struct.unpack_from("<I", data, at + 15)[0] & 0x7FFFFFFF
            end = at + 19 + (block + 4 if block else 0)
        else:
            end = at + 8 + length
        if end > len(data):
            return
        if magic != FRAME:
            yield at, magic, end
        at = end


def with_hash(frame):
    """Returns a skippable frame with its hash, the last 8 bytes, made correct."""
    return frame[:-8] + struct.pack("<Q", xxh64(frame[:-8]))


def changed_header(frame, change):
    header = json.loads(frame[8:-8])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return with_hash(frame[:4] + struct.pack("<I", len(text) + 8) + text + bytes(8))


def changed(data, change_header=None, chunk_version=None):
    """Returns a file without its index, its header and the versions in its chunk headers changed."""
    out = bytearray(reference.EMPTY_FRAME)
    at = len(out)
    for start, magic, end in frames(data):
        out += data[at:start]
        frame = data[start:end]
        if magic == HEADER and change_header is not None:
            frame = changed_header(frame, change_header)
        elif magic == CHUNK and chunk_version is not None:
            frame = with_hash(frame[:8] + struct.pack("<I", chunk_version(struct.unpack_from("<I", frame, 8)[0])) + frame[12:])
        elif magic not in (HEADER, CHUNK):
            frame = b""  # the index: the offsets have changed
        out += frame
        at = end
    return bytes(out + data[at:])


def newer(by):
    def change(header):
        header["version"] += by
    return change


def newer_chunk(by):
    return lambda version: version + by


def damaged(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes(64) + data[at + 64 :]


# Each returns the changed file.
CHANGES = {
    "header": lambda data, rng: changed(data, newer(1)),
    "header, far ahead": lambda data, rng: changed(data, newer(rng.randrange(2, 1 << 31))),
    "chunks": lambda data, rng: changed(data, None, newer_chunk(rng.randrange(1, 1000))),
    "header and chunks": lambda data, rng: changed(data, newer(1), newer_chunk(1)),
    "header and chunks, torn": lambda data, rng: changed(data, newer(1), newer_chunk(1))[: rng.randrange(3000, len(data))],
    "header and chunks, damaged": lambda data, rng: damaged(changed(data, newer(1), newer_chunk(1)), rng),
}
READERS = (("info",), ("verify",), ("dump",), ("stats",), ("convert", "-O", "byu", "-o", "/dev/null"))


def killed(out, socket):
    """Returns {name: bytes} of the files of a killed daemon."""
    out.mkdir()
    argv = ("--source", "sim:rate=1M,count=60M", "-o", out, "-b", "filesize:200K", *SMALL,
            "--set", "pipeline.flush=20ms")
    with Daemon(*argv, socket=socket) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: len(harness.segments(out)) >= 2 and list(out.glob("*.byu.lz4.partial")),
                           "segments are sealed, and one is open")
        daemon.process.kill()
        daemon.wait()
    return {path.name: path.read_bytes() for path in out.iterdir() if ".lz4" in path.name}


def left_open(directory):
    """Returns {name: bytes} of the files of a daemon that was killed while a segment was open, with more than a header."""
    for number in range(50):
        files = killed(directory / f"made{number}", directory / "made.socket")
        partial = [name for name in files if name.endswith(".partial")]
        if partial and all(len(files[name]) > 10_000 for name in partial):
            return files
    raise AssertionError("no kill left an open segment with data")


def contents(directory):
    return {path.read_bytes() for path in directory.iterdir() if path.is_file()}


def future(directory, options, number, made):
    """Files of a future version, and then again: nothing may be lost by repetition either."""
    change = list(CHANGES)[number % len(CHANGES)]
    rng = options.rng(number)
    out = directory / "out"
    out.mkdir()
    files = {}
    for name, data in made.items():
        files[name] = CHANGES[change](data, rng)
        (out / name).write_bytes(files[name])
    err = ""
    for _ in range(2):
        err += start_again(out)
        kept = contents(out)
        for name, data in files.items():
            if data not in kept:
                options.violation(f"{change}: {name} ({len(data)} bytes) is not kept: {err}")
                return len(files), 0
    assert any(name.partition(".byu")[0] in err or name in err for name in files), f"no message names a file: {err}"
    refused = 0
    for path in sorted(out.glob("*.byu.lz4*")):
        if path.read_bytes() not in files.values():
            continue
        for command in READERS:
            done = run_program(BUSCAP, *command, path)
            assert done.returncode in (1, 3), f"{change}: {command} {path.name}: exit code {done.returncode}"
            assert done.stderr or done.stdout, f"{change}: {command} {path.name}: no message"
            refused += 1
        equal(path.read_bytes() in files.values(), True, f"{path.name} after reading")
    return len(files), refused


def extended(directory, made):
    """An unknown member in the header is ignored."""
    count = 0
    for name, data in made.items():
        if not name.endswith(".byu.lz4"):
            continue
        path = directory / name
        path.write_bytes(changed(data, lambda header: header.update({"a later member": {"with": ["anything", 1, None]}})))
        original = directory / f"{name}.original"
        original.write_bytes(changed(data))
        equal(harness.lz4_dc([path]), harness.lz4_dc([original]), "records")
        equal(run_program(BUSCAP, "dump", path).stdout, run_program(BUSCAP, "dump", original).stdout, name)
        found = harness.info([path])[0]
        assert re.match(r"\d{8}T", found["recording"]), found
        count += 1
    return count


def run(options):
    made = left_open(options.directory)
    results = options.each(lambda directory, number: future(directory, options, number, made),
                           [(number,) for number in range(options.rounds)])
    read = options.each(lambda directory: extended(directory, made), [()])
    return {
        "directories": len(results),
        "files of a future version": sum(result[0] for result in results),
        "readings refused": sum(result[1] for result in results),
        "extended files read": sum(read),
    }


if __name__ == "__main__":
    torture.main(run, short=len(CHANGES), long=10 * len(CHANGES))
