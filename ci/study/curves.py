"""Curves: how long a contender takes by size, with how certain the medians are, from the rows that benchmarks print."""

import collections
import math
import statistics

# For a median of n values with the spread of normal ones: its standard error is 1.2533 sigma / sqrt(n), 95 % are within 1.96 of
# these, and the 10th and 90th percentile are 2.5631 sigma apart.
HALF_INTERVAL = 1.96 * 1.2533 / 2.5631


# Seconds: the median, its interval of 95 %, and the 10th and 90th percentile of what was measured.
Point = collections.namedtuple("Point", "size median low high p10 p90")


def exact(size, seconds):
    """A point that is computed, not measured: a second run gives the same."""
    return Point(size, seconds, seconds, seconds, seconds, seconds)


def of_summary(size, rounds, p10, median, p90):
    """A point of a row that tells percentiles, not an interval."""
    half = HALF_INTERVAL * (p90 - p10) / math.sqrt(rounds)
    return Point(size, median, max(median - half, p10), min(median + half, p90), p10, p90)


def joined(points):
    """One point of several runs: the median of their medians, uncertain from the least to the most that any run allows."""
    return Point(points[0].size, statistics.median(point.median for point in points), min(point.low for point in points),
                 max(point.high for point in points), statistics.median(point.p10 for point in points),
                 statistics.median(point.p90 for point in points))


def curves_of(named_points):
    """{name: [Point by size]} of (name, point), where runs that measured the same are joined."""
    found = collections.OrderedDict()
    for name, point in named_points:
        found.setdefault(name, collections.defaultdict(list))[point.size].append(point)
    return collections.OrderedDict((name, [joined(by_size[size]) for size in sorted(by_size)])
                                   for name, by_size in found.items())


def contender(row):
    """Of a row of tests/bench/pull: its protocol, tcp, redis or memcpy."""
    return row["contender"].replace("pull ", "").split()[0]


def of_pulls(runs):
    """Of tests/bench/pull --json."""
    return curves_of((contender(row),
                      of_summary(row["size"], row["rounds"], row["p10_seconds"], row["p50_seconds"], row["p90_seconds"]))
                     for run in runs for row in run["results"])


def of_cluster(runs, pattern):
    """Of tests/bench:cluster --json, one pattern."""
    def name(row):
        return f"socket-{row['variant']}" if row["protocol"] == "socket" else row["protocol"]

    # With too few repetitions for an interval: from the least to the most that is known.
    return curves_of((name(row), Point(row["size_bytes"], row["p50_seconds"], *(row["interval_seconds"] or (row["p10_seconds"], row["p90_seconds"])),
                                       row["p10_seconds"], row["p90_seconds"]))
                     for run in runs for row in run["results"]["results"] if row["pattern"] == pattern)


def of_sweep(runs, **wanted):
    """Of points of a simulated sweep, those whose settings are as `wanted`; a curve for each protocol."""
    return curves_of((row["protocol"], exact(row["size"], row["mean_seconds"]))
                     for run in runs for row in run["results"] if all(row[key] == value for key, value in wanted.items()))


def at(curve, size):
    """The point of that size, or None."""
    return next((point for point in curve or [] if point.size == size), None)


def sizes_of(curves):
    return sorted({point.size for curve in curves.values() for point in curve})
