"""The software board as a virtual machine sees it over usbredir (tests/board/usbredir_board.c). The guest's side is
implemented here from the protocol description, so that both sides do not share a mistake."""

import json
import os
import random
import select
import signal
import socket
import struct
import time
import zlib

import harness
from harness import BUSCAPD, TIMEOUT_S, equal, lz4_dc, need, run, segments, sim_records, wait_until
from usbredir_harness import PROGRAM, Board

# From usbredirproto.h.
(HELLO, DEVICE_CONNECT, DEVICE_DISCONNECT, RESET, INTERFACE_INFO, EP_INFO, SET_CONFIGURATION, GET_CONFIGURATION,
 CONFIGURATION_STATUS, SET_ALT, GET_ALT, ALT_STATUS, START_ISO, STOP_ISO, ISO_STATUS, START_INTERRUPT, STOP_INTERRUPT,
 INTERRUPT_STATUS, ALLOC_STREAMS, FREE_STREAMS, STREAMS_STATUS, CANCEL, FILTER_REJECT, FILTER, DISCONNECT_ACK,
 START_BULK, STOP_BULK, BULK_STATUS) = range(28)
CONTROL, BULK, ISO, INTERRUPT, BUFFERED_BULK = range(100, 105)
SUCCESS, CANCELLED, INVAL, IOERROR, STALL, TIMEOUT, BABBLE = range(7)
CAP_STREAMS, CAP_VERSION, CAP_FILTER, CAP_ACK, CAP_PACKET_SIZE, CAP_LONG_IDS, CAP_LONG_BULK, CAP_RECEIVING = range(8)
QEMU_CAPS = (CAP_STREAMS, CAP_VERSION, CAP_FILTER, CAP_ACK, CAP_PACKET_SIZE, CAP_LONG_IDS, CAP_LONG_BULK,
             CAP_RECEIVING)

ENDPOINT = 0x81
GET_INFO, START, STOP, GET_COUNTERS = 1, 2, 3, 4
URB = 65536
FIRST = 100000  # samples that are compared with the simulated bus; later the board's bus repeats itself


class Packet:
    def __init__(self, kind, number, body):
        self.kind, self.id, self.body = kind, number, body

    def __repr__(self):
        return f"packet {self.kind}, id {self.id}, {self.body[:32].hex()}"


