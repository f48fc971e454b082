"""From which size on one way is faster than another, and how certain that is."""

import collections
import math

from . import curves, words

# `at` bytes is the smallest size from which on the other is faster, by interpolation between sizes that were measured: 0 where it is
# faster at all of them, infinity where it is not at the largest. It lies between `earliest` and `latest`, which are where the two
# would cross if each median lay at the end of its interval that is best, or worst, for the other.
Crossover = collections.namedtuple("Crossover", "at earliest latest smallest largest")


def crossing(pairs):
    """The smallest size from which on the second of each (size, first's seconds, second's) is less, to the last."""
    faster_from = len(pairs)
    while faster_from > 0 and pairs[faster_from - 1][2] < pairs[faster_from - 1][1]:
        faster_from -= 1
    if faster_from == len(pairs):
        return math.inf
    if faster_from == 0:
        return 0.0
    (small, small_first, small_second), (large, large_first, large_second) = pairs[faster_from - 1:faster_from + 1]
    slower = math.log(small_second / small_first)  # how much, before it: not negative
    faster = math.log(large_first / large_second)  # and after it: positive
    return small * (large / small)**(slower / (slower + faster))


def best_table(curves_by_name):
    """[(largest size, name)] of whichever of the curves is the fastest, at sizes that all have; the last reaches as far as there are sizes."""
    table = []
    for size in curves.sizes_of(curves_by_name):
        at = {name: point.median for name, curve in curves_by_name.items() if (point := curves.at(curve, size)) is not None}
        if len(at) < len(curves_by_name):
            continue
        best = min(at, key=at.get)
        if table and table[-1][1] == best:
            table.pop()
        elif table:
            before_size, last, before = table.pop()
            table.append((int(crossing([(before_size, before[last], before[best]), (size, at[last], at[best])])), last, None))
        table.append((size, best, at))
    return [(size, name) for size, name, _ in table]


def flag(table):
    """What --policy takes: eager:8704,write"""
    return ",".join([f"{name}:{size}" for size, name in table[:-1]] + [table[-1][1]])


def find(first, second):
    """The crossover of two curves, where `second` becomes the faster; None without two sizes that both have."""
    both = [(point, other) for point in first if (other := curves.at(second, point.size)) is not None]
    if len(both) < 2:
        return None
    return Crossover(crossing([(a.size, a.median, b.median) for a, b in both]), crossing([(a.size, a.high, b.low) for a, b in both]),
                     crossing([(a.size, a.low, b.high) for a, b in both]), both[0][0].size, both[-1][0].size)


def bound(found, value):
    if value == 0:
        return f"below {words.size(found.smallest)}"
    return f"above {words.size(found.largest)}" if value == math.inf else words.size(value)


def text(found):
    """From which size, and the interval."""
    if found is None:
        return "not measured"
    if found.at == 0:
        what = f"at all sizes from {words.size(found.smallest)}"
    elif found.at == math.inf:
        what = f"at no size to {words.size(found.largest)}"
    else:
        what = words.size(found.at)
    if found.earliest == found.at == found.latest:
        return what
    return f"{what} ({bound(found, found.earliest)} to {bound(found, found.latest)})"
