"""Python objects with their buffers beside the pickle, and Arrow tables."""

import pickle

import numpy
import pytest

import tokamak
from conftest import PATIENCE, pins
from memory_test import mapping_of

try:
    import pyarrow
except ImportError:
    pyarrow = None


def test_arrays_of_an_object_are_the_arena_itself(client, other, name):
    value = {"weights": numpy.arange(10_000, dtype=numpy.float64), "rest": ["text", 7, None],
             "matrix": numpy.asfortranarray(numpy.ones((30, 40), numpy.int16))}
    client.put_object(name, value)
    for got in (client.get_object(name), other.get_object(name, PATIENCE)):
        assert got["rest"] == value["rest"]
        for part in ("weights", "matrix"):
            assert (got[part] == value[part]).all()
            assert not got[part].flags.writeable
            assert got[part].ctypes.data % 64 == 0
            assert "memfd:tokamak" in mapping_of(got[part].ctypes.data)
    assert pins(client, name) == 0 or got is not None


def test_what_was_unpickled_keeps_the_object(client, name):
    client.put_object(name, [numpy.zeros(1000), numpy.ones(1000)])
    assert pins(client, name) == 0
    first, second = client.get_object(name)
    del first
    assert pins(client, name) == 1
    del second
    assert pins(client, name) == 0


@pytest.mark.parametrize("value", [None, 0, "", b"", [], {"a": [1, 2]}, numpy.zeros(0), numpy.arange(10)[::2],
                                   pickle.PickleBuffer(b"read only"), tokamak.ObjectId(b"x" * 20)], ids=repr)
def test_any_object_comes_back(client, name, value):
    client.put_object(name, value)
    got = client.get_object(name)
    if isinstance(value, pickle.PickleBuffer):
        assert bytes(got) == bytes(value)
    else:
        assert numpy.array_equal(got, value)


def test_what_holds_no_python_object_is_refused(client, name):
    client.put(name, b"bytes")
    with pytest.raises(tokamak.InvalidArgument, match="read it with get"):
        client.get_object(name)
    client.put(name + " other", b"bytes", b"tokamak.pickle5\0" + bytes(8))
    with pytest.raises(tokamak.InvalidArgument, match="another size"):
        client.get_object(name + " other")


def test_what_cannot_be_pickled_leaves_nothing(client, name):
    with pytest.raises((AttributeError, pickle.PicklingError)):
        client.put_object(name, lambda: 0)
    assert not client.contains(name)


@pytest.mark.skipif(pyarrow is None, reason="pyarrow is not installed; Debian 12 has none")
def test_arrow_tables_are_read_in_place(client, name):
    import tokamak.arrow
    table = pyarrow.table({"n": list(range(10_000)), "text": [str(n) for n in range(10_000)]})
    tokamak.arrow.put_table(client, name, table)
    got = tokamak.arrow.get_table(client, name)
    assert got.equals(table)
    assert "memfd:tokamak" in mapping_of(got.column("n").chunk(0).buffers()[1].address)
    assert pins(client, name) == 1
