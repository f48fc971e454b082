"""Two network namespaces joined by a virtual cable: rdma_rxe in the root one, our software NIC in the other.

rdma_rxe takes UDP port 4791 of all addresses of the root namespace, and works in no other; a software NIC in a namespace of its own has
the port to itself. For a guest of ci/softroce, as root; nothing is undone, since the guest is thrown away.
"""

import os
import select
import signal
import subprocess
import time

RXE_ADDRESS = "10.77.0.1"
SOFT_ADDRESS = "10.77.0.2"
RXE_ADDRESS6 = "fd77::1"
SOFT_ADDRESS6 = "fd77::2"
RXE_DEVICE = "rxe9"
NAMESPACE = "soft"
CABLE = {None: "i0", NAMESPACE: "i1"}  # by namespace; None is the root one
STEP_SECONDS = 20  # for what the kernel does at once


class Failed(Exception):
    """What went wrong, in words for the table."""


def in_namespace(namespace, words):
    return ["ip", "netns", "exec", namespace, *words] if namespace else list(words)


def do(*words, namespace=None):
    done = subprocess.run(in_namespace(namespace, words), capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def await_true(what, check, seconds=STEP_SECONDS):
    """For what the kernel tells nobody: looks until it is so."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not come within {seconds} s")
        time.sleep(0.02)


def lay_cable():
    do("modprobe", "-a", "veth", "rdma_rxe", "rdma_ucm", "sch_netem")
    do("ip", "netns", "add", NAMESPACE)
    do("ip", "link", "add", CABLE[None], "type", "veth", "peer", "name", CABLE[NAMESPACE])
    do("ip", "link", "set", CABLE[NAMESPACE], "netns", NAMESPACE)
    do("ip", "link", "set", "lo", "up", namespace=NAMESPACE)
    for namespace, address, address6 in ((None, RXE_ADDRESS, RXE_ADDRESS6), (NAMESPACE, SOFT_ADDRESS, SOFT_ADDRESS6)):
        do("ip", "address", "add", f"{address}/24", "dev", CABLE[namespace], namespace=namespace)
        do("ip", "address", "add", f"{address6}/64", "dev", CABLE[namespace], "nodad", namespace=namespace)
        do("ip", "link", "set", CABLE[namespace], "mtu", "9000", "up", namespace=namespace)
    do("rdma", "link", "add", RXE_DEVICE, "type", "rxe", "netdev", CABLE[None])
    await_true("the GID of " + RXE_DEVICE, lambda: gid_index() is not None)


def gid_index():
    """Where in the rxe device's table RXE_ADDRESS is; None when it is not there."""
    parts = [f"{int(part):02x}" for part in RXE_ADDRESS.split(".")]
    gid = f"0000:0000:0000:0000:0000:ffff:{parts[0]}{parts[1]}:{parts[2]}{parts[3]}"
    folder = f"/sys/class/infiniband/{RXE_DEVICE}/ports/1/gids"
    return next((int(name) for name in sorted(os.listdir(folder), key=int) if read(f"{folder}/{name}") == gid), None)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:  # an entry of the table that is empty
        return ""


def set_mtu(mtu):
    for namespace in CABLE:
        do("ip", "link", "set", CABLE[namespace], "mtu", str(mtu), namespace=namespace)


def set_netem(netem):
    """What happens to the packets that each end sends: "loss 1%"; "" ends it."""
    for namespace in CABLE:
        device = CABLE[namespace]
        if netem:
            do("tc", "qdisc", "replace", "dev", device, "root", "netem", "limit", "100000", *netem.split(), namespace=namespace)
        else:
            subprocess.run(in_namespace(namespace, ["tc", "qdisc", "delete", "dev", device, "root"]), capture_output=True)


class Program:
    """A program that runs in one of the namespaces; its output is kept."""

    def __init__(self, words, namespace=None):
        self.words = list(words)
        self.text = ""
        self.process = subprocess.Popen(in_namespace(namespace, words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _take(self, seconds):
        """Waits for output; False at its end."""
        if not select.select([self.process.stdout], [], [], max(seconds, 0))[0]:
            return True
        taken = self.process.stdout.read()
        if taken:
            self.text += taken.decode(errors="replace")
        return taken is None or len(taken) > 0

    def await_text(self, text, seconds):
        deadline = time.monotonic() + seconds
        more = True
        while text not in self.text:
            left = deadline - time.monotonic()
            if not more or left <= 0:
                raise Failed(f"{self.name()} did not say '{text.strip()}': {self.last_line()}")
            more = self._take(left)

    def await_end(self, seconds):
        """Its exit code; what still runs then is killed, and is a failure."""
        deadline = time.monotonic() + seconds
        more = True
        while more and time.monotonic() < deadline:
            more = self._take(deadline - time.monotonic())
        try:
            return self.process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.name()} did not end within {seconds} s: {self.last_line()}") from None

    def must_end_well(self, seconds):
        code = self.await_end(seconds)
        if code != 0:
            raise Failed(f"{self.name()} ended with {code}: {self.last_line()}")
        return self.last_line()

    def ended(self):
        return self.process.poll() is not None

    def stop(self, seconds):
        self.process.send_signal(signal.SIGTERM)
        return self.await_end(seconds)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def name(self):
        return os.path.basename(self.words[0])

    def last_line(self):
        lines = self.text.strip().splitlines()
        return lines[-1] if lines else "(it said nothing)"


def await_listener(port):
    """Until the kernel's connection manager listens at a port of the rxe device: rping does not tell."""
    def listens():
        listeners = do("rdma", "resource", "show", "cm_id").splitlines()
        return any("LISTEN" in line and f":{port}" in line for line in listeners)

    await_true(f"a listener at port {port}", listens)
