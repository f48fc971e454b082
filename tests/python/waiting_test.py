"""Calls that wait: without the GIL, interrupted by signals and by an Interrupt, in batches; and forked children."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

import tokamak
from conftest import PATIENCE, pins

LONG = 3600.0  # of calls that must end before


@pytest.fixture
def after_a_moment():
    """Runs something on another thread, most likely once this one waits; right also where it does not yet."""
    threads = []

    def later(action):
        threads.append(threading.Thread(target=lambda: (time.sleep(0.1), action())))
        threads[-1].start()

    yield later
    for thread in threads:
        thread.join()


def test_other_threads_run_while_one_waits(client, name, after_a_moment):
    after_a_moment(lambda: client.put(name, b"from another thread"))
    assert bytes(client.get(name, LONG)) == b"from another thread"


@pytest.mark.parametrize("wait", [
    lambda client, name: client.get(name, LONG),
    lambda client, name: client.get(name, None),
    lambda client, name: client.get_many([name], LONG),
    lambda client, name: client.wait([name], timeout=LONG),
    lambda client, name: client.subscribe().next(LONG),
    lambda client, name: client.create(name, client.capacity - 2**20, timeout=LONG),
], ids=["get", "get without a time-out", "get_many", "wait", "subscription", "create"])
def test_ctrl_c_ends_what_waits(client, other, name, wait, after_a_moment):
    with client.create(name + " holds room", client.capacity // 2):
        after_a_moment(lambda: os.kill(os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            wait(client, name)
            time.sleep(PATIENCE)  # of a subscription that heard of something
        assert time.monotonic() - begun < PATIENCE / 2
    client.delete(name + " holds room")
    client.put(name, b"the client goes on")
    assert bytes(client.get(name)) == b"the client goes on"


def test_a_handler_that_raises_nothing_runs_and_the_call_goes_on(client, name, after_a_moment):
    def put(*_):
        assert bytes(client.get(name + " first", LONG)) == b"1"
        client.put(name, b"by the handler")

    client.put(name + " first", b"1")
    before = signal.signal(signal.SIGUSR1, put)
    try:
        after_a_moment(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert bytes(client.get(name, LONG)) == b"by the handler"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert signal.set_wakeup_fd(-1) == -1


def test_a_handler_does_not_lengthen_the_call(client, name, after_a_moment):
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        after_a_moment(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        with pytest.raises(tokamak.Error):
            client.get(name, 0.3)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_somebody_else_who_is_told_of_signals_is_told_on(client, name):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing)
    try:
        with pytest.raises(tokamak.Error):
            client.get(name, 0.01)
        assert signal.set_wakeup_fd(writing) == writing
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


def test_an_interrupt_ends_the_calls_that_it_is_given_to(client, name, after_a_moment):
    interrupt = tokamak.Interrupt()
    after_a_moment(interrupt.fire)
    with pytest.raises(tokamak.Cancelled):
        client.get(name, LONG, interrupt=interrupt)
    assert interrupt.fired()
    with pytest.raises(tokamak.Cancelled):
        client.wait([name], timeout=LONG, interrupt=interrupt)
    interrupt.reset()
    client.put(name, b"x", interrupt=interrupt)
    assert len(client.get_many([name], LONG, interrupt=interrupt)) == 1


def test_a_put_is_not_sent_again_because_a_signal_came(client, name):
    came = []
    before = signal.signal(signal.SIGALRM, lambda *_: came.append(client.contains(name)))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        for i in range(100):
            client.put_object(f"{name} {i}", bytes(200_000))
            client.put(f"{name} small {i}", b"x", confirmed=True)
            client.delete(f"{name} {i}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came


def in_child(run):
    """What run() raises in a forked child, and "" for nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run()
            os.write(writing, b".")
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 10000).decode()
    os.close(reading)
    return said.strip(".")


def test_a_forked_child_connects_anew_and_takes_nothing_from_its_parent(cluster, client, name):
    client.put(name, b"x")
    held = [client.get(name), client.create(name + " unsealed", 8), client.subscribe()]

    def child():
        assert bytes(held[0]) == b"x"
        with pytest.raises(tokamak.FailedPrecondition, match="connect again after fork"):
            held[2].next(0)
        held.clear()
        assert bytes(client.get(name)) == b"x"
        assert bytes(cluster.connect().get(name)) == b"x"

    assert in_child(child) == ""
    assert pins(client, name) == 1
    held[1].seal()
    assert client.contains(name + " unsealed")
    assert held[2].next(PATIENCE).events


def length_of(arguments):
    client, name = arguments
    return len(client.get(name, PATIENCE))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_get_what_their_parent_put(client, name, method):
    client.put(name, bytes(1000))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(length_of, [(client, name)] * 4) == [1000] * 4


def test_more_than_one_call_waits_for_are_waited_for_in_batches(client, other, name, after_a_moment):
    ids = [f"{name} {number}" for number in range(5_000)]
    client.put_many([(id, b"") for id in ids[:4_000:2]])
    there = [number < 4_000 and number % 2 == 0 for number in range(5_000)]
    assert other.wait(ids, timeout=0) == there
    assert other.wait(ids, count=2_000, timeout=LONG) == there
    after_a_moment(lambda: client.put(ids[4_999], b""))
    found = other.wait(ids, count=2_001, timeout=LONG)
    assert sum(found) == 2_001 and found[4_999]
    after_a_moment(lambda: client.put_many([(id, b"") for number, id in enumerate(ids[:4_999]) if not there[number]]))
    assert all(other.wait(ids, timeout=LONG))


def test_a_wait_in_batches_ends_by_its_time_out(client, name):
    begun = time.monotonic()
    assert client.wait([f"{name} {number}" for number in range(3_000)], count=1, timeout=0.2) == [False] * 3_000
    assert time.monotonic() - begun >= 0.2
