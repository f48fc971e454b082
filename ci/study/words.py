"""Sizes, times, rates and tables as a page writes them."""


def size(count):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def time(seconds):
    for unit, factor in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}" if seconds < 1000 * factor else f"{seconds / factor:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def rate(bytes_per_second):
    return f"{size(bytes_per_second)}/s"


def percent(part):
    return f"{100 * part:.1f} %" if part < 0.1 else f"{100 * part:.0f} %"


def listing(words):
    """a, b and c"""
    words = list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def table(header, rows):
    """Markdown; the first column to the left, numbers to the right."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
