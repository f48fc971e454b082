"""Python objects as objects of the store: pickle protocol 5, whose large buffers lie beside the pickle and are read in place.

    data      pickle | padding | buffer | padding | buffer ...        each buffer begins at a multiple of 64 bytes
    metadata  b"tokamak.pickle5\\0" | size of the pickle | sizes of the buffers, each 8 bytes, little-endian

loads() copies no buffer: a NumPy array that it returns is a read-only view of shared memory, and keeps the object pinned.
Unpickling runs what the pickle says: get objects only of those whom you would let run code.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

from ._native import Object, Writer
from .errors import InvalidArgument

MAGIC = b"tokamak.pickle5\0"
ALIGNMENT = 64


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Pickled:
    """A Python object that is ready to be written: what it takes, and the bytes."""

    def __init__(self, value: Any) -> None:
        self._buffers: list[memoryview] = []
        self._pickle = pickle.dumps(value, protocol=5, buffer_callback=lambda b: self._buffers.append(b.raw()))
        sizes = [len(self._pickle)] + [buffer.nbytes for buffer in self._buffers]
        self.metadata = MAGIC + struct.pack(f"<{len(sizes)}Q", *sizes)
        self.size = sum(_padded(size) for size in sizes)

    def write(self, writer: Writer) -> None:
        """Fills an object of self.size bytes."""
        with writer.data as data:
            at = 0
            for part in [memoryview(self._pickle)] + self._buffers:
                data[at:at + part.nbytes] = part
                at += _padded(part.nbytes)


def dump(value: Any, create: Callable[[int, bytes], Writer]) -> None:
    """Writes a Python object into what create(size, metadata) returns, and seals that."""
    pickled = Pickled(value)
    with create(pickled.size, pickled.metadata) as writer:
        pickled.write(writer)


def load(obj: Object) -> Any:
    """The Python object that dump() wrote. InvalidArgument: something else did."""
    metadata = obj.metadata
    if not metadata.startswith(MAGIC) or len(metadata) % 8 != 0 or len(metadata) == len(MAGIC):
        raise InvalidArgument(f"{obj.id.hex()} holds no Python object: read it with get()")
    sizes = struct.unpack(f"<{(len(metadata) - len(MAGIC)) // 8}Q", metadata[len(MAGIC):])
    if sum(_padded(size) for size in sizes) != len(obj):
        raise InvalidArgument(f"{obj.id.hex()} has another size than its metadata says: it was not written by put_object()")
    parts = []
    at = 0
    data = obj.data
    for size in sizes:
        parts.append(data[at:at + size])
        at += _padded(size)
    return pickle.loads(parts[0], buffers=parts[1:])
