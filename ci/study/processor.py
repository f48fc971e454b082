"""What pulls cost in processor time, from the rows of tests/bench/pull."""

import collections
import statistics

from . import curves

# Seconds of processors for one object: the node that pulls, the one that holds.
Cost = collections.namedtuple("Cost", "here there")


def costs(runs):
    """{(contender, size): Cost}, the medians of the runs."""
    found = collections.OrderedDict()
    for run in runs:
        for row in run["results"]:
            if "processor_seconds_here" in row:
                key = (curves.contender(row), row["size"])
                found.setdefault(key, []).append(Cost(row["processor_seconds_here"], row["processor_seconds_there"]))
    return collections.OrderedDict((key, Cost(*(statistics.median(column) for column in zip(*several))))
                                   for key, several in found.items())


def seconds_per_gigabyte(cost, size):
    return (cost.here + cost.there) * 1e9 / size


def rows(by_setting):
    """Of a table: setting, contender, size, us of each node for an object, seconds of both for a GB; {setting: runs}."""
    for setting, runs in by_setting.items():
        for (contender, size), cost in costs(runs).items():
            yield setting, contender, size, cost.here * 1e6, cost.there * 1e6, seconds_per_gigabyte(cost, size)


def cheapest(by_setting, size):
    """(setting, contender, microseconds) of the least for an object of that size, and of the most; None where there is nothing."""
    found = [(here + there, setting, contender) for setting, contender, one, here, there, _ in rows(by_setting) if one == size]
    if not found:
        return None
    return tuple((setting, contender, us) for us, setting, contender in (min(found), max(found)))
