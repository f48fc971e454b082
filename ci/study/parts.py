"""The parts of the study: what each runs, quick or full, and what the page says of how it was measured."""

import collections
import gzip
import json
import os
import shutil
import socket
import subprocess
import time

from . import checkpoint, crossovers, curves, findings, loopback, policy, words
from .bench import Failure

KIB, MIB = 1 << 10, 1 << 20

ABOUT = {
    "pulls": "`//tests/bench:pull`: one node in the benchmark's process, a `tokd` in another, each with one engine and `--detection event`; "
             "beside it, in turns within each size, a reply over one TCP stream from another process, a Redis GET (hiredis over TCP), and memcpy. "
             "A pull is a whole get: directory, room, transfer, sealing. `auto` is the hybrid: the built-in policy.",
    "phases": "From the same runs: what the pulling node was doing from the get to its answer, one phase at a time, by `--trace`. Causes: "
              "*communication* is request and data, *metadata* directory and confirm, *allocation* reserve, register and seal.",
    "registration": "The same benchmark with `--registration`: `arena` registers the whole store once, `on_demand` what a transfer needs "
                    "for that transfer, `cached` blocks of the store when they are first used. Runs take turns.",
    "processor": "The same benchmark by detection (`busy` spins, `event` sleeps, `adaptive` spins for a while first) and engines (0: all on the "
                 "node's own thread; 1: a separate thread): what both processes spend on a pull with all their threads, "
                 "until its copy is given up again. The kernel's work for them is in it.",
    "policy": "`tok tune` measures a table twice, on two nodes that `tok up` started. Then `//tests/bench:pull --policy` compares the hybrid, by the "
              "first table, with each single protocol, at sizes that tuning did not measure: all in turns, and the ratio is the median over the "
              "turns. At last files of 1 KiB to 512 KiB move between two nodes with `--policy adaptive`.",
    "checkpoint": "`examples/checkpoint` ([what it does](../applications.md#checkpoints-that-do-not-hold-training-up)): the training loop of a toy model "
                  "with 64 MiB of state, without checkpoints, with ones that do not block (two nodes on `soft:udp` and a saver beside it), and with "
                  "ones that the loop writes to the disk itself. Kinds take turns, in an order drawn for each. The mean step is of all steps, those "
                  "with a checkpoint included; trainer, saver and both nodes share this machine's processors, and saving is work for them.",
    "softroce": "`//tests/bench:pull` on `ibv:rxe0,ibv:rxe1` in a guest of [the lab](../softroce-lab.md) with two processors, nodes with one thread "
                "each (`--engines 0`), and `tests/bench/beside_verbs` there. **Bound by the guest's processor**, which is an emulated one unless KVM "
                "works: times are of no use outside the guest.",
    "cluster": "`//tests/bench:cluster` by `ci/cluster`: each rank is a node, MPI only keeps them in step; time runs until the slowest rank has its "
               "last object. `socket-original` sends an object as Plasma's object manager does (a request, a header, pieces of 4 KiB over one TCP "
               "stream, with the kernel's own buffers and delays: a small answer may wait for an acknowledgement that is itself delayed), "
               "`socket-tuned` by large writes straight from and into the store. More ranks than processors are slower than they have to be.",
    "simulated": "`//tests/bench/cluster:simulated`: the benchmark of the section before in virtual time. Each rank is a host with a processor of "
                 "its own and the costs of `cx6-200g`, on one switch; store, transport and driver are the same code. Sockets are a **model** of TCP "
                 "(`tests/bench/cluster/virtual/simulated_streams.h`): Nagle's rule, delayed acknowledgements and windows, 0.4 us for a system call, "
                 "0.222 us for a packet of 4 KiB at each end (one processor moves about 42 Gb/s of one stream: Cai et al., SIGCOMM 2021) and copies "
                 "at the preset's speed; no losses, no slow start, no sleeping, so sockets are shown at their best. Times are computed, the same in "
                 "each run. The hybrid's table is made of a first run of the three protocols, and tried at sizes that that run did not have, too.",
    "fabric": "`sim/scenario/scenarios/thresholds.json` at several rates of all cables: gets from one host, and from sixteen at once. "
              "Times are computed, the same in each run: [docs/simulation.md](../simulation.md#where-is-the-threshold).",
    "loopback": "For orientation, on this machine's loopback: `iperf3` (one TCP stream), and `ucx_perftest` with `UCX_TLS=tcp`: `ucp_get` "
                "with one request at a time, and `tag_lat` (one way).",
}

