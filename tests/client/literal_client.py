"""A client of tokd that knows nothing but docs/client-protocol.md and Python's standard library."""

import array
import itertools
import mmap
import os
import socket
import struct

MAGIC, VERSION, REPLY = 0x4B414D54, 5, 0x8000
MASK = (1 << 64) - 1


def mix(x):
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def hash_of(name, k):
    h = 0xCBF29CE484222325 ^ mix(k)
    for byte in name:
        h = mix((h ^ byte) * 0x100000001B3 & MASK)
    return mix(h ^ len(name))


def id_of(name):
    return b"".join(struct.pack("<Q", hash_of(name.encode(), k)) for k in (1, 2, 3))[:20]


class Body:
    """Takes fields off a body, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data), "the body is too short"
        return self.data[self.at - size:self.at]

    def u8(self):
        return self.take(1)[0]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def id(self):
        return self.take(20)

    def text(self):
        return self.take(self.u32()).decode()

    def many(self, one):
        return [one() for _ in range(self.u32())]

    def location(self):
        return {"offset": self.u64(), "data": self.u64(), "metadata": self.u64()}

    def outcome(self):
        return {"status": self.u32(), "message": self.text()}

    def object(self):
        return {"id": self.id(), "data": self.u64(), "metadata": self.u64(), "pins": self.u64(), "age": self.u64(),
                "state": self.u8(), "origin": self.u8(), "pinned": self.u8(), "name": self.text()}

    def event(self):
        return {"kind": self.u8(), "origin": self.u8(), "id": self.id(), "data": self.u64(), "metadata": self.u64(),
                "name": self.text()}

    def node(self):
        return {"name": self.text(), "address": self.text(), "device": self.text(), "incarnation": self.u64(),
                "capacity": self.u64(), "is_this": self.u8()}

    def number(self):
        return self.text(), self.u64()

    def end(self):
        assert self.at == len(self.data), f"{len(self.data) - self.at} bytes follow the last field"


def text(value):
    return struct.pack("<I", len(value.encode())) + value.encode()


def counted(data):
    return struct.pack("<I", len(data)) + data


def ids(*several):
    return struct.pack("<I", len(several)) + b"".join(several)


class Refused(Exception):
    """An error of the daemon's."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


