"""Directories with many recordings, or with one of many segments, as a daemon leaves them after months."""

import datetime
import json
import os
import pathlib
import struct

import harness
import reference

PAD = 40  # room in the header for longer numbers, so that nothing else moves


class Template:
    """A small segment that can be renamed."""

    def __init__(self, tmp):
        out = pathlib.Path(tmp, "template")
        done = harness.run(harness.BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=2000", "-o", out,
                           "--set", "recording.metadata.pad=" + PAD * "x")
        harness.equal(done.returncode, 0, done.stderr)
        (path,) = harness.segments(out)
        data = path.read_bytes()
        (size,) = struct.unpack_from("<I", data, 15)
        self.size = size - 8
        header = json.loads(data[19 : 19 + self.size])
        header.update(recording="@", sequence="@", segment="@", first={**header["first"], "record": "@"}, metadata={"pad": "@"})
        self.parts = json.dumps(header, separators=(",", ":")).split('"@"')
        self.before, self.after = data[:19], data[19 + self.size + 8 :]

    def write(self, directory, recording, sequence, segment=0):
        """Writes the segment of another recording, with an id as long as its own."""
        values = iter((f'"{recording}"', str(sequence), str(segment), str(2000 * segment)))
        text = self.parts[0] + "".join(next(values) + part for part in self.parts[1:-1])
        text += f'"{(self.size - len(text) - len(self.parts[-1]) - 2) * "x"}"{self.parts[-1]}'
        head = self.before + text.encode()
        number = f"{segment:05}" if segment < 100000 else f"a{segment}"
        name = f"{directory}/{recording}-{number}.byu.lz4"
        with open(name, "wb", buffering=0) as file:
            file.write(head + struct.pack("<Q", reference.hash_of(head[11:])) + self.after)
        started = datetime.datetime.strptime(recording[:16] + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        os.utime(name, (started, started + segment + 1))


def recording_id(number):
    """Ids of the year 2020, in order."""
    return f"2020{number // 40000 % 12 + 1:02}{number // 2000 % 20 + 1:02}T{number // 100 % 20:02}{number // 2 % 50:02}{30 * (number % 2):02}Z-000000"


def make(tmp, directory, recordings, segments=1):
    """Fills a directory. Returns the template of its files."""
    template = Template(tmp)
    directory.mkdir(exist_ok=True)
    for number in range(recordings):
        for segment in range(segments):
            template.write(directory, recording_id(number), number + 1, segment)
    return template
