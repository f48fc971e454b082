"""The client that programs use: one line to the daemon after the other, each of python/native's."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import _native, arrays, pickling, waiting
from ._native import ClusterView, Evicted, Interrupt, NodeInfo, Object, ObjectInfo, ObjectStat, PullProgress, Subscription, Writer
from ._types import IdLike, Readable, Seconds
from .errors import AlreadyExists, Error, FailedPrecondition, NotFound, Unavailable

T = TypeVar("T")


def default_socket() -> str:
    """$TOKAMAK_SOCKET, else where tokd as a service listens."""
    return os.environ.get("TOKAMAK_SOCKET", "/run/tokamak/tokd.sock")


class Client:
    """A program's line to the tokd of its node; docs/python.md has examples.

    An id is an ObjectId, 20 bytes, or a str, which names one. Every call may block, without the GIL, and ends by its timeout
    (seconds; None: a day) or by call_timeout; Ctrl-C and other signals are handled meanwhile. Any thread may call, any number
    at once.

    A client goes on where its connection ends: in a forked child, and after the daemon was restarted, the next call connects
    anew (not with reconnect=False: then calls raise). What was got before can be read on; a call that was under way when the
    daemon ended raises Unavailable, and so do calls until there is a daemon again.

    The str that an id is made of is kept with what is put, on each node that has it, and shown by list(), stat(), events and
    `tok ls`; not one of more than 255 bytes of UTF-8 or with control characters, and none with keep_names=False.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, call_timeout: Seconds = 10.0, read_only: bool = False,
                 name: str = "python", reconnect: bool = True, keep_names: bool = True) -> None:
        path = default_socket() if socket is None else os.fspath(socket)
        if not isinstance(path, str) or "\0" in path:
            raise ValueError(f"a socket has a path without NUL, which is a str, not {path!r}")
        self._socket, self._call_timeout, self._read_only, self._name, self._reconnect = (path, call_timeout, read_only, name,
                                                                                         reconnect)
        self._keep_names = keep_names
        self._lock = threading.Lock()  # of whoever connects anew
        self._closed = False
        self._line: _native.Client | None = self._connect()
        _clients.add(self)

    # ---- the connection

    def _connect(self) -> _native.Client:
        return _native.Client(self._socket, call_timeout=self._call_timeout, read_only=self._read_only, name=self._name)

    def _connected(self) -> _native.Client:
        """The line, of this process and to a daemon that is there, if there is one."""
        line = self._line
        if line is not None and line.connected:
            return line
        with self._lock:
            if self._closed:
                raise FailedPrecondition("the client was closed")
            if self._line is None or (self._reconnect and not self._line.connected):
                self._line = self._connect()
            return self._line

    def _look(self, call: Callable[[_native.Client], T]) -> T:
        """A call that may be made twice: once more where the daemon ended meanwhile and another is there."""
        line = self._connected()
        try:
            return call(line)
        except Unavailable:
            if line.connected or not self._reconnect:
                raise
        return call(self._connected())

    def close(self) -> None:
        """Ends the connection; further calls raise. Objects that were got can be read on."""
        with self._lock:
            self._closed = True
            self._line = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, type: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        line = self._line
        state = "closed" if line is None else f"of node {line.node}" if line.connected else "not connected"
        return f"<tokamak.Client {self._socket}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process connects anew.
        return _make, (type(self), self._socket, self._call_timeout, self._read_only, self._name, self._reconnect,
                       self._keep_names)

    def check(self) -> None:
        """Raises what ended the connection, if anything did. Does not connect anew."""
        if self._line is None:
            raise FailedPrecondition("the client was closed")
        self._line.check()

    @property
    def node(self) -> str:
        """The name of this node."""
        return self._connected().node

    @property
    def capacity(self) -> int:
        """Bytes of memory that this node has for objects."""
        return self._connected().capacity

    # ---- putting

    def put(self, id: IdLike, data: Readable, metadata: Readable = b"", *, timeout: Seconds = 5.0, confirmed: bool = False,
            interrupt: Interrupt | None = None) -> None:
        """Copies the bytes of `data` (anything with the buffer protocol, in one piece) into a new object and seals it.

        confirmed: returns when the whole cluster has the id for this content alone; else another one may win it, and this one
        is dropped. timeout: how long to wait for room. AlreadyExists: the id is taken. put_array() keeps type and shape.
        """
        with _about(id):
            self._connected().put(id, data, metadata, timeout=timeout, confirmed=confirmed, named=self._keep_names,
                                  interrupt=interrupt)

    def put_many(self, objects: Iterable[tuple[IdLike, Readable] | tuple[IdLike, Readable, Readable]], *,
                 timeout: Seconds = 5.0, confirmed: bool = False, check: bool = True) -> list[Error | None]:
        """Puts (id, data) or (id, data, metadata) of each, in few messages. What check means: see prefetch()."""
        return _checked(self._connected().put_many(objects, timeout=timeout, confirmed=confirmed, named=self._keep_names),
                        check)

    def create(self, id: IdLike, size: int, metadata: Readable = b"", *, timeout: Seconds = 5.0, confirmed: bool = False,
               claim: bool = True, interrupt: Interrupt | None = None) -> Writer:
        """A new object of `size` bytes, to be filled in place and sealed: `with` does so, and aborts where it raises.

        claim=False: a small one takes id and room when it is sealed, which spares a message.
        """
        with _about(id):
            return self._connected().create(id, size, metadata, timeout=timeout, confirmed=confirmed, claim=claim,
                                            named=self._keep_names, interrupt=interrupt)

    def put_object(self, id: IdLike, value: Any, *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
        """Puts a Python object: pickled, with its large buffers (NumPy arrays, bytearrays in PickleBuffer) beside the pickle."""
        pickling.dump(value, lambda size, metadata: self.create(id, size, metadata, timeout=timeout, confirmed=confirmed))

    def put_array(self, id: IdLike, array: Any, *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
        """Puts a NumPy array, what has __dlpack__() (tensors), or what numpy.asarray() takes, with type, shape and order."""
        arrays.dump(array, lambda size, metadata: self.create(id, size, metadata, timeout=timeout, confirmed=confirmed))

    # ---- getting

    def get(self, id: IdLike, timeout: Seconds = 10.0, *, interrupt: Interrupt | None = None) -> Object:
        """Waits until the object exists, brings it to this node, and pins it there while the result lives.

        NotFound: nobody has it within the time. DeadlineExceeded: the text says what was in the way.
        """
        with _about(id):
            return self._look(lambda line: line.get(id, timeout, interrupt=interrupt))

    def get_many(self, ids: Iterable[IdLike], timeout: Seconds = 10.0, *,
                 interrupt: Interrupt | None = None) -> list[Object | None]:
        """As many as ids, in their order; those that did not come in time are None."""
        named = _list_of(ids)
        return self._look(lambda line: line.get_many(named, timeout, interrupt=interrupt))

    def get_object(self, id: IdLike, timeout: Seconds = 10.0) -> Any:
        """The Python object that put_object() put. Its arrays are read-only views of shared memory, and keep it pinned."""
        return pickling.load(self.get(id, timeout))

    def get_array(self, id: IdLike, timeout: Seconds = 10.0) -> Any:
        """The array that put_array() put: a read-only view of shared memory, which keeps the object pinned."""
        return arrays.load(self.get(id, timeout))

    def get_tensor(self, id: IdLike, timeout: Seconds = 10.0) -> arrays.Tensor:
        """The same array for from_dlpack() of torch, JAX and others, in place: torch.from_dlpack(client.get_tensor(id))."""
        return arrays.Tensor(arrays.load(self.get(id, timeout)))

    def wait(self, ids: Iterable[IdLike], count: int | None = None, timeout: Seconds = 10.0, *, anywhere: bool = True,
             interrupt: Interrupt | None = None) -> list[bool]:
        """Waits until `count` of them exist (all), on some node or on this one, and says for each whether it does."""
        named = _list_of(ids)

        def look(line: _native.Client) -> list[bool]:
            if not isinstance(named, list) or len(named) <= waiting.BATCH:
                return line.wait(named, count, timeout, anywhere=anywhere, interrupt=interrupt)

            def some(ids: list[IdLike], count: int, timeout: Seconds) -> list[bool]:
                return line.wait(ids, count, timeout, anywhere=anywhere, interrupt=interrupt)

            return waiting.wait_for_many(some, named, len(named) if count is None else count, timeout)

        return self._look(look)

    # ---- where copies are

    def prefetch(self, ids: Iterable[IdLike], timeout: Seconds = 10.0, *, check: bool = True) -> list[Error | None]:
        """Brings objects to this node.

        check: raises where any failed, with the first error; its `errors` has that of each, or None. check=False returns them.
        """
        return _checked(self._connected().prefetch(_list_of(ids), timeout), check)

    def pin(self, ids: Iterable[IdLike], timeout: Seconds = 10.0, *, check: bool = True) -> list[Error | None]:
        """As prefetch(), and keeps them on this node until unpin(), whoever ends meanwhile."""
        return _checked(self._connected().pin(_list_of(ids), timeout), check)

    def unpin(self, id: IdLike) -> None:
        """Ends what pin() began. NotFound: nothing did."""
        with _about(id):
            self._connected().unpin(id)

    def push(self, ids: Iterable[IdLike], node: str, timeout: Seconds = 10.0, *, check: bool = True) -> list[Error | None]:
        """Has another node fetch objects that are here. What check means: see prefetch()."""
        return _checked(self._connected().push(_list_of(ids), node, timeout), check)

    # ---- looking

    def contains(self, id: IdLike) -> bool:
        """Whether it is sealed on this node."""
        return self._look(lambda line: line.contains(id))

    def list(self, limit: int | None = None, after: IdLike | None = None) -> Sequence[ObjectInfo]:
        """The objects of this node in the order of their ids, those after `after`, at most `limit`.

        The name of each is the str that it was put under; "" where none is kept.
        """
        return self._look(lambda line: line.list(limit, after))

    def stat(self, id: IdLike) -> ObjectStat:
        """What this node and the directory know of an object."""
        with _about(id):
            return self._look(lambda line: line.stat(id))

    def progress(self, id: IdLike) -> PullProgress:
        """How far the pull of an object to this node is. NotFound: none is under way."""
        with _about(id):
            return self._look(lambda line: line.progress(id))

    def hash(self, id: IdLike) -> int:
        """XXH64 of an object of this node: data, then metadata."""
        with _about(id):
            return self._look(lambda line: line.hash(id))

    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes of the cluster, by name."""
        return self._look(lambda line: line.nodes())

    def node_stats(self) -> dict[str, int]:
        """This node's numbers, as `tok stat` shows them."""
        return self._look(lambda line: line.node_stats())

    def cluster(self) -> ClusterView:
        """All nodes, each with its state and what it says of itself. Takes some two seconds where one does not answer."""
        return self._look(lambda line: line.cluster())

    def subscribe(self) -> Subscription:
        """What is sealed, deleted and evicted on this node from now on. Ends with the connection."""
        return self._connected().subscribe()

    # ---- managing

    def delete(self, id: IdLike) -> None:
        """Deletes an object in the whole cluster; who reads it reads on. NotFound: nobody had it."""
        with _about(id):
            self._connected().delete(id)

    def touch(self, id: IdLike) -> None:
        """Has it count as used just now, for what is evicted first."""
        with _about(id):
            self._connected().touch(id)

    def evict(self, bytes: int) -> Evicted:
        """Evicts copies, those used least lately first, until so much is free."""
        return self._connected().evict(bytes)


class _about:
    """Errors within it say the name that was asked for."""

    def __init__(self, id: IdLike) -> None:
        self._id = id

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(value, (NotFound, AlreadyExists)) and isinstance(self._id, str):
            value.args = (f"{self._id!r}: {value}", *value.args[1:])


def _list_of(ids: Iterable[IdLike]) -> Iterable[IdLike]:
    # A str is one id, which the native call says.
    return ids if isinstance(ids, (str, bytes)) else list(ids)


def _checked(errors: list[Error | None], check: bool) -> list[Error | None]:
    failed = [error for error in errors if error is not None]
    if check and failed:
        raise failed[0].among(errors)
    return errors


def _make(kind: type[Client], socket: str, call_timeout: Seconds, read_only: bool, name: str, reconnect: bool,
          keep_names: bool) -> Client:
    return kind(socket, call_timeout=call_timeout, read_only=read_only, name=name, reconnect=reconnect, keep_names=keep_names)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    # Another thread of the parent may have held it.
    for client in list(_clients):
        client._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