class Client:

    def __init__(self, path, creates=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.received, self.descriptors = b"", []
        self.numbers = itertools.count(1)
        welcome = self.call(1, struct.pack("<B", creates) + text("literal client") + struct.pack("<Q", 0))
        self.arena_size, self.capacity, self.incarnation, self.node = (welcome.u64(), welcome.u64(), welcome.u64(),
                                                                       welcome.text())
        welcome.end()
        self.readable = mmap.mmap(self.descriptors[0], self.arena_size, mmap.MAP_SHARED, mmap.PROT_READ)
        self.writable = mmap.mmap(self.descriptors[1], self.arena_size) if creates else None

    def close(self):
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)

    # ---- frames

    def send(self, kind, body, request):
        frame = struct.pack("<IHHQII", MAGIC, VERSION, kind, request, len(body), 0) + body
        self.socket.sendall(struct.pack("<I", len(frame))[:3] + b"\0" + frame)

    def fill(self, size):
        while len(self.received) < size:
            space = socket.CMSG_SPACE(4 * 4)
            data, beside, _, _ = self.socket.recvmsg(65536, space)
            assert data, "the daemon ended the connection"
            self.received += data
            for _, _, raw in beside:
                got = array.array("i")
                got.frombytes(raw)
                self.descriptors += got

    def receive(self):
        """Kind, request id, status and body of the next frame."""
        self.fill(4)
        length = int.from_bytes(self.received[:3], "little")
        self.fill(4 + length)
        frame, self.received = self.received[4:4 + length], self.received[4 + length:]
        magic, version, kind, request, size, status = struct.unpack("<IHHQII", frame[:24])
        assert (magic, version, size) == (MAGIC, VERSION, length - 24)
        return kind, request, status, frame[24:]

    def call(self, kind, body=b""):
        request = next(self.numbers)
        self.send(kind, body, request)
        while True:
            got, answered, status, reply = self.receive()
            if (got, answered) != (kind | REPLY, request):
                continue
            if status:
                raise Refused(status, reply.decode())
            return Body(reply)

    # ---- calls

    def put(self, name, data, metadata=b"", confirmed=False, kept=""):
        at = self.call(2, id_of(name) + struct.pack("<QQQB", len(data), len(metadata), 1_000_000, confirmed) +
                       text(kept)).location()
        self.writable[at["offset"]:at["offset"] + len(data) + len(metadata)] = data + metadata
        self.call(4, id_of(name) + struct.pack("<B", confirmed)).end()

    def put_small(self, objects):
        """By name. One outcome for each."""
        body = struct.pack("<I", len(objects))
        for name, data in objects.items():
            body += id_of(name) + counted(data) + counted(b"") + text(name)
        reply = self.call(3, body + struct.pack("<QBB", 1_000_000, False, False))
        return reply.many(reply.outcome)

    def get(self, name, seconds=30.0):
        """Data and metadata."""
        reply = self.call(6, struct.pack("<QB", int(seconds * 1e6), 0) + ids(id_of(name)))
        (outcome, at), = reply.many(lambda: (reply.outcome(), reply.location()))
        reply.end()
        if outcome["status"]:
            raise Refused(outcome["status"], outcome["message"])
        middle = at["offset"] + at["data"]
        found = self.readable[at["offset"]:middle], self.readable[middle:middle + at["metadata"]]
        self.call(7, ids(id_of(name))).end()
        return found

    def prefetch(self, name, seconds=30.0, pin=False):
        reply = self.call(21, struct.pack("<QB", int(seconds * 1e6), pin) + ids(id_of(name)))
        outcome, = reply.many(reply.outcome)
        reply.end()
        return outcome["status"]

    def unpin(self, name):
        self.call(22, id_of(name)).end()

    def push(self, name, node, seconds=30.0):
        reply = self.call(23, struct.pack("<Q", int(seconds * 1e6)) + text(node) + ids(id_of(name)))
        outcome, = reply.many(reply.outcome)
        reply.end()
        return outcome["status"]

    def delete(self, name):
        self.call(8, id_of(name)).end()

    def contains(self, name):
        return self.call(9, id_of(name)).u8()

    def list(self, limit=1024):
        found, after = [], None
        while True:
            reply = self.call(10, struct.pack("<IB", limit, after is not None) + (after or bytes(20)))
            found += reply.many(reply.object)
            more = reply.u8()
            reply.end()
            if not more:
                return found
            after = found[-1]["id"]

    def stat(self, name):
        reply = self.call(11, id_of(name))
        found = {"here": reply.u8(), "located": reply.u8(), "object": reply.object(), "holders": reply.many(reply.text)}
        reply.end()
        return found

    def evict(self, size):
        reply = self.call(13, struct.pack("<Q", size))
        return reply.u64(), reply.u64()

    def wait(self, names, count, seconds, anywhere=True):
        reply = self.call(15, struct.pack("<QIB", int(seconds * 1e6), count, anywhere) + ids(*map(id_of, names)))
        return reply.many(reply.u8)

    def subscribe(self):
        """The request id that events will have."""
        self.call(16, struct.pack("<B", False)).end()
        return next(self.numbers) - 1

    def next_events(self, subscribed):
        while True:
            kind, request, _, body = self.receive()
            if (kind, request) == (17, subscribed):
                reply = Body(body)
                dropped, _, events = reply.u64(), reply.u8(), reply.many(reply.event)
                reply.end()
                return dropped, events

    def nodes(self):
        reply = self.call(18)
        return reply.many(reply.node)

    def node_stats(self):
        reply = self.call(19)
        found = reply.text(), reply.text(), dict(reply.many(reply.number))
        reply.end()
        return found