class Guest:
    """The guest's end of a connection, with QEMU's capabilities by default."""

    def __init__(self, board, caps=QEMU_CAPS, says_hello=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(board.path))  # blocks while others wait; with a timeout it would fail
        self.socket.settimeout(TIMEOUT_S)
        self.caps = caps
        self.host_caps = None
        self._bytes = bytearray()
        self._next_id = 1 << 33 if CAP_LONG_IDS in caps else 1
        self.pending = []  # ids of bulk transfers, in order
        self.stream = bytearray()
        if says_hello:
            self.send(HELLO, 0, b"a test".ljust(64, b"\0"), struct.pack("<I", sum(1 << cap for cap in caps)))
            self._connect()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.socket.close()

    def has(self, cap):
        return self.host_caps is not None and cap in self.host_caps and cap in self.caps

    def send(self, kind, number, header=b"", data=b""):
        ids = "Q" if self.has(CAP_LONG_IDS) else "I"
        self.socket.sendall(struct.pack("<II" + ids, kind, len(header) + len(data), number) + header + data)

    def receive(self):
        """Returns the next packet; None at the end of the connection."""
        while True:
            n = 16 if self.has(CAP_LONG_IDS) else 12
            if len(self._bytes) >= n:
                kind, length = struct.unpack_from("<II", self._bytes)
                if len(self._bytes) >= n + length:
                    number = int.from_bytes(self._bytes[8:n], "little")
                    packet = Packet(kind, number, bytes(self._bytes[n : n + length]))
                    del self._bytes[: n + length]
                    return packet
            piece = self.socket.recv(1 << 18)
            if not piece:
                assert not self._bytes, "a packet was cut off"
                return None
            self._bytes += piece

    def ends(self):
        """Waits until the connection ends, ignoring pending data."""
        try:
            while self.socket.recv(1 << 18):
                pass
        except ConnectionResetError:
            pass

    def wait(self, kind, number=None):
        """Returns the body of the next packet, which must be of this kind."""
        packet = self.receive()
        assert packet is not None and packet.kind == kind, f"expected {kind}, got {packet}"
        if number is not None:
            equal(packet.id, number, "id")
        return packet.body

    def new_id(self):
        self._next_id += 1
        return self._next_id

    def _connect(self):
        caps = struct.unpack("<I", self.wait(HELLO)[64:])[0]
        self.host_caps = [cap for cap in range(32) if caps >> cap & 1]
        self.receive_info()
        fields = struct.unpack("<4B3H" if self.has(CAP_VERSION) else "<4B2H", self.wait(DEVICE_CONNECT))
        self.speed, self.device_class = fields[0], fields[1:4]
        self.device = fields[4:]

    def receive_info(self):
        body = self.wait(INTERFACE_INFO)
        count = struct.unpack_from("<I", body)[0]
        self.interfaces = [(body[4 + i], body[36 + i], body[68 + i], body[100 + i]) for i in range(count)]
        body = self.wait(EP_INFO)
        equal(len(body), 160 if self.has(CAP_PACKET_SIZE) else 96, "bytes of the endpoints' information")
        self.types, self.ep_interfaces = body[:32], body[64:96]
        self.packet_sizes = struct.unpack("<32H", body[96:160]) if len(body) == 160 else None

    # ---- control transfers

    def send_control(self, request_type, request, value=0, index=0, length=0, data=b""):
        number = self.new_id()
        self.send(CONTROL, number, struct.pack("<4B3H", request_type & 0x80, request, request_type, 0, value, index,
                                               length), data)
        return number

    def receive_control(self, number):
        """Returns (status, data) of a control transfer. Also handles bulk packets that arrive before it."""
        while True:
            packet = self.receive()
            assert packet is not None, "the connection has ended"
            if packet.kind == BULK:
                self._complete_bulk(packet)
                continue
            equal((packet.kind, packet.id), (CONTROL, number), "the answer")
            _, _, _, status, _, _, length = struct.unpack_from("<4B3H", packet.body)
            assert len(packet.body) in (10, 10 + length)
            return status, packet.body[10:]

    def control(self, request_type, request, value=0, index=0, length=0):
        return self.receive_control(self.send_control(request_type, request, value, index, length))

    def descriptor(self, kind, index=0, length=4096):
        status, data = self.control(0x80, 6, kind << 8 | index, 0x409 if kind == 3 and index else 0, length)
        equal(status, SUCCESS, f"descriptor {kind}, {index}")
        return data

    def configure(self, number=1):
        self.send(SET_CONFIGURATION, self.new_id(), bytes([number]))
        self.receive_info()
        equal(self.wait(CONFIGURATION_STATUS, self._next_id), bytes([SUCCESS, number]), "set configuration")

    def start(self):
        equal(self.control(0x41, START), (SUCCESS, b""), "START")

    # ---- bulk transfers

    def submit(self, count=1, size=URB, endpoint=ENDPOINT):
        for _ in range(count):
            self.pending.append(self.new_id())
            header = struct.pack("<BBHI", endpoint, 0, size & 0xFFFF, 0)
            if self.has(CAP_LONG_BULK):
                header += struct.pack("<H", size >> 16)
            self.send(BULK, self._next_id, header)

    def _complete_bulk(self, packet):
        endpoint, status, length, stream = struct.unpack_from("<BBHI", packet.body)
        head = 10 if self.has(CAP_LONG_BULK) else 8
        if head == 10:
            length += struct.unpack_from("<H", packet.body, 8)[0] << 16
        equal((packet.kind, stream), (BULK, 0), "a bulk packet")
        equal(length, len(packet.body) - head, "its length")
        self.pending.remove(packet.id)
        if endpoint == ENDPOINT:
            self.stream += packet.body[head:]
        return packet.id, status, packet.body[head:]

    def receive_bulk(self):
        """Returns the next completed bulk transfer: (id, status, data). Appends its data to .stream."""
        packet = self.receive()
        assert packet is not None, "the connection has ended"
        return self._complete_bulk(packet)

    def receive_rest(self):
        """Receives everything up to the end of the connection."""
        while packet := self.receive():
            self._complete_bulk(packet)

    def cancel(self, number):
        self.send(CANCEL, number)

    def stream_until(self, condition, depth=16, size=URB):
        """Keeps `depth` transfers in flight until condition(stream) holds, checked after each."""
        self.submit(depth - len(self.pending), size)
        while not condition(self.stream):
            _, status, _ = self.receive_bulk()
            equal(status, SUCCESS, "a bulk transfer")
            self.submit(1, size)

    def stop(self, size=URB):
        """Sends STOP, receives everything up to the last frame, and cancels the remaining transfers."""
        number = self.send_control(0x41, STOP)
        equal(self.receive_control(number), (SUCCESS, b""), "STOP")
        frames = Frames()
        self.stream_until(frames.have_ended, size=size)
        for waiting in list(self.pending):
            self.cancel(waiting)
        while self.pending:
            equal(self.receive_bulk()[1:], (CANCELLED, b""), "a cancelled transfer")


class Frames:
    """Checks a bcp1 stream of whole frames as it grows."""

    def __init__(self, stream=b""):
        self.at = self.frames = self.samples = self.lost = 0
        self.sequence = None
        self.is_last = False
        self.feed(stream)

    def have_ended(self, stream):
        self.feed(stream)
        return self.is_last

    def feed(self, stream):
        while len(stream) - self.at >= 32:
            magic, flags, _, _, sequence, n, _, lost, crc = struct.unpack_from("<4sHBBIIQII", stream, self.at)
            end = self.at + 32 + (8 * n + 4 if n else 0)
            equal((magic, zlib.crc32(stream[self.at : self.at + 28])), (b"BCP1", crc), f"the header at {self.at}")
            if len(stream) < end:
                return
            if n:
                crc = zlib.crc32(stream[self.at + 32 : end - 4]).to_bytes(4, "little")
                equal(bytes(stream[end - 4 : end]), crc, f"the frame at {self.at}")
            if self.sequence is not None:
                equal(sequence, (self.sequence + 1) % (1 << 32), "the sequence")
            assert not self.is_last, "a frame after the last"
            self.sequence, self.is_last = sequence, bool(flags & 8)
            self.frames += 1
            self.samples += n
            self.lost += lost
            self.at = end


