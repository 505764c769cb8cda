"""Reads the recordings of buscapd: their records as numpy arrays, with ticks and times.

    for segment in buscap.segments("/var/lib/buscapd"):
        for chunk in segment.chunks:
            chunk.records["addr"], chunk.ticks, chunk.times, chunk.events

Segments and chunks read their file when asked for its contents, check its hashes, and pickle as a path and a number.
Damage raises `Damaged`. docs/python.md has examples, docs/segment-format.md the format.
"""

import os
import re

from .layout import PORTS, Damaged, Event
from .segment import Chunk, Segment

__all__ = ["PORTS", "Chunk", "Damaged", "Event", "Segment", "segments"]
_NAME = re.compile(r"(.{1,111})-(\d{5}|a[1-9]\d{5}|b[1-9]\d{6}|c[1-9]\d{7}|d[1-9]\d{8}|e[1-9]\d{9})"
                   r"\.byu\.(?:lz4|zst)(\.partial)?")


def parse_name(path):
    """Returns (recording, segment, whether it is open) from the name of a file, or None."""
    name = _NAME.fullmatch(os.path.basename(path))
    return name and (name[1], int(name[2].lstrip("abcde")), name[3] is not None)


def segments(*paths):
    """Returns the segments of files and directories, as a list in the order of `buscap`: by recording and number. A
    directory stands for the segments in it and its subdirectories, by their names; a file can have any name. Of several
    files of one segment the list has one, a sealed one if there is one."""
    found = []
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            below = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)
                     and entry.name[0] != "." and entry.name != "lost+found"]
            for depth, place in enumerate([path, *sorted(below)]):
                found += [((*key, depth), os.path.join(place, name)) for name in os.listdir(place)
                          if (key := parse_name(name))]
            continue
        try:
            header = Segment(path).header
            key = header["recording"], header["segment"], path.endswith(".partial")
        except Damaged:
            key = parse_name(path) or ("\U0010ffff", len(found), False)  # at the end, as given
        found.append(((*key, 0), path))
    first = {key[:2]: path for key, path in sorted(found, reverse=True)}
    return [Segment(path) for path in reversed(first.values())]
