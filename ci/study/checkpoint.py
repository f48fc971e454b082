"""The part of the study on checkpoints: how long a step of a training loop is without them, with them, and with a blocking copy to disk."""

import collections
import contextlib
import os
import random
import re
import statistics
import subprocess
import tempfile

from . import words
from .bench import Failure
from .policy import cluster

KINDS = ("none", "non-blocking", "blocking")
EVERY = 25  # steps between two checkpoints
MOST_TIMES_AS_LONG = 1.05  # the mean step with checkpoints that do not block, beside one without any

# Of a kind of checkpoint: medians over the runs. `ratio` is of the mean step beside that of the run without checkpoints in the same
# turn, `least` and `most` over the turns; None where there are no such turns.
Cost = collections.namedtuple("Cost", "kind step alone with_checkpoint longest taken left_out ratio least most")


def of_training(text):
    """What `checkpoint train` prints, in seconds; step times of no step are left out."""
    def times(label):
        found = re.search(label + r": median ([\d.]+) ms, 90th percentile ([\d.]+) ms, longest ([\d.]+) ms", text)
        return {name: float(value) / 1e3 for name, value in zip(("median", "p90", "longest"), found.groups())} if found else None

    first, last = map(int, re.search(r"steps (\d+) to (\d+) of run", text).groups())
    counts = re.search(r"step and checkpoint: .*?\((\d+), (\d+) left out\)", text)
    return {"steps": last - first, "total": float(re.search(r"all steps: ([\d.]+) s", text).group(1)),
            "final": float(re.search(r"final checkpoint: ([\d.]+) s", text).group(1)), "alone": times("step alone"),
            "with_checkpoint": times("step and checkpoint"), "taken": int(counts.group(1)), "left_out": int(counts.group(2)),
            "state": re.search(r"xxh64 (\w+)", text).group(1)}


@contextlib.contextmanager
def saver(program, *flags):
    """Beside what is done within; it ends by itself when the run has, and is ended when it does not."""
    process = subprocess.Popen([program, "save", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        process.wait(60)
    except subprocess.TimeoutExpired as error:
        raise Failure("the saver does not end") from error
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def measure(bench, plan):
    program = os.path.join(bench.programs, "examples/checkpoint/checkpoint")
    order = random.Random(1)
    try:
        with cluster(bench) as tok, tempfile.TemporaryDirectory(dir=bench.work) as folder:
            sockets = [os.path.join(tok[2], f"node{node}.sock") for node in (1, 2)]
            for turn in range(plan.training_turns):
                for kind in order.sample(KINDS, len(KINDS)):
                    train(bench, plan, program, kind, sockets, folder, f"turn{turn}")
    except Failure as failure:
        bench.fail("two nodes", failure)
    for text in missed(bench.runs):
        bench.fail("missed", text)


def train(bench, plan, program, kind, sockets, folder, name):
    every = "0" if kind == "none" else str(EVERY)
    options = ["--run", name, "--steps", str(plan.training_steps), "--every", every]
    if kind == "blocking":
        options += ["--blocking", "--folder", os.path.join(folder, f"blocking {name}")]
    if kind == "non-blocking":
        options += ["--socket", sockets[0]]
    with contextlib.ExitStack() as beside:
        if kind == "non-blocking":
            beside.enter_context(saver(program, "--socket", sockets[1], "--run", name, "--folder", os.path.join(folder, f"saved {name}")))
        bench.run(kind, [program, "train", *options], of_training, 600)


def costs(runs):
    """{kind: Cost}, of the turns that were measured."""
    by_kind = {kind: [run["results"] for run in runs if run["name"] == kind] for kind in KINDS}
    found = {}
    for kind, mine in by_kind.items():
        if not mine:
            continue
        ratios = sorted((one["total"] / one["steps"]) / (none["total"] / none["steps"]) for one, none in zip(mine, by_kind["none"]))
        of_checkpoint = [one["with_checkpoint"] for one in mine if one["with_checkpoint"]]
        found[kind] = Cost(kind, statistics.median(one["total"] / one["steps"] for one in mine),
                           statistics.median(one["alone"]["median"] for one in mine),
                           statistics.median(one["median"] for one in of_checkpoint) if of_checkpoint else None,
                           max((one["longest"] for one in of_checkpoint), default=None), sum(one["taken"] for one in mine),
                           sum(one["left_out"] for one in mine), *((statistics.median(ratios), ratios[0], ratios[-1]) if ratios else (None,) * 3))
    return found


def missed(runs):
    """A line for each promise that these runs do not keep."""
    said = []
    cost = costs(runs).get("non-blocking")
    if cost is not None and cost.least is not None and cost.least > MOST_TIMES_AS_LONG:
        said.append(f"with checkpoints that do not block a step takes {cost.least:.2f} to {cost.most:.2f} times as long, more than "
                    f"{MOST_TIMES_AS_LONG}")
    if len({run["results"]["state"] for run in runs}) > 1:
        said.append("runs end with different bytes")
    return said


def findings(runs):
    return [f"With {cost.kind} checkpoints the mean step takes {cost.ratio:.3f} times as long as without any ({cost.least:.3f} to {cost.most:.3f} over "
            f"the turns); {cost.taken} were taken, {cost.left_out} left out."
            for cost in costs(runs).values() if cost.kind != "none" and cost.ratio is not None]


def table(runs):
    def cell(seconds):
        return "" if seconds is None else words.time(seconds)

    return words.table(["checkpoints", "mean step", "median step alone", "median step with one", "longest with one"],
                       [[cost.kind, *map(cell, (cost.step, cost.alone, cost.with_checkpoint, cost.longest))] for cost in costs(runs).values()])