def has_bytes(n):
    return lambda stream: len(stream) >= n


def recorded(tmp, stream, options=""):
    """Returns the records that buscapd makes from a stream."""
    path, out = tmp / "stream", tmp / "recorded"
    path.write_bytes(stream)
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{path}{options}", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    return lz4_dc(segments(out))


def volume(mib):
    """Bytes for this many MiB of stream; fewer with sanitizers."""
    return (mib << 20) // (8 if harness.is_sanitized() else 1)


# ---- the device


def test_the_guest_receives_the_descriptors(tmp):
    with Board(tmp, "--serial", "BC-7") as board, Guest(board) as guest:
        equal(board.query("state"), "connected")
        equal(sorted(guest.host_caps), [CAP_VERSION, CAP_PACKET_SIZE, CAP_LONG_IDS, CAP_LONG_BULK])
        device = guest.descriptor(1)
        equal((len(device), device[1]), (18, 1))
        equal(guest.device, struct.unpack_from("<3H", device, 8), "vendor, product, version")
        equal(guest.device[:2], (0x1209, 0x0001))
        equal(guest.device_class, tuple(device[4:7]))
        equal(guest.speed, 2, "high speed")
        equal(guest.descriptor(1, length=8), device[:8], "the first 8 bytes")
        config = guest.descriptor(2)
        equal(struct.unpack_from("<H", config, 2)[0], len(config), "wTotalLength")
        equal(guest.interfaces, [(0, 0xFF, config[9 + 6], config[9 + 7])])
        for i, kind in enumerate(guest.types):
            equal(kind, {0: 0, 16: 0, 17: 2}.get(i, 255), f"type of endpoint {i}")
        equal(guest.packet_sizes[17], 512)
        serial = guest.descriptor(3, device[16])
        equal(serial[2:].decode("utf-16-le"), "BC-7")
        equal(guest.control(0x80, 6, 0x2200, 0, 255)[0], STALL, "a string index out of range")
        status, answer = guest.control(0xC1, GET_INFO, length=64)
        equal((status, len(answer), answer[:4]), (SUCCESS, 64, b"\1\0\0\0"), "GET_INFO")
        equal(answer[32:].rstrip(b"\0"), b"BC-7")


def test_options_reach_the_board(tmp):
    with Board(tmp, "--id", "cafe:0042", "-w", "fw 9", "--speed", "full", "--fifo", "4096") as board, \
            Guest(board) as guest:
        equal(guest.device[:2], (0xCAFE, 0x42))
        equal((guest.speed, guest.packet_sizes[17]), (1, 64))
        answer = guest.control(0xC1, GET_INFO, length=64)[1]
        equal(struct.unpack_from("<I", answer, 12)[0], 4096, "fifo_samples")
        equal(answer[16:32].rstrip(b"\0"), b"fw 9")
        equal(answer[32:], bytes(32), "no serial number")
    with Board(tmp, "--ftdi") as board, Guest(board) as guest:
        equal(guest.device[:2], (0x0403, 0x6014))
    with Board(tmp, "--speed", "super") as board, Guest(board) as guest:
        equal((guest.speed, guest.packet_sizes[17]), (3, 1024))


def test_configuration_and_alternate_setting_are_set_and_read_back(tmp):
    with Board(tmp) as board, Guest(board) as guest:
        guest.send(GET_CONFIGURATION, 7)
        equal(guest.wait(CONFIGURATION_STATUS, 7), bytes([SUCCESS, 0]))
        guest.configure()
        guest.send(GET_CONFIGURATION, 8)
        equal(guest.wait(CONFIGURATION_STATUS, 8), bytes([SUCCESS, 1]))
        guest.send(SET_ALT, 9, bytes([0, 0]))
        guest.receive_info()
        equal(guest.wait(ALT_STATUS, 9), bytes([SUCCESS, 0, 0]))
        guest.send(GET_ALT, 10, bytes([0]))
        equal(guest.wait(ALT_STATUS, 10), bytes([SUCCESS, 0, 0]))
        guest.send(SET_ALT, 11, bytes([0, 5]))
        guest.receive_info()
        equal(guest.wait(ALT_STATUS, 11), bytes([STALL, 0, 5]))
        guest.send(SET_ALT, 12, bytes([200, 0]))
        guest.receive_info()
        equal(guest.wait(ALT_STATUS, 12), bytes([STALL, 200, 0]))
        guest.send(SET_CONFIGURATION, 13, bytes([9]))
        guest.receive_info()
        equal(guest.wait(CONFIGURATION_STATUS, 13), bytes([STALL, 9]))
        guest.send(RESET, 0)
        guest.send(GET_CONFIGURATION, 14)
        equal(guest.wait(CONFIGURATION_STATUS, 14), bytes([SUCCESS, 0]), "after a reset")


