"""Reads an Arrow IPC stream, strictly, from the specification only: struct and FlatBuffers by hand."""

import struct

TYPES = {2: "int", 5: "utf8", 10: "timestamp"}


class Table:
    """A table of a FlatBuffer at an address, which must be aligned and inside."""

    def __init__(self, data, at):
        assert at % 4 == 0 and at + 4 <= len(data), at
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        assert self.vtable % 2 == 0 and 0 <= self.vtable <= len(data) - 4, self.vtable
        self.vtable_bytes, self.bytes = struct.unpack_from("<HH", data, self.vtable)
        assert self.vtable_bytes >= 4 and self.vtable + self.vtable_bytes <= len(data)
        assert self.bytes >= 4 and at + self.bytes <= len(data)

    def field(self, slot):
        """The address of a field, or None."""
        entry = 4 + 2 * slot
        offset = struct.unpack_from("<H", self.data, self.vtable + entry)[0] if entry < self.vtable_bytes else 0
        assert offset == 0 or 4 <= offset < self.bytes, offset
        return self.at + offset if offset else None

    def number(self, slot, form):
        at = self.field(slot)
        if at is None:
            return 0
        assert at % struct.calcsize(form) == 0, "aligned"
        return struct.unpack_from("<" + form, self.data, at)[0]

    def follow(self, slot):
        at = self.field(slot)
        if at is None:
            return None
        assert at % 4 == 0
        to = at + struct.unpack_from("<I", self.data, at)[0]
        assert at < to < len(self.data), to
        return to

    def table(self, slot):
        at = self.follow(slot)
        return None if at is None else Table(self.data, at)

    def vector(self, slot, align):
        """The address of the first element, and the number of elements."""
        at = self.follow(slot)
        assert at is not None and at % 4 == 0 and (at + 4) % align == 0, at
        return at + 4, struct.unpack_from("<I", self.data, at)[0]

    def string(self, slot):
        at, count = self.vector(slot, 1)
        assert self.data[at + count] == 0, "ends in a zero"
        return self.data[at : at + count].decode()

    def tables(self, slot):
        at, count = self.vector(slot, 4)
        return [Table(self.data, at + 4 * i + struct.unpack_from("<I", self.data, at + 4 * i)[0]) for i in range(count)]

    def pairs(self, slot):
        at, count = self.vector(slot, 8)
        return [struct.unpack_from("<qq", self.data, at + 16 * i) for i in range(count)]


def messages(data):
    """Yields the header's kind, its table and the body of each message. The stream must have an end and nothing after it."""
    at = 0
    while True:
        mark, size = struct.unpack_from("<II", data, at)
        assert mark == 0xFFFFFFFF and at % 8 == 0 and size % 8 == 0, at
        at += 8
        if size == 0:
            break
        metadata = data[at : at + size]
        message = Table(metadata, struct.unpack_from("<I", metadata)[0])
        assert message.number(0, "h") == 4, "version 5"
        body = message.number(3, "q")
        assert body % 8 == 0 and at + size + body <= len(data)
        yield message.number(1, "B"), message.table(2), data[at + size : at + size + body]
        at += size + body
    assert at == len(data), "nothing after the end"


class Field:
    def __init__(self, table):
        self.name, self.is_nullable, self.kind = table.string(0), bool(table.number(1, "B")), TYPES[table.number(2, "B")]
        assert table.tables(5) == [], "no children"
        kind, dictionary = table.table(3), table.table(4)
        self.dictionary = None
        if dictionary is not None:
            self.dictionary, self.index = dictionary.number(0, "q"), dictionary.table(1)
        if self.kind == "timestamp":
            self.type, self.form = (("s", "ms", "us", "ns")[kind.number(0, "h")], kind.string(1)), "q"
        else:
            number = self.index if self.dictionary is not None else kind
            form = {8: "B", 16: "H", 32: "I", 64: "Q"}[number.number(0, "i")]
            self.form = form.lower() if number.number(1, "B") else form
            self.type = self.kind if self.kind == "utf8" else ("int" if number.number(1, "B") else "uint") + str(number.number(0, "i"))


class Batch:
    """The buffers of a record batch, in order: each at a multiple of 8, after the previous one."""

    def __init__(self, table, body):
        self.rows, self.nodes, self.buffers, self.body = table.number(0, "q"), table.pairs(1), table.pairs(2), body
        assert table.field(3) is None, "not compressed"
        end = 0
        for offset, size in self.buffers:
            assert offset % 8 == 0 and offset == end + -end % 8, (offset, end)
            assert body[end:offset] == bytes(offset - end), "padding is zero"
            end = offset + size
        assert len(body) == end + -end % 8

    def next_buffer(self):
        offset, size = self.buffers.pop(0)
        return self.body[offset : offset + size]

    def column(self, form):
        rows, nulls = self.nodes.pop(0)
        assert rows == self.rows
        bitmap, values = self.next_buffer(), self.next_buffer()
        assert len(values) == rows * struct.calcsize(form), (len(values), rows, form)
        values = list(struct.unpack(f"<{rows}{form}", values))
        if nulls == 0:
            assert bitmap == b"", "a column without nulls has no bitmap"
            return values
        assert len(bitmap) == (rows + 7) // 8
        known = [bitmap[i // 8] >> i % 8 & 1 for i in range(8 * len(bitmap))]
        assert sum(known) == sum(known[:rows]) == rows - nulls, "as many nulls as counted, and no bits after the rows"
        assert all(value == 0 for value, is_known in zip(values, known) if not is_known)
        return [value if is_known else None for value, is_known in zip(values, known)]

    def strings(self):
        assert self.nodes.pop(0) == (self.rows, 0) and self.next_buffer() == b""
        ends = struct.unpack(f"<{self.rows + 1}i", self.next_buffer())
        text = self.next_buffer()
        assert ends[0] == 0 and ends[-1] == len(text) and list(ends) == sorted(ends)
        return [text[a:b].decode() for a, b in zip(ends, ends[1:])]

    def is_over(self):
        return self.nodes == [] and self.buffers == []


def read(data):
    """Returns {name: type}, {name: list of values}, and the rows of each batch. A null is None, a dictionary's value its text."""
    stream = messages(data)
    kind, schema, body = next(stream)
    assert kind == 1 and body == b"" and schema.number(0, "h") == 0, "a schema, little-endian"
    fields = [Field(table) for table in schema.tables(1)]
    columns, rows, names = {field.name: [] for field in fields}, [], {}
    for kind, table, body in stream:
        if kind == 2:
            assert rows == [] and not table.number(2, "B")
            batch = Batch(table.table(1), body)
            names[table.number(0, "q")] = batch.strings()
            assert batch.is_over()
            continue
        assert kind == 3
        batch = Batch(table, body)
        for field in fields:
            values = batch.column(field.form)
            assert field.is_nullable or None not in values, field.name
            columns[field.name] += values if field.dictionary is None else [names[field.dictionary][value] for value in values]
        assert batch.is_over()
        rows.append(batch.rows)
    assert all(len(set(texts)) == len(texts) for texts in names.values()), "each name once"
    assert set(names) == {field.dictionary for field in fields} - {None}
    return {field.name: field.type for field in fields}, columns, rows
