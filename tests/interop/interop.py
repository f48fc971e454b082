#!/usr/bin/env python3
"""The kernel's Soft-RoCE and our software NIC talk to each other, in one guest of ci/softroce: ci/interop runs this there.

  interop.py [--programs DIR] [--only TEXT]... [--netem 'loss 1%']...

rdma_rxe is in the root network namespace, the software NIC in another across a virtual cable (two_worlds.py). Debian's rping, unmodified,
speaks with our peer; our peer runs all operations between rxe and the software NIC; a tokd on each exchange objects; unmodified programs
run over both (programs.py). Prints a line for each case and a table; the exit code is 0 when all went well. Packets of cases that failed
are kept in $TOKAMAK_LAB_OUT.
"""

import argparse
import collections
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import programs
import two_worlds
from two_worlds import NAMESPACE, RXE_ADDRESS, RXE_ADDRESS6, RXE_DEVICE, SOFT_ADDRESS, SOFT_ADDRESS6, Failed, Program

PINGS = 10  # of a connection
RPING_PORT = 7174
EXCHANGE_PORT = 7175
PINGPONG_PORT = 18515
NODE_PORT = 7000
CASE_SECONDS = 200
PINGPONGS = 200
LARGEST = "256KiB"  # of one request
PING_SIZES = (64, 4097, 65000)
OBJECT_BYTES = (1, 4096, 131073, 3_000_000)

Case = collections.namedtuple("Case", "name run")
Result = collections.namedtuple("Result", "name netem failure detail seconds")


