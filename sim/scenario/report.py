"""Makes report.html of what an experiment wrote down: charts, and the numbers in words.

  report.py DIR

DIR holds summary.json and CSV files of a run, or points.json and a folder for each point of a sweep. The page needs nothing beside
itself: charts are SVG within it.
"""

import collections
import csv
import html
import io
import json
import os
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("report.py: python3-matplotlib is missing; run ci/setup --for study, or apt-get install python3-matplotlib")

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (after the back end is chosen)

# The same input gives the same bytes.
matplotlib.rcParams.update({
    "svg.hashsalt": "tokamak", "svg.fonttype": "path", "figure.figsize": (9, 3.6), "figure.constrained_layout.use": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4", "axes.axisbelow": True,
    "axes.titlesize": 11, "axes.titlelocation": "left", "legend.frameon": False, "lines.linewidth": 1.4, "font.size": 10,
    "axes.prop_cycle": matplotlib.cycler(color=["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777"]),
})

MOST_LINES = 6  # of a chart; more cannot be told apart
MOST_BARS = 24
MOST_POINTS = 150  # of a line that shows rates: each is the mean of a while

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.2rem } .question { font-size: 1.1rem; color: #555 }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid #e4e4e4 }
td:first-child, th:first-child { text-align: left } th { font-weight: 600 } svg { max-width: 100%; height: auto }
.caption { color: #555; font-size: .92rem; margin-top: -.3rem } .bad { background: #fdecea; padding: .6rem 1rem; border-left: 4px solid #c62828 }
"""


def read_csv(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def size(count):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def binary_size(count):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1e3:.4g} ms" if us >= 1e3 else f"{us:.4g} us"


def number(value):
    return f"{value:,.0f}"


def label_bytes(axis):
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: size(value)))


def table(header, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    return "<table>" + line(header, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def section(title, figure, caption):
    return f"<h2>{html.escape(title)}</h2>{svg(figure)}<p class=caption>{html.escape(caption)}</p>"


def page(folder, title, question, body):
    text = (f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
            f"<h1>{html.escape(title)}</h1><p class=question>{html.escape(question)}</p>" + "".join(body) + "</html>\n")
    with open(os.path.join(folder, "report.html"), "w", encoding="utf-8") as file:
        file.write(text)


def of_group(rows):
    groups = collections.OrderedDict()
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def completion(transfers):
    """Completion time by size where sizes differ, else how completion times are spread."""
    finished = [row for row in transfers if row["state"] == "finished" and row["ideal_ns"]]
    if not finished:
        return ""
    sizes = {int(row["bytes"]) for row in finished}
    figure, axes = plt.subplots()
    groups = of_group(finished)
    if len(sizes) > 2:
        for name, rows in groups.items():
            axes.plot([int(row["bytes"]) for row in rows], [float(row["completion_ns"]) / 1e3 for row in rows], "o",
                      markersize=5, alpha=.65, label=name if len(groups) <= MOST_LINES else None)
        axes.plot([int(row["bytes"]) for row in finished], [float(row["ideal_ns"]) / 1e3 for row in finished], "_", color="black",
                  markersize=7, label="the same alone on the network (ideal)")
        axes.set(xscale="log", yscale="log", xlabel="size of the transfer", ylabel="completion time (us)")
        label_bytes(axes.xaxis)
        caption = "One dot for each transfer. Where it lies on its dash it is as fast as if it had the network to itself; above, it waited for others."
    else:
        for name, rows in list(groups.items())[:MOST_LINES]:
            values = sorted(float(row["completion_ns"]) / 1e3 for row in rows)
            if len(values) == 1:
                line = axes.plot(values, [100], "D", markersize=8, label=f"{name} (one transfer)")
            else:
                parts = [100 * (i + 1) / len(values) for i in range(len(values))]
                line = axes.step([values[0]] + values, [0] + parts, where="post", label=name)
            axes.axvline(float(rows[0]["ideal_ns"]) / 1e3, color=line[0].get_color(), linestyle=":", linewidth=1.2)
        axes.set(xlabel="completion time (us)", ylabel="transfers done by then (%)", ylim=(0, 108))
        axes.set_xlim(left=0)
        caption = "How many of a workload's transfers took at most this long. Dotted: one transfer alone on the network (ideal)."
    axes.legend(loc="best")
    return section("How long transfers took", figure, caption)


def means(samples):
    """Times and mean rates of a workload, from samples of what it sent since the one before."""
    end = max(float(row["time_us"]) for row in samples)
    times, amounts, begin, amount, before = [0], [0], 0, 0, 0
    for row in samples:
        now = float(row["time_us"])
        amount += float(row["gbps"]) * (now - before)
        before = now
        if now - begin >= end / MOST_POINTS or now == end:
            times.append(now)
            amounts.append(amount / (now - begin))
            begin, amount = now, 0
    return times, amounts


def draw_rates(lines):
    """Lines of (name, samples). A first burst that dwarfs all the rest is cut off, and its height told."""
    figure, axes = plt.subplots()
    drawn = []
    for name, samples in lines:
        times, amounts = means(samples)
        axes.plot(times, amounts, label=name, drawstyle="steps-pre")
        drawn += amounts
    usual, most = sorted(drawn)[int(.98 * (len(drawn) - 1))], max(drawn)
    axes.set(xlabel="time (us)", ylabel="payload sent (Gb/s)")
    if most > 2 * usual > 0:
        axes.set_ylim(0, 1.5 * usual)
        axes.annotate(f"up to {most:.0f}", (.01, .97), xycoords="axes fraction", va="top", color="#777777")
    else:
        axes.set_ylim(0, max(1.25 * most, 1))
    axes.set_xlim(left=0)
    axes.legend(loc="upper right", ncols=3)
    return figure


def rates(rows):
    groups = sorted(of_group(rows).items(), key=lambda one: -sum(float(row["gbps"]) for row in one[1]))
    return section("How fast each workload sent", draw_rates(groups[:MOST_LINES]),
                   "All transfers of a workload together, with what was sent again; each step is a mean.")


def by_port(queues, value, hosts):
    ports = collections.OrderedDict()
    for row in queues:
        if hosts or row["is_host"] == "0":
            name = f"{row['node']} to {row['peer']}"
            ports.setdefault(name, []).append((float(row["time_us"]), float(row[value])))
    most = sorted(ports.items(), key=lambda one: -max(amount for _, amount in one[1]))
    longest = max((amount for _, samples in most for _, amount in samples), default=0)
    return [one for one in most[:MOST_LINES] if max(amount for _, amount in one[1]) > .02 * longest]


def filled(samples, times):
    """Rows with nothing in them are not in the file."""
    known = dict(samples)
    return [known.get(time, 0) for time in times]


def queue_depth(queues, times, ecn):
    ports = by_port(queues, "queued_bytes", hosts=False)
    if not ports:
        return "<h2>How long queues were</h2><p>No switch had a frame waiting when its queues were looked at.</p>"
    figure, axes = plt.subplots()
    for name, samples in ports:
        axes.plot(times, filled(samples, times), label=name, drawstyle="steps-pre")
    most = max(amount for _, samples in ports for _, amount in samples)
    caption = f"The {len(ports)} switch ports with the longest queues, at the times when they were looked at."
    if ecn and ecn[0] <= 1.5 * most:
        axes.axhline(ecn[0], color="#999999", linestyle="--", linewidth=1)
        axes.annotate("marks begin (kmin)", (1, ecn[0]), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="#777777")
        caption += " Above the dashed line packets are marked."
    axes.set(xlabel="time (us)", ylabel="waiting in the queue")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    label_bytes(axes.yaxis)
    axes.legend(loc="best")
    return section("How long queues were", figure, caption)


def pauses(ports):
    paused = [(f"{row['node']} to {row['peer']}", float(row["paused_us"])) for row in ports if float(row["paused_us"]) > 0]
    if not paused:
        return "<h2>Who was paused</h2><p>Nobody: no switch had to stop a neighbour (PFC).</p>"
    paused.sort(key=lambda one: -one[1])
    shown = paused[:20][::-1]
    figure, axes = plt.subplots(figsize=(9, 1.1 + .24 * len(shown)))
    axes.barh([name for name, _ in shown], [us for _, us in shown], height=.6, color="#d55e00")
    axes.set_ylim(-.8, len(shown) - .2)
    axes.set_xlabel("time that the port had to stop (us)")
    axes.grid(axis="y", visible=False)
    more = f" {len(paused) - 20} more were paused for a shorter time." if len(paused) > 20 else ""
    return section("Who was paused", figure,
                   "Ports that a neighbour told to stop (PFC), and for how long in all, one priority each." + more)


def ending(summary):
    text = {
        "frozen": "The network froze: frames wait, and nothing moves any more. These queues wait for each other: "
                  + "; ".join(summary.get("frozen_queues", [])),
        "duration over": "The scenario's duration was over before all transfers were done.",
        "not ready": "The nodes could not join the directory in time.",
        "failed": "Some transfers failed: see the column state of transfers.csv.",
    }.get(summary["ending"])
    return f"<p class=bad>{html.escape(text)}</p>" if text else ""


def ecn_of(scenario):
    topology = scenario.get("topology")
    ecn = topology.get("switch", {}).get("ecn") if isinstance(topology, dict) else None
    if not ecn or "kmin" not in ecn:
        return None
    kmin = ecn["kmin"]
    if isinstance(kmin, str):
        digits = kmin.rstrip("KMGiB ")
        factors = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "KiB": 1024, "MiB": 1 << 20}
        if kmin[len(digits):].strip() not in factors:
            return None
        kmin = float(digits) * factors[kmin[len(digits):].strip()]
    return (kmin,)


def group_rows(summary):
    for name, group in summary["groups"].items():
        took, slow = group["completion_us"], group["slowdown"]
        yield [name, f"{group['finished']} of {group['transfers']}", size(group["bytes"]),
               time(took["mean"]) if took else "-", time(took["p99"]) if took else "-",
               f"{slow['mean']:.2f}" if slow else "-", f"{slow['p99']:.2f}" if slow else "-",
               f"{group['goodput_gbps']:.1f}"]


GROUP_HEADER = ["workload", "finished", "payload", "mean time", "99 % within", "mean slowdown", "99 % within", "Gb/s"]


def protocol_rows(summary):
    for name, group in summary["groups"].items():
        for protocol, gets in group.get("protocols", {}).items():
            took, slow = gets["completion_us"], gets["slowdown"]
            yield [name, protocol, number(gets["finished"]), time(took["mean"]), time(took["p99"]),
                   f"{slow['mean']:.2f}" if slow else "-", f"{slow['p99']:.2f}" if slow else "-"]


def protocols(summary):
    rows = list(protocol_rows(summary))
    if not rows:
        return ""
    header = ["workload", "protocol", "gets", "mean time", "99 % within", "mean slowdown", "99 % within"]
    return ("<h2>Through the store, by protocol</h2>" + table(header, rows)
            + "<p class=caption>Gets of objects, by what moved their bytes; local: the object was there already.</p>")


def counter_rows(summary):
    network, nics = summary["network"], summary["nics"]
    drops = ", ".join(f"{count:,} ({reason})" for reason, count in network["drops"].items()) or "0"
    return [["longest queue of a switch", size(network["most_queued_bytes"])],
            ["pauses; time of all together", f"{number(network['pauses'])}; {time(network['paused_us'])}"],
            ["packets marked; notifications", f"{number(network['marked'])}; {number(nics['notifications'])}"],
            ["packets sent; sent again", f"{number(nics['packets_sent'])}; {number(nics['packets_retransmitted'])}"],
            ["dropped, by reason", drops], ["lost on cables", number(network["lost"])]]


def report_run(folder):
    summary, scenario = read_json(folder, "summary.json"), read_json(folder, "scenario.json")
    queues, samples = read_csv(folder, "queues.csv"), read_csv(folder, "rates.csv")
    times = sorted({float(row["time_us"]) for row in samples})
    setting = (f"{summary['hosts']} hosts, {summary['switches']} switches, MTU {summary['mtu']}, congestion control "
               f"{summary['congestion']}, seed {summary['seed']}; {time(summary['simulated_us'])} simulated.")
    page(folder, summary["scenario"] or "A scenario", summary["question"], [
        ending(summary), f"<p>{html.escape(setting)}</p>", table(GROUP_HEADER, group_rows(summary)),
        "<p class=caption>Slowdown: the time that a transfer took, divided by what it takes alone on the network.</p>",
        protocols(summary), completion(read_csv(folder, "transfers.csv")), rates(samples), queue_depth(queues, times, ecn_of(scenario)),
        pauses(read_csv(folder, "ports.csv")), "<h2>Counted</h2>", table(["", ""], counter_rows(summary))])


def name_of(point):
    return ", ".join(one.split(".")[-1] for one in point["set"])


def bars(points, value, label, names):
    """A cluster for each point, a bar for each workload."""
    figure, axes = plt.subplots(figsize=(9, .9 + .3 * len(points) * max(1, len(names)) ** .6))
    height = .8 / len(names)
    for i, name in enumerate(names):
        places = [row + (i - (len(names) - 1) / 2) * height for row in range(len(points))]
        amounts = [value(summary, name) or 0 for _, summary in points]
        drawn = axes.barh(places, amounts, height * .9, label=name or None)
        axes.bar_label(drawn, fmt="%.4g", padding=3, fontsize=9)
    axes.set_yticks(range(len(points)), [name_of(point) for point, _ in points])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.margins(x=.1)
    axes.grid(axis="y", visible=False)
    if names[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def times_by_size(points, name):
    """Charts of what transfers of a workload took by their size, where a sweep has points of several sizes.

    The values of the key that was given first, but for the sizes, are the lines of a chart; each combination of the others has a
    chart of its own.
    """
    charts = collections.defaultdict(lambda: collections.defaultdict(list))
    for point, summary in points:
        group = summary["groups"].get(name)
        if not group or not group["completion_us"]:
            continue
        keys = [one for one in point["set"] if not one.split("=")[0].endswith(".bytes")]
        chart, line = ", ".join(one.split(".")[-1] for one in keys[1:]), keys[0].split(".")[-1] if keys else ""
        charts[chart][line].append((group["bytes"] / group["transfers"], group["completion_us"]["mean"]))
    for chart, lines in charts.items():
        if max(len({size for size, _ in line}) for line in lines.values()) < 3:
            continue
        figure, axes = plt.subplots(figsize=(9, 4.6))
        for label, line in list(lines.items())[:MOST_LINES]:
            axes.plot(*zip(*sorted(line)), marker="o", markersize=4, label=label or None)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sorted({size for line in lines.values() for size, _ in line}))
        axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: binary_size(value)))
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: time(value)))
        axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.set_xlabel("bytes of a transfer")
        axes.set_ylabel("mean time")
        if any(lines):
            axes.legend()
        yield chart, figure


def rate_lines(folder, points, group):
    lines = [(name_of(point), of_group(read_csv(os.path.join(folder, point["folder"]), "rates.csv")).get(group, []))
             for point, _ in points[:MOST_LINES]]
    return draw_rates([line for line in lines if line[1]])


def report_sweep(folder):
    points = []
    for point in read_json(folder, "points.json"):
        path = os.path.join(folder, point["folder"])
        if os.path.exists(os.path.join(path, "summary.json")):
            points.append((point, read_json(path, "summary.json")))
            report_run(path)
    if not points:
        sys.exit("report.py: no point of this sweep has results; see the messages above")
    first = points[0][1]
    names = list(first["groups"])[:MOST_LINES]

    def slowdown(summary, name):
        return (summary["groups"].get(name) or {}).get("slowdown", {}) and summary["groups"][name]["slowdown"]["mean"]

    rows = [[name_of(point) if i == 0 else ""] + row for point, summary in points for i, row in enumerate(group_rows(summary))]
    links = "".join(f'<li><a href="{point["folder"]}/report.html">{html.escape(name_of(point))}</a>: {html.escape(summary["ending"])}</li>'
                    for point, summary in points)
    body = [section(f"Time of '{name}' by size" + (f": {chart}" if chart else ""), figure,
                    "Both axes are logarithmic. Where two lines cross, the other becomes the faster.")
            for name in names for chart, figure in times_by_size(points, name)]
    if len(points) <= MOST_BARS:
        body.append(section("Slowdown", bars(points, slowdown, "mean slowdown (1: as if alone on the network)", names),
                            "The time that transfers took, divided by what they take alone on the network: the shorter, the better."))
    for name in names[-3:] if len(points) <= MOST_LINES else []:
        body.append(section(f"How fast '{name}' sent", rate_lines(folder, points, name),
                            "All of its transfers together; a line ends when all transfers of that point are done."))
    if len(points) <= MOST_BARS:
        body.append(section("Pauses", bars(points, lambda s, _: s["network"]["paused_us"], "time that ports had to stop, all together (us)", [""]),
                            "Time for which ports were told to stop (PFC)."))
        body.append(section("Longest queue", bars(points, lambda s, _: s["network"]["most_queued_bytes"] / 1e3, "longest queue of a switch (kB)", [""]),
                            "Of any port and priority of any switch, at any time."))
    body += ["<h2>Numbers</h2>", table(["point"] + GROUP_HEADER, rows), "<h2>Each point by itself</h2><ul>", links, "</ul>"]
    page(folder, f"{first['scenario'] or 'A scenario'}: {len(points)} points", first["question"], body)


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    folder = sys.argv[1]
    (report_sweep if os.path.exists(os.path.join(folder, "points.json")) else report_run)(folder)


if __name__ == "__main__":
    main()
