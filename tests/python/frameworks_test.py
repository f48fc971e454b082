"""torch and pandas: tensors and frames lie in shared memory, and are read there, by whatever process."""

import multiprocessing

import numpy
import pandas
import pytest
import torch
import torch.utils.data
import torch.utils.dlpack

import tokamak
import tokamak.testing
from conftest import PATIENCE, pins


def test_a_tensor_is_put_and_read_in_place_by_dlpack(client, other, name):
    tensor = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    client.put_array(name, tensor)
    for reader in (client, other):
        got = torch.from_dlpack(reader.get_tensor(name))
        assert got.dtype == torch.float32 and torch.equal(got, tensor)
        assert pins(reader, name) == 1
        del got
        assert pins(reader, name) == 0


def test_a_fortran_ordered_array_is_a_tensor_with_its_strides(client, name):
    client.put_array(name, numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)))
    got = torch.from_dlpack(client.get_tensor(name))
    assert got.stride() == (1, 2) and got.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_model_s_weights_lie_beside_the_pickle(client, name):
    model = torch.nn.Linear(300, 200)
    client.put_object(name, model.state_dict())
    weights = client.get_object(name)
    assert torch.equal(weights["weight"], model.weight)
    # In shared memory: it is pinned for as long as the tensors live.
    assert pins(client, name) == 1
    again = torch.nn.Linear(300, 200)
    again.load_state_dict(weights)
    del weights
    assert pins(client, name) == 0
    assert torch.equal(again.bias, model.bias)
    stat = client.stat(name).object
    assert stat.data_size < 1.1 * 4 * (300 * 200 + 200) + 4096


def test_tensors_of_any_kind_come_back(client, name):
    values = [torch.tensor(3), torch.zeros(0, 4), torch.ones(2, dtype=torch.bfloat16), torch.randn(4, 5).T, torch.tensor([True]),
              torch.nn.Parameter(torch.ones(3)), torch.ones(2, requires_grad=True), torch.eye(3).to_sparse(), torch.tensor([1 + 2j]).conj()]
    client.put_object(name, values)
    for put, got in zip(values, client.get_object(name)):
        assert type(got) is type(put) and got.dtype == put.dtype and got.requires_grad == put.requires_grad
        assert torch.equal(got.to_dense() if got.layout != torch.strided else got, put.to_dense() if put.layout != torch.strided else put)


class Samples(torch.utils.data.Dataset):
    """Reads each sample from the store, in whatever process."""

    def __init__(self, client, name, count):
        self.client, self.name, self.count = client, name, count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        return torch.from_dlpack(self.client.get_tensor(f"{self.name} {number}")).clone()


def put_samples(client, name, first):
    for number in range(16):
        client.put_array(f"{name} {number}", numpy.full(10, first + number, "int64"))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader_read_by_the_client_of_their_dataset(client, name, start):
    put_samples(client, name, 0)
    loader = torch.utils.data.DataLoader(Samples(client, name, 16), batch_size=4, num_workers=2, multiprocessing_context=start)
    assert sorted(batch[0, 0].item() for batch in loader) == [0, 4, 8, 12]


class HalfAtATime(Samples):
    """Its second half is read once the gate is open."""

    def __init__(self, client, name, count, gate):
        super().__init__(client, name, count)
        self.gate = gate

    def __getitem__(self, number):
        if number >= self.count // 2:
            assert self.gate.wait(PATIENCE)
        return super().__getitem__(number)


def epoch_with_a_restart(name, start, reconnect):
    """What the workers of a loader have read: half of it from one daemon, half from the next, which holds other samples."""
    with tokamak.testing.Cluster() as lonely:
        client = lonely.connect(call_timeout=PATIENCE, reconnect=reconnect)
        put_samples(client, name, 0)
        gate = multiprocessing.get_context(start).Event()
        loader = torch.utils.data.DataLoader(HalfAtATime(client, name, 16, gate), batch_size=4, num_workers=2, multiprocessing_context=start,
                                             timeout=PATIENCE)
        batches = iter(loader)
        read = [next(batches)[:, 0].tolist() for _ in range(2)]  # one of each worker: both are connected, and neither is in a call
        lonely.nodes[0].kill()
        lonely.nodes[0].restart()
        put_samples(lonely.connect(), name, 100)
        gate.set()
        return read + [batch[:, 0].tolist() for batch in batches]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_data_loader_goes_on_where_the_daemon_is_restarted_in_the_middle_of_an_epoch(name, start):
    assert epoch_with_a_restart(name, start, reconnect=True) == [[0, 1, 2, 3], [4, 5, 6, 7], [108, 109, 110, 111], [112, 113, 114, 115]]


def test_a_data_loader_whose_client_does_not_reconnect_ends_with_the_daemon(name):
    with pytest.raises(tokamak.Unavailable, match="connect again"):
        epoch_with_a_restart(name, "spawn", reconnect=False)  # a forked worker would have no connection to begin with


def test_a_frame_is_read_in_place(client, other, name):
    frame = pandas.DataFrame({"a": numpy.arange(10_000), "b": numpy.linspace(0, 1, 10_000), "c": ["x", "y"] * 5_000})
    client.put_object(name, frame)
    got = other.get_object(name)
    pandas.testing.assert_frame_equal(got, frame)
    assert pins(other, name) == 1 and not got["a"].to_numpy().flags.writeable
    assert got["b"].sum() == pytest.approx(5_000)
    del got
    assert pins(other, name) == 0


def test_what_dlpack_has_no_word_for_is_refused(client, name):
    client.put_array(name, numpy.array(["a"]))
    with pytest.raises(BufferError, match="get_array"):
        torch.from_dlpack(client.get_tensor(name))
    assert isinstance(client.get_tensor(name), tokamak.arrays.Tensor)
