"""What iperf3 and ucx_perftest print, as numbers."""

import collections
import re
import statistics

from . import words

Row = collections.namedtuple("Row", "program what median least most form")


class Unreadable(ValueError):
    """What a program printed is not what is expected of it; the text shows it."""


def of_iperf3(answer):
    """Bytes a second that arrived, of its JSON."""
    try:
        return answer["end"]["sum_received"]["bits_per_second"] / 8
    except (KeyError, TypeError) as error:
        raise Unreadable(f"iperf3 says: {answer.get('error', 'nothing of what arrived') if isinstance(answer, dict) else answer}") from error


def of_ucx(output):
    """Seconds of the median and bytes a second overall, of the last row of its table, which -f leaves without a name."""
    rows = re.findall(r"^(?:Final:)?\s*(\d+(?:\s+\d[\d.]*){7})\s*$", output, re.M)
    numbers = [float(word) for word in rows[-1].split()] if rows else []
    if not numbers:
        raise Unreadable(f"ucx_perftest printed no last row: {output.strip()[-300:]}")
    return {"p50_seconds": numbers[1] * 1e-6, "bytes_per_second": numbers[5] * (1 << 20)}


def rows(runs):
    """A row for each thing that was measured, over all rounds."""
    values = collections.OrderedDict()
    for run in runs:
        for row in run["results"]:
            values.setdefault((row["program"], row["what"], row["unit"]), []).append(row["value"])
    for (program, what, unit), several in values.items():
        form = words.rate if unit == "bytes_per_second" else words.time
        yield Row(program, what, statistics.median(several), min(several), max(several), form)
