"""How fast unmodified RDMA programs run over the software NIC, beside TCP of the same machine: ci/verbs_figures.

All is measured in turns, in one network namespace that this makes itself, and each figure is divided by TCP's of the same round.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from programs_table import Programs, code_of, end

SERVER, CLIENT = "127.0.0.1", "127.0.0.2"
SIZES = {"64 KiB": (65536, 20000), "4 MiB": (4 << 20, 500)}  # bytes, messages
LONGEST = 60  # seconds that a program may take
# What a figure is to be, as a share of TCP's: at least for bandwidths, at most for latencies.
WANTED = {
    "ib_write_bw 64 KiB": 0.6,
    "ib_write_bw 4 MiB": 0.6,
    "ib_send_lat -e 64 B": 2.0,
    "ib_write_bw 64 KiB, --shm": 2.0,
    "ib_write_bw 4 MiB, --shm": 2.0,
    "ib_send_lat 64 B, --shm": 1.0,
}


def listens() -> bool:
    """Whether a program waits for its peer at a TCP port."""
    tables = [open(f"/proc/net/{name}").read().splitlines()[1:] for name in ("tcp", "tcp6")]
    return any(" 0A " in line for table in tables for line in table)


def wait_for(server: subprocess.Popen) -> None:
    last = time.monotonic() + LONGEST
    while not listens() and server.poll() is None and time.monotonic() < last:
        time.sleep(0.02)


def tcp(test: str, size: int) -> float:
    """Bytes each second, or nanoseconds one way, as qperf says."""
    server = subprocess.Popen(["qperf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(server)
        said = subprocess.run(["qperf", "-t", "1", "-m", str(size), "--unify_units", SERVER, test],
                              capture_output=True, text=True, timeout=LONGEST, check=True).stdout
    finally:
        end(server)
    return float(re.search(r"(?:bw|latency) += +([0-9.e+-]+)", said.replace(",", ""))[1])


def rdma(programs: Programs, flags: list[str], command: str) -> list[float]:
    """The numbers of the last line of perftest's table."""
    server = programs.start(SERVER, command, "server", {}, flags)
    try:
        wait_for(server)
        client = programs.start(CLIENT, f"{command} {SERVER}", "client", {}, flags)
        try:
            if code_of(client, LONGEST) != 0 or code_of(server, LONGEST) != 0:
                raise RuntimeError(f"{command}: {programs.said('client')}{programs.said('server')}")
        finally:
            end(client)
    finally:
        end(server)
    lines = [line for line in programs.said("client").splitlines() if re.match(r"^ *\d+ +\d+ ", line)]
    return [float(word) for word in lines[-1].split()]


def measure(programs: Programs) -> dict[str, float]:
    """One round: bandwidths in GB/s, latencies in microseconds."""
    figures = {}
    for size, (count, messages) in SIZES.items():
        figures[f"TCP {size}"] = tcp("tcp_bw", count) / 1e9
        for name, flags in (("", []), (", --shm", ["--shm"])):
            row = rdma(programs, flags, f"ib_write_bw -s {count} -n {messages}")
            figures[f"ib_write_bw {size}{name}"] = row[3] * (1 << 20) / 1e9
    figures["TCP 64 B"] = tcp("tcp_lat", 64) / 1e3
    for name, flags in (("", []), (", --shm", ["--shm"])):
        for events in ("", " -e"):
            row = rdma(programs, flags, f"ib_send_lat -s 64 -n 5000{events}")
            figures[f"ib_send_lat{events} 64 B{name}"] = row[5]
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tok", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    flags = parser.parse_args()
    if os.environ.get("TOKAMAK_OWN_NETWORK") != "1":
        os.environ["TOKAMAK_OWN_NETWORK"] = "1"
        again = [sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--net", *again])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(os.path.abspath(flags.tok), os.path.abspath(flags.library), folder)
        for number in range(flags.rounds):
            print(f"round {number + 1} of {flags.rounds}", file=sys.stderr, flush=True)
            rounds.append(measure(programs))
    print(f"{flags.rounds} rounds on {os.cpu_count()} processors; bandwidths in GB/s, latencies (average, one way) in us")
    print(f"{'':<30} {'median':>8} {'least':>8} {'most':>8}   of TCP's   wanted")
    for name in rounds[0]:
        values = sorted(figures[name] for figures in rounds)
        line = f"{name:<30} {statistics.median(values):8.2f} {values[0]:8.2f} {values[-1]:8.2f}"
        if not name.startswith("TCP"):
            size = next(size for size in (*SIZES, "64 B") if size in name)
            share = statistics.median(figures[name] / figures[f"TCP {size}"] for figures in rounds)
            line += f"   {share:8.2f}"
            if name in WANTED:
                line += f"   {'at most' if 'lat' in name else 'at least'} {WANTED[name]}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
