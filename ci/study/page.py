"""docs/study/README.md and its charts, of the records of a folder and of nothing else."""

import os

from . import checkpoint, crossovers, curves, findings, loopback, phases, plots, policy, processor, records, words
from .parts import ABOUT, PARTS, STRATEGIES

QUESTION = """Which way of bringing an object from another node's memory is the fastest, at which size, and what does the rest of the time
go into: Redis, sockets as Plasma's object manager uses them, two-sided messages (eager), one-sided READ and WRITE, or the hybrid that chooses
by size (`auto` in one benchmark, `policy` in the other)? From which size on are READ and WRITE faster than eager, for each way of registering
memory and each network?"""

LIMITS = """- `soft:udp` is a software NIC: every byte is copied by processors, with a checksum over it. It says what the protocols cost in
  software, and nothing about the bandwidth of a NIC.
- All nodes, peers and the load are on one machine, which is named below. Everything that is compared takes turns within a run.
- In the two-node benchmark the directory is the pulling node's own, so that asking it is no round trip on a network.
- Soft-RoCE runs in a guest, where no hardware virtualisation is to be had on an emulated processor: its times are bound by that processor, and
  only ratios within the guest say something.
- The simulated fabric has no measured hosts: their figures are those of `cx6-200g` in `sim/costs/presets.json`, with the source of each. Its
  results are exact, and as true as the model; its sockets are a model of TCP that leaves out what would slow them down.
- Percentiles say how single operations spread. Intervals are those of medians: 95 % from the ranks, or from the percentiles as if values were
  spread normally, from the least to the most of several runs."""

CLUSTER_PATTERNS = ("one-to-one", "many-to-one", "all-to-all")
SIMULATED_PATTERNS = ("one-to-many", "many-to-one", "all-to-all")


class Page:
    """Collects lines, and draws the charts that they show."""

    def __init__(self, folder, read):
        self.folder = folder
        self.read = read  # {part: record or None}
        self.lines = []

    def say(self, *paragraphs):
        for text in paragraphs:
            self.lines += [text, ""]

    def bullets(self, sentences):
        if sentences:
            self.say("\n".join(f"- {sentence}" for sentence in sentences))

    def chart(self, name, what):
        self.say(f"![{what}]({name}.svg)")

    def runs(self, part, name=None):
        return records.runs_of(self.read[part], name)

    def missing(self, part):
        """Says what is wrong with a part; true where there is nothing of it."""
        record = self.read[part]
        if record is None:
            self.say(f"**Not measured**: there is no `data/{part}.json.gz`. `ci/paper --only {part}` measures it.")
            return True
        if record["trouble"]:
            what = "Failed" if record["state"] == "failed" else "Measured in part"
            self.say(f"**{what}.** " + " ".join(f"`{line}`" for line in record["trouble"]))
        return record["state"] == "failed"


def latency_table(page, by_name):
    sizes = curves.sizes_of(by_name)

    def cell(point):
        return "" if point is None else f"{words.time(point.median)} ({words.time(point.p10)} - {words.time(point.p90)})"

    page.say("Median time (10th to 90th percentile):",
             words.table(["size", *by_name], [[words.size(size), *(cell(curves.at(curve, size)) for curve in by_name.values())]
                                              for size in sizes]))


def bandwidth_table(page, by_name, objects=1, least=64 << 10):
    sizes = [size for size in curves.sizes_of(by_name) if size >= least]

    def cell(size, point):
        return "" if point is None else words.rate(objects * size / point.median)

    if sizes:
        page.say("Bandwidth at the median:",
                 words.table(["size", *by_name], [[words.size(size), *(cell(size, curves.at(curve, size)) for curve in by_name.values())]
                                                  for size in sizes]))


