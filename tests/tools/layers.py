#!/usr/bin/env python3
"""Checks the includes of the sources against the tables in docs/architecture.md.

    layers.py            print violations; exit code 1 if there are any
    layers.py --doors    print the doors of each room and the rooms it includes, according to the sources

A module is NAME.c, NAME.h and NAME_internal.h in one room. Violations are: a module outside all rooms; an include of
another room that is not in the table's row, or not of a door; a door that no other room includes; a library that the
layer may not use; a cycle between rooms or between modules; a room with more lines than the table grants it. A commit that
raises that number says why.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("formats", "capture", "daemon", "cli")
DOCUMENT = ROOT / "docs/architecture.md"


def rows(header):
    """Yields the rows of the table that starts with this header, as lists of cells."""
    lines = DOCUMENT.read_text().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(header)), None)
    if start is None:
        sys.exit(f"{DOCUMENT.name}: no table starts with {header!r}")
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def read_sources():
    """Returns the included headers of each module: {stem: (our headers, library headers)}."""
    modules = {}
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.[ch]")):
            stem = str(path.relative_to(ROOT))[:-2].removesuffix("_internal")
            ours, theirs = modules.setdefault(stem, (set(), set()))
            for quote, header in re.findall(r'^#include (["<])([^">]+)', path.read_text(), re.M):
                if quote == "<":
                    theirs.add(header)
                elif header[:-2].removesuffix("_internal") != stem:
                    ours.add(header)
    return modules


def room_of(path):
    return path.rpartition("/")[0]


def find_cycle(graph):
    """Returns a cycle of a graph {node: nodes}, or None."""
    state = {}

    def visit(node, path):
        state[node] = "open"
        for other in sorted(graph.get(node, ())):
            if state.get(other) == "open":
                return [*path[path.index(other) :], other] if other in path else [node, other]
            if other not in state and (cycle := visit(other, [*path, other])):
                return cycle
        state[node] = "done"
        return None

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in state and (cycle := visit(node, [node])):
            return cycle
    return None


def main():
    modules = read_sources()
    doors, rooms = collections.defaultdict(set), collections.defaultdict(set)
    for stem, (ours, _) in modules.items():
        for header in ours:
            if room_of(header) != room_of(stem):
                doors[room_of(header)].add(header.rpartition("/")[2][:-2])
                rooms[room_of(stem)].add(room_of(header))
    if "--doors" in sys.argv:
        for room in sorted({room_of(stem) for stem in modules}):
            print(f"{room}: doors {' '.join(sorted(doors[room]))}; includes {' '.join(sorted(rooms[room]))}")
        return 0

    table, budgets = {}, {}
    for room, _, door, may, lines in rows("| room |"):
        table[names(room)[0]] = set(names(door)), set(names(may))
        budgets[names(room)[0]] = int(lines.replace(",", ""))
    libraries = {name: names(may) for layer, may in rows("| layer |") for name in names(layer)}
    bad = []
    for stem, (ours, theirs) in sorted(modules.items()):
        room = room_of(stem)
        if room not in table:
            bad.append(f"{stem}: not in a room of the table")
            continue
        for header in sorted(ours):
            other = room_of(header)
            if other == room:
                continue
            if other not in table.get(room, ((), ()))[1]:
                bad.append(f"{stem}: includes {header}, but {room} may not include {other}")
            elif header.rpartition("/")[2][:-2] not in table[other][0]:
                bad.append(f"{stem}: includes {header}, which is not a door of {other}")
        allowed = [lib for part in (room, stem.partition("/")[0]) for lib in libraries.get(part, ())]
        known = [lib for may in libraries.values() for lib in may]
        for header in sorted(theirs):
            if any(header.startswith(lib) for lib in known) and not any(header.startswith(lib) for lib in allowed):
                bad.append(f"{stem}: includes <{header}>, a library that {room} may not use")
    for room, (door, _) in sorted(table.items()):
        if not (ROOT / room).is_dir():
            bad.append(f"{room}: in the table, but not in the tree")
        bad.extend(f"{room}: door {one} is not included by any other room" for one in sorted(door - doors[room]))
        bad.extend(f"{room}: may include {one}, but does not" for one in sorted(table[room][1] - rooms[room]))
    for room, budget in sorted(budgets.items()):
        lines = sum(path.read_text().count("\n") for path in (ROOT / room).glob("*.[ch]"))
        if lines > budget:
            bad.append(f"{room}: {lines:,} lines, {lines - budget:,} more than its budget of {budget:,}")
    for what, graph in (("rooms", rooms), ("modules", {s: {h[:-2] for h in ours} for s, (ours, _) in modules.items()})):
        if cycle := find_cycle(graph):
            bad.append(f"cycle of {what}: {' -> '.join(cycle)}")
    if bad:
        print("\n".join(bad))
        print(f"{len(bad)} violations of {DOCUMENT.relative_to(ROOT)}")
        return 1
    print(f"layers: {len(modules)} modules in {len(table)} rooms, no violations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
