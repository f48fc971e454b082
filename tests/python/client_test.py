"""What a client does: the calls, their errors, and what goes to another process."""

import inspect
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

import tokamak
import tokamak.aio
from conftest import PATIENCE, eventually, pins


def test_what_one_node_puts_another_gets(client, other, name):
    client.put(name, b"some bytes", b"metadata")
    got = other.get(name, PATIENCE)
    assert bytes(got) == b"some bytes"
    assert got.metadata == b"metadata"
    assert len(got) == 10
    assert got.id == tokamak.ObjectId.from_name(name)


def test_an_id_is_a_name_or_bytes_or_itself(client):
    id = tokamak.ObjectId.from_name("by all three")
    client.put("by all three", b"x")
    for same in (id, bytes(id), tokamak.ObjectId(bytes(id)), tokamak.ObjectId.from_hex(id.hex()), pickle.loads(pickle.dumps(id))):
        assert bytes(client.get(same)) == b"x"
        assert tokamak.ObjectId.from_name("by all three") == id and hash(id) == hash(tokamak.ObjectId.from_name("by all three"))
    assert id != "by all three"
    assert repr(id) == f"ObjectId.from_hex('{id.hex()}')"
    assert sorted([tokamak.ObjectId(b"b" * 20), tokamak.ObjectId(b"a" * 20)])[0] == tokamak.ObjectId(b"a" * 20)


@pytest.mark.parametrize("wrong, error", [(b"short", ValueError), (7, TypeError), (None, TypeError), ("\ud800", ValueError)])
def test_what_is_no_id_is_refused(client, wrong, error):
    with pytest.raises(error):
        client.get(wrong)
    with pytest.raises(TypeError):
        client.get_many("a str is no list of ids")


def test_errors_have_a_class_each_below_one_and_name_the_remedy(client, name):
    with pytest.raises(tokamak.NotFound) as missing:
        client.stat(name)
    assert isinstance(missing.value, KeyError) and isinstance(missing.value, tokamak.Error)
    assert str(missing.value).startswith(f"'{name}': ")
    with pytest.raises(tokamak.NotFound) as missing:
        client.stat(tokamak.ObjectId.from_name(name))
    assert "'" not in str(missing.value)
    with pytest.raises(tokamak.Error) as late:
        client.get(name, timeout=0.01)
    assert isinstance(late.value, (TimeoutError, KeyError))
    client.put(name, b"1")
    with pytest.raises(tokamak.AlreadyExists):
        client.put(name, b"2", confirmed=True)
    with pytest.raises(tokamak.ResourceExhausted):
        client.create(name + " large", 10**10, timeout=0)
    with pytest.raises(tokamak.Unavailable, match="start one with tokd --socket"):
        tokamak.Client("/tmp/no-such-tokamak-socket")


def test_a_client_that_only_reads_creates_nothing(cluster, client, name):
    client.put(name, b"x")
    reader = cluster.connect(read_only=True)
    assert bytes(reader.get(name)) == b"x"
    with pytest.raises(tokamak.FailedPrecondition, match="only reads"):
        reader.create(name + " more", 10)


def test_many_are_put_and_got_at_once(client, name):
    errors = client.put_many([(f"{name} {i}", bytes([i])) for i in range(100)] + [(f"{name} 0", b"again", b"metadata")],
                             check=False)
    assert errors[:100] == [None] * 100
    assert isinstance(errors[100], tokamak.AlreadyExists)
    got = client.get_many([f"{name} {i}" for i in range(100)] + [f"{name} missing"], timeout=0)
    assert [bytes(one) for one in got[:100]] == [bytes([i]) for i in range(100)]
    assert got[100] is None
    with pytest.raises(tokamak.AlreadyExists, match="1 of 2 failed, the first: ") as failed:
        client.put_many([(f"{name} 0", b"again"), (f"{name} new", b"x")])
    assert isinstance(failed.value.errors[0], tokamak.AlreadyExists) and failed.value.errors[1] is None


def names_of(client):
    return {info.name for info in client.list() if info.name}


def test_a_str_is_kept_with_what_is_put_and_goes_with_its_copies(client, other, name):
    names = {f"{name} grün {way}" for way in ("put", "many", "create", "object", "array")}
    client.put(f"{name} grün put", b"1")
    client.put_many([(f"{name} grün many", b"1")])
    with client.create(f"{name} grün create", 100_000):
        pass
    client.put_object(f"{name} grün object", {"a": 1})
    client.put_array(f"{name} grün array", [1.0])
    assert names <= names_of(client)
    assert client.stat(f"{name} grün put").object.name == f"{name} grün put"
    held = other.get_many(names, PATIENCE)
    assert names <= names_of(other)
    del held


