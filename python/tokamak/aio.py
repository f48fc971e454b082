"""Tokamak for asyncio.

    async with tokamak.aio.Client("/run/tokamak/tokd.sock") as client:
        first, second = await asyncio.gather(client.get("first"), client.get("second"))
        async for events in client.subscribe():
            print(events.dropped, events.events)

Gets wait on a descriptor of the C++ client, without a thread: what one turn of the loop begins leaves in one write, and
cancelling a task cancels its get, here and at the daemon. Calls that are answered soon, and puts, run in the loop's executor;
cancelling interrupts them there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Callable, TypeVar

from . import client as blocking
from . import pickling
from ._native import Events, Gets, Interrupt, Object, ObjectInfo, ObjectStat, PullProgress, Writer
from ._types import IdLike, Seconds
from .errors import DeadlineExceeded, Error, NotFound

T = TypeVar("T")


class Client:
    """As tokamak.Client, for the tasks of one event loop at a time."""

    # A daemon that says nothing, or takes nothing, is looked after this often while gets are pending.
    TICK = 1.0

    # Of all get_many() at most so many are pending; a connection has room for 2,048.
    MOST_OF_MANY = 1024

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, call_timeout: Seconds = 10.0, read_only: bool = False,
                 name: str = "python", keep_names: bool = True) -> None:
        self.blocking = blocking.Client(socket, call_timeout=call_timeout, read_only=read_only, name=name, keep_names=keep_names)
        self._line = self.blocking._connected()  # of the gets
        self._gets = Gets(self._line)
        self._futures: dict[int, asyncio.Future[Object]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None  # while gets are pending
        self._tick: asyncio.TimerHandle | None = None
        self._unsent = False  # this turn of the loop will send what it began
        self._turns: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None  # of get_many(), and whose they are

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, type: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the gets that are pending; further calls raise. Objects that were got live on."""
        for number, future in list(self._futures.items()):
            future.cancel()
            self._forget(number)
        self.blocking.close()

    # ---- getting

    async def get(self, id: IdLike, timeout: Seconds = 10.0) -> Object:
        """As tokamak.Client.get()."""
        number = self._begin(id, timeout)
        try:
            return await self._futures[number]
        finally:
            self._forget(number)

    async def get_many(self, ids: Iterable[IdLike], timeout: Seconds = 10.0) -> list[Object | None]:
        """As many as ids, in their order; those that did not come are None. Any number: they take turns."""
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = (loop, asyncio.Semaphore(self.MOST_OF_MANY))
        turns = self._turns[1]
        end = None if timeout is None else loop.time() + timeout

        async def in_turn(id: IdLike) -> Object:
            async with turns:
                return await self.get(id, None if end is None else max(0.0, end - loop.time()))

        got = await asyncio.gather(*(in_turn(id) for id in ids), return_exceptions=True)
        objects: list[Object | None] = []
        for one in got:
            if isinstance(one, BaseException) and not isinstance(one, (NotFound, DeadlineExceeded)):
                raise one
            objects.append(None if isinstance(one, BaseException) else one)
        return objects

    async def get_object(self, id: IdLike, timeout: Seconds = 10.0) -> Any:
        """As tokamak.Client.get_object()."""
        return pickling.load(await self.get(id, timeout))

    def _begin(self, id: IdLike, timeout: Seconds) -> int:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._look_for_another_line()
            self._loop = loop
            loop.add_reader(self._gets.fileno(), self._read)
            self._tick = loop.call_later(self.TICK, self._look)
        elif self._loop is not loop:
            raise RuntimeError("gets of another event loop are pending: give each loop a client of its own")
        number = self._gets.begin(id, timeout)
        self._futures[number] = loop.create_future()
        if not self._unsent:
            self._unsent = True
            loop.call_soon(self._send)
        return number

    def _look_for_another_line(self) -> None:
        """After the daemon was restarted, or in a forked child. Nothing is pending."""
        line = self.blocking._connected()
        if line is not self._line:
            self._line, self._gets = line, Gets(line)

    def _send(self) -> None:
        self._unsent = False
        self._read()

    # next() sends what was begun, as far as the daemon takes it now.
    def _read(self) -> None:
        while (ended := self._gets.next(0)) is not None:
            number, what = ended
            future = self._futures.get(number)
            if future is None or future.done():
                continue
            if isinstance(what, Error):
                future.set_exception(what)
            else:
                future.set_result(what)

    def _look(self) -> None:
        self._read()
        if self._loop is not None:
            self._tick = self._loop.call_later(self.TICK, self._look)

    def _forget(self, number: int) -> None:
        future = self._futures.pop(number, None)
        if future is None:
            return
        if future.cancelled() or not future.done():
            self._gets.cancel(number)
        if self._futures or self._loop is None:
            return
        self._loop.remove_reader(self._gets.fileno())
        if self._tick is not None:
            self._tick.cancel()
        self._loop = self._tick = None

    # ---- the rest

    async def put(self, id: IdLike, data: Any, metadata: Any = b"", *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
        """As tokamak.Client.put()."""
        await self._interruptible(self.blocking.put, id, data, metadata, timeout=timeout, confirmed=confirmed)

    async def create(self, id: IdLike, size: int, metadata: Any = b"", *, timeout: Seconds = 5.0,
                     confirmed: bool = False) -> Writer:
        """As tokamak.Client.create()."""
        return await self._interruptible(self.blocking.create, id, size, metadata, timeout=timeout, confirmed=confirmed)

    async def put_object(self, id: IdLike, value: Any, *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
        """As tokamak.Client.put_object()."""
        pickled = pickling.Pickled(value)
        writer = await self.create(id, pickled.size, pickled.metadata, timeout=timeout, confirmed=confirmed)
        pickled.write(writer)
        await self._in_executor(writer.seal)

    async def wait(self, ids: Iterable[IdLike], count: int | None = None, timeout: Seconds = 10.0, *,
                   anywhere: bool = True) -> list[bool]:
        """As tokamak.Client.wait()."""
        return await self._interruptible(self.blocking.wait, ids, count, timeout, anywhere=anywhere)

    async def contains(self, id: IdLike) -> bool:
        """As tokamak.Client.contains()."""
        return await self._in_executor(self.blocking.contains, id)

    async def list(self, limit: int | None = None, after: IdLike | None = None) -> Iterable[ObjectInfo]:
        """As tokamak.Client.list()."""
        return await self._in_executor(self.blocking.list, limit, after)

    async def stat(self, id: IdLike) -> ObjectStat:
        """As tokamak.Client.stat()."""
        return await self._in_executor(self.blocking.stat, id)

    async def progress(self, id: IdLike) -> PullProgress:
        """As tokamak.Client.progress()."""
        return await self._in_executor(self.blocking.progress, id)

    async def delete(self, id: IdLike) -> None:
        """As tokamak.Client.delete()."""
        await self._in_executor(self.blocking.delete, id)

    async def subscribe(self) -> AsyncIterator[Events]:
        """What is sealed, deleted and evicted on this node from the first step on: as it comes, what came together together."""
        subscription = await self._in_executor(self.blocking.subscribe)
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(subscription.fileno(), readable.set)
        try:
            while True:
                await readable.wait()
                readable.clear()
                try:
                    yield subscription.next(0)
                except DeadlineExceeded:
                    continue
                readable.set()  # there may be more
        finally:
            loop.remove_reader(subscription.fileno())

    async def _in_executor(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)

    async def _interruptible(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        interrupt = Interrupt()
        try:
            return await self._in_executor(lambda: call(*arguments, interrupt=interrupt, **options))
        except asyncio.CancelledError:
            interrupt.fire()
            raise
