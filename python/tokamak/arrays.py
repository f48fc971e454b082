"""NumPy arrays as objects of the store: the bytes as they lie, and beside them what they are.

    data      the elements, in C or Fortran order
    metadata  b"tokamak.array1\\0\\0" | JSON: {"descr": type as numpy.lib.format has it, "shape": [...], "fortran": bool}

What has __dlpack__() is read by that, such as tensors of torch; Tensor is for those who take it.
load() copies nothing: the array is a read-only view of shared memory, and keeps the object pinned.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from ._native import Object, Writer, dlpack_capsule
from .errors import InvalidArgument

MAGIC = b"tokamak.array1\0\0"


# DLPack's type codes by NumPy's kinds: integers, unsigned ones, floating point, complex, bool.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_HOST = (1, 0)  # kDLCPU, as DLPack names devices


class Tensor:
    """An array of the store for from_dlpack() of torch, JAX, NumPy and others, which read it in place, in shared memory.

    It is read-only. Takers that know DLPack 1.0 are told so; those before, such as torch until 2.2, cannot be told, and a
    program that writes with them ends by SIGSEGV: it has to copy first. What was taken keeps the object pinned.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._array.shape
        return shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A capsule; `copy` makes it one of a writable copy."""
        if dl_device is not None and tuple(dl_device) != _HOST:
            raise BufferError("it lies in host memory: take it there, and move it to the device then")
        dtype = self._array.dtype
        if dtype.kind not in _CODES or not dtype.isnative:
            raise BufferError(f"DLPack has no type {dtype.str}: read it as an array, with get_array()")
        array = self._array.copy(order="K") if copy else self._array
        return dlpack_capsule(array, _CODES[dtype.kind], max_version is not None and max_version[0] >= 1)

    def __repr__(self) -> str:
        return f"<tokamak.arrays.Tensor {self._array.dtype.str}, {self.shape}>"


def _array_of(value: Any) -> Any:
    numpy = _numpy()
    if not isinstance(value, numpy.ndarray) and hasattr(type(value), "__dlpack__"):
        return numpy.from_dlpack(value)
    return numpy.asarray(value)


def _numpy() -> Any:
    """Not a dependency of the package, and not imported by programs that need none."""
    return importlib.import_module("numpy")


def dump(value: Any, create: Callable[[int, bytes], Writer]) -> None:
    """Writes an array into what create(size, metadata) returns, and seals that."""
    numpy = _numpy()
    array = _array_of(value)
    if array.dtype.hasobject:
        raise TypeError("the array holds references to Python objects: use put_object()")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    what = {"descr": numpy.lib.format.dtype_to_descr(array.dtype), "shape": array.shape, "fortran": bool(fortran)}
    with create(array.nbytes, MAGIC + json.dumps(what).encode()) as writer:
        if array.size > 0:
            there = numpy.frombuffer(writer, numpy.uint8).view(array.dtype)
            numpy.copyto(there.reshape(array.shape, order="F" if fortran else "C"), array)
            del there  # nothing is sealed while somebody may still write


def load(obj: Object) -> Any:
    """The array that dump() wrote. InvalidArgument: something else did."""
    numpy = _numpy()
    metadata = obj.metadata
    if not metadata.startswith(MAGIC):
        raise InvalidArgument(f"{obj.id.hex()} holds no array of put_array(): read it with get() or get_object()")
    try:
        what = json.loads(metadata[len(MAGIC):])
        descr = [tuple(field) for field in what["descr"]] if isinstance(what["descr"], list) else what["descr"]
        dtype = numpy.lib.format.descr_to_dtype(descr)
        shape = tuple(int(length) for length in what["shape"])
        fortran = bool(what["fortran"])
        if dtype.hasobject or any(length < 0 for length in shape):
            raise ValueError("not what put_array() writes")
        count = 1
        for length in shape:
            count *= length
        if count * dtype.itemsize != len(obj):
            raise ValueError("another size than its metadata says")
        if count == 0:
            return numpy.zeros(shape, dtype)
        return numpy.frombuffer(obj, numpy.uint8).view(dtype).reshape(shape, order="F" if fortran else "C")
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{obj.id.hex()} was not written by put_array(): {error}") from error
