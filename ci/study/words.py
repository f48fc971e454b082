"""Sizes, times, rates and tables as a page writes them."""


def three_digits(value):
    """Of a number below 10,000, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def size(count):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{three_digits(count / factor)} {unit}"
    return f"{count:.0f} B"


def time(seconds):
    for unit, factor in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{three_digits(seconds / factor)} {unit}"
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