def set_ups(page):
    rows = []
    for part in PARTS:
        record = page.read[part]
        if record is None:
            rows.append([part, "not measured", "", "", "", "", ""])
            continue
        runs, environment = record["runs"], record["environment"]
        loads = [value for run in runs for value in run["load"]]
        others = [run["others"] for run in runs]
        rows.append([part, f"{record['state']}, {record['mode']}", environment["date"], environment["commit"], len(runs),
                     f"{min(loads):.1f} to {max(loads):.1f}" if loads else "",
                     f"{words.percent(min(others))} to {words.percent(max(others))}" if others else ""])
    machines = dict.fromkeys(f"{record['environment']['machine']}, {record['environment']['kernel']}"
                             for record in page.read.values() if record)
    page.say("## Set-ups, and what they cannot tell", LIMITS, *(f"Machine: {machine}." for machine in machines),
             words.table(["part", "state", "date", "commit", "runs", "load", "used by others"], rows),
             "*load*: the machine's load average (of a minute) before and after each run, the benchmark's own included. *used by others*: what part "
             "of all processors was busy with something else during a run, the kernel's own threads included; above a few per cent the machine "
             "was **not idle**, and only ratios within a run are to be trusted.")
    worst = max((run["others"] for record in page.read.values() if record for run in record["runs"]), default=0)
    if worst > 0.1:
        page.say(f"**The machine was not idle**: up to {words.percent(worst)} of its processors were busy with something else.")


def two_nodes(page):
    page.say("## Two nodes on soft:udp, beside TCP, Redis and memcpy", ABOUT["pulls"])
    if page.missing("pulls"):
        return
    by_name = curves.of_pulls(page.runs("pulls", "pulls"))
    plots.latency(page.folder, "latency", by_name)
    plots.bandwidth(page.folder, "bandwidth", by_name)
    page.chart("latency", "Median time by size; shaded from the 10th to the 90th percentile")
    page.chart("bandwidth", "Bandwidth by size")
    page.bullets(findings.hybrid(by_name, "auto") + findings.against_peers(by_name))
    latency_table(page, by_name)
    bandwidth_table(page, by_name)


def tuned_policy(page):
    page.say("## A tuned policy against the best protocol, and what learning costs", ABOUT["policy"])
    if page.missing("policy"):
        return
    runs = page.runs("policy")
    page.bullets(findings.policy(runs))
    tables = policy.tables(runs)
    if tables:
        page.say(words.table(["tok tune", "table", "crossovers, 95 % sure of"],
                             [[number, policy.steps(table),
                               words.listing(f"{step['below']} to {step['above']}: {words.size(step['least_bytes'])} to {words.size(step['most_bytes'])}"
                                             for step in policy.crossovers_of(table)) or "none"] for number, table in enumerate(tables, 1)]))
    against = policy.against_best(runs)
    if against:
        page.say("The hybrid by the first table:",
                 words.table(["size", "median", "best protocol", "times as long", "95 % sure of"],
                             [[words.size(one.size), words.time(one.seconds), one.best, f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}"]
                              for one in against.values()]))


def peers(page):
    page.say("## iperf3 and UCX on loopback", ABOUT["loopback"])
    if page.missing("loopback"):
        return
    rows = loopback.rows(page.runs("loopback"))
    page.say(words.table(["program", "what", "median", "least", "most"],
                         [[row.program, row.what, *(row.form(value) for value in (row.median, row.least, row.most))] for row in rows]))


def cluster(page):
    page.say("## A cluster under MPI: sockets and the store's protocols", ABOUT["cluster"])
    if page.missing("cluster"):
        return
    for pattern in CLUSTER_PATTERNS:
        runs = [run for run in page.runs("cluster") if any(row["pattern"] == pattern for row in run["results"]["results"])]
        if not runs:
            continue
        ranks = runs[0]["results"]["run"]["ranks"]
        objects = {"one-to-one": 1, "many-to-one": ranks - 1, "all-to-all": ranks * (ranks - 1)}[pattern]
        by_name = curves.of_cluster(runs, pattern)
        page.say(f"### {pattern}, {ranks} ranks" + (f": {objects} objects at once" if objects > 1 else ""))
        page.bullets(findings.shares(runs, page.runs("cluster"), pattern))
        name = "cluster-" + pattern
        plots.latency(page.folder, name, by_name)
        page.chart(name, f"Median time until the last rank has its objects, by size: {pattern}")
        page.bullets((findings.hybrid(by_name, "policy") if pattern == "one-to-one" else []) + findings.against_sockets(by_name))
        latency_table(page, by_name)
        bandwidth_table(page, by_name, objects)


