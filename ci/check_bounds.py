#!/usr/bin/env python3
"""docs/bounds.md says what is bounded by what: checks that the code says the same, and that no bound is missing there.

  check_bounds.py          in the root of the tree; prints each difference, and fails if there is one

A row of a table there begins with a constant's name (or OPTIONS::member), its value as the code writes it, and ends with the
file that it stands in. In the folders of ROOMS, below lib, every constant whose name begins with kMax must have a row.
"""

import os
import re
import sys

DOCUMENT = "docs/bounds.md"
ROOMS = ("base", "client", "daemon", "directory", "node", "os", "security", "store", "transport", "verbs/ibv")

ROW = re.compile(r"^\| `(?P<name>[\w:]+)` \| `(?P<value>[^`]+)` \|.*\| `(?P<file>[\w/.]+)` \|$", re.MULTILINE)
BOUND = re.compile(r"\bconstexpr\s+[\w:]+\s+(kMax\w+)\s*=")


def plain(text):
    return " ".join(text.split())


def rows(document):
    return [(m["name"], plain(m["value"]), m["file"]) for m in ROW.finditer(document)]


def value_in(source, name):
    """What `name` is set to in a source, as written there; None where it is not."""
    found = re.search(r"\b" + re.escape(name.split("::")[-1]) + r"\s*=\s*([^;]+);", source)
    return plain(found[1]) if found else None


def differences(document, sources):
    """What is wrong, in words. `sources`: text by file name."""
    wrong = []
    named = set()
    for name, value, file in rows(document):
        named.add((name, file))
        found = value_in(sources.get(file, ""), name)
        if found is None:
            wrong.append(f"{DOCUMENT}: there is no {name} in {file}")
        elif found != value:
            wrong.append(f"{DOCUMENT}: {name} is {found} in {file}, not {value}")
    for file, text in sorted(sources.items()):
        if not file.startswith(tuple(f"lib/{room}/" for room in ROOMS)):
            continue
        for name in BOUND.findall(text):
            if (name, file) not in named:
                wrong.append(f"{DOCUMENT}: {name} of {file} has no row")
    if not named:
        wrong.append(f"{DOCUMENT}: no row was understood")
    return wrong


def main():
    sources = {}
    for folder, _, names in os.walk("lib"):
        for name in names:
            if name.endswith((".h", ".cc")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    sources[path] = file.read()
    with open(DOCUMENT, encoding="utf-8") as file:
        wrong = differences(file.read(), sources)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
