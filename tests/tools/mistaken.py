#!/usr/bin/env python3
"""Which files of this machine are taken for traces: `python3 tests/tools/mistaken.py [TEXTS [BINARIES [SEED [ROOT]]]]`.

Draws that many texts and other files among all under ROOT, without links and the directories below, and prints those
in which `buscap info` finds a format, to be judged by hand. A text has no zero byte in its first 8 KiB.
"""

import os
import pathlib
import random
import subprocess
import sys

BUSCAP = pathlib.Path(__file__).parents[2] / "build/buscap"
SKIPPED = {"/proc", "/sys", "/dev", "/run", "/tmp", "/work"}
BATCH = 200


def files_below(root):
    device = os.lstat(root).st_dev
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in SKIPPED and not os.path.islink(
            os.path.join(folder, name)) and os.lstat(os.path.join(folder, name)).st_dev == device]
        for name in names:
            path = os.path.join(folder, name)
            if "\n" not in path and os.path.isfile(path) and not os.path.islink(path):
                yield path


def is_text(path):
    with open(path, "rb") as file:
        head = file.read(8192)
    return None if not head else b"\0" not in head


def draw(wanted, root, seed):
    paths = sorted(files_below(root))
    random.Random(seed).shuffle(paths)
    drawn = {kind: [] for kind in wanted}
    for path in paths:
        try:
            kind = is_text(path)
        except OSError:
            continue
        if kind is not None and len(drawn[kind]) < wanted[kind]:
            drawn[kind].append(path)
    return drawn


def found(paths):
    """The lines of info that name a file and its format."""
    out = subprocess.run([BUSCAP, "info", "--", *paths], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False).stdout.decode(errors="replace")
    return [line for line in out.splitlines() if line.startswith("/") and ": " in line]


def main():
    texts, binaries, seed = (int(word) for word in (sys.argv[1:4] + ["40000", "20000", "1"][len(sys.argv[1:4]):]))
    drawn = draw({True: texts, False: binaries}, os.path.abspath(sys.argv[4] if len(sys.argv) > 4 else "/"), seed)
    for kind, paths in drawn.items():
        hits = [line for at in range(0, len(paths), BATCH) for line in found(paths[at:at + BATCH])]
        print(*hits, sep="\n", end="\n" if hits else "")
        print(f"{'texts' if kind else 'binaries'}: {len(paths)} files, {len(hits)} taken for traces")


if __name__ == "__main__":
    main()