def simulated_runs(page):
    """Of the part `simulated`: {rate: {strategy: [run with two ranks]}}, {rate: [run with a crowd]}."""
    pairs, crowds = {}, {}
    for run in page.runs("simulated"):
        settings = run["results"]["settings"]
        if run["results"]["run"]["ranks"] == 2:
            pairs.setdefault(settings["rate"], {}).setdefault(settings["registration"], []).append(run)
        else:
            crowds.setdefault(settings["rate"], []).append(run)
    return pairs, crowds


def simulated(page):
    page.say("## The same cluster on a simulated fabric: a processor for each rank", ABOUT["simulated"])
    if page.missing("simulated"):
        return
    pairs, crowds = simulated_runs(page)
    by_rate = {rate: curves.of_cluster(by_strategy.get("arena", []), "one-to-one") for rate, by_strategy in pairs.items()}
    if by_rate:
        page.say("### one-to-one, 2 ranks")
        plots.panels(page.folder, "simulated-one-to-one", by_rate)
        page.chart("simulated-one-to-one", "Median time by size on the simulated fabric: one-to-one")
    for rate, by_name in by_rate.items():
        tables = {table for run in pairs[rate].get("arena", []) if (table := run["results"]["settings"].get("policy"))}
        page.say(f"**{rate}**, registered by `arena`" + "".join(f"; the hybrid's table is `{table}`" for table in sorted(tables)) + ":")
        page.bullets(findings.hybrid(by_name, "policy") + findings.against_sockets(by_name))
        latency_table(page, by_name)
        bandwidth_table(page, by_name)
    for rate, by_strategy in pairs.items():
        by_protocol = {strategy: curves.of_cluster(runs, "one-to-one") for strategy, runs in by_strategy.items()}
        page.say(f"**{rate}**, by how memory is registered:")
        page.bullets(findings.registration(by_protocol))
    for rate, runs in crowds.items():
        ranks = runs[0]["results"]["run"]["ranks"]
        page.say(f"### {ranks} ranks, {rate}")
        page.bullets(findings.fairness(runs))
        by_pattern = {pattern: by_name for pattern in SIMULATED_PATTERNS if (by_name := curves.of_cluster(runs, pattern))}
        name = "simulated-crowd-" + rate.replace("/", "").lower()
        plots.panels(page.folder, name, by_pattern)
        page.chart(name, f"Median time until the last rank has its objects, by size, {rate}")
        page.say("What all together move, as times of what two ranks alone move by the same way; the least share of a rank, and of a source of a "
                 "rank, as parts of their means:",
                 words.table(["pattern", "size", "by", "all together", "least rank", "least source"],
                             [[row.pattern, words.size(row.size), row.name, f"{row.together:.2f}", f"{row.least_rank:.2f}", f"{row.least_source:.2f}"]
                              for row in findings.shares_of(runs)]))


def where_time_goes(page):
    page.say("## Where the time goes", ABOUT["phases"])
    if page.missing("pulls"):
        return
    means = phases.mean_by_phase(page.runs("pulls", "pulls"))
    if not means:
        page.say("**Not measured**: no run has phases.")
        return
    plots.causes(page.folder, "causes", means)
    page.chart("causes", "What part of a pull's time each cause takes, by size and protocol")
    page.bullets(findings.named_causes(means) + findings.largest_causes(means))
    page.say("Mean microseconds of a pull in each phase (what a phase is: `Phase` in `lib/base/trace.h`):",
             words.table(["size", "protocol", *phases.PHASES, "all"],
                         [[words.size(size), contender, *(f"{seconds * 1e6:.1f}" for seconds in one.values()), f"{sum(one.values()) * 1e6:.0f}"]
                          for (contender, size), one in sorted(means.items(), key=lambda item: item[0][1])]))
    if os.path.exists(os.path.join(page.folder, "data", "trace.json.gz")):
        page.say("[data/trace.json.gz](data/trace.json.gz) has each phase of some pulls of each protocol, for Perfetto (ui.perfetto.dev).")


