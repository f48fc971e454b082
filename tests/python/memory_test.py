"""Views of shared memory: where they lie, what may be written, and how long they keep what they see."""

import gc
import os
import re
import subprocess
import sys

import numpy
import pytest

import tokamak
from conftest import eventually, pins

MIB = 2**20


def mapping_of(address):
    """The line of /proc/self/maps that an address is in."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            begin, end = (int(edge, 16) for edge in re.match("([0-9a-f]+)-([0-9a-f]+)", line).groups())
            if begin <= address < end:
                return line
    return ""


def test_a_view_is_the_arena_itself(client, name):
    with client.create(name, MIB) as writer:
        array = numpy.frombuffer(writer, dtype=numpy.uint64)
        where = mapping_of(array.ctypes.data)
        assert "memfd:tokamak" in where and " rw-s " in where
        array[:] = numpy.arange(array.size, dtype=numpy.uint64)
        del array
    got = client.get(name)
    array = numpy.frombuffer(got, dtype=numpy.uint64)
    where = mapping_of(array.ctypes.data)
    assert "memfd:tokamak" in where and " r--s " in where
    assert array.ctypes.data % 64 == 0
    assert (array == numpy.arange(array.size, dtype=numpy.uint64)).all()
    again = numpy.frombuffer(client.get(name), dtype=numpy.uint64)
    assert again.ctypes.data == array.ctypes.data
    view = memoryview(got)
    assert numpy.frombuffer(view[64:128], numpy.uint8).ctypes.data == array.ctypes.data + 64


def test_what_is_sealed_is_read_only(client, name):
    client.put(name, b"1234")
    got = client.get(name)
    assert got.data.readonly
    with pytest.raises(TypeError):
        got.data[0] = 1
    with pytest.raises(ValueError):
        numpy.frombuffer(got, numpy.uint8)[0] = 1
    with pytest.raises((ValueError, BufferError)):
        numpy.frombuffer(got, numpy.uint8).flags.writeable = True


def test_a_view_keeps_the_pin(client, name):
    client.put(name, bytes(1000))
    array = numpy.frombuffer(client.get(name), numpy.uint8)[10:20]
    part = memoryview(array)[2:3]
    assert pins(client, name) == 1
    del array
    gc.collect()
    assert pins(client, name) == 1
    client.delete(name)
    assert part[0] == 0
    del part
    gc.collect()
    eventually(lambda: not [info for info in client.list() if info.id == tokamak.ObjectId.from_name(name)])


def test_an_object_is_released_with_its_last_view_or_before(client, name):
    client.put(name, b"x")
    with client.get(name) as got:
        assert pins(client, name) == 1
    assert got.released and pins(client, name) == 0
    with pytest.raises(BufferError, match="released"):
        got.data
    for look in (bytes, len, lambda released: released.metadata):
        with pytest.raises(ValueError, match="was released before"):
            look(got)
    got.release()
    got = client.get(name)
    view = got.data
    with pytest.raises(BufferError, match="1 views of it live"):
        got.release()
    view.release()
    got.release()
    assert pins(client, name) == 0


def test_the_client_may_go_before_its_views(cluster, client, name):
    short = cluster.connect()
    short.put(name, b"stays")
    view = short.get(name).data
    del short
    gc.collect()
    assert bytes(view) == b"stays" and pins(client, name) == 1


def test_nothing_is_sealed_under_a_view(client, name):
    writer = client.create(name, 8)
    array = numpy.frombuffer(writer, numpy.uint8)
    with pytest.raises(BufferError, match="delete the memoryviews and arrays"):
        writer.seal()
    array[:] = 7
    del array
    writer.seal()
    assert bytes(client.get(name)) == b"\7" * 8
    assert writer.done
    with pytest.raises(BufferError):
        writer.data
    with pytest.raises(tokamak.FailedPrecondition):
        writer.seal()


def test_a_block_that_raises_aborts(client, name):
    with pytest.raises(ZeroDivisionError):
        with client.create(name, 8):
            1 / 0
    assert not client.contains(name)
    client.put(name, b"the id is free")


# Its memory would become another object's while this program can write there.
def test_what_is_aborted_under_a_view_waits_for_that(client, name):
    writer = client.create(name, 8)
    view = writer.data
    writer.abort()
    assert writer.done
    view[0] = 1
    state = [info.state for info in client.list() if info.id == tokamak.ObjectId.from_name(name)]
    assert state == [tokamak.ObjectState.CREATED]
    view.release()
    client.put(name, b"the id is free")


def test_a_writer_that_is_dropped_aborts(client, name):
    writer = client.create(name, 8, b"metadata")
    del writer
    gc.collect()
    client.put(name, b"the id is free")


def test_empty_objects_and_views(client, name):
    client.put(name, b"")
    assert bytes(client.get(name)) == b"" and len(client.get(name).data) == 0
    with client.create(name + " more", 0) as writer:
        assert len(writer.data) == 0


def test_anything_in_one_piece_is_put(client, name):
    array = numpy.arange(100, dtype=numpy.float32).reshape(10, 10)
    client.put(name, array, memoryview(b"metadata"))
    assert (numpy.frombuffer(client.get(name), numpy.float32).reshape(10, 10) == array).all()
    with pytest.raises((BufferError, ValueError)):
        client.put(name + " in pieces", array[:, ::2])
    with pytest.raises(TypeError):
        client.put(name + " text", "a str has no bytes")


# Modules, and what they hold, end in any order: the client before the views of its objects, and after them.
def test_the_interpreter_ends_with_views_alive(cluster, client, name):
    client.put(name, bytes(MIB))
    program = f"""
import numpy, sys, threading, tokamak
client = tokamak.Client({cluster.nodes[0].socket!r})
kept = client.get({name!r})
sys.array = numpy.frombuffer(kept, numpy.uint8)
view = memoryview(client.get({name!r}))
writer = client.create({name + " unsealed"!r}, 100)
sys.unsealed = writer.data
threading.Thread(target=lambda: client.get("never", 3600), daemon=True).start()
class Late:
    def __del__(self): self.view = client.get({name!r}).data
late = Late()
print(int(sys.array.sum()) + view[-1])
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    eventually(lambda: pins(client, name) == 0)
    eventually(lambda: all(info.state == tokamak.ObjectState.SEALED for info in client.list()))
