"""What the measured files say, in sentences. Which sentence is written, and each number in it, comes from the files."""

import collections
import math

from . import crossovers, curves, phases, policy as policies, processor, words

ONE_SIDED = ("read", "write")


def becomes_faster(curves_by_name, first, second, first_name=None, second_name=None):
    """From which size on `second` is faster; nothing where either was not measured."""
    if first not in curves_by_name or second not in curves_by_name:
        return []
    found = crossovers.find(curves_by_name[first], curves_by_name[second])
    if found is None:
        return []
    since = "from " if 0 < found.at < math.inf else ""
    return [f"{second_name or second} is faster than {first_name or first} {since}{crossovers.text(found)}."]


def times_as_long(one, other, name, other_name):
    """At the smallest and the largest size that both have."""
    both = [(point, match) for point in one if (match := curves.at(other, point.size)) is not None]
    if not both:
        return []
    (a, b), *more = [both[0], both[-1]] if len(both) > 1 else both
    said = "".join(f", {one.median / other.median:.2f} times at {words.size(one.size)}" for one, other in more)
    return [f"{name} takes {a.median / b.median:.2f} times as long as {other_name} at {words.size(a.size)}{said}."]


def hybrid(curves_by_name, name):
    """How far the policy is from the best of what it chooses from, at each size."""
    behind, certain = [], 0
    for point in curves_by_name.get(name, []):
        others = [other for protocol in ("eager", *ONE_SIDED)
                  if (other := curves.at(curves_by_name.get(protocol), point.size)) is not None]
        if others:
            best = min(others, key=lambda other: other.median)
            behind.append((point.median / best.median - 1, point.size))
            certain += point.low > best.high
    if not behind:
        return []
    most, size = max(behind)
    if most <= 0:
        return [f"The hybrid ({name}) is at least as fast as the best of eager, read and write at every size."]
    return [f"The hybrid ({name}) takes at most {words.percent(most)} longer than the best of eager, read and write at the same "
            f"size ({words.size(size)}); at {certain} of {len(behind)} sizes it is slower beyond the intervals of both medians."]


def against_peers(pulls):
    """The hybrid beside what others do for the same bytes, in the same run."""
    said = []
    if "auto" in pulls:
        for peer, name in (("redis", "a Redis GET"), ("tcp", "a TCP stream")):
            if peer in pulls:
                said += times_as_long(pulls["auto"], pulls[peer], "The hybrid", name)
                said += becomes_faster(pulls, peer, "auto", name, "The hybrid")
    return said


def against_sockets(cluster):
    said = []
    for peer in ("socket-original", "socket-tuned"):
        for ours in ("eager", "policy"):
            if ours in cluster and peer in cluster:
                said += times_as_long(cluster[ours], cluster[peer], f"`{ours}`", f"`{peer}`")
        said += becomes_faster(cluster, peer, "policy", f"`{peer}`", "`policy`")
    return said


def policy(runs):
    """Of the part `policy`."""
    said = []
    against = policies.against_best(runs)
    if against:
        most = max(against.values(), key=lambda one: one.ratio)
        slower = [one for one in against.values() if one.low > policies.MOST_TIMES_AS_LONG]
        said.append(f"By a tuned table the hybrid takes at most {most.ratio:.3f} times as long as the best protocol ({words.size(most.size)}, beside "
                    f"{most.best}); more than {policies.MOST_TIMES_AS_LONG} times, beyond the interval, at {len(slower)} of {len(against)} sizes.")
    first, *others = policies.tables(runs) or [None]
    if others:
        again = sum(policies.is_found_again(first, other) for other in others)
        said.append(f"Of {len(others)} further runs of `tok tune` {again} found the first table again within the uncertainty of both.")
    shares_explored = policies.shares_of_learning(runs)
    if shares_explored is not None:
        said.append(f"The adaptive policy explored with {words.percent(shares_explored[0])} of pulls and {words.percent(shares_explored[1])} of their "
                    f"time, where {words.percent(policies.MOST_EXPLORED)} and {words.percent(policies.MOST_TIME_EXPLORING)} are its bounds.")
    return said