def test_no_name_is_kept_where_none_may_be_or_none_is_wanted(cluster, client, name):
    before = names_of(client)
    long, controls = name + "x" * 256, name + "\n"
    for id in (tokamak.ObjectId.from_name(name), long, controls):
        client.put(id, b"1")
        assert client.stat(id).object.name == ""
    quiet = pickle.loads(pickle.dumps(cluster.connect(0, keep_names=False)))
    quiet.put(name + " quiet", b"1")
    quiet.put_many([(name + " quiet too", b"1")])
    quiet.put_array(name + " quiet array", [1.0])
    assert names_of(client) == before


def test_waiting_says_which_are_there(client, other, name):
    other.put(f"{name} b", b"x")
    ids = [f"{name} a", f"{name} b"]
    assert client.wait(ids, count=1, timeout=PATIENCE) == [False, True]
    assert client.wait(ids, timeout=0, anywhere=False) == [False, False]


def test_looking_and_deleting(client, other, name):
    client.put(name, b"12345", b"m")
    assert client.contains(name) and not other.contains(name)
    with pytest.raises(tokamak.NotFound, match="not on its way"):
        client.progress(name)
    stat = client.stat(name)
    assert (stat.here, stat.located, stat.holders) == (True, True, ["node1"])
    assert (stat.object.data_size, stat.object.metadata_size) == (5, 1)
    assert stat.object.state == tokamak.ObjectState.SEALED and stat.object.origin == tokamak.Origin.CREATED_HERE
    assert stat.object.age >= 0
    id = tokamak.ObjectId.from_name(name)
    assert id in [info.id for info in client.list()]
    assert len(client.list(limit=1)) == 1
    assert id not in [info.id for info in client.list(after=id)]
    assert client.hash(name) == client.hash(id)
    client.touch(name)
    copy = other.get(name, PATIENCE)
    assert other.stat(name).object.origin == tokamak.Origin.PULLED
    client.delete(name)
    assert bytes(copy) == b"12345"
    assert not client.contains(name)
    copy.release()
    assert other.evict(0).objects >= 0


def test_copies_go_where_they_are_wanted(client, other, name):
    client.put_many([(f"{name} {i}", b"x") for i in range(3)])
    first, second, third = [f"{name} {i}" for i in range(3)]
    errors = other.prefetch([first, name], timeout=0.2, check=False)
    assert errors[0] is None and isinstance(errors[1], (tokamak.NotFound, tokamak.DeadlineExceeded))
    assert other.contains(first)
    assert other.pin([second], PATIENCE) == [None] and other.contains(second)
    other.evict(other.capacity)
    assert other.contains(second) and not other.contains(first)
    other.unpin(second)
    assert client.push([third], "node2", PATIENCE) == [None] and other.contains(third)
    for call in (lambda: client.push([third], "nobody"), lambda: other.pin([name], 0.1), lambda: other.prefetch([name], 0.1)):
        with pytest.raises((tokamak.NotFound, tokamak.DeadlineExceeded)) as failed:
            call()
        assert failed.value.errors == [failed.value.errors[0]] and "failed" not in str(failed.value)
    with pytest.raises(tokamak.NotFound):
        client.unpin(name)


def test_the_version_is_that_of_the_daemon(cluster):
    assert tokamak.__version__[0].isdigit()
    said = subprocess.run([os.environ["TOKAMAK_TOKD"], "--version"], capture_output=True, text=True, check=True).stdout
    assert tokamak.__version__ in said


def test_the_cluster_is_seen(client):
    nodes = {node.name: node for node in client.nodes()}
    assert set(nodes) == {"node1", "node2"}
    assert nodes["node1"].is_this and nodes["node1"].device.startswith("soft:udp@")
    assert client.node == "node1" and client.capacity > 2**20
    assert client.node_stats()["store_capacity_bytes"] == client.capacity
    view = client.cluster()
    assert view.located and [node.info.name for node in view.nodes] == ["node1", "node2"]
    for node in view.nodes:
        assert node.state == tokamak.NodeState.ALIVE and node.unheard_for == 0
        assert node.numbers["store_capacity_bytes"] == client.capacity
    client.check()


def test_a_subscriber_hears_what_is_sealed_and_deleted(client, name):
    subscription = client.subscribe()
    id = tokamak.ObjectId.from_name(name)
    client.put(name, b"123")
    client.delete(name)
    seen = []
    while len(seen) < 2:
        seen += [event for event in subscription.next(PATIENCE).events if event.id == id]
    assert [event.kind for event in seen] == [tokamak.EventKind.SEALED, tokamak.EventKind.DELETED]
    assert seen[0].data_size == 3
    assert [event.name for event in seen] == [name, name]
    with pytest.raises(tokamak.DeadlineExceeded):
        while True:
            subscription.next(0)


