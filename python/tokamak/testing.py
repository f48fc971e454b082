"""Private clusters for tests.

    with tokamak.testing.Cluster(nodes=2) as cluster:
        here, there = cluster.connect(0), cluster.connect(1)
        here.put("x", b"1")
        assert bytes(there.get("x")) == b"1"

Each node is a tokd of its own on the software NIC, on loopback addresses that nobody else uses; the first serves the
directory. $TOKAMAK_TOKD, else PATH, says where tokd is. All end with the block, or with this process.
"""

from __future__ import annotations

import atexit
import os
import random
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .client import Client
from .errors import Error


class Node:
    """One tokd: its socket, and what it logged."""

    def __init__(self, folder: str, number: int, address: str, directory: str, flags: Sequence[str], tokd: str) -> None:
        self.name = f"node{number}"
        self._ready = False
        self.socket = os.path.join(folder, f"{self.name}.sock")
        self._log_file = os.path.join(folder, f"{self.name}.log")
        # It tells us when it is ready, as a service tells systemd.
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.bind(os.path.join(folder, f"{self.name}.notify"))
        self._command = [tokd, "--name", self.name, "--listen", f"{address}:7000", "--device", f"soft:udp@{address}", "--socket",
                         self.socket, "--directory", directory, *flags]
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "NOTIFY_SOCKET": self._told.getsockname()}
        environment.pop("WATCHDOG_USEC", None)
        with open(self._log_file, "wb") as log:
            return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def log(self) -> str:
        with open(self._log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def await_ready(self, deadline: float) -> None:
        if self._ready:
            return
        ended = os.pidfd_open(self.process.pid)
        try:
            while True:
                left = max(0.0, deadline - time.monotonic())
                readable, _, _ = select.select([self._told, ended], [], [], left)
                if self._told in readable:
                    if self._told.recv(4096).startswith(b"READY=1"):
                        self._ready = True
                        return
                elif ended in readable:
                    raise Error(f"tokd of {self.name} ended at once: {self.log().strip()}")
                else:
                    raise Error(f"tokd of {self.name} is not ready in time: {self.log().strip()}")
        finally:
            os.close(ended)

    def close(self) -> None:
        self._told.close()

    def kill(self) -> None:
        """As a crash does."""
        self.process.kill()
        self.process.wait()

    def restart(self, timeout: float = 60.0) -> None:
        """After kill(): the same node, which has lost what it held."""
        self._ready = False
        self.process = self._start()
        self.await_ready(time.monotonic() + timeout)


class Cluster:
    """Nodes that know each other, for the length of a `with` block."""

    def __init__(self, nodes: int = 1, *, memory: str = "64MiB", flags: Sequence[str] = (), tokd: str | None = None,
                 start_timeout: float = 60.0) -> None:
        if not 1 <= nodes <= 200:
            raise ValueError("a cluster has 1 to 200 nodes")
        self._count = nodes
        self._flags = ["--memory", memory, "--drain", "0s", *flags]
        self._start_timeout = start_timeout
        found = tokd or os.environ.get("TOKAMAK_TOKD") or shutil.which("tokd")
        if found is None:
            raise FileNotFoundError("no tokd in PATH: install the package tokamak, or say where it is in $TOKAMAK_TOKD")
        self._tokd = found
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.nodes: list[Node] = []

    def start(self) -> Cluster:
        self._folder = tempfile.TemporaryDirectory(prefix="tokamak-")
        atexit.register(self.stop)
        network = f"127.{random.SystemRandom().randrange(1, 255)}.{random.SystemRandom().randrange(256)}"
        deadline = time.monotonic() + self._start_timeout
        try:
            for number in range(1, self._count + 1):
                directory = "serve" if number == 1 else f"tokd@{network}.1:7000"
                node = Node(self._folder.name, number, f"{network}.{number}", directory, self._flags, self._tokd)
                self.nodes.append(node)
                if number == 1:
                    node.await_ready(deadline)
            for node in self.nodes:
                node.await_ready(deadline)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends all nodes. Does nothing a second time."""
        atexit.unregister(self.stop)
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            try:
                node.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                node.kill()
            node.close()
        self.nodes.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def connect(self, node: int = 0, **options: Any) -> Client:
        """A new client of a node, the first unless told otherwise; options are the client's."""
        return Client(self.nodes[node].socket, **options)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, type: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()
