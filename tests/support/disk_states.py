"""A model of a disk that loses power: what can be on it afterwards, given the calls that a program made.

Calls are recorded by tests/support/faultfs.c (FAULTFS_RECORD). The model assumes only what POSIX and Linux promise:

* After a successful fsync or fdatasync of a file, its earlier writes and its length are on the disk.
* After an fsync of the directory, its earlier creations, renames and deletions are on the disk.
* Anything else may be there or not, in any order. Of a write, any of its 512-byte sectors may be there. A length may be
  there before the data; what is between reads as zeros, or as something that was deleted.
* A single creation, rename or deletion is atomic.

File systems promise more. A program that survives all these states needs none of it.
"""

import dataclasses
import pathlib

SECTOR = 512
ORDERS = ("none", "all", "prefix", "subset")
FILLERS = ("zeros", "old data")


@dataclasses.dataclass
class Call:
    kind: str
    inode: int
    offset: int  # for ftruncate and fallocate, the new length
    data: bytes
    name: str
    new_name: str
    end: int  # position in the log after it


def read_log(path):
    """Returns the calls in a log."""
    log = pathlib.Path(path).read_bytes() if pathlib.Path(path).exists() else b""
    calls = []
    at = 0
    while at < len(log):
        line_end = log.index(b"\n", at)
        kind, inode, offset, length, names = log[at:line_end].decode().split(" ", 4)
        name, _, new_name = names.partition("/")
        at = line_end + 1 + int(length)
        calls.append(Call(kind, int(inode), int(offset), log[line_end + 1 : at], name, new_name, at))
    return calls


class _File:
    """What is durable of a file, and the calls since then."""

    def __init__(self, durable=b""):
        self.durable = durable
        self.pending = []

    def sync(self):
        content = bytearray(self.durable)
        for call in self.pending:
            _apply(content, call)
        self.durable = bytes(content)
        self.pending = []


def _resize(content, length):
    if length < len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


def _apply(content, call):
    if call.kind == "ftruncate":
        _resize(content, call.offset)
    elif call.kind == "fallocate":
        _resize(content, max(len(content), call.offset))
    else:
        _resize(content, max(len(content), call.offset + len(call.data)))
        content[call.offset : call.offset + len(call.data)] = call.data


def _sectors(call):
    """The pieces of a write that are on the disk entirely or not at all."""
    at = 0
    while at < len(call.data):
        n = SECTOR - (call.offset + at) % SECTOR
        yield dataclasses.replace(call, offset=call.offset + at, data=call.data[at : at + n])
        at += n


class Disk:
    """A directory on a disk. advance() makes calls; state() returns what can be there if the power fails now. fillers:
    what space reads as whose data is not on the disk."""

    def __init__(self, files=None, fillers=FILLERS):
        self._fillers = fillers
        # Files have numbers of their own, because inode numbers are used again after a deletion.
        self._files = [_File(data) for data in (files or {}).values()]
        self._durable_names = {name: number for number, name in enumerate(files or {})}
        self._names = dict(self._durable_names)  # as the program sees them
        self._pending = []  # calls that changed names since the last sync: (kind, name, new name, file's number)
        self._of_inode = {}
        self._written = [data for data in (files or {}).values() if data]

    def advance(self, call, has_file_sync=True, has_dir_sync=True):
        """Makes one call. Without has_..._sync, calls of this kind do nothing, as in a program that lacks them."""
        if call.name == ".":
            if has_dir_sync:
                self._durable_names = dict(self._names)
                self._pending = []
        elif call.kind in ("fsync", "fdatasync"):
            if has_file_sync:
                self._file(call).sync()
        elif call.kind in ("create", "renameat2", "unlinkat"):
            if call.kind == "create":
                self._of_inode[call.inode] = len(self._files)
                self._files.append(_File())
            number = self._of_inode[call.inode] if call.kind == "create" else self._names[call.name]
            self._pending.append((call.kind, call.name, call.new_name, number))
            _change(self._names, *self._pending[-1])
        else:
            self._file(call).pending.append(call)
            if len(call.data) > SECTOR:
                self._written.append(call.data)

    def _file(self, call):
        if call.inode not in self._of_inode:
            self._of_inode[call.inode] = self._names[call.name]
        return self._files[self._of_inode[call.inode]]

    def state(self, rng):
        """Returns one possible state, {name: bytes}, and how it was chosen."""
        order = rng.choice(ORDERS)
        data = rng.choice((*ORDERS, "sectors", "lengths"))
        filler = rng.choice(self._fillers)
        names = dict(self._durable_names)
        for change in _chosen(self._pending, order, rng):
            _change(names, *change)
        files = {name: self._content(self._files[number], data, filler, rng) for name, number in sorted(names.items())}
        return files, f"names: {order}; data: {data}; the rest: {filler}"

    def _content(self, file, order, filler, rng):
        if not file.pending:
            return file.durable
        lengths = {len(file.durable)}
        whole = bytearray(file.durable)
        for call in file.pending:
            _apply(whole, call)
            lengths.add(len(whole))
        if order in ("none", "all"):
            return bytes(whole) if order == "all" else file.durable
        longest = max(lengths)
        content = bytearray(file.durable)
        # Space that was never written.
        content += bytes(longest - len(content)) if filler == "zeros" else self._old_data(longest - len(content), rng)
        if order == "prefix":
            number = rng.randrange(len(file.pending) + 1)
            kept = file.pending[:number]
            if number < len(file.pending):
                torn = list(_sectors(file.pending[number]))
                kept = [*kept, *torn[: rng.randrange(len(torn) + 1)]]
            content = content[: max([len(file.durable), *(call.offset + len(call.data) for call in kept)])]
            for call in kept:
                _apply(content, call)
            return bytes(content)
        if order == "subset":
            kept = _chosen(file.pending, "subset", rng)
        elif order == "sectors":
            p = rng.choice((0.1, 0.5, 0.9))
            kept = [piece for call in file.pending for piece in _sectors(call) if rng.random() < p]
        else:
            kept = []
        for call in kept:
            if call.data:
                content[call.offset : call.offset + len(call.data)] = call.data
        return bytes(content[: rng.choice(sorted(lengths))])

    def _old_data(self, length, rng):
        old = b""
        while len(old) < length:
            old += rng.choice(self._written) if self._written else bytes(length)
        return old[:length]


def _change(names, kind, name, new_name, number):
    if kind == "create":
        names[name] = number
    elif kind == "unlinkat":
        names.pop(name, None)
    else:
        # Its creation need not be on the disk.
        names.pop(name, None)
        names[new_name] = number


def _chosen(calls, order, rng):
    if order == "none":
        return []
    if order == "all":
        return list(calls)
    if order == "prefix":
        return calls[: rng.randrange(len(calls) + 1)]
    return [call for call in calls if rng.random() < 0.5]


def write_files(directory, files):
    for name, data in files.items():
        (directory / name).write_bytes(data)