def test_an_endpoint_in_an_alternate_setting_is_announced_when_that_is_set(tmp):
    with Board(tmp, "--unplugged") as board:
        board.command("lie alternate", "plug")
        with Guest(board) as guest:
            guest.configure()
            equal(guest.types[17], 255, "no endpoint yet")
            guest.send(SET_ALT, 9, bytes([0, 1]))
            guest.receive_info()
            equal(guest.wait(ALT_STATUS, 9), bytes([SUCCESS, 0, 1]))
            equal((guest.types[17], guest.packet_sizes[17]), (2, 512))
            guest.start()
            guest.stream_until(has_bytes(10000))


def test_false_descriptors_are_passed_on(tmp):
    with Board(tmp, "--unplugged") as board:
        for lie in ("no-endpoint", "iso-endpoint", "out-endpoint", "zero-packet", "huge-packet", "truncated-config",
                    "long-config", "wrong-class", "many-interfaces", "alternate", "short-info", "wild-info",
                    "wild-serial"):
            board.command(f"lie {lie}", "plug")
            with Guest(board) as guest:
                guest.descriptor(1)
                guest.descriptor(2, length=65535)
                assert len(guest.interfaces) <= 32, lie
                guest.control(0xC1, GET_INFO, length=64)
            board.command("unplug")


# ---- the stream


def test_a_stream_matches_the_boards_counts_and_the_bus(tmp):
    with Board(tmp, "--rate", "max", "--seed", 5, "--agents", 3) as board, Guest(board) as guest:
        guest.configure()
        guest.start()
        guest.stream_until(has_bytes(volume(8)))
        guest.stop()
        frames, sent = Frames(guest.stream), board.sent()
        equal(frames.at, len(guest.stream), "whole frames")
        equal((sent["bytes"], sent["frames"], sent["samples"]), (len(guest.stream), frames.frames, frames.samples))
        equal((frames.lost, sent["torn_frames"], sent["starts"], sent["stops"]), (0, 0, 1, 1))
        expected = sim_records(FIRST, seed=5, agents=3)
        equal(recorded(tmp, guest.stream)[: len(expected)], expected, "the records")


def test_a_slow_stream_arrives_in_small_transfers(tmp):
    with Board(tmp, "--rate", 20000) as board, Guest(board) as guest:
        guest.configure()
        guest.start()
        guest.stream_until(has_bytes(100000))
        guest.stop()
        frames, sent = Frames(guest.stream), board.sent()
        equal((frames.at, frames.samples), (len(guest.stream), sent["samples"]))


def test_any_size_of_transfers_gives_the_same_stream(tmp):
    streams = []
    for size in (512, 4096, 65024, 1 << 20, 4 << 20):
        with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
            guest.configure()
            board.command("send 50000")
            guest.start()
            guest.stream_until(has_bytes(400000), depth=3, size=size)
            streams.append(bytes(guest.stream[:400000]))
    for stream in streams:
        equal(stream, streams[0], "the stream")


