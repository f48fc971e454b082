"""Three real tokd exchange files over a simulated fabric in real time (//sim/ns3:emulate), and every file is compared.

Each tokd has a network namespace with one interface, a tap that the emulator reads, or, with --veth, one end of a cable of which the
emulator has the other. With --guest the third is in a guest of the lab, on the kernel's Soft-RoCE, and the guest's network card is a
socket that the emulator reads. Whatever was started is ended, and namespaces go with their last process.

Exit code: 0 all files arrived as they were, 1 they did not, or something failed on the way, 2 wrong use, 77 the machine lacks what is
needed, which the last line says.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

NODES = 3
PORT = 7000
MTU = 4188  # as sim/emulation/outside_device.h has it
SECONDS_TO_START = 60
SECONDS_TO_GET = 240
SECONDS_TO_END = 30
SKIPPED = 77
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]


# Each prints the SHA-256 of what it sent, or got.
TCP_SERVER = """
import hashlib, socket, sys
with socket.create_server((sys.argv[1], 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    came, digest = listener.accept()[0], hashlib.sha256()
    while piece := came.recv(65536):
        digest.update(piece)
print(digest.hexdigest())
"""
TCP_CLIENT = """
import hashlib, os, socket, sys
data = os.urandom(int(sys.argv[3]))
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as connection:
    connection.sendall(data)
print(hashlib.sha256(data).hexdigest())
"""


class Missing(Exception):
    """What the machine lacks."""


class Failed(Exception):
    """What went wrong."""


def address(number):
    return f"10.0.0.{number + 1}"


def say(text):
    print(text, flush=True)


def await_line(path, wanted, process, what):
    """Until the log has a line with `wanted`; says what it has instead when the process ended or time is over."""
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        with open(path, encoding="utf-8", errors="replace") as file:
            log = file.read()
        if any(wanted in line for line in log.splitlines()):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"{what} is not ready:\n{log}")
        time.sleep(0.02)  # another process's doing, of which nothing else tells


def end(process):
    """Politely, then firmly."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


class Network:
    """A network namespace; its holder keeps it."""

    def __init__(self):
        self.holder = subprocess.Popen([*DIE_WITH_PARENT, "unshare", "--net", "sh", "-c", "echo; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.holder.stdout.readline():
            raise Missing(f"network namespaces: {self.holder.communicate()[1].strip()}")

    def command(self, *words):
        """To run `words` inside."""
        return [*DIE_WITH_PARENT, "nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *words]

    def configure(self, *lines):
        subprocess.run(self.command("ip", "-batch", "-"), input="\n".join(lines), text=True, check=True)

    def close(self):
        self.holder.communicate()


class Node:
    """A tokd, and files that it is the first to have."""

    def __init__(self, number, work, files, size):
        self.number = number
        self.name = f"node{number + 1}"
        self.folder = os.path.join(work, self.name)
        self.socket = os.path.join(self.folder, "tokd.sock")
        self.log = os.path.join(self.folder, "log")
        os.mkdir(self.folder)
        self.files = {}  # SHA-256 by name
        for i in range(files):
            data = os.urandom(size)
            name = f"{self.name}-{i}"
            with open(self.path(name), "wb") as file:
                file.write(data)
            self.files[name] = hashlib.sha256(data).hexdigest()

    def last_lines(self):
        """Of its log."""
        if not os.path.exists(self.log):
            return "(no log)"
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-40:])

    def path(self, name):
        return os.path.join(self.folder, name)

    def flags(self, device, place, unix_socket):
        flags = ["--name", self.name, "--listen", f"{place}:{PORT}", "--device", device, "--memory", "192MiB",
                 "--socket", unix_socket, "--lease", "30s", "--insecure"]
        return flags + ([] if self.number == 0 else ["--directory", f"tokd@{address(0)}:{PORT}"])


class LocalNode(Node):
    """In a network of its own, with the software NIC."""

    def __init__(self, number, work, options):
        super().__init__(number, work, options.files, options.size)
        self.tok = [os.path.join(options.programs, "lib/cli/tok"), "--socket", self.socket]
        self.tokd = os.path.join(options.programs, "lib/daemon/tokd")
        self.congestion = ["--congestion", options.congestion] if options.congestion else []
        self.network = Network()
        self.cable = Network() if options.veth else None  # of the cable's other end
        self.process = None

    def attach(self):
        """Where the emulator finds it."""
        if self.cable is None:
            return f"host{self.number}=eth0@{self.network.holder.pid}"
        self.network.configure(f"link add eth0 mtu {MTU} type veth peer name end mtu {MTU} netns {self.cable.holder.pid}",
                               "link set eth0 gso_max_segs 1")
        return f"host{self.number}=end@{self.cable.holder.pid}"

    def start(self):
        self.network.configure("link set lo up", f"address add {address(self.number)}/24 dev eth0", "link set eth0 up")
        flags = self.flags(f"soft:udp@{address(self.number)}", address(self.number), self.socket)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.network.command(self.tokd, *flags, *self.congestion),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        await_line(self.log, " ready: ", self.process, self.name)

    def put(self):
        for name in self.files:
            self.call("put", self.path(name), "--as", name)

    def get(self, name):
        """The SHA-256 of what came."""
        output = self.path(f"got-{name}")
        self.call("get", name, "-o", output, "--timeout", f"{SECONDS_TO_GET}s")
        with open(output, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def call(self, *words):
        done = subprocess.run([*self.tok, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{self.name}: tok {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def numbers(self):
        return json.loads(self.call("--json", "stat"))

    def end(self):
        if self.process is not None and end(self.process) != 0:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise Failed(f"{self.name} did not end well:\n{log.read()}")

    def close(self):
        if self.process is not None:
            end(self.process)
        self.network.close()
        if self.cable is not None:
            self.cable.close()


class GuestNode(Node):
    """In a guest of the lab. There is no way in while it runs, so it gets all files, says what came, and waits for the others."""

    SCRIPT = """
set -euo pipefail
tok() { "$programs/lib/cli/tok" --socket /tmp/tokd.sock "$@"; }
"$programs/lib/daemon/tokd" "${flags[@]}" >/tmp/log 2>&1 &
daemon=$!
trap 'cat /tmp/log >&2' ERR
until grep -q ' ready: ' /tmp/log; do kill -0 $daemon; sleep 0.1; done
for name in $own; do tok put "$folder/$name" --as "$name" >/dev/null; done
for name in $others; do tok get "$name" -o "/tmp/$name" --timeout ${seconds}s >/dev/null & done
for job in $(jobs -p); do if [[ $job != $daemon ]]; then wait $job; fi; done
for name in $others; do echo "got $(sha256sum "/tmp/$name" | cut -d' ' -f1) $name"; done
tok get finished -o /tmp/finished --timeout ${seconds}s >/dev/null
kill $daemon; wait $daemon
"""

    def __init__(self, number, work, options, others):
        super().__init__(number, work, options.files, options.size)
        self.emulator, ours = socket.socketpair(type=socket.SOCK_DGRAM)
        for one in (self.emulator, ours):
            for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                one.setsockopt(socket.SOL_SOCKET, buffer, 4 << 20)
        self.others = others
        flags = self.flags("ibv:rxe0", address(number), "/tmp/tokd.sock")
        words = " ".join(f"'{flag}'" for flag in flags)
        script = os.path.join(self.folder, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"programs={os.path.realpath(options.programs)} folder={self.folder} flags=({words})\n")
            file.write(f"own='{' '.join(self.files)}' others='{' '.join(others)}' seconds={SECONDS_TO_GET}\n")
            file.write(self.SCRIPT)
        self.command = [sys.executable, options.softroce, "--network", f"{ours.fileno()}={address(number)}", "--mtu", str(MTU),
                        "--timeout", "600", "--", "bash", script]
        self.network = ours
        self.process = None

    def attach(self):
        return f"host{self.number}=fd:{self.emulator.fileno()}"

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, pass_fds=[self.network.fileno()], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def put(self):
        """It does so by itself."""

    def sums(self):
        """By name, once the guest has ended."""
        code = self.process.wait(SECONDS_TO_GET)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            log = file.read()
        if code != 0:
            raise Failed(f"the guest ended with {code}:\n{log}")
        say(log.splitlines()[-1])
        return {line.split()[2]: line.split()[1] for line in log.splitlines() if line.startswith("got ")}

    def end(self):
        """It ended by itself."""

    def close(self):
        if self.process is not None:
            end(self.process)
        self.emulator.close()
        self.network.close()


class Emulator:
    def __init__(self, options, nodes, work):
        self.log = os.path.join(work, "emulate.log")
        self.summary = os.path.join(work, "emulate.json")
        command = [os.path.join(options.programs, "sim/ns3/emulate"), options.topology, "--seed", str(options.seed), "--lag",
                   options.lag, "--summary", self.summary]
        for node in nodes:
            command += ["--attach", node.attach()]
        inherited = [node.emulator.fileno() for node in nodes if isinstance(node, GuestNode)]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*DIE_WITH_PARENT, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=inherited)
        await_line(self.log, "ready", self.process, "the emulator")

    def end(self):
        """What it counted."""
        code = end(self.process)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            log = file.read()
        say(log.rstrip())
        if code != 0:
            raise Failed(f"the emulator ended with {code}")
        with open(self.summary, encoding="utf-8") as file:
            return json.load(file)


def exchange(nodes):
    """Every node gets all that the others put; how many files were compared, and those that are not what they were."""
    sums = {name: digest for node in nodes for name, digest in node.files.items()}
    local = [node for node in nodes if isinstance(node, LocalNode)]
    wrong, compared = [], 0

    def judge(node, name, digest):
        nonlocal compared
        compared += 1
        if digest != sums[name]:
            wrong.append(f"{node.name}: {name} has SHA-256 {digest}, and was put with {sums[name]}")

    with concurrent.futures.ThreadPoolExecutor(max_workers=64) as pool:
        for done in [pool.submit(node.put) for node in nodes]:
            done.result()
        asked = {pool.submit(node.get, name): (node, name) for node in local for name in sums if name not in node.files}
        for done in concurrent.futures.as_completed(asked):
            judge(*asked[done], done.result())
    for guest in nodes:
        if isinstance(guest, GuestNode):
            finished = os.path.join(local[0].folder, "finished")
            with open(finished, "w", encoding="utf-8") as file:
                file.write("finished")
            local[0].call("put", finished, "--as", "finished")
            for name, digest in guest.sums().items():
                judge(guest, name, digest)
    return compared, wrong


def send_by_tcp(nodes, size):
    """What is no RoCE passes the fabric, too: bytes over a TCP connection from the second node to the first; what is wrong, or nothing."""
    server = subprocess.Popen(nodes[0].network.command(sys.executable, "-c", TCP_SERVER, address(0)), stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        sent = subprocess.run(nodes[1].network.command(sys.executable, "-c", TCP_CLIENT, address(0), port, str(size)),
                              capture_output=True, text=True, timeout=SECONDS_TO_GET, check=True).stdout.strip()
        came = server.communicate(timeout=SECONDS_TO_GET)[0].strip()
    finally:
        server.kill()
        server.wait()
    return [] if sent == came and sent else [f"TCP: SHA-256 {sent} was sent, {came} came"]


def run(options):
    with contextlib.ExitStack() as stack:
        work = tempfile.mkdtemp(prefix="tokamak-emulation.", dir=options.work)
        stack.callback(shutil.rmtree, work)
        nodes = []
        stack.callback(lambda: [node.close() for node in nodes])
        local = NODES - 1 if options.guest else NODES
        for number in range(local):
            nodes.append(LocalNode(number, work, options))
        if options.guest:
            nodes.append(GuestNode(local, work, options, [name for node in nodes for name in node.files]))
        emulator = Emulator(options, nodes, work)
        stack.callback(end, emulator.process)
        for node in nodes:
            node.start()
        began = time.monotonic()
        try:
            compared, wrong = exchange(nodes)
        except Failed:
            for node in nodes:
                say(f"---- {node.name}:\n{node.last_lines()}")
            raise
        seconds = time.monotonic() - began
        wrong += send_by_tcp(nodes, options.size)
        for node in nodes:
            node.end()
        counted = emulator.end()
    for line in wrong:
        say(line)
    expected = sum(len(node.files) for node in nodes) * (NODES - 1)
    fabric, lag = counted["fabric"], counted["lag"]
    say(f"marks {fabric['marked']}, losses {fabric['lost']}, drops {fabric['dropped']}, pauses {fabric['pauses']}; lag "
        f"{lag['percentile_99_ms']:.2f} ms (99 %), {lag['most_ms']:.2f} ms (most)")
    say(f"verified {compared} files of {options.size} bytes on {NODES} nodes in {seconds:.1f} s, {len(wrong)} mismatches"
        + ("" if compared == expected else f", {expected - compared} missing"))
    return 0 if not wrong and compared == expected else 1


def parse(arguments):
    made = argparse.ArgumentParser(prog="ci/emulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                   allow_abbrev=False)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    add = made.add_argument
    add("--programs", required=True, help="folder of the built programs: bazel-bin")
    add("--topology", default=os.path.join(here, "sim/emulation/topologies/leaf_spine.json"),
        help="with hosts named host0 to host2; unless given, a leaf-spine of 200 Mb/s with marks and 0.1 %% loss")
    add("--files", type=int, default=3, help="that each node puts; 3 unless given")
    add("--size", type=int, default=8 << 20, help="of each file, in bytes; 8 MiB unless given")
    add("--seed", type=int, default=1, help="of ways, marks and losses")
    add("--lag", default="10ms", help="the emulator says so when it was later than this")
    add("--congestion", default="dcqcn:200Mb/s", help="of the software NICs, see tokd --help; '' for their own choice")
    add("--guest", action="store_true", help="the third node is in a guest of the lab (docs/softroce-lab.md), on Soft-RoCE")
    add("--veth", action="store_true", help="interfaces are veth pairs, not taps")
    add("--softroce", default=os.path.join(here, "ci/softroce"), help=argparse.SUPPRESS)
    add("--work", default=None, help="a folder for what passes by; a temporary one unless given")
    return made.parse_args(arguments)


def become_root():
    """Networks are root's business, if only of a user namespace."""
    if os.geteuid() == 0:
        return
    command = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Missing("the right to make network namespaces: run as root, or allow user namespaces")
    os.execvp(command[0], [*command, sys.executable, *sys.argv])


def main(arguments):
    options = parse(arguments)
    try:
        become_root()
        if not os.path.exists("/dev/net/tun"):
            raise Missing("/dev/net/tun: modprobe tun")
        if options.guest and shutil.which("qemu-system-x86_64") is None:
            raise Missing("QEMU: run ci/setup --for lab")
        return run(options)
    except Missing as missing:
        say(f"skipped: this machine lacks {missing}")
        return SKIPPED
    except Failed as failed:
        say(f"ci/emulate: {failed}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
