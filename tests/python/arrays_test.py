"""Arrays keep what they are: type, shape and order."""

import numpy
import pytest

import tokamak
from conftest import pins

ARRAYS = [
    numpy.arange(6, dtype=">i2").reshape(2, 3),
    numpy.asfortranarray(numpy.arange(24.0).reshape(2, 3, 4)),
    numpy.arange(20)[::3],
    numpy.float32(7),
    numpy.zeros((0, 5)),
    numpy.array(["2026-11-27", "NaT"], "datetime64[s]"),
    numpy.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]),
    numpy.array([True, False]),
    numpy.array(["a", "bcd"]),
    numpy.array([1 + 2j]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_an_array_comes_back_as_it_went(client, other, name, array):
    client.put_array(name, array)
    for reader in (client, other):
        got = reader.get_array(name)
        assert got.dtype == numpy.asarray(array).dtype and got.shape == numpy.shape(array)
        assert numpy.array_equal(got, array, equal_nan=got.dtype.kind in "fM")
        assert str(got) == str(numpy.asarray(array))
        if got.size > 0:
            assert not got.flags.writeable
    if numpy.ndim(array) > 1:
        assert got.flags.f_contiguous == array.flags.f_contiguous


def test_an_array_lies_in_shared_memory(client, name):
    client.put_array(name, numpy.arange(1000))
    got = client.get_array(name)[10:20]
    assert pins(client, name) == 1 and got[0] == 10
    del got
    assert pins(client, name) == 0


def test_what_is_no_array_of_ours_is_refused(client, name):
    client.put(name, b"x")
    with pytest.raises(tokamak.InvalidArgument, match="read it with get"):
        client.get_array(name)
    for number, metadata in enumerate([b"", b"{}", b'{"descr": "<f8", "shape": [-1], "fortran": false}', b"[1]", b"\xff",
                                       b'{"descr": "|O", "shape": [1], "fortran": false}',
                                       b'{"descr": "<f8", "shape": [2], "fortran": false}', b'{"descr": "no", "shape": [1], "fortran": 0}']):
        client.put(f"{name} {number}", bytes(8), b"tokamak.array1\0\0" + metadata)
        with pytest.raises(tokamak.InvalidArgument, match="was not written by put_array"):
            client.get_array(f"{name} {number}")


def test_what_put_cannot_keep_names_what_can(client, name):
    with pytest.raises(TypeError, match="use put_object"):
        client.put(name, numpy.array([{}], object))
    with pytest.raises(TypeError, match="use put_object"):
        client.put_array(name, [{}, None])
    with pytest.raises(ValueError, match="use put_array"):
        client.put(name, numpy.asfortranarray(numpy.zeros((3, 4))))
    with pytest.raises(TypeError, match="put_object.. takes any object"):
        client.put(name, {"a": 1})
    with pytest.raises(TypeError, match="use put_object"):
        client.put(name, numpy.zeros(2, [("a", "i4"), ("b", object)]))
    client.put(name + " fields", numpy.zeros(2, [("Open", "i4"), ("O", "i4")]))
    client.put(name, numpy.zeros((3, 4)))
    assert len(client.get(name)) == 96


# ---- DLPack


class Lent:
    """Of an array only what DLPack asks for."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("array", [numpy.arange(6).reshape(2, 3), numpy.asfortranarray(numpy.ones((3, 4), "float16")),
                                   numpy.array([1 + 2j]), numpy.float32(7), numpy.zeros((0, 5))], ids=range(5))
def test_a_tensor_is_taken_in_place_and_given_back(client, other, name, array):
    client.put_array(name, array)
    for reader in (client, other):
        taken = numpy.from_dlpack(reader.get_tensor(name))
        assert taken.dtype == numpy.asarray(array).dtype and taken.shape == numpy.shape(array)
        assert numpy.array_equal(taken, array)
        if taken.size > 0:
            assert pins(reader, name) == 1 and taken.strides == numpy.asarray(array).strides
        del taken
        assert pins(reader, name) == 0


def test_a_capsule_that_nobody_takes_gives_the_object_back(client, name):
    client.put_array(name, numpy.arange(10))
    tensor = client.get_tensor(name)
    for version, kind in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 1), "dltensor_versioned")):
        assert f'"{kind}"' in repr(tensor.__dlpack__(max_version=version))
    assert tensor.shape == (10,) and "(10,)" in repr(tensor)
    capsule = tensor.__dlpack__()
    del tensor
    assert pins(client, name) == 1
    del capsule
    assert pins(client, name) == 0


def test_a_copy_of_a_tensor_pins_nothing(client, name):
    client.put_array(name, numpy.arange(10))
    capsule = client.get_tensor(name).__dlpack__(copy=True)
    assert pins(client, name) == 0
    del capsule


def test_what_dlpack_has_no_word_for_is_refused(client, name):
    for number, array in enumerate([numpy.array(["a"]), numpy.arange(3, dtype=">i4"), numpy.array([(1,)], [("a", "i4")])]):
        client.put_array(f"{name} {number}", array)
        with pytest.raises(BufferError, match="get_array"):
            client.get_tensor(f"{name} {number}").__dlpack__()
    client.put_array(name, numpy.arange(3))
    with pytest.raises(BufferError, match="host memory"):
        client.get_tensor(name).__dlpack__(dl_device=(2, 0))


def test_what_lends_its_memory_by_dlpack_is_put(client, name):
    lent = Lent(numpy.arange(12.0).reshape(3, 4))
    client.put_array(name, lent)
    assert client.get_array(name).tolist() == numpy.arange(12.0).reshape(3, 4).tolist()
