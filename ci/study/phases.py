"""What pulls spent their time on: phases of lib/base/trace.h, and the causes that they belong to."""

import collections

from . import curves

PHASES = ("directory", "reserve", "queue", "register", "request", "data", "copy", "confirm", "seal", "notify")

# The three causes that the original study named come first.
CAUSES = collections.OrderedDict([
    ("communication", ("request", "data")),
    ("metadata", ("directory", "confirm")),
    ("allocation", ("reserve", "register", "seal")),
    ("copying", ("copy",)),
    ("waiting for a turn", ("queue",)),
    ("telling who waits", ("notify",)),
])


def mean_by_phase(runs):
    """{(contender, size): {phase: seconds}}, each the mean over the runs' means; pulls only."""
    found = collections.OrderedDict()
    for run in runs:
        for row in run["results"]:
            if "mean_seconds_by_phase" in row:
                found.setdefault((curves.contender(row), row["size"]), []).append(row["mean_seconds_by_phase"])
    return collections.OrderedDict((key, {phase: sum(one.get(phase, 0) for one in several) / len(several) for phase in PHASES})
                                   for key, several in found.items())


def shares(seconds_by_phase):
    """{cause: part of the whole}"""
    whole = sum(seconds_by_phase.values())
    return collections.OrderedDict((cause, sum(seconds_by_phase[phase] for phase in phases) / whole if whole > 0 else 0)
                                   for cause, phases in CAUSES.items())
