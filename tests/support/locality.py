"""Working sets and LRU caches by their definitions: one window after the other, one cache after the other."""

import collections


def blocks(addr, size, each, is_bus=False):
    """The numbers of the blocks that an access touches. A bus burst covers its aligned block."""
    if is_bus and size in (16, 32):
        addr -= addr % size
    return range(addr // each, min(addr + max(size, 1) - 1, (1 << 64) - 1) // each + 1)


def working_set(touches, end, window):
    """The average number of different blocks in all windows of so many times within 1 to `end`. Touches: (time, blocks), by
    time."""
    inside, total, first, last = collections.Counter(), 0, 0, 0
    for start in range(1, end - window + 2):
        while last < len(touches) and touches[last][0] < start + window:
            inside.update(touches[last][1])
            last += 1
        while first < last and touches[first][0] < start:
            for block in touches[first][1]:
                inside[block] -= 1
                if inside[block] == 0:
                    del inside[block]
            first += 1
        total += len(inside)
    return total / (end - window + 1)


def misses(touched, lines):
    """How often a fully associative LRU cache of so many lines misses."""
    cache, count = collections.OrderedDict(), 0
    for line in touched:
        if line in cache:
            cache.move_to_end(line)
        else:
            count += 1
            cache[line] = None
            if len(cache) > lines:
                cache.popitem(last=False)
    return count


def check_working_set(rows, lines, pages, end, every=1, unit="references"):
    """Compares the windows of `buscap stats --json --working-set`, or every so many, with all of 2^k up to `end`."""
    assert [row[unit] for row in rows] == [1 << k for k in range(end.bit_length())], rows
    for row in rows[::every]:
        for name, touches in (("lines", lines), ("pages", pages)):
            wanted = working_set(touches, end, row[unit])
            assert abs(row[name] - wanted) < 1e-9 * max(wanted, 1), f"{row}: {name} should be {wanted}"


def check_misses(rows, touched, line):
    """Compares the rows of --miss-ratio, which are exact, with caches of 2^k lines up to the first that holds all."""
    sizes = [1 << k for k in range((len(set(touched)) - 1).bit_length() + 1)]
    wanted = [(n * line, misses(touched, n), 1) for n in sizes]
    assert [(row["bytes"], row["misses"], row["one_line_in"]) for row in rows] == wanted, (rows, wanted)
    for row in rows:
        assert abs(row["ratio"] - row["misses"] / len(touched)) < 1e-9, row