def shares(runs, all_runs, pattern):
    """How much of what two nodes alone move a crowd moves, and how evenly, by the policy."""
    alone = {row["size_bytes"]: row["bytes_per_second"] for run in all_runs for row in run["results"]["results"]
             if row["pattern"] == "one-to-one" and row["protocol"] == "policy"}
    said = []
    for row in (row for run in runs for row in run["results"]["results"]):
        if row["pattern"] != pattern or pattern == "one-to-one" or row["protocol"] != "policy":
            continue
        words_of_row = []
        if row["size_bytes"] in alone:
            words_of_row.append(f"all together move {row['bytes_per_second'] / alone[row['size_bytes']]:.2f} times the bytes that two nodes alone do")
        words_of_row.append(f"the slowest source of a rank has {row['least_source_share']:.2f} of the mean")
        if pattern == "all-to-all":
            words_of_row.append(f"the slowest rank {row['least_rank_bytes_per_second'] / row['mean_rank_bytes_per_second']:.2f}")
        if words_of_row:
            said.append(f"`policy`, {words.size(row['size_bytes'])}: {'; '.join(words_of_row)}.")
    return said


# What a crowd has to reach, beside what two ranks alone do by the same way.
LEAST_TOGETHER, LEAST_SHARE = 0.8, 0.5
Share = collections.namedtuple("Share", "pattern size name together least_rank least_source")


def shares_of(runs):
    """A Share for each case of a crowd, in the order of the results; the runs have one-to-one, too."""
    def name(row):
        return f"socket-{row['variant']}" if row["protocol"] == "socket" else row["protocol"]

    rows = [row for run in runs for row in run["results"]["results"]]
    alone = {(name(row), row["size_bytes"]): row["bytes_per_second"] for row in rows if row["pattern"] == "one-to-one"}
    return [Share(row["pattern"], row["size_bytes"], name(row), row["bytes_per_second"] / alone[name(row), row["size_bytes"]],
                  row["least_rank_bytes_per_second"] / row["mean_rank_bytes_per_second"], row["least_source_share"])
            for row in rows if row["pattern"] != "one-to-one" and (name(row), row["size_bytes"]) in alone]


def fairness(runs):
    """Whether a crowd shares fairly, by the store's own protocols, and which case is the worst."""
    cases = [case for case in shares_of(runs) if not case.name.startswith("socket")]
    said = []
    for what, least, value in (("all together move at least {} times what two ranks alone move", LEAST_TOGETHER, lambda case: case.together),
                               ("the least share, of a rank or of a source, is at least {} of the mean", LEAST_SHARE,
                                lambda case: min(case.least_rank, case.least_source))):
        if cases:
            worst = min(cases, key=value)
            good = sum(value(case) >= least for case in cases)
            said.append(f"By eager, read, write and policy {what.format(least)} in {good} of {len(cases)} cases; the worst is {value(worst):.2f} "
                        f"({worst.pattern}, {words.size(worst.size)}, {worst.name}).")
    return said


def missed_by_cluster(runs):
    """A line for each promise that these simulated runs, whose figures are exact, do not keep."""
    said = []
    for run in runs:
        if run["results"]["run"]["ranks"] == 2:
            by_name = curves.of_cluster([run], "one-to-one")
            for point in by_name.get("policy", []):
                best = min((other.median, name) for name in ("eager", *ONE_SIDED) if (other := curves.at(by_name.get(name), point.size)) is not None)
                if point.median > policies.MOST_TIMES_AS_LONG * best[0]:
                    said.append(f"{run['name']}: at {words.size(point.size)} the hybrid takes {point.median / best[0]:.3f} times as long as {best[1]}, "
                                f"more than {policies.MOST_TIMES_AS_LONG}")
            continue
        for case in shares_of([run]):
            if not case.name.startswith("socket") and (case.together < LEAST_TOGETHER or min(case.least_rank, case.least_source) < LEAST_SHARE):
                said.append(f"{run['name']}: {case.pattern} of {words.size(case.size)} by {case.name} moves {case.together:.2f} times what two ranks "
                            f"alone move, the least share is {min(case.least_rank, case.least_source):.2f} of the mean; less than "
                            f"{LEAST_TOGETHER} or {LEAST_SHARE}")
    return said


