"""Charts of the study as SVG and PNG. The same input gives the same bytes."""

import os
import sys

from . import curves, phases, words

try:
    import matplotlib
except ImportError:
    sys.exit("ci/paper: python3-matplotlib is missing; run ci/setup --for study")

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (after the back end is chosen)

# As sim/scenario/report.py has it; without times, versions or random names.
matplotlib.rcParams.update({
    "svg.hashsalt": "tokamak", "svg.fonttype": "path", "figure.figsize": (9, 4.6), "figure.constrained_layout.use": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4", "axes.axisbelow": True,
    "axes.titlesize": 11, "axes.titlelocation": "left", "legend.frameon": False, "lines.linewidth": 1.4, "font.size": 10,
})

# A contender has the same colour in every chart.
COLOURS = {
    "eager": "#0072b2", "read": "#d55e00", "write": "#009e73", "auto": "#222222", "policy": "#222222", "tcp": "#cc79a7",
    "socket-tuned": "#cc79a7", "redis": "#e69f00", "socket-original": "#e69f00", "memcpy": "#777777", "ucx": "#56b4e9",
    "arena": "#0072b2", "on_demand": "#d55e00", "cached": "#009e73",
}
DASHED = ("tcp", "redis", "memcpy", "socket-original", "socket-tuned", "ucx")
SPARE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
CAUSE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#999999")
MOST_LINEAR = 20  # bars that differ more are drawn on a logarithmic axis


def save(figure, folder, name):
    figure.savefig(os.path.join(folder, name + ".svg"), metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return name


def style(name, number):
    return {"color": COLOURS.get(name, SPARE[number % len(SPARE)]), "linestyle": "--" if name in DASHED else "-", "marker": "o",
            "markersize": 3.5}


def ticks(sizes, most):
    """Those of the sizes that are far enough from the one before for their names to stand beside each other."""
    chosen = []
    for size in sizes:
        if not chosen or size / chosen[-1] >= (sizes[-1] / sizes[0])**(1 / most):
            chosen.append(size)
    return chosen


def size_axis(axes, sizes, most):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks(sizes, most))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: words.size(value)))
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_xlabel("bytes of an object")


def log_axis(axis, form):
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: form(value)))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def draw_latency(axes, curves_by_name, what="median time", most_ticks=12):
    for number, (name, curve) in enumerate(curves_by_name.items()):
        drawn = axes.plot([point.size for point in curve], [point.median for point in curve], label=name, **style(name, number))
        axes.fill_between([point.size for point in curve], [point.p10 for point in curve], [point.p90 for point in curve],
                          color=drawn[0].get_color(), alpha=.08, linewidth=0)
    size_axis(axes, curves.sizes_of(curves_by_name), most_ticks)
    axes.set_yscale("log")
    log_axis(axes.yaxis, words.time)
    axes.set_ylabel(what)


def latency(folder, name, curves_by_name):
    figure, axes = plt.subplots()
    draw_latency(axes, curves_by_name)
    axes.legend(ncols=2)
    return save(figure, folder, name)


def bandwidth(folder, name, curves_by_name, objects=1):
    """`objects` of the size move at once."""
    figure, axes = plt.subplots()
    for number, (label, curve) in enumerate(curves_by_name.items()):
        axes.plot([point.size for point in curve], [objects * point.size / point.median for point in curve], label=label,
                  **style(label, number))
    size_axis(axes, curves.sizes_of(curves_by_name), most=12)
    axes.set_yscale("log")
    log_axis(axes.yaxis, words.rate)
    axes.set_ylabel("bandwidth at the median")
    axes.legend(ncols=2)
    return save(figure, folder, name)


def panels(folder, name, curves_by_panel, what="median time"):
    """A chart of latency for each panel, two in a row."""
    rows = -(-len(curves_by_panel) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(9, 3.4 * rows), squeeze=False)
    for axes, (title, curves_by_name) in zip(grid.flat, curves_by_panel.items()):
        draw_latency(axes, curves_by_name, what, most_ticks=6)
        axes.set_title(title)
    for axes in list(grid.flat)[len(curves_by_panel):]:
        axes.set_axis_off()
    grid.flat[0].legend()
    return save(figure, folder, name)


def causes(folder, name, mean_by_phase):
    """A bar for each protocol and size, of what part of the time each cause takes; the mean stands beside it."""
    keys = sorted(mean_by_phase, key=lambda key: (key[1], key[0]))
    figure, axes = plt.subplots(figsize=(9, 1.2 + .27 * len(keys)))
    places, row = [], 0.0
    for number, (_, size) in enumerate(keys):
        row += 0.5 if number > 0 and keys[number - 1][1] != size else 0
        places.append(row)
        row += 1
    left = [0.0] * len(keys)
    for cause, colour in zip(phases.CAUSES, CAUSE_COLOURS):
        parts = [100 * phases.shares(mean_by_phase[key])[cause] for key in keys]
        axes.barh(places, parts, left=left, height=.8, color=colour, label=cause)
        left = [a + b for a, b in zip(left, parts)]
    for place, key in zip(places, keys):
        axes.annotate(words.time(sum(mean_by_phase[key].values())), (101, place), va="center", fontsize=9, annotation_clip=False)
    axes.set_yticks(places, [f"{words.size(size)}  {contender}" for contender, size in keys])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("per cent of a pull's mean time, which stands to the right")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower center", bbox_to_anchor=(.45, 1), ncols=3)
    return save(figure, folder, name)


def processor(folder, name, seconds_by_group):
    """{group: {label: {setting: value}}}: bars of processor time, a panel for each group."""
    figure, grid = plt.subplots(1, len(seconds_by_group), figsize=(9, 4.4), squeeze=False)
    for axes, (title, by_label) in zip(grid.flat, seconds_by_group.items()):
        settings = list(dict.fromkeys(setting for values in by_label.values() for setting in values))
        width = .8 / len(by_label)
        for number, (label, values) in enumerate(by_label.items()):
            places = [i + (number - (len(by_label) - 1) / 2) * width for i in range(len(settings))]
            axes.bar(places, [values.get(setting, 0) for setting in settings], width * .92, label=label,
                     color=COLOURS.get(label, SPARE[number % len(SPARE)]))
        axes.set_xticks(range(len(settings)), settings, rotation=40, ha="right", fontsize=8)
        amounts = [value for values in by_label.values() for value in values.values() if value > 0]
        if amounts and max(amounts) > MOST_LINEAR * min(amounts):
            axes.set_yscale("log")
            log_axis(axes.yaxis, lambda value: f"{value:g}")
        axes.set_title(title)
        axes.grid(axis="x", visible=False)
    grid.flat[0].legend()
    return save(figure, folder, name)
