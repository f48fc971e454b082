"""The part of the study on the policy: is a tuned table as good as the best protocol, is it found again, and what does learning cost?"""

import collections
import contextlib
import json
import os
import subprocess
import tempfile

from . import words
from .bench import Failure, output_of

MOST_TIMES_AS_LONG = 1.05  # the hybrid beside the best single protocol
MOST_EXPLORED = 0.02  # of all pulls that an adaptive policy chose for
MOST_TIME_EXPLORING = 0.01
# As the nodes of tests/bench/pull.
NODES = ["--nodes", "2", "--memory", "1GiB", "--tokd=--engines=1", "--tokd=--detection=event"]

Against = collections.namedtuple("Against", "size seconds best ratio low high")


@contextlib.contextmanager
def cluster(bench, *flags):
    """Two nodes on this machine; yields tok, for either of them."""
    program = os.path.join(bench.programs, "lib/cli/tok")
    with tempfile.TemporaryDirectory(dir=bench.work) as state:
        tok = [program, "--state", os.path.join(state, "nodes")]
        try:
            output_of([*tok, "up", *NODES, *flags], 60)
            yield tok
        finally:
            subprocess.run([*tok, "down"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def tune(bench, plan):
    """Measures the table as often as the plan says; the file of the first, or None."""
    files = []
    with cluster(bench) as tok:
        for number in range(plan.tuned_times):
            file = os.path.join(bench.work, f"policy{number}.json")

            def read(_, file=file):
                with open(file, encoding="utf-8") as opened:
                    return json.load(opened)

            command = [*tok, "tune", "--budget", plan.tuning_budget, "--largest", "16MiB", "--output", file]
            if bench.run("tok tune", command, read, 4 * 3600):
                files.append(file)
    return files[0] if files else None


def adaptive(bench, plan):
    """Two nodes that learn while files of many sizes move; what the one that pulls counted."""
    with cluster(bench, "--tokd=--policy=adaptive") as tok, tempfile.TemporaryDirectory(dir=bench.work) as folder:
        files = os.path.join(folder, "files")
        os.mkdir(files)
        sizes = [1 << power for power in range(10, 20)]
        for number in range(plan.adaptive_files):
            with open(os.path.join(files, str(number)), "wb") as file:
                file.write(number.to_bytes(8, "big") * (sizes[number % len(sizes)] // 8))
        output_of([*tok, "put", files, "--as", "files"], 300)
        output_of([*tok, "--node", "2", "get", "files", "--output", os.path.join(folder, "got")], 600)
        bench.run("adaptive", [*tok, "--node", "2", "--json", "stat"], of_stat, 60)


def measure(bench, plan):
    try:
        table = tune(bench, plan)
        if table is not None:
            options = ["--policy", table, "--sizes", ",".join(str(size) for size in plan.policy_sizes), "--contenders", "eager,read,write,auto"]
            for _ in range(plan.rounds):
                bench.pull("against the best", options, 4 * 3600)
        adaptive(bench, plan)
    except Failure as failure:
        bench.fail("two nodes", failure)
    for text in missed(bench.runs):
        bench.fail("missed", text)


def of_stat(text):
    """Counters of an adaptive policy, of all engines, by the end of their names."""
    counters = collections.Counter()
    for name, value in numbers_of(json.loads(text)):
        if "_adaptive_" in name:
            counters[name.split("_adaptive_")[1]] += value
    if not counters.get("pulls_total"):
        raise ValueError("no pull was chosen by an adaptive policy")
    return dict(counters)


def numbers_of(node):
    """(name, value) of whatever an answer of tok stat has, however deep."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from numbers_of(value)
        elif isinstance(value, (int, float)):
            yield name, value


def against_best(runs):
    """{size: Against}, of several runs the one whose ratio is in the middle."""
    found = collections.defaultdict(list)
    for run in runs:
        for row in run["results"] if run["name"] == "against the best" else []:
            if "against_best" in row:
                one = row["against_best"]
                found[row["size"]].append(Against(row["size"], row["p50_seconds"], one["best"], one["ratio"], *one["interval"]))
    return {size: sorted(found[size], key=lambda one: one.ratio)[(len(found[size]) - 1) // 2] for size in sorted(found)}


def tables(runs):
    return [run["results"] for run in runs if run["name"] == "tok tune"]


def steps(table):
    """eager up to 40 KiB, then write"""
    said = []
    for step in table["table"]:
        said.append(step["protocol"] + (f" up to {words.size(step['up_to'])}" if "up_to" in step else ""))
    return ", then ".join(said)


def crossovers_of(table):
    return table.get("measured", {}).get("crossovers", [])


def is_certain(crossover, table):
    """Whether there is one at all, 95 times of 100: its interval keeps away from the ends of what was measured."""
    sizes = [one["bytes"] for one in table["measured"]["sizes"]]
    return min(sizes) < crossover["least_bytes"] and crossover["most_bytes"] < max(sizes)


def is_found_again(first, second):
    """Whether two tables agree within their uncertainties: what is certain of one is in the other, and the intervals meet."""
    def are_same(a, b):
        return ((a["below"], a["above"]) == (b["below"], b["above"]) and a["least_bytes"] <= b["most_bytes"]
                and b["least_bytes"] <= a["most_bytes"])

    return all(any(are_same(crossover, found) for found in crossovers_of(other))
               for table, other in ((first, second), (second, first))
               for crossover in crossovers_of(table) if is_certain(crossover, table))


def shares_of_learning(runs):
    """(part of pulls, part of time) that explored, or None."""
    for run in runs:
        if run["name"] == "adaptive":
            counted = run["results"]
            return (counted.get("explored_total", 0) / counted["pulls_total"],
                    counted.get("explored_nanoseconds_total", 0) / max(1, counted.get("nanoseconds_total", 0)))
    return None


def missed(runs):
    """A line for each promise that these runs do not keep."""
    said = []
    for one in against_best(runs).values():
        if one.low > MOST_TIMES_AS_LONG:
            said.append(f"at {words.size(one.size)} the tuned policy takes {one.low:.3f} to {one.high:.3f} times as long as {one.best}, more "
                        f"than {MOST_TIMES_AS_LONG}")
    first, *others = tables(runs) or [None]
    for other in others:
        if not is_found_again(first, other):
            said.append(f"a second tok tune finds '{steps(other)}', beyond the uncertainty of '{steps(first)}'")
    shares = shares_of_learning(runs)
    if shares is not None and (shares[0] > MOST_EXPLORED or shares[1] > MOST_TIME_EXPLORING):
        said.append(f"the adaptive policy explores with {words.percent(shares[0])} of pulls and {words.percent(shares[1])} of their time, more than "
                    f"{words.percent(MOST_EXPLORED)} and {words.percent(MOST_TIME_EXPLORING)}")
    return said