def largest_causes(mean_by_phase):
    """For each protocol at its smallest and largest size: the causes, the largest first."""
    said = []
    for contender in dict.fromkeys(contender for contender, _ in mean_by_phase):
        sizes = sorted(size for name, size in mean_by_phase if name == contender)
        for size in dict.fromkeys((sizes[0], sizes[-1])):
            shares = sorted(phases.shares(mean_by_phase[contender, size]).items(), key=lambda one: -one[1])
            shown = [f"{cause} {words.percent(part)}" for cause, part in shares if part >= 0.01]
            said.append(f"{contender} at {words.size(size)}: {', '.join(shown)}.")
    return said


def named_causes(mean_by_phase):
    """What part of a pull's time the three causes of the original study are, over all that was measured."""
    if not mean_by_phase:
        return []
    said = []
    for cause in list(phases.CAUSES)[:3]:
        parts = [(phases.shares(one)[cause], contender, size) for (contender, size), one in mean_by_phase.items()]
        least, most = min(parts), max(parts)
        said.append(f"{cause} is {words.percent(least[0])} ({least[1]}, {words.size(least[2])}) to {words.percent(most[0])} "
                    f"({most[1]}, {words.size(most[2])}) of a pull")
    first = [max(phases.shares(one).items(), key=lambda part: part[1])[0] for one in mean_by_phase.values()]
    counts = sorted(((first.count(cause), cause) for cause in set(first)), reverse=True)
    leading = words.listing(f"{cause} in {count}" for count, cause in counts)
    return [f"The original study named socket communication, metadata access and local allocation as what a get spends its time on. Here "
            f"{words.listing(said)}.",
            f"Of {len(first)} cases (protocol and size) the largest share is: {leading}."]


def registration(curves_by_strategy):
    """How much longer each strategy takes than the arena, by READ and WRITE, at the smallest and the largest size."""
    arena = curves_by_strategy.get("arena")
    said = []
    for strategy, by_name in curves_by_strategy.items():
        for protocol in ONE_SIDED:
            if arena and strategy != "arena" and protocol in by_name and protocol in arena:
                said += times_as_long(by_name[protocol], arena[protocol], f"{protocol} with `{strategy}`", "`arena`")
    return said


def simulated(curves_by_network):
    """{network: curves}: where the threshold of READ is in each."""
    said = []
    for network, by_name in curves_by_network.items():
        if "eager" not in by_name:
            continue
        for protocol in ONE_SIDED:
            said += [f"{network}: {sentence}" for sentence in becomes_faster(by_name, "eager", protocol)]
    return said


def processor_time(by_setting):
    """The least and the most at each size; READ beside WRITE, and a separate thread beside the node's own, at the largest."""
    costs = {setting: processor.costs(runs) for setting, runs in by_setting.items()}
    sizes = sorted({size for one in costs.values() for _, size in one})
    said = []
    for size in sizes:
        (setting, contender, least), (dear, other, most) = processor.cheapest(by_setting, size)
        said.append(f"{words.size(size)}: least by {contender} with {setting}, {words.time(least * 1e-6)} of processors for an object; most by "
                    f"{other} with {dear}, {words.time(most * 1e-6)}.")
    for setting, one in costs.items():
        pair = [one.get((protocol, sizes[-1])) for protocol in ONE_SIDED]
        if None not in pair:
            read, write = (processor.seconds_per_gigabyte(cost, sizes[-1]) for cost in pair)
            said.append(f"{setting}, {words.size(sizes[-1])}: READ spends {read:.3g} s for a GB, WRITE {write:.3g} s.")
    return said
