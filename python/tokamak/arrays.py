"""NumPy arrays as objects of the store: the bytes as they lie, and beside them what they are.

    data      the elements, in C or Fortran order
    metadata  b"tokamak.array1\\0\\0" | JSON: {"descr": type as numpy.lib.format has it, "shape": [...], "fortran": bool}

load() copies nothing: the array is a read-only view of shared memory, and keeps the object pinned.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from ._native import Object, Writer
from .errors import InvalidArgument

MAGIC = b"tokamak.array1\0\0"


def _numpy() -> Any:
    """Not a dependency of the package, and not imported by programs that need none."""
    return importlib.import_module("numpy")


def dump(value: Any, create: Callable[[int, bytes], Writer]) -> None:
    """Writes an array into what create(size, metadata) returns, and seals that."""
    numpy = _numpy()
    array = numpy.asarray(value)
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
