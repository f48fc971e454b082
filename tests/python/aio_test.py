"""tokamak.aio: gets of an event loop, which wait on a descriptor, and what is cancelled."""

import asyncio

import pytest

import tokamak
import tokamak.aio
import tokamak.testing
from conftest import PATIENCE, pins

LONG = 3600.0


@pytest.fixture
def socket(cluster):
    return cluster.nodes[0].socket


def run(main):
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


def test_gets_of_many_tasks_wait_at_once(socket, other, name):
    async def main():
        async with tokamak.aio.Client(socket) as client:
            gets = [asyncio.create_task(client.get(f"{name} {i}", LONG)) for i in range(100)]
            await asyncio.sleep(0)
            for i in reversed(range(100)):
                other.put(f"{name} {i}", bytes([i]))
            return [bytes(got) for got in await asyncio.gather(*gets)]

    assert run(main()) == [bytes([i]) for i in range(100)]


def test_a_get_ends_by_its_time_out_and_raises(socket, name):
    async def main():
        client = tokamak.aio.Client(socket)
        with pytest.raises(tokamak.Error) as late:
            await client.get(name, 0.01)
        assert isinstance(late.value, (tokamak.DeadlineExceeded, tokamak.NotFound))
        await client.put(name, b"x")
        got = await client.get_many([name, name + " missing"], 0.01)
        assert bytes(got[0]) == b"x" and got[1] is None

    run(main())


def test_a_cancelled_get_is_over_here_and_at_the_daemon(socket, client, name):
    async def main():
        aio = tokamak.aio.Client(socket)
        first = asyncio.create_task(aio.get(name, LONG))
        second = asyncio.create_task(aio.get(name, LONG))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        client.put(name, b"x")
        got = await second
        await aio.contains(name)
        assert pins(client, name) == 1
        del got, second

    run(main())
    assert pins(client, name) == 0


def test_a_time_out_of_asyncio_cancels(socket, client, name):
    async def main():
        aio = tokamak.aio.Client(socket)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(aio.get(name, LONG), 0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(aio.wait([name], timeout=LONG), 0.05)

    run(main())


def test_closing_cancels_what_is_pending(socket, name):
    async def main():
        async with tokamak.aio.Client(socket) as client:
            get = asyncio.create_task(client.get(name, LONG))
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await get

    run(main())


def test_one_client_serves_one_loop_after_another(socket, client, name):
    client.put(name, b"x")
    aio = tokamak.aio.Client(socket)
    for _ in range(2):
        assert bytes(run(aio.get(name))) == b"x"


def test_threads_share_the_connection_with_the_loop(socket, name):
    async def main():
        aio = tokamak.aio.Client(socket)
        waiting = asyncio.create_task(aio.get(name, LONG))
        await asyncio.sleep(0.01)
        # Reads what comes for the task as well.
        reader = asyncio.get_running_loop().run_in_executor(None, aio.blocking.get, name + " second", LONG)
        await asyncio.sleep(0.05)
        await aio.put(name, b"1")
        assert bytes(await waiting) == b"1"
        await aio.put(name + " second", b"2")
        assert bytes(await reader) == b"2"

    run(main())


def test_the_rest(socket, name):
    async def main():
        client = tokamak.aio.Client(socket)
        await client.put_object(name, {"a": 1})
        assert await client.get_object(name) == {"a": 1}
        assert await client.wait([name]) == [True]
        assert (await client.stat(name)).here
        with await client.create(name + " more", 4) as writer:
            writer.data[:] = b"1234"
        assert {name, name + " more"} <= {info.name for info in await client.list()}
        await client.delete(name)
        assert not await client.contains(name)
        with pytest.raises((tokamak.NotFound, tokamak.Unavailable)):  # a directory that has just begun cannot know it
            await client.delete(name)

    run(main())


def test_events_are_iterated_over(socket, client, name):
    async def main():
        aio = tokamak.aio.Client(socket)
        events = aio.subscribe()
        first = asyncio.ensure_future(events.__anext__())
        await asyncio.sleep(0.05)
        for i in range(1000):
            client.put(f"{name} {i}", b"x")
            if first.done():
                break
        told = [await first]
        while sum(len(one.events) for one in told) < 1 + i:
            told.append(await events.__anext__())
        await events.aclose()
        return told

    for one in run(main()):
        assert one.dropped == 0 and all(event.kind == tokamak.EventKind.SEALED for event in one.events)


def test_a_daemon_that_dies_ends_the_gets(name):
    with tokamak.testing.Cluster() as lonely:
        async def main():
            client = tokamak.aio.Client(lonely.nodes[0].socket)
            get = asyncio.create_task(client.get(name, LONG))
            await asyncio.sleep(0.05)
            lonely.nodes[0].kill()
            with pytest.raises(tokamak.Unavailable):
                await get

        run(main())


def test_five_thousand_are_got_by_one_call(socket, client, name):
    names = [f"{name} {i}" for i in range(5000)]
    client.put_many([(one, b"x") for one in names])

    async def main():
        async with tokamak.aio.Client(socket) as aio:
            return await aio.get_many(names, PATIENCE)

    assert [bytes(one) for one in run(main())] == [b"x"] * 5000


def test_many_gets_of_many_take_turns_and_end_by_their_time_out(socket, name):
    async def main():
        async with tokamak.aio.Client(socket) as aio:
            begun = asyncio.get_running_loop().time()
            got = await asyncio.gather(*(aio.get_many([f"{name} {i} {j}" for j in range(1024)], 3.0) for i in range(3)))
            return got, asyncio.get_running_loop().time() - begun

    got, took = run(main())
    assert got == [[None] * 1024] * 3
    assert took < 8  # one after the other: 9


def test_gets_go_on_with_the_next_daemon(name):
    with tokamak.testing.Cluster() as lonely:
        async def main():
            async with tokamak.aio.Client(lonely.nodes[0].socket) as aio:
                await aio.put(name, b"old")
                old = await aio.get(name)
                under_way = asyncio.create_task(aio.get(name + " missing", LONG))
                await asyncio.sleep(0)
                lonely.nodes[0].kill()
                with pytest.raises(tokamak.Unavailable):
                    await under_way
                with pytest.raises(tokamak.Unavailable):
                    await aio.get(name)
                lonely.nodes[0].restart()
                await aio.put(name, b"new")
                return bytes(old) + bytes(await aio.get(name))

        assert run(main()) == b"oldnew"