class Interop:

    def __init__(self, programs, folder):
        self.programs = programs
        self.folder = folder
        self.netem = ""  # of the case that runs
        self.pcap = f"{folder}/peer.pcap"  # of the case that runs; tok verbs puts the process after it

    # --- Our peer and rping ---

    def peer(self, device, *words):
        command = [f"{self.programs}/tests/interop/peer", "--device", device]
        namespace = None
        if device.startswith("soft:"):
            namespace = NAMESPACE
            command += ["--pcap", self.pcap]
        return Program([*command, *words], namespace)

    def rping_connects(self, device, *flags, rxe=RXE_ADDRESS, soft=SOFT_ADDRESS):
        said = ""
        # rping disconnects and destroys its connection at once; the kernel does not repeat a request to disconnect that was lost then.
        pings = ["--count", str(PINGS)] if self.netem else []
        for size in PING_SIZES:
            with self.peer(device, "--listen", str(RPING_PORT), "rping", "--size", str(size), *pings) as server:
                server.await_text("listening at", CASE_SECONDS)
                with Program(["rping", "-c", "-V", "-C", str(PINGS), "-S", str(size), "-a", soft, "-I", rxe, "-p",
                              str(RPING_PORT), *flags]) as client:
                    client.await_end(CASE_SECONDS)  # what its exit code is worth, our own count says
                    said = server.must_end_well(CASE_SECONDS)
                    if f"answered {PINGS} pings" not in said or "mismatch" in client.text:
                        raise Failed(f"size {size}: {said}; rping: {client.last_line()}")
        return f"{PINGS} pings each of {' '.join(map(str, PING_SIZES))} B; {said.split(', ')[-1]}"

    def rping_listens(self, device, *flags, rxe=RXE_ADDRESS):
        said = ""
        for size in PING_SIZES:
            with Program(["rping", "-s", "-S", str(size), "-a", rxe, "-p", str(RPING_PORT), *flags]) as server:
                two_worlds.await_listener(RPING_PORT)
                with self.peer(device, "--connect", f"{bracketed(rxe)}:{RPING_PORT}", "rping", "--size", str(size)) as client:
                    said = client.must_end_well(CASE_SECONDS)
                    server.await_end(CASE_SECONDS)
        return f"{PINGS} pings each of {' '.join(map(str, PING_SIZES))} B; {said.split(', ')[-1]}"

    # --- Our peer and ibv_rc_pingpong ---

    def pingpong_connects(self, device):
        with self.peer(device, "--listen", str(PINGPONG_PORT), "pingpong", "--count", str(PINGPONGS)) as server:
            server.await_text("listening at", CASE_SECONDS)
            with Program(["ibv_rc_pingpong", *self.pingpong_flags(), SOFT_ADDRESS]) as client:
                client.must_end_well(CASE_SECONDS)
                return server.must_end_well(CASE_SECONDS)

    def pingpong_listens(self, device):
        with Program(["ibv_rc_pingpong", *self.pingpong_flags()]) as server:
            two_worlds.await_true("ibv_rc_pingpong's door", lambda: two_worlds.do("ss", "-Hltn", f"sport = :{PINGPONG_PORT}"))
            with self.peer(device, "--connect", f"{RXE_ADDRESS}:{PINGPONG_PORT}", "pingpong", "--count", str(PINGPONGS)) as client:
                said = client.must_end_well(CASE_SECONDS)
                server.must_end_well(CASE_SECONDS)
                return said

    def pingpong_flags(self):
        return ["-d", RXE_DEVICE, "-g", str(two_worlds.gid_index()), "-p", str(PINGPONG_PORT), "-n", str(PINGPONGS), "-e"]

    # --- All operations ---

    def exchange(self, listening, connecting):
        address = RXE_ADDRESS if listening.startswith("ibv:") else SOFT_ADDRESS
        with self.peer(listening, "--listen", str(EXCHANGE_PORT), "exchange", "--largest", LARGEST) as server:
            server.await_text("listening at", CASE_SECONDS)
            with self.peer(connecting, "--connect", f"{address}:{EXCHANGE_PORT}", "exchange", "--largest", LARGEST) as client:
                client_code = client.await_end(CASE_SECONDS)
                server_code = server.await_end(CASE_SECONDS)
                if client_code or server_code:
                    raise Failed(f"{connecting}: {client.last_line()}; {listening}: {server.last_line()}")
                return client.last_line().replace("exchange: ", "")

    # --- A cluster of both ---

    def tokd(self, name, address, device, *more):
        return Program([f"{self.programs}/lib/daemon/tokd", "--name", name, "--listen", f"{address}:{NODE_PORT}", "--device", device,
                        "--memory", "128MiB", "--ack-timeout", "500ms", "--socket", f"{self.folder}/{name}.sock",
                        "--secret-file", f"{self.folder}/secret", *more],
                       NAMESPACE if device.startswith("soft:") else None)

    def tok(self, node, *words):
        done = subprocess.run([f"{self.programs}/lib/cli/tok", "--socket", f"{self.folder}/{node}.sock", *words],
                              capture_output=True, text=True, timeout=CASE_SECONDS)
        if done.returncode != 0:
            raise Failed(f"tok {' '.join(words)} on {node}: {(done.stderr or done.stdout).strip()}")

    def cluster(self, soft):
        objects = {}
        for size in OBJECT_BYTES:
            objects[f"o{size}"] = os.urandom(size)
        if not os.path.exists(f"{self.folder}/secret"):
            subprocess.run([f"{self.programs}/lib/cli/tok", "secret", "new", f"{self.folder}/secret"], check=True,
                           capture_output=True, timeout=CASE_SECONDS)
        with self.tokd("rxe", RXE_ADDRESS, f"ibv:{RXE_DEVICE}") as one:
            one.await_text(" ready: ", CASE_SECONDS)
            with self.tokd("soft", SOFT_ADDRESS, soft, "--directory", f"tokd@{RXE_ADDRESS}:{NODE_PORT}", "--pcap", self.pcap) as two:
                two.await_text(" ready: ", CASE_SECONDS)
                count = sum(self.move(objects, *way) for way in (("rxe", "soft"), ("soft", "rxe")))
                for node in (two, one):
                    if node.stop(CASE_SECONDS) != 0:
                        raise Failed(f"tokd: {node.last_line()}")
        return f"{count} objects of 1 B to {max(OBJECT_BYTES)} B both ways by eager, read and write, SHA-256 equal, peers proven and messages sealed"

    def move(self, objects, owner, puller):
        count = 0
        for protocol in ("eager", "read", "write"):
            for name, content in objects.items():
                source, target, key = f"{self.folder}/{name}", f"{self.folder}/{name}.got", f"{owner}-{protocol}-{name}"
                with open(source, "wb") as file:
                    file.write(content)
                self.tok(owner, "put", source, "--as", key)
                self.tok(puller, "get", key, "--output", target, "--protocol", protocol, "--timeout", "60s")
                with open(target, "rb") as file:
                    if hashlib.sha256(file.read()).digest() != hashlib.sha256(content).digest():
                        raise Failed(f"{key}: other bytes")
                self.tok(owner, "rm", key)
                count += 1
        return count

    def cases(self, netem):
        yield from self.cases_of("udp")
        yield from self.cases_of("raw")
        soft6 = f"soft:udp@[{SOFT_ADDRESS6}]"
        yield Case("IPv6: rping -c connects to soft:udp", lambda: self.rping_connects(soft6, rxe=RXE_ADDRESS6, soft=SOFT_ADDRESS6))
        yield Case("IPv6: soft:udp connects to rping -s", lambda: self.rping_listens(soft6, rxe=RXE_ADDRESS6))
        if not netem:
            yield from (Case(*case) for case in programs.cases(self.programs, self.pcap))

    def cases_of(self, kind):
        rxe = f"ibv:{RXE_DEVICE}"
        short = f"soft:{kind}"
        soft = f"{short}@{SOFT_ADDRESS}"
        yield Case(f"rping -c connects to {short}", lambda: self.rping_connects(soft))
        yield Case(f"rping -c -q connects to {short}", lambda: self.rping_connects(soft, "-q"))
        yield Case(f"{short} connects to rping -s", lambda: self.rping_listens(soft))
        yield Case(f"{short} connects to rping -s -q", lambda: self.rping_listens(soft, "-q"))
        yield Case(f"ibv_rc_pingpong connects to {short}", lambda: self.pingpong_connects(soft))
        yield Case(f"{short} connects to ibv_rc_pingpong", lambda: self.pingpong_listens(soft))
        yield Case(f"all operations, {short} connects to ibv:rxe", lambda: self.exchange(rxe, soft))
        yield Case(f"all operations, ibv:rxe connects to {short}", lambda: self.exchange(soft, rxe))
        yield Case(f"tokd on {short} and tokd on ibv:rxe", lambda: self.cluster(soft))

    def show_packets(self):
        """The last packets of a case that failed, and files with all of them."""
        out = os.environ.get("TOKAMAK_LAB_OUT")
        for file in sorted(glob.glob(self.pcap + "*")):
            if out:
                kept = f"{out}/failed-{time.monotonic_ns()}.pcap"
                shutil.copyfile(file, kept)
                print(f"  packets: {kept}")
            if shutil.which("tshark"):
                packets = subprocess.run(["tshark", "-r", file], capture_output=True, text=True, timeout=CASE_SECONDS).stdout
                for line in packets.splitlines()[-12:]:
                    print("  " + line)

    def run(self, case, netem):
        began = time.monotonic()
        for file in glob.glob(self.pcap + "*"):
            os.remove(file)
        two_worlds.set_netem(netem)
        self.netem = netem
        failure, detail = "", ""
        try:
            detail = case.run()
        except (Failed, subprocess.TimeoutExpired, OSError) as error:
            failure = str(error)
        seconds = time.monotonic() - began
        print(f"{'FAILED' if failure else 'ok'}: {case.name}{', ' + netem if netem else ''}: {failure or detail} ({seconds:.1f} s)", flush=True)
        if failure:
            self.show_packets()
        return Result(case.name, netem, failure, detail, seconds)


