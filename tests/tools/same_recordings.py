#!/usr/bin/env python3
"""Compares what two builds record: same_recordings.py BEFORE AFTER [FILE...]

BEFORE and AFTER are directories with a buscapd. Both record the simulator, and each FILE.
Everything in the segments must be equal, except recordings' ids, times of day, and the program's version. Prints a
line for each recording; exit code 1 if one differs.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import reference  # noqa: E402

SIM = "sim:seed=1,rate=max,count=5000000"


def digest(directory):
    """A hash of all that must be equal in a directory's segments."""
    total = hashlib.sha256()
    for path in sorted(directory.glob("*.byu.lz4")):
        segment = reference.read_segment(path)
        header = {**segment.header, "recording": "", "program": "", "first": {**segment.header["first"]}}
        header["first"].update(wall="", wall_ns=0)
        total.update(repr(sorted(header.items())).encode())
        for chunk in segment.chunks:
            info = {**chunk.info, "tag": 0, "wall_ns": 0}
            total.update(repr((sorted(info.items()), chunk.events)).encode() + chunk.pages + chunk.frame)
        total.update(repr((segment.is_sealed, segment.nodes)).encode())
    return total.hexdigest()


def record(build, source, size, output):
    command = [build / "buscapd", "--no-socket", "--once", "--set", "pipeline.workers=1",
               "--source", source, "-b", f"filesize:{size}", "-o", output]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode


def main():
    before, after, *files = map(pathlib.Path, sys.argv[1:])
    differing = 0
    for source, size in [(SIM, "8M"), (SIM, "10G"), *((f"file:{path}", "10G") for path in files)]:
        seen = []
        for build in before, after:
            with tempfile.TemporaryDirectory() as directory:
                code = record(build, source, size, directory)
                seen.append((code, digest(pathlib.Path(directory))))
        differing += seen[0] != seen[1]
        print(f"{'same' if seen[0] == seen[1] else 'DIFFERENT'}  exit {seen[1][0]}  {source} in files of {size}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