def test_raw6_streams_without_a_start(tmp):
    with Board(tmp, "--raw6", "--rate", "max") as board, Guest(board) as guest:
        board.command("requests stall")
        guest.configure()
        equal(guest.control(0x41, START)[0], STALL, "START")
        guest.stream_until(has_bytes(6 * FIRST + volume(2)))
        expected = sim_records(FIRST)
        records = recorded(tmp, guest.stream[: len(guest.stream) // 6 * 6], ",format=raw6")[: len(expected)]
        equal(len(records), len(expected))
        equal([records[i : i + 6] for i in range(0, len(records), 12)],
              [expected[i : i + 6] for i in range(0, len(expected), 12)], "addresses, types and sizes")


def test_an_ftdi_chip_sends_its_status_before_each_packet(tmp):
    with Board(tmp, "--ftdi", "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        equal(guest.control(0x40, 0x0B, 0x40FF), (SUCCESS, b""), "synchronous FIFO mode")
        stream = bytearray()
        guest.submit(8)
        # It sends as soon as it is configured, whether or not it answers requests of the board protocol.
        while len(stream) < volume(1):
            _, status, data = guest.receive_bulk()
            equal(status, SUCCESS)
            assert len(data) >= 2, "a packet without its status"
            for at in range(0, len(data), 512):
                stream += data[at + 2 : at + 512]
            guest.submit()
        assert Frames(stream).frames > 10
        equal(board.sent()["bytes"] >= len(stream), True)


def test_a_guest_without_capabilities_is_served(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board, caps=()) as guest:
        equal(len(guest.device), 2, "no device version")
        guest.configure()
        guest.start()
        guest.stream_until(has_bytes(volume(1)), size=65024)  # this packet type has 16-bit lengths
        guest.stop(size=65024)
        equal(Frames(guest.stream).samples, board.sent()["samples"])


# ---- cancelled, stalled, failed


def test_held_transfers_are_cancelled_one_by_one_and_the_others_stay_in_order(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        board.command("freeze")
        guest.start()
        guest.submit(8)
        ids = list(guest.pending)
        for i in (5, 0, 7):
            guest.cancel(ids[i])
            equal(guest.receive_bulk(), (ids[i], CANCELLED, b""))
        guest.cancel(ids[5])
        guest.cancel(12345)
        board.command("thaw")
        for i in (1, 2, 3, 4, 6):
            number, status, data = guest.receive_bulk()
            equal((number, status, len(data) > 0), (ids[i], SUCCESS, True))
        equal(board.sent()["bytes"], len(guest.stream))
        equal(json.loads(board.query("crossed")), {"transfers": 0, "bytes": 0})


def test_transfers_cancelled_on_their_way_are_counted(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        guest.start()
        guest.submit(3)
        ids = list(guest.pending)
        taken = [guest.receive_bulk() for _ in ids]
        guest.send(BULK, ids[0], struct.pack("<BBHIH", ENDPOINT, 0, 4096, 0, 0))  # an id is used again
        guest.pending.append(ids[0])
        last = guest.receive_bulk()
        for number in (ids[0], ids[1], ids[1], 99):
            guest.cancel(number)
        expected = {"transfers": 2, "bytes": len(last[2]) + len(taken[1][2])}
        wait_until(lambda: json.loads(board.query("crossed")) == expected, "it is counted")
        board.command("unplug")
        equal(json.loads(board.query("crossed")), expected, "after the connection")


def test_a_reset_or_a_new_configuration_cancels_what_is_held(tmp):
    with Board(tmp) as board, Guest(board) as guest:
        guest.configure()
        guest.submit(3)
        guest.send(RESET, 0)
        for number in list(guest.pending):
            equal(guest.receive_bulk(), (number, CANCELLED, b""))
        guest.submit(2)
        guest.send(SET_CONFIGURATION, 77, b"\1")
        for number in list(guest.pending):
            equal(guest.receive_bulk(), (number, CANCELLED, b""))
        guest.receive_info()
        equal(guest.wait(CONFIGURATION_STATUS, 77), bytes([SUCCESS, 1]))


def test_a_request_that_is_never_answered_can_be_cancelled(tmp):
    with Board(tmp) as board, Guest(board) as guest:
        guest.configure()
        board.command("requests hang", "freeze")  # it would send without a START
        first = guest.send_control(0xC1, GET_INFO, length=64)
        second = guest.send_control(0x41, START)
        guest.submit()
        guest.cancel(second)
        equal(guest.receive_control(second), (CANCELLED, b""))
        guest.cancel(first)
        equal(guest.receive_control(first), (CANCELLED, b""))
        equal(len(guest.pending), 1, "the bulk transfer is still held")
        board.command("requests answer")
        equal(guest.control(0xC1, GET_INFO, length=64)[0], SUCCESS)


def test_a_stall_lasts_until_it_is_cleared(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        board.command("stall")
        guest.start()
        guest.submit(3)
        for _ in range(3):
            equal(guest.receive_bulk()[1], STALL)
        equal(guest.control(0x82, 0, 0, ENDPOINT, 2), (SUCCESS, b"\1\0"), "GET_STATUS: halted")
        equal(guest.control(0x02, 1, 0, ENDPOINT), (SUCCESS, b""), "CLEAR_FEATURE")
        guest.submit()
        equal(guest.receive_bulk()[1], SUCCESS)


def test_failed_transfers_have_their_status_and_the_data_before_it(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        guest.start()
        for command, expected in (("overflow 100", BABBLE), ("protocol-error", IOERROR), ("timeout 1000", TIMEOUT)):
            board.command(command)
            guest.submit(2)
            _, status, data = guest.receive_bulk()
            equal(status, expected, command)
            if expected == TIMEOUT:
                equal(len(data), 1000)
            equal(guest.receive_bulk()[1], SUCCESS, f"after {command}")


def test_unsupported_requests_are_refused(tmp):
    with Board(tmp) as board, Guest(board) as guest:
        guest.configure()
        guest.send(START_ISO, 1, bytes([0x82, 8, 2]))
        equal(guest.wait(ISO_STATUS, 1), bytes([INVAL, 0x82]))
        guest.send(STOP_ISO, 2, bytes([0x82]))
        equal(guest.wait(ISO_STATUS, 2), bytes([INVAL, 0x82]))
        guest.send(ISO, 3, struct.pack("<BBH", 2, 0, 4), b"data")
        equal(guest.wait(ISO_STATUS, 3), bytes([INVAL, 2]))
        guest.send(START_INTERRUPT, 4, bytes([0x83]))
        equal(guest.wait(INTERRUPT_STATUS, 4), bytes([INVAL, 0x83]))
        guest.send(STOP_INTERRUPT, 5, bytes([0x83]))
        equal(guest.wait(INTERRUPT_STATUS, 5), bytes([INVAL, 0x83]))
        guest.send(INTERRUPT, 6, struct.pack("<BBH", 3, 0, 4), b"data")
        equal(guest.wait(INTERRUPT, 6), struct.pack("<BBH", 3, INVAL, 0))
        guest.send(ALLOC_STREAMS, 7, struct.pack("<II", 1 << 17, 4))
        equal(guest.wait(STREAMS_STATUS, 7), struct.pack("<IIB", 1 << 17, 4, INVAL))
        guest.send(FREE_STREAMS, 8, struct.pack("<I", 1 << 17))
        equal(guest.wait(STREAMS_STATUS, 8), struct.pack("<IIB", 1 << 17, 0, INVAL))
        guest.submit(endpoint=0x84)
        equal(guest.receive_bulk()[1:], (INVAL, b""), "no such endpoint")
        guest.submit(size=(16 << 20) + 1)
        equal(guest.receive_bulk()[1:], (INVAL, b""), "too large")
        guest.send(BULK, 9, struct.pack("<BBHIH", 1, 0, 3, 0, 0), b"OUT")
        equal(guest.wait(BULK, 9), struct.pack("<BBHIH", 1, INVAL, 0, 0, 0))
        guest.send(BULK, 10, struct.pack("<BBHIH", ENDPOINT, 0, 512, 1, 0))
        equal(guest.wait(BULK, 10), struct.pack("<BBHIH", ENDPOINT, INVAL, 0, 1, 0), "a stream of the endpoint")
        # The direction is in the request type and in the endpoint, which may disagree; and there is only one control
        # endpoint.
        guest.send(CONTROL, 11, struct.pack("<4B3H", 0x80, START, 0x41, 0, 0, 0, 8))
        equal(guest.receive_control(11), (INVAL, b""))
        guest.send(CONTROL, 12, struct.pack("<4B3H", 0, GET_INFO, 0xC1, 0, 0, 0, 2), b"ab")
        equal(guest.receive_control(12), (INVAL, b""))
        guest.send(CONTROL, 13, struct.pack("<4B3H", 0x81, GET_INFO, 0xC1, 0, 0, 0, 64))
        equal(guest.receive_control(13), (INVAL, b""))
        equal(guest.control(0xC1, GET_INFO, length=64)[0], SUCCESS)


# ---- plugged in and out


def test_an_unplug_closes_the_socket_and_a_plug_accepts_the_next_guest(tmp):
    with Board(tmp, "--rate", "max") as board:
        total = 0
        for round_number in range(1, 4):
            with Guest(board) as guest:
                guest.configure()
                guest.start()
                guest.stream_until(has_bytes(200000))
                board.write("unplug\n")
                guest.receive_rest()
                guest.socket.close()
                equal(board.read_answer(), "ok")
                equal(board.query("state"), "unplugged")
                total += len(guest.stream)
                equal(board.sent()["bytes"], total, "all sent bytes were delivered")
            assert board.query("unplug").startswith("error: ")
            with Guest(board, says_hello=False) as waiting:
                # As QEMU does when it retries every second: there is no answer before the plug.
                equal(select.select([waiting.socket], [], [], 0.1)[0], [])
                equal(board.query("state"), "unplugged")
            equal(board.sent()["starts"], round_number)
            board.command("plug")
            assert board.query("plug").startswith("error: ")
        with Guest(board) as guest:
            guest.configure()
            board.command("send 1000")
            guest.start()
            guest.stream_until(has_bytes(8000))
            equal(Frames(guest.stream).lost, 0, "nothing from before the unplug")


def test_the_stream_of_each_connection_is_kept(tmp):
    with Board(tmp, "--keep", tmp / "kept") as board:
        streams = []
        for _ in range(2):
            with Guest(board) as guest:
                guest.start()
                guest.stream_until(has_bytes(300000))
                guest.stop()
                board.query("state")
                streams.append(bytes(guest.stream))
            wait_until(lambda: board.query("state") == "waiting", "the end of the connection")
        for number, stream in enumerate(streams, 1):
            equal((tmp / f"kept.{number}").read_bytes(), stream, f"connection {number}")
        assert not (tmp / "kept.3").exists()
    with Board(tmp, "--keep", tmp / "no" / "such") as board:
        Guest(board, says_hello=False)
        equal(board.process.wait(TIMEOUT_S), 1, "the exit code if --keep can't write")


def test_a_machine_that_is_switched_off_is_an_unplug(tmp):
    with Board(tmp, "--rate", "max") as board:
        plugs = board.sent()["plugs"]
        for _ in range(3):
            with Guest(board) as guest:
                guest.configure()
                guest.start()
                guest.stream_until(has_bytes(100000))
            wait_until(lambda: board.query("state") == "waiting", "the connection is accepted")
        equal(board.sent()["plugs"], plugs + 2, "the first one was plugged in from the start")


def test_one_machine_at_a_time(tmp):
    with Board(tmp) as board, Guest(board) as first, Guest(board, says_hello=False) as second:
        first.configure()
        equal(select.select([second.socket], [], [], 0.1)[0], [])
        first.socket.close()
        second.wait(HELLO)


# ---- broken or hostile guests


def hello(caps=QEMU_CAPS, data=None):
    if data is None:
        data = struct.pack("<I", sum(1 << cap for cap in caps))
    return struct.pack("<III", HELLO, 64 + len(data), 0) + b"a test".ljust(64, b"\0") + data


def long_packet(kind, header=b"", data=b"", length=None):
    return struct.pack("<IIQ", kind, len(header + data) if length is None else length, 5) + header + data


BROKEN = {
    "not usbredir at all": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a huge hello": struct.pack("<III", HELLO, 0x7FFFFFFF, 0) + bytes(100000),
    "a short hello": struct.pack("<III", HELLO, 10, 0) + bytes(10),
    "a second hello": hello() + long_packet(HELLO, bytes(68)),
    "a huge packet": hello() + long_packet(BULK, length=0x7FFFFFFF) + bytes(200000),
    "a negative length": hello() + long_packet(BULK, length=0xFFFFFFFF),
    "an unknown kind": hello() + long_packet(77),
    "a kind of the host's": hello() + long_packet(DEVICE_CONNECT, bytes(10)),
    "status from the guest": hello() + long_packet(CONFIGURATION_STATUS, bytes(2)),
    "a short header": hello() + long_packet(SET_CONFIGURATION),
    "a long header": hello() + long_packet(SET_CONFIGURATION, bytes(2)),
    "data with an IN transfer": hello() + long_packet(BULK, struct.pack("<BBHIH", ENDPOINT, 0, 4, 0, 0), b"data"),
    "less data than announced": hello() + long_packet(CONTROL, struct.pack("<4B3H", 0, 9, 0x41, 0, 0, 0, 8), b"data"),
    "a filter": hello() + long_packet(FILTER, b"", b"0x03,-1,-1,-1,0\0"),
    "a filter's rejection": hello() + long_packet(FILTER_REJECT),
    "an acknowledgement": hello() + long_packet(DISCONNECT_ACK),
    "bulk receiving": hello() + long_packet(START_BULK, struct.pack("<IIBB", 0, 512, ENDPOINT, 5)),
    "buffered bulk": hello() + long_packet(BUFFERED_BULK, struct.pack("<IIBB", 0, 0, ENDPOINT, 0)),
    "interrupts from an OUT endpoint": hello() + long_packet(START_INTERRUPT, b"\3"),
    "an isochronous packet IN": hello() + long_packet(ISO, struct.pack("<BBH", 0x82, 0, 0)),
}


def test_invalid_usbredir_ends_only_its_connection(tmp):
    with Board(tmp) as board:
        for what, data in BROKEN.items():
            with Guest(board, says_hello=False) as guest:
                try:
                    guest.socket.sendall(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                guest.ends()
            wait_until(lambda: board.query("state") == "waiting", what)
        with Guest(board) as guest:
            guest.configure()


def test_a_connection_may_be_cut_at_any_byte(tmp):
    data = hello() + long_packet(SET_CONFIGURATION, b"\1") + \
        long_packet(CONTROL, struct.pack("<4B3H", 0, START, 0x41, 0, 0, 0, 4), b"data") + \
        long_packet(BULK, struct.pack("<BBHIH", ENDPOINT, 0, 4096, 0, 0))
    with Board(tmp) as board:
        for n in range(len(data)):
            with Guest(board, says_hello=False) as guest:
                guest.socket.sendall(data[:n])
        with Guest(board) as guest:
            guest.configure()


def test_packets_may_arrive_byte_by_byte(tmp):
    with Board(tmp) as board, Guest(board, says_hello=False) as guest:
        for byte in hello() + long_packet(GET_CONFIGURATION) + long_packet(GET_CONFIGURATION):
            guest.socket.sendall(bytes([byte]))
        guest._connect()
        equal(guest.wait(CONFIGURATION_STATUS, 5), bytes(2))
        equal(guest.wait(CONFIGURATION_STATUS, 5), bytes(2))


def test_arbitrary_bytes_are_harmless(tmp):
    rng = random.Random(1)
    kinds = [*range(28), *range(100, 105)]
    with Board(tmp, "--rate", "max") as board:
        for _ in range(300):
            data = hello(rng.sample(QEMU_CAPS, rng.randrange(9))) if rng.randrange(8) else b""
            for _ in range(rng.randrange(20)):
                body = rng.randbytes(rng.choice((0, 1, 2, 4, 10, 30)))
                data += long_packet(rng.choice(kinds), rng.choice((b"\x81", b"\x80", b"")) + body)
            with Guest(board, says_hello=False) as guest:
                try:
                    guest.socket.sendall(data)
                    guest.socket.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # the connection is already over
        with Guest(board) as guest:
            guest.configure()


def flood(guest, data):
    """Sends until the other side has accepted nothing for half a second. Returns the number of bytes."""
    guest.socket.setblocking(False)
    given, taken_at, at = 0, time.monotonic(), 0
    while time.monotonic() - taken_at < 0.5 and given < 200 << 20:
        try:
            n = guest.socket.send(data[at:])
            given, at, taken_at = given + n, (at + n) % len(data), time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    return given


def test_a_guest_that_never_reads_does_not_use_up_memory(tmp):
    requests = {
        "descriptors": long_packet(CONTROL, struct.pack("<4B3H", 0x80, 6, 0x80, 0, 0x0200, 0, 255)),
        "large transfers": long_packet(BULK, struct.pack("<BBHIH", ENDPOINT, 0, 0, 0, 256)),
        "configurations": long_packet(SET_CONFIGURATION, b"\1"),
    }
    for what, data in requests.items():
        with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
            guest.configure()
            guest.start()
            before = board.memory_kib()
            given = flood(guest, data * 1000)
            assert given < 100 << 20, f"{what}: {given} bytes were accepted"
            equal(board.query("state"), "connected", what)
            if not harness.is_sanitized():
                assert board.memory_kib() - before < 64 << 10, f"{what}: {before} and {board.memory_kib()} KiB"


def test_an_unplug_does_not_wait_for_a_guest_that_never_reads(tmp):
    with Board(tmp, "--rate", "max") as board, Guest(board) as guest:
        guest.configure()
        guest.start()
        guest.submit(8, size=4 << 20)
        wait_until(lambda: board.sent()["bytes"] > 0, "the first transfer is in transit")
        board.command("unplug")
        guest.ends()


def test_the_number_of_held_transfers_is_limited(tmp):
    with Board(tmp) as board, Guest(board) as guest:
        guest.configure()
        guest.submit(4096)
        guest.submit(10)
        for number in guest.pending[4096:]:
            equal(guest.receive_bulk(), (number, INVAL, b""))
        equal(guest.control(0xC1, GET_INFO, length=64)[0], INVAL)
        guest.cancel(guest.pending[0])
        equal(guest.receive_bulk()[1], CANCELLED)
        equal(guest.control(0xC1, GET_INFO, length=64)[0], SUCCESS)


# ---- the program


def test_help_has_a_command_line_for_qemu(tmp):
    done = run(need(PROGRAM), "--help")
    equal(done.returncode, 0)
    for word in (b"-device usb-redir", b"reconnect=1", b"--serial", b"unplug"):
        assert word in done.stdout, word
    assert max(map(len, done.stdout.splitlines())) <= 100
    for argv in (["--frob", "x"], [], ["a", "b"], ["--rate", "0", "x"], ["--rate", "-1", "x"], ["--rate", "fast", "x"],
                 ["--speed", "low", "x"], ["--id", "1209", "x"], ["--id", "12345:1", "x"], ["--id", "0:0", "x"],
                 ["--agents", "5", "x"], ["--seed", "", "x"], ["--fifo", "4294967296", "x"]):
        done = run(PROGRAM, *argv, cwd=tmp)
        equal((done.returncode, done.stderr != b""), (2, True), argv)
    equal(os.listdir(tmp), [])


def test_it_ends_on_end_of_input_quit_or_a_signal_and_removes_the_socket(tmp):
    ways = {
        "the end of input": Board.end,
        "quit": lambda board: board.write("sent\nquit\nsent\n"),
        "SIGTERM": lambda board: board.process.send_signal(signal.SIGTERM),
        "SIGINT": lambda board: board.process.send_signal(signal.SIGINT),
    }
    for what, way in ways.items():
        for is_connected in (False, True):
            with Board(tmp) as board:
                guest = Guest(board) if is_connected else None
                way(board)
                equal(board.process.wait(TIMEOUT_S), 0, what)
                equal(board.path.exists(), False, "the socket")
                if guest is not None:
                    guest.ends()
                    guest.socket.close()


def test_a_socket_in_use_is_kept_and_a_stale_one_is_replaced(tmp):
    with Board(tmp) as board:
        done = run(PROGRAM, board.path)
        equal(done.returncode, 1)
        assert b"in use" in done.stderr, done.stderr
        with Guest(board) as guest:
            guest.configure()
        board.process.kill()
        board.process.wait()
    equal(board.path.exists(), True, "unread answers")
    with Board(tmp) as board:
        with Guest(board) as guest:
            guest.configure()
    plain = tmp / "plain"
    plain.write_text("text")
    equal(run(PROGRAM, plain).returncode, 1)
    equal(plain.read_text(), "text")
    equal(run(PROGRAM, tmp / ("x" * 200)).returncode, 1)
    equal(run(PROGRAM, tmp / "none" / "socket").returncode, 1)


def test_commands_are_answered_in_order_one_line_each(tmp):
    with Board(tmp) as board:
        board.write("state\nrate 5\nfrob\n\nsent\n" + "x" * 100000 + "\nstate\n")
        equal(board.read_answer(), "waiting")
        equal(board.read_answer(), "ok")
        assert board.read_answer().startswith("error: ")
        assert board.read_answer().startswith("error: ")
        json.loads(board.read_answer())
        equal(board.read_answer(), "error: line too long")
        equal(board.read_answer(), "waiting")
