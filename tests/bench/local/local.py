"""How long a program waits for an object of its own node, from C++ and from Python, beside what it would use without a store.

    bazel run -c opt //tests/bench/local                        # everything on processor 0
    bazel run -c opt //tests/bench/local -- --program-cpu 1     # the daemon on processor 0, the programs on processor 1

One tokd, and a program for each language. Contenders take turns of 50 operations in each of the rounds, so that a noisy neighbour meets all of
them; where the daemon takes part, what it has left to do after a call is in the time of the next one. Objects are deleted between the
operations. "First get" is of an object that another client has sealed and this one has not seen; a held object is got once more.
Nothing is written into what is "create and seal"; "put" copies.
"""

import argparse
import collections
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import shared_memory

sys.path.insert(0, os.path.abspath("python"))
import tokamak  # noqa: E402  # pylint: disable=wrong-import-position
import tokamak.testing  # noqa: E402  # pylint: disable=wrong-import-position

SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20}
TIMES = 50


def timed(taken, name, operation):
    begin = time.perf_counter()
    result = operation()
    taken[name].append(time.perf_counter() - begin)
    return result


def of_store(socket, size):
    taken = collections.defaultdict(list)
    maker, getter = tokamak.Client(socket), tokamak.Client(socket)
    data = bytes(size)
    for i in range(TIMES):
        name = f"made in Python {i}"
        timed(taken, "Python, create and seal", lambda: maker.create(name, size).seal())
        maker.delete(name)
        timed(taken, "Python, put", lambda: maker.put(name, data))
        first = timed(taken, "Python, first get", lambda: getter.get(name).data)
        again = timed(taken, "Python, get of a held object", lambda: getter.get(name).data)
        del first, again
        maker.delete(name)
    return taken


def of_shared_memory(size):
    taken = collections.defaultdict(list)
    for _ in range(TIMES):
        made = timed(taken, "multiprocessing.shared_memory, create", lambda: shared_memory.SharedMemory(create=True, size=size))
        seen = timed(taken, "multiprocessing.shared_memory, open by name", lambda: shared_memory.SharedMemory(made.name))
        seen.close()
        made.close()
        made.unlink()
    return taken


def answer(connection, size):
    data = bytes(size)
    while connection.recv() is not None:
        connection.send(data)


def of_pipe(size):
    taken = collections.defaultdict(list)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=answer, args=(there, size))
    child.start()
    there.close()

    def ask():
        here.send("")
        return here.recv()

    for _ in range(TIMES):
        timed(taken, "pickle through a pipe, ask and get", ask)
    here.send(None)
    child.join()
    return taken


def of_cpp(socket, size):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        said = subprocess.run(["tests/bench/local/cpp_contenders", socket, str(size), str(TIMES), folder], check=True, capture_output=True,
                              text=True, timeout=300)
    return json.loads(said.stdout)


def microseconds(values, hundredth):
    return 1e6 * (statistics.quantiles(values, n=100)[hundredth - 1] if len(values) > 1 else values[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--daemon-cpu", type=int, default=0)
    parser.add_argument("--program-cpu", type=int, default=0)
    arguments = parser.parse_args()

    taken = {size: collections.defaultdict(list) for size in SIZES}
    os.sched_setaffinity(0, {arguments.daemon_cpu})  # of what is started from here on
    with tokamak.testing.Cluster(memory="256MiB", tokd=os.path.abspath("lib/daemon/tokd")) as cluster:
        os.sched_setaffinity(0, {arguments.program_cpu})
        socket = cluster.nodes[0].socket
        for turn in range(-1, arguments.rounds):  # the first is to warm up
            print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr)
            for size, length in SIZES.items():
                for one in (of_cpp(socket, length), of_store(socket, length), of_shared_memory(length), of_pipe(length)):
                    for name, values in one.items():
                        taken[size][name] += values if turn >= 0 else []
    print(f"daemon on processor {arguments.daemon_cpu}, programs on {arguments.program_cpu}; {arguments.rounds} rounds of {TIMES}; microseconds")
    print(f"{'':48}" + "".join(f"{size + ' ' + part:>12}" for size in SIZES for part in ("p50", "p99")))
    for name in taken["1 KiB"]:
        print(f"{name:48}" + "".join(f"{microseconds(taken[size][name], part):12.1f}" for size in SIZES for part in (50, 99)))


if __name__ == "__main__":
    main()