def registration(page):
    page.say("## Ways of registering memory", ABOUT["registration"])
    if page.missing("registration"):
        return
    by_strategy = {name: curves.of_pulls(page.runs("registration", name)) for name in records.names_of(page.read["registration"])}
    panels = {protocol: {strategy: by_name[protocol] for strategy, by_name in by_strategy.items() if protocol in by_name}
              for protocol in ("eager", "read", "write")}
    plots.panels(page.folder, "registration", {protocol: panel for protocol, panel in panels.items() if panel})
    page.chart("registration", "Median time by size, for each way of registering")
    page.bullets(findings.registration(by_strategy))
    for protocol, panel in panels.items():
        page.say(f"**{protocol}**")
        latency_table(page, panel)


def processor_time(page):
    page.say("## Processor time", ABOUT["processor"])
    if page.missing("processor"):
        return
    by_setting = {name: page.runs("processor", name) for name in records.names_of(page.read["processor"])}
    rows = list(processor.rows(by_setting))
    sizes = sorted({row[2] for row in rows})
    groups = {}
    for size in (sizes[0], sizes[-1]):
        large = size >= 1 << 20
        group = groups.setdefault(f"{words.size(size)}: " + ("s for a GB" if large else "us for an object"), {})
        for setting, contender, row_size, here, there, per_gigabyte in rows:
            if row_size == size:
                group.setdefault(contender, {})[setting] = per_gigabyte if large else here + there
    plots.processor(page.folder, "processor", groups)
    page.chart("processor", "Processor time of both nodes, by detection, engines and protocol")
    page.bullets(findings.processor_time(by_setting))
    page.say(words.table(["setting", "protocol", "size", "us here", "us there", "s for a GB"],
                         [[setting, contender, words.size(size), f"{here:.1f}", f"{there:.1f}", f"{per:.3g}"]
                          for setting, contender, size, here, there, per in rows]))


def checkpoints(page):
    page.say("## A training loop with checkpoints", ABOUT["checkpoint"])
    if page.missing("checkpoint"):
        return
    runs = page.runs("checkpoint")
    page.bullets(checkpoint.findings(runs))
    page.say(checkpoint.table(runs))