def test_a_client_goes_to_another_process_by_pickle(client, name):
    client.put(name, b"x")
    again = pickle.loads(pickle.dumps(client))
    assert bytes(again.get(name)) == b"x"


def test_the_socket_is_that_of_the_environment(cluster, monkeypatch):
    monkeypatch.setenv("TOKAMAK_SOCKET", cluster.nodes[1].socket)
    assert tokamak.Client().node == "node2"


def test_a_client_lives_through_a_restart_of_the_daemon_and_what_was_got_stays_readable(name):
    with tokamak.testing.Cluster() as lonely:
        client, strict = lonely.connect(), lonely.connect(reconnect=False)
        client.put(name, b"stays")
        got = client.get(name)
        lonely.nodes[0].kill()
        with pytest.raises(tokamak.Unavailable, match="start one with tokd"):
            client.contains(name)
        with pytest.raises(tokamak.Unavailable):
            client.check()
        assert "not connected" in repr(client)
        lonely.nodes[0].restart()
        assert not client.contains(name) and client.node == "node1"
        client.put(name, b"new")
        assert bytes(client.get(name)) == b"new" and bytes(got) == b"stays"
        with pytest.raises(tokamak.Unavailable, match="connect again"):
            strict.contains(name)


def test_a_thread_that_waits_when_the_interpreter_ends_is_left_alone(cluster):
    program = """if True:
        import threading, time, tokamak
        client = tokamak.Client()
        def get():
            while True:
                for timeout in (0, 0.001, 60):
                    try:
                        client.get("never", timeout=timeout)
                    except tokamak.Error:
                        pass
        for _ in range(4):
            threading.Thread(target=get, daemon=True).start()
        client.put_many([(f"end {i}", b"x") for i in range(100)], check=False)
    """
    for _ in range(10):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "TOKAMAK_SOCKET": cluster.nodes[0].socket})
        assert (done.returncode, done.stderr) == (0, "")


def test_a_client_is_closed_by_a_block_and_then_refuses(cluster, client, name):
    with cluster.connect() as short:
        short.put(name, b"x")
        got = short.get(name)
        assert repr(short) == f"<tokamak.Client {cluster.nodes[0].socket}, of node node1>"
    assert bytes(got) == b"x" and pins(client, name) == 1
    for call in (lambda: short.get(name), short.check, lambda: short.node):
        with pytest.raises(tokamak.FailedPrecondition, match="was closed"):
            call()
    assert "closed" in repr(short)


class Named(tokamak.Client):
    """A class of the program's own."""


def test_a_class_of_the_programs_own_stays_one_by_pickle(cluster):
    assert type(pickle.loads(pickle.dumps(Named(cluster.nodes[0].socket)))) is Named


def test_a_socket_is_a_path(cluster):
    assert tokamak.Client(pathlib.Path(cluster.nodes[0].socket)).node == "node1"
    for wrong in ("a\0b", b"bytes"):
        with pytest.raises(ValueError, match="path without NUL"):
            tokamak.Client(wrong)


@pytest.mark.parametrize("wrong, error", [("1s", TypeError), (-1, ValueError), (float("nan"), ValueError), ([], TypeError)])
def test_a_timeout_is_a_number_of_seconds(client, name, wrong, error):
    with pytest.raises(error, match="a time-out is"):
        client.get(name, timeout=wrong)


@pytest.mark.parametrize("kind", [tokamak.Client, tokamak.aio.Client, tokamak.Object, tokamak.Writer, tokamak.Subscription, tokamak.Interrupt])
def test_help_says_what_each_call_does(kind):
    assert inspect.getdoc(kind)
    for member, what in vars(kind).items():
        if member.startswith("_") or not (callable(what) or isinstance(what, property)):
            continue
        assert inspect.getdoc(what), member
        if kind in (tokamak.Client, tokamak.aio.Client) and callable(what):
            assert inspect.signature(what).parameters, member


def test_a_cluster_says_why_it_does_not_start():
    with pytest.raises(tokamak.Error, match="--no-such-flag"):
        tokamak.testing.Cluster(flags=["--no-such-flag"]).start()
    with pytest.raises(ValueError):
        tokamak.testing.Cluster(nodes=0)


def test_a_cluster_ends_with_its_block():
    with tokamak.testing.Cluster() as short:
        process = short.nodes[0].process
        assert process.poll() is None
    eventually(lambda: process.poll() is not None)
