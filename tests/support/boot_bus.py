"""A bcp1 stream that looks like the bus of a PC while it boots: for pictures, and for tests of what they show."""

import random
import zlib

from reference import encode_header

CLOCK_HZ = 66_000_000
FETCH, READ, WRITE, READ_LINE, WRITE_LINE, IN, OUT = 0x90, 0xD0, 0xF0, 0xC0, 0xE0, 0x50, 0x70
ALL, LOW, BYTE, WORD = 0x00, 0xF0, 0xFE, 0xFC  # byte enables, active low


class Bus:
    """Collects samples in frames of one tick counter."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.out = bytearray()
        self.tick = CLOCK_HZ  # not 0
        self.sequence = 0
        self.samples = bytearray()
        self.start = self.tick
        self.lost = 0

    def flush(self, flags=0):
        n = len(self.samples) // 8
        if not n and not flags:
            return
        flags |= 4 * bool(self.trigger) if n else 0
        self.out += encode_header(flags | 2 * bool(self.lost), 0, self.sequence, n, self.start, self.lost)
        if n:
            self.out += self.samples + zlib.crc32(self.samples).to_bytes(4, "little")
        self.sequence += 1
        self.lost, self.trigger = 0, False
        self.samples = bytearray()

    trigger = False

    def add(self, control, address, enables, ticks):
        if len(self.samples) >= 8 * 2048 or ticks > 65535:
            self.flush()
        self.tick += ticks
        if not self.samples:
            self.start, ticks = self.tick, 0
        self.samples += address.to_bytes(4, "big") + bytes((enables, control)) + ticks.to_bytes(2, "little")

    def lose(self, count, ticks):
        self.flush()
        self.lost = count
        self.tick += ticks

    def pause(self, seconds):
        self.flush()
        self.tick += int(seconds * CLOCK_HZ)

    def mix(self, seconds, cycles, *parts):
        """Adds samples, one every `cycles` ticks or so: parts are (weight, control, enables, address function)."""
        weights = [part[0] for part in parts]
        end = self.tick + int(seconds * CLOCK_HZ)
        start, span = self.tick, end - self.tick
        rng = self.random
        while self.tick < end:
            for _, control, enables, address in rng.choices(parts, weights, k=256):
                self.add(control, address((self.tick - start) / span), enables, 1 + int(rng.expovariate(1 / cycles)))
                if self.tick >= end:
                    break


def boot(seed=1, scale=1.0):
    """Returns the stream. `scale`: 1 makes about 1,300,000 samples of 20 seconds, 0.1 a tenth of them."""
    bus = Bus(seed)
    rng = bus.random
    every = 600 / scale

    def near(base, size):
        return lambda _: base + (int(min(rng.expovariate(5), 0.999) * size) & ~7)

    def sweep(base, size):
        return lambda t: base + (int(min(t, 0.9999) * size) & ~7)

    def anywhere(base, size):
        return lambda _: base + (rng.randrange(size) & ~7)

    def one(*addresses):
        return lambda _: rng.choice(addresses)

    bios = (30, FETCH, ALL, near(0xFFFF0000, 0x10000))
    # Power on: the BIOS runs from ROM, programs the chipset and shows POST codes.
    bus.mix(1.2, every, bios, (1, OUT, BYTE, one(0x80)), (3, OUT, LOW, one(0xCF8, 0xCFC)), (2, IN, BYTE, one(0x61, 0x71)))
    # Memory test: it writes and reads all 32 MB.
    bus.mix(3.5, every / 2, (4, FETCH, ALL, near(0xF0000, 0x8000)), (8, WRITE, ALL, sweep(0, 0x2000000)),
            (8, READ, ALL, sweep(0, 0x2000000)), (0.3, WRITE, WORD, near(0xB8000, 0x1000)))
    # Option ROMs, VGA text.
    bus.mix(1.3, every, (10, FETCH, ALL, near(0xC0000, 0x8000)), (6, WRITE, WORD, near(0xB8000, 0x2000)),
            (3, OUT, BYTE, one(0x3C0, 0x3C4, 0x3D4, 0x3D5)), (2, READ, LOW, near(0x400, 0x200)))
    bus.trigger = True
    # The boot loader reads the kernel from the disk.
    bus.mix(2.6, every, (5, FETCH, ALL, near(0x7C00, 0x2000)), (14, IN, WORD, one(0x1F0)), (2, IN, BYTE, one(0x1F7)),
            (14, WRITE, LOW, sweep(0x100000, 0x180000)), (1, OUT, BYTE, one(0x20, 0x1F6)))
    bus.lose(1998, int(0.05 * CLOCK_HZ))
    # The kernel starts, probes and prints.
    kernel = (12, READ_LINE, ALL, near(0x100000, 0x180000))
    bus.mix(2.4, every, kernel, (6, WRITE_LINE, ALL, anywhere(0x280000, 0x400000)), (4, READ, ALL, near(0x280000, 0x100000)),
            (2, WRITE, WORD, near(0xB8000, 0x1000)), (2, IN, BYTE, one(0x3F8, 0x3FD, 0x64)), (2, OUT, BYTE, one(0x20, 0xA0, 0x40)))
    bus.pause(1.5)  # the clock stands still
    # User programs, in bursts.
    for i in range(6):
        base = 0x900000 + i * 0x240000
        bus.mix(0.8, every, kernel, (16, READ_LINE, ALL, near(base, 0x200000)), (8, WRITE_LINE, ALL, near(base + 0x100000, 0x80000)),
                (3, IN, WORD, one(0x1F0)), (1, OUT, BYTE, one(0x20)), (6, WRITE, LOW, near(0xE0000000, 0x96000)))
        bus.mix(0.5, every * 8, kernel, (2, OUT, BYTE, one(0x20)))
    bus.flush()
    bus.flush(8)
    return bytes(bus.out)