def soft_roce(page):
    page.say("## The kernel's Soft-RoCE, in a guest", ABOUT["softroce"])
    if page.missing("softroce"):
        return
    by_name = curves.of_pulls(page.runs("softroce", "pulls"))
    if by_name:
        plots.latency(page.folder, "softroce", by_name)
        page.chart("softroce", "Median time by size over Soft-RoCE")
        page.bullets(findings.hybrid(by_name, "auto"))
        latency_table(page, by_name)
    by_strategy = {strategy: curves.of_cluster(page.runs("softroce", f"one-to-one, {strategy}"), "one-to-one") for strategy in STRATEGIES}
    by_strategy = {strategy: by_name for strategy, by_name in by_strategy.items() if by_name}
    if by_strategy:
        page.say("Two ranks of the cluster benchmark in the guest, by how memory is registered, and sockets over the Ethernet interfaces of the same "
                 "devices:")
        plots.panels(page.folder, "softroce-registration", by_strategy)
        page.chart("softroce-registration", "Median time by size over Soft-RoCE, by how memory is registered; sockets beside `arena`")
        page.bullets(findings.against_sockets(by_strategy.get("arena", {})) + findings.registration(by_strategy))
        for strategy, by_name in by_strategy.items():
            page.say(f"**{strategy}**:")
            latency_table(page, by_name)
    bare = [run["results"] for run in page.runs("softroce", "beside perftest")]
    if bare:
        page.say("Beside perftest in the same guest (`tests/bench/beside_verbs` says which end polls where); 4 MiB but for eager and the `_lat` "
                 "programs, 64 B; `ib_send_lat` is one way:")
        rows = [[what, *(words.time(value) for value in (sorted(values)[len(values) // 2], min(values), max(values)))]
                for what, values in sorted(bare[0].items())]
        page.say(words.table(["what", "median", "least", "most"], rows))


def networks(page):
    """{name: curves} of the simulated fabrics."""
    runs = page.runs("fabric")
    found = {}
    for rate in sorted({row["rate"] for run in runs for row in run["results"]}, key=lambda text: (len(text), text)):
        for senders in sorted({row["senders"] for run in runs for row in run["results"]}):
            name = f"{rate}, " + ("alone" if senders == 1 else f"{senders} at once")
            found[name] = curves.of_sweep(runs, rate=rate, senders=senders)
    return found


def fabric(page):
    page.say("## Simulated fabric with the costs of a ConnectX-6", ABOUT["fabric"])
    if page.missing("fabric"):
        return
    by_network = networks(page)
    plots.panels(page.folder, "fabric", by_network, "mean time of a get")
    page.chart("fabric", "Mean time of a get by size on simulated networks")
    page.bullets(findings.simulated(by_network))
    for name, by_name in by_network.items():
        page.say(f"**{name}**, mean time of a get:",
                 words.table(["size", *by_name], [[words.size(size), *(words.time(curves.at(curve, size).median) if curves.at(curve, size) else ""
                                                                       for curve in by_name.values())]
                                                  for size in curves.sizes_of(by_name)]))


def crossover_rows(page):
    """(fabric, registration, READ, WRITE) of all that was measured."""
    found = [("soft:udp, two nodes", "arena", curves.of_pulls(page.runs("pulls", "pulls")))]
    for strategy in records.names_of(page.read["registration"]):
        found.append(("soft:udp, two nodes, in turns", strategy, curves.of_pulls(page.runs("registration", strategy))))
    for pattern in CLUSTER_PATTERNS:
        runs = page.runs("cluster")
        if runs:
            found.append((f"soft:udp, {pattern} under MPI", runs[0]["results"]["settings"]["registration"], curves.of_cluster(runs, pattern)))
    found.append(("Soft-RoCE in a guest", "arena", curves.of_pulls(page.runs("softroce", "pulls"))))
    for strategy in STRATEGIES:
        found.append(("Soft-RoCE in a guest, one-to-one under MPI", strategy, curves.of_cluster(page.runs("softroce", f"one-to-one, {strategy}"),
                                                                                                "one-to-one")))
    for rate, by_strategy in simulated_runs(page)[0].items():
        found += [(f"simulated, {rate}, one-to-one", strategy, curves.of_cluster(runs, "one-to-one")) for strategy, runs in by_strategy.items()]
    found += [(f"simulated, {name}", "arena", by_name) for name, by_name in networks(page).items()]
    for fabric_name, strategy, by_name in found:
        if by_name:
            yield [fabric_name, strategy, *(crossovers.text(crossovers.find(by_name.get("eager", []), by_name.get(protocol, [])))
                                            for protocol in ("read", "write"))]


def thresholds(page):
    rows = list(crossover_rows(page))
    page.say("## Crossovers", "The smallest size from which on READ, or WRITE, is faster than eager up to the largest size that was measured, by "
             "interpolation between the medians of two sizes. The interval is where the two would cross if every median lay at the end of "
             "its interval that is best, or worst, for the one-sided way.")
    if rows:
        page.say(words.table(["network", "registration", "READ from", "WRITE from"], rows))
    else:
        page.say("**Not measured.**")


def repeat(page):
    page.say("## How to repeat", "```\nci/paper --quick                       # everything, some 15 minutes on two processors\n"
             "ci/paper --full                        # over night: more sizes, more rounds\n"
             "ci/paper --only registration           # one part; the others stay as they are\n"
             "ci/paper --from docs/study             # only this page and its charts, of the files in data\n```",
             "Each file in `data` has the commands that were run, in this order:")
    lines = []
    for part in PARTS:
        for run in records.runs_of(page.read[part]):
            lines.append(f"{run['command']}  # {part}: {run['name']}")
    if lines:
        page.say("```\n" + "\n".join(dict.fromkeys(lines)) + "\n```")


def make(folder):
    """Writes README.md and charts into `folder`, of the records in its `data`; returns what parts are not wholly measured."""
    page = Page(folder, {part: records.read(os.path.join(folder, "data"), part) for part in PARTS})
    page.say("# Study: Redis, sockets, eager, READ, WRITE and the hybrid side by side",
             "Made by `ci/paper` of the files in `data`; no number on this page was written by hand. Change `ci/study`, not this page.",
             "## Question", QUESTION)
    for section in (set_ups, thresholds, two_nodes, tuned_policy, cluster, simulated, where_time_goes, registration, processor_time, soft_roce, fabric, checkpoints, peers, repeat):
        section(page)
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page.lines).rstrip() + "\n")
    return [part for part, record in page.read.items() if record is None or record["state"] != "measured"]