def write_xml(results, path):
    """As GoogleTest writes its cases, for whoever counts them."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="Interop", tests=str(len(results)))
    for result in results:
        name = f"{result.name}, {result.netem or 'clean'}"
        case = ElementTree.SubElement(suite, "testcase", classname="Interop", name=name, time=f"{result.seconds:.1f}")
        if result.failure:
            ElementTree.SubElement(case, "failure", message=result.failure)
    ElementTree.ElementTree(suites).write(path, encoding="unicode")


def bracketed(address):
    return f"[{address}]" if ":" in address else address


def table(results):
    width = max(len(result.name) for result in results)
    lines = [f"{'case':<{width}}  {'network':<8}  result"]
    for result in results:
        lines.append(f"{result.name:<{width}}  {result.netem or 'clean':<8}  {'FAILED' if result.failure else 'ok'}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=".", help="the folder with tests/interop/peer, lib/daemon/tokd, lib/cli/tok and lib/verbs/kernel/preload")
    parser.add_argument("--only", action="append", help="cases whose name contains this text, or that of another --only")
    parser.add_argument("--netem", action="append", help="a network to run the cases on, '' for a clean one; '' and 'loss 1%%' unless given")
    flags = parser.parse_args()
    folder = "/run/interop"
    os.makedirs(folder)
    interop = Interop(os.path.abspath(flags.programs), folder)
    two_worlds.lay_cable()
    networks = ["", "loss 1%"] if flags.netem is None else flags.netem
    results = [interop.run(case, netem) for netem in networks for case in interop.cases(netem)
               if any(text in case.name for text in flags.only or [""])]
    if not results:
        print(f"no case contains {' or '.join(flags.only)}", file=sys.stderr)
        return 2
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(results, os.environ["XML_OUTPUT_FILE"])
    failed = sum(1 for result in results if result.failure)
    print(table(results))
    print(f"{len(results)} cases of interoperability, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
