"""Two nodes for all tests, and a client of each for each test."""

import itertools
import time

import pytest

import tokamak
import tokamak.testing

PATIENCE = 60.0  # seconds, for what is long done unless something is broken


@pytest.fixture(scope="session")
def cluster():
    with tokamak.testing.Cluster(nodes=2) as both:
        yield both


@pytest.fixture
def client(cluster):
    return cluster.connect(0, call_timeout=PATIENCE)


@pytest.fixture
def other(cluster):
    """Of the other node."""
    return cluster.connect(1, call_timeout=PATIENCE)


_numbers = itertools.count()


@pytest.fixture
def name():
    """That no other test has."""
    return f"object {next(_numbers)}"


def eventually(check):
    """Waits for another process, of whose doing nothing else tells."""
    limit = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < limit
        time.sleep(0.005)


def pins(client, name):
    return client.stat(name).object.pins
