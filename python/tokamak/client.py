"""The client: python/native's, and what is Python's own."""

from __future__ import annotations

import os
from typing import Any

from . import _native, pickling
from ._types import IdLike, Seconds


def default_socket() -> str:
    """$TOKAMAK_SOCKET, else where tokd as a service listens."""
    return os.environ.get("TOKAMAK_SOCKET", "/run/tokamak/tokd.sock")


class Client(_native.Client):
    """A program's line to the tokd of its node; docs/python.md has examples.

    An id is an ObjectId, 20 bytes, or a str, which names one. Every call may block, without the GIL, and ends by its timeout
    (seconds; None: a day) or by call_timeout; Ctrl-C and other signals are handled meanwhile. Any thread may call, any number
    at once. A forked child makes one of its own.
    """

    def __init__(self, socket: str | None = None, *, call_timeout: Seconds = 10.0, read_only: bool = False,
                 name: str = "python") -> None:
        self._arguments = (socket or default_socket(), call_timeout, read_only, name)
        super().__init__(self._arguments[0], call_timeout=call_timeout, read_only=read_only, name=name)

    def put_object(self, id: IdLike, value: Any, *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
        """Puts a Python object: pickled, with its large buffers (NumPy arrays, bytearrays in PickleBuffer) beside the pickle."""
        pickling.dump(value, lambda size, metadata: self.create(id, size, metadata, timeout=timeout, confirmed=confirmed))

    def get_object(self, id: IdLike, timeout: Seconds = 10.0) -> Any:
        """The Python object that put_object() put. Its arrays are read-only views of shared memory, and keep it pinned."""
        return pickling.load(self.get(id, timeout))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process connects anew.
        return _connect, self._arguments


def _connect(socket: str, call_timeout: Seconds, read_only: bool, name: str) -> Client:
    return Client(socket, call_timeout=call_timeout, read_only=read_only, name=name)
