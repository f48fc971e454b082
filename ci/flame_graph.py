"""Draws a flame graph: which functions were on the processor, and who called them.

Each box is a function, as wide as its share of the samples; below it is its caller. Hovering over a box tells its share.
Brendan Gregg, "The Flame Graph", CACM 59(6), 2016.
"""

import html
import zlib

WIDTH = 1200  # pixels
ROW = 17
MARGIN = 24
NARROWEST = 0.4  # pixels: what is less is not drawn
LETTER = 6.6


def parse(lines):
    """{(outermost, ..., innermost): samples} of lines 'a;b;c 12'."""
    stacks = {}
    for line in lines:
        names, _, count = line.rpartition(" ")
        if names and count.isdigit():
            stack = tuple(names.split(";"))
            stacks[stack] = stacks.get(stack, 0) + int(count)
    return stacks


def boxes(stacks):
    """[(depth, first sample, samples, function)]: stacks side by side by name, neighbours that are alike made one."""
    found = []

    def place(items, depth, start):
        position = start
        for name in sorted({stack[depth] for stack, _ in items if len(stack) > depth}):
            inside = [(stack, count) for stack, count in items if len(stack) > depth and stack[depth] == name]
            width = sum(count for _, count in inside)
            found.append((depth, position, width, name))
            place(inside, depth + 1, position)
            position += width

    place(list(stacks.items()), 0, 0)
    return found


def colour(name):
    shade = zlib.crc32(name.encode()) % 60
    return f"rgb({205 + shade % 50},{110 + shade},{50 + shade // 3})"


def draw(stacks, title):
    """The SVG."""
    total = sum(stacks.values())
    rows = max((len(stack) for stack in stacks), default=0)
    height = 2 * MARGIN + rows * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="monospace" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="16" text-anchor="middle" font-size="14">{html.escape(title)}: {total} samples</text>',
    ]
    for depth, start, width, name in boxes(stacks):
        left, wide = WIDTH * start / total, WIDTH * width / total
        if wide < NARROWEST:
            continue
        top = height - MARGIN - (depth + 1) * ROW
        letters = int((wide - 4) / LETTER)
        shown = name if len(name) <= letters else name[:letters - 2] + ".." if letters > 4 else ""
        lines.append(
            f'<g><title>{html.escape(name)}: {width} samples, {100 * width / total:.1f} %</title>'
            f'<rect x="{left:.1f}" y="{top}" width="{max(wide - 0.3, 0.2):.1f}" height="{ROW - 1}" fill="{colour(name)}"/>'
            f'<text x="{left + 2:.1f}" y="{top + 12}">{html.escape(shown)}</text></g>')
    lines.append("</svg>")
    return "\n".join(lines) + "\n"
