"""Python objects as objects of the store: pickle protocol 5, whose large buffers lie beside the pickle and are read in place.

    data      pickle | padding | buffer | padding | buffer ...        each buffer begins at a multiple of 64 bytes
    metadata  b"tokamak.pickle5\\0" | size of the pickle | sizes of the buffers, each 8 bytes, little-endian

A tensor of torch in host memory is pickled as its array, and so lies there as well; those that share memory come back apart.
loads() copies no buffer: a NumPy array that it returns is a read-only view of shared memory, and keeps the object pinned.
Unpickling runs what the pickle says: get objects only of those whom you would let run code.
"""

from __future__ import annotations

import importlib
import io
import pickle
import struct
import sys
import warnings
from collections.abc import Callable
from typing import Any

from ._native import Object, Writer
from .errors import InvalidArgument

MAGIC = b"tokamak.pickle5\0"
ALIGNMENT = 64


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _tensor_of(array: Any, requires_grad: bool) -> Any:
    """What a pickled tensor of torch is made of anew."""
    torch = importlib.import_module("torch")  # only whoever has a tensor in a pickle needs it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the array is read-only, as everything of the store is
        tensor = torch.from_numpy(array)
    return tensor.requires_grad_() if requires_grad else tensor


class _Pickler(pickle.Pickler):
    """Has tensors lie beside the pickle, as arrays do; torch itself would copy them into it."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(value) is not torch.Tensor or value.device.type != "cpu" or value.layout != torch.strided:
            return NotImplemented
        try:
            return _tensor_of, (value.detach().resolve_conj().resolve_neg().numpy(), value.requires_grad)
        except (RuntimeError, TypeError):  # such as bfloat16, which NumPy does not have
            return NotImplemented


class Pickled:
    """A Python object that is ready to be written: what it takes, and the bytes."""

    def __init__(self, value: Any) -> None:
        self._buffers: list[memoryview] = []
        pickled = io.BytesIO()
        _Pickler(pickled, protocol=5, buffer_callback=lambda b: self._buffers.append(b.raw())).dump(value)
        self._pickle = pickled.getvalue()
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