CROWD_RANKS = 8

Plan = collections.namedtuple("Plan", "sizes rounds registration_sizes registration_rounds fetches cluster_sizes cluster_budget crowd_sizes "
                                      "simulated_sizes guest_sizes guest_fetches guest_rounds guest_budget fabric_sizes "
                                      "loopback_sizes loopback_rounds tuned_times tuning_budget policy_sizes adaptive_files training_steps "
                                      "training_turns")
PLANS = {
    "quick": Plan(
        sizes=[64, KIB, 4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB], rounds=2,
        registration_sizes=[KIB, 8 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB, 8 * MIB], registration_rounds=2, fetches=100,
        cluster_sizes=["64", "1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB"], cluster_budget="1s",
        crowd_sizes=["64", "16KiB", "256KiB", "4MiB"],
        simulated_sizes=["64", "1KiB", "4KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "1MiB", "4MiB", "16MiB"],
        guest_sizes=[64, 4 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 4 * MIB], guest_fetches=15, guest_rounds=1, guest_budget="1s",
        fabric_sizes=["1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "1MiB"],
        loopback_sizes=[64, 64 * KIB, MIB], loopback_rounds=2,
        tuned_times=2, tuning_budget="30s", policy_sizes=[700, 6_000, 23_000, 47_000, 90_000, 370_000, 1_500_000, 12_000_000], adaptive_files=5000,
        training_steps=100, training_turns=3),
    "full": Plan(
        sizes=[1, 64, 256, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 48 * KIB, 64 * KIB, 96 * KIB, 128 * KIB, 192 * KIB, 256 * KIB,
               512 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB], rounds=20,
        registration_sizes=[64, KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 96 * KIB, 128 * KIB, 192 * KIB, 256 * KIB, 512 * KIB, MIB,
                            4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB], registration_rounds=10, fetches=500,
        cluster_sizes=["1", "64", "256", "1KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "4MiB", "16MiB",
                       "64MiB", "256MiB"], cluster_budget="30s",
        crowd_sizes=["64", "1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB"],
        simulated_sizes=["1", "64", "256", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "24KiB", "32KiB", "48KiB", "64KiB", "96KiB", "128KiB", "192KiB",
                         "256KiB", "512KiB", "1MiB", "4MiB", "16MiB", "64MiB"],
        guest_sizes=[64, KIB, 4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB], guest_fetches=50,
        guest_rounds=10, guest_budget="30s",
        fabric_sizes=["64", "512", "1KiB", "1536", "2KiB", "3KiB", "4KiB", "6KiB", "8KiB", "12KiB", "14KiB", "16KiB", "24KiB", "32KiB", "64KiB",
                      "128KiB", "256KiB", "512KiB", "1MiB", "4MiB"],
        loopback_sizes=[64, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB], loopback_rounds=10,
        tuned_times=5, tuning_budget="300s", policy_sizes=[1, 700, 1_500, 3_000, 6_000, 12_000, 23_000, 47_000, 70_000, 90_000, 180_000, 370_000,
                                                           740_000, 1_500_000, 6_000_000, 12_000_000], adaptive_files=20_000,
        training_steps=400, training_turns=10),
}

PROTOCOLS = "eager,read,write"
TRACED_SIZES = [64, 64 * KIB, MIB, 16 * MIB]
STRATEGIES = ("arena", "on_demand", "cached")
DETECTIONS = ("busy", "event", "adaptive:20us")
ENGINES = ("0", "1")
PROCESSOR_SIZES = [64, 64 * KIB, 4 * MIB]
RATES = ["100Gb/s", "200Gb/s"]
SENDERS = ["1", "16"]
HOUR = 3600
# In a guest with two devices: TCP between their addresses takes the cable, where the kernel would take the loopback interface.
OVER_CABLE = " && ".join([
    "ip route add 10.0.0.2/32 dev v0 src 10.0.0.1", "ip route add 10.0.0.1/32 dev v1 src 10.0.0.2",
    "ip rule add pref 10 iif lo from 10.0.0.1 to 10.0.0.2 lookup main", "ip rule add pref 11 iif lo from 10.0.0.2 to 10.0.0.1 lookup main",
    "ip rule add pref 100 lookup local", "ip rule delete pref 0 lookup local"])
PORT = 18750


def joined(values):
    return ",".join(str(value) for value in values)


def limit(bench, quick):
    """Seconds for one command; a full run's may take hours."""
    return quick if bench.mode == "quick" else 4 * HOUR


def pulls(bench, plan):
    trace = os.path.join(bench.work, "trace.json")
    for _ in range(plan.rounds):
        bench.pull("pulls", ["--sizes", joined(plan.sizes), "--trace", trace], limit(bench, 300))
    options = ["--sizes", joined(TRACED_SIZES), "--contenders", PROTOCOLS, "--rounds", "3", "--trace", trace]
    if bench.pull("for the trace", options, limit(bench, 120)):
        with open(trace, "rb") as plain, open(os.path.join(bench.data, "trace.json.gz"), "wb") as file:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                shutil.copyfileobj(plain, packed)


def registration(bench, plan):
    for _ in range(plan.registration_rounds):
        for strategy in STRATEGIES:
            options = ["--sizes", joined(plan.registration_sizes), "--contenders", PROTOCOLS, "--registration", strategy, "--rounds", "300"]
            bench.pull(strategy, options, limit(bench, 120))


def processor(bench, plan):
    for engines in ENGINES:
        for detection in DETECTIONS:
            options = ["--sizes", joined(PROCESSOR_SIZES), "--contenders", PROTOCOLS, "--detection", detection, "--engines", engines, "--rounds",
                       str(plan.fetches)]
            bench.pull(f"{detection}, {'one engine' if engines == '1' else 'own thread'}", options, limit(bench, 120))


def taken(answer):
    """Reads the JSON that a command wrote to a file, which goes."""
    def read(_):
        with open(answer, encoding="utf-8") as file:
            results = json.load(file)
        os.remove(answer)
        return results
    return read


def cluster(bench, plan):
    program = os.path.join(bench.programs, "tests/bench/cluster/cluster")
    answer = os.path.join(bench.work, "cluster.json")
    for patterns, ranks, sizes in ((["one-to-one"], 2, plan.cluster_sizes), (["many-to-one", "all-to-all"], CROWD_RANKS, plan.crowd_sizes)):
        command = [os.path.join(bench.root, "ci/cluster"), "--ranks", str(ranks), "--program", program, "--patterns", joined(patterns), "--sizes",
                   joined(sizes), "--protocols", "eager,read,write,policy,socket", "--budget", plan.cluster_budget, "--json", answer]
        bench.run(joined(patterns), command, taken(answer), limit(bench, 300), cwd=bench.root)


def simulated(bench, plan):
    program = os.path.join(bench.programs, "tests/bench/cluster/simulated")
    answer = os.path.join(bench.work, "simulated.json")

    def run(rate, name, patterns, ranks, sizes, strategy, protocols, *more):
        command = [program, "--rate", rate, "--ranks", str(ranks), "--patterns", joined(patterns), "--sizes", joined(sizes), "--registration",
                   strategy, "--protocols", protocols, "--budget", "60s", *more, "--json", answer]
        return bench.run(f"{name}, {rate}", command, taken(answer), limit(bench, 300), cwd=bench.root)

    # Times differ by little more than whose turn it is: as few as there may be.
    times = ["--warm-up", "1", "--least-repetitions", "6", "--repetitions", "12"]
    for rate in RATES:
        for strategy in STRATEGIES:
            measured = run(rate, strategy, ["one-to-one"], 2, plan.simulated_sizes, strategy, PROTOCOLS, *times)
            if strategy == "arena" and measured:
                table = crossovers.flag(crossovers.best_table(curves.of_cluster(bench.runs[-1:], "one-to-one")))
                everything = PROTOCOLS + ",policy,socket"
                run(rate, "tuned", ["one-to-one"], 2, [*plan.simulated_sizes, *plan.policy_sizes], strategy, everything, "--policy", table, *times)
                run(rate, "crowd", ["one-to-one", "one-to-many", "many-to-one", "all-to-all"], CROWD_RANKS, plan.crowd_sizes, strategy, everything,
                    "--policy", table, *times)
    for text in findings.missed_by_cluster(bench.runs):
        bench.fail("missed", text)


def softroce(bench, plan):
    seconds = 420 if bench.mode == "quick" else 4 * HOUR

    def guest(name, words):
        """A program in a guest that writes its JSON to the file FILE of its words."""
        out = os.path.join(bench.work, "guest")
        answer = os.path.join(out, "answer.json")
        command = [os.path.join(bench.root, "ci/softroce"), "--cpus", "2", "--timeout", str(seconds), "--out", out, "--", "bash", "-c",
                   words.replace("FILE", answer)]
        bench.run(name, command, taken(answer), seconds + 60, cwd=bench.runfiles("tests/bench/pull"))

    devices = "--device ibv:rxe0,ibv:rxe1 --memory 128MiB --engines 0"
    for _ in range(plan.guest_rounds):
        guest("pulls", f"tests/bench/pull --json {devices} --contenders {PROTOCOLS},auto --sizes {joined(plan.guest_sizes)} "
                       f"--rounds {plan.guest_fetches} > FILE")
    guest("beside perftest", f"{bench.root}/tests/bench/beside_verbs --rounds {plan.guest_rounds} --fetches {plan.guest_fetches} --json FILE")
    program = os.path.join(bench.programs, "tests/bench/cluster/cluster")
    for strategy in STRATEGIES:
        sockets = ",socket" if strategy == "arena" else ""
        guest(f"one-to-one, {strategy}", f"{OVER_CABLE} && {bench.root}/ci/cluster --ranks 2 --program {program} --patterns one-to-one --engines 0 "
                                         f"--device ibv:rxe0,ibv:rxe1 --memory 128MiB --sizes {joined(plan.guest_sizes)} --registration {strategy} "
                                         f"--protocols {PROTOCOLS},policy{sockets} --budget {plan.guest_budget} --json FILE")


def bytes_of(text):
    return int(text[:-3]) * {"KiB": KIB, "MiB": MIB}[text[-3:]] if text.endswith("iB") else int(text)


def points_of(folder):
    """What a simulated sweep wrote down: a row for each of its points."""
    with open(os.path.join(folder, "points.json"), encoding="utf-8") as file:
        points = json.load(file)
    rows = []
    for point in points:
        settings = dict(one.split("=", 1) for one in point["set"])
        if point["exit_code"] != 0:
            raise ValueError(f"{', '.join(point['set'])} ended with {point['exit_code']}")
        with open(os.path.join(folder, point["folder"], "summary.json"), encoding="utf-8") as file:
            gets = json.load(file)["groups"]["gets"]
        rows.append({"rate": settings["topology.host_link.rate"], "senders": int(settings["workload.0.senders"]),
                     "protocol": settings["workload.0.protocol"], "size": bytes_of(settings["workload.0.bytes"]),
                     "mean_seconds": gets["completion_us"]["mean"] / 1e6, "p99_seconds": gets["completion_us"]["p99"] / 1e6,
                     "gigabits_per_second": gets["goodput_gbps"]})
    return rows


def fabric(bench, plan):
    out = os.path.join(bench.work, "fabric")
    command = [os.path.join(bench.programs, "sim/scenario/experiment"), "sweep", "sim/scenario/scenarios/thresholds.json", "--set",
               f"topology.host_link.rate={joined(RATES)}", "--set", f"workload.0.protocol={PROTOCOLS}", "--set",
               f"workload.0.senders={joined(SENDERS)}", "--set", f"workload.0.bytes={joined(plan.fabric_sizes)}", "--no-report", "--out", out]
    bench.run("thresholds", command, lambda _: points_of(out), limit(bench, 600), cwd=bench.root)


def with_server(bench, name, server, client, read, environment=None):
    """A client's run beside a server that is started for it and listens on PORT."""
    try:
        process = subprocess.Popen(server, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
    except OSError as error:
        bench.fail(name, f"{server[0]}: {error.strerror}; run ci/setup --for study")
        return
    try:
        await_listener(process)
        bench.run(name, client, read, limit=60, environment=environment)
    except Failure as failure:
        bench.fail(name, f"{server[0]}: {failure}")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def await_listener(process, seconds=20):
    """Until a socket listens there, as the kernel tells; connecting would be taken for the client."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            if os.path.exists(table):
                with open(table, encoding="ascii") as lines:
                    if any(words[1].endswith(f":{PORT:04X}") and words[3] == "0A" for words in map(str.split, lines)):
                        return
        time.sleep(0.02)  # nobody tells when another process listens
    raise Failure("it does not listen")


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def loopback_peers(bench, plan):
    if not is_free(PORT):
        bench.fail("loopback", f"port {PORT} is in use: end what listens there")
        return

    def iperf3(text):
        return [{"program": "iperf3", "what": "one TCP stream", "unit": "bytes_per_second", "value": loopback.of_iperf3(json.loads(text))}]

    def ucx(test, size):
        what = f"{test} of {words.size(size)}"

        def read(text):
            said = loopback.of_ucx(text)
            return [{"program": "ucx_perftest", "what": what, "unit": "seconds", "value": said["p50_seconds"]}]
        return read

    over_tcp = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
    for _ in range(plan.loopback_rounds):
        with_server(bench, "iperf3", ["iperf3", "--server", "--one-off", "--port", str(PORT), "--bind", "127.0.0.1"],
                    ["iperf3", "--client", "127.0.0.1", "--port", str(PORT), "--time", "2", "--json"], iperf3)
        for test in ("ucp_get", "tag_lat"):
            for size in plan.loopback_sizes:
                times = str(max(20, min(1000, (64 << 20) // size)))
                options = ["-t", test, "-s", str(size), "-n", times, "-w", "20", "-O", "1", "-f", "-p", str(PORT)]
                with_server(bench, f"ucx {test}", ["ucx_perftest", "-p", str(PORT)], ["ucx_perftest", "127.0.0.1", *options], ucx(test, size),
                            over_tcp)


# In the order in which they run: {part: (what runs it, the Bazel targets that it needs)}.
PARTS = collections.OrderedDict([
    ("pulls", (pulls, ["//tests/bench:pull"])),
    ("registration", (registration, ["//tests/bench:pull"])),
    ("processor", (processor, ["//tests/bench:pull"])),
    ("policy", (policy.measure, ["//tests/bench:pull", "//lib/cli:tok", "//lib/daemon:tokd"])),
    ("checkpoint", (checkpoint.measure, ["//examples/checkpoint", "//lib/cli:tok", "//lib/daemon:tokd"])),
    ("cluster", (cluster, ["//tests/bench:cluster"])),
    ("simulated", (simulated, ["//tests/bench/cluster:simulated"])),
    ("fabric", (fabric, ["//sim/scenario:experiment"])),
    ("loopback", (loopback_peers, [])),
    ("softroce", (softroce, ["//tests/bench:pull", "//tests/bench:cluster"])),
])
