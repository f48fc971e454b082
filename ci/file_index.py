#!/usr/bin/env python3
"""Writes docs/files.md: every folder of lib, sim and include with its files, each in the sentence with which it begins."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/files.md"
TOPS = ("include", "lib", "sim")
USAGE = """usage: ci/file_index.py [--check]
Writes docs/files.md from the first sentences of the headers (of a source where there is no header) and of the BUILD files below
include, lib and sim. --check changes nothing, and fails where the page is another."""

HEAD = """# Every file in a sentence

| you want | look at |
|---|---|
| the picture first | [architecture.md](architecture.md) |
| a word | [glossary.md](glossary.md) |
| where something is | below: each folder, each header with the sentence that it begins with |

`ci/file_index.py` makes this page from the sources; a test holds that it is up to date.
"""


def comment_at_the_top(lines):
    """The first paragraph of the comment that a file begins with, as one line."""
    said = []
    for line in lines:
        found = re.match(r"(?://|/\*| \*)(?!/)(.*)", line)
        text = found.group(1).strip() if found else ""
        if not text:
            break
        said.append(text)
    return " ".join(said)


def first_sentence(text):
    found = re.match(r"(.*?[^.A-Z]\.)(?=\s+[A-Z`]|$)", text)
    return found.group(1) if found else text


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def about_folder(folder):
    """The comment before `package(...)` in its BUILD, or none."""
    build = os.path.join(folder, "BUILD")
    if not os.path.exists(build):
        return ""
    said = []
    for line in lines_of(build):
        if line.startswith("# "):
            said.append(line[2:].strip())
        elif said:
            break
    return first_sentence(" ".join(said))


def rows_of(folder):
    """(name, sentence) of each header, and of sources without one."""
    names = sorted(os.listdir(folder))
    headers = {os.path.splitext(name)[0] for name in names if name.endswith(".h")}
    rows = []
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension == ".h" or (extension in (".cc", ".c") and stem not in headers):
            sentence = first_sentence(comment_at_the_top(lines_of(os.path.join(folder, name))))
            if sentence or extension == ".h":  # a source without may be that of a header in include/tokamak
                rows.append((name, sentence))
    return rows


def page(root):
    text = HEAD
    for top in TOPS:
        for folder, folders, _ in os.walk(os.path.join(root, top)):
            folders.sort()
            rows = rows_of(folder)
            if not rows:
                continue
            text += f"\n## {os.path.relpath(folder, root)}\n\n"
            about = about_folder(folder)
            if about:
                text += about + "\n\n"
            text += "| file | |\n|---|---|\n"
            text += "".join(f"| `{name}` | {sentence.replace('|', chr(92) + '|')} |\n" for name, sentence in rows)
    return text


def main():
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if sys.argv[1:] not in ([], ["--check"]):
        print(f"ci/file_index.py: unknown option {sys.argv[1]} (see ci/file_index.py --help)", file=sys.stderr)
        return 2
    path = os.path.join(ROOT, PAGE)
    text = page(ROOT)
    silent = re.findall(r"^\| `(\S+)` \|  \|$", text, re.M)
    if silent:
        print(f"ci/file_index.py: begin these with a sentence that says what they are: {' '.join(silent)}", file=sys.stderr)
        return 1
    if sys.argv[1:] == ["--check"]:
        if not os.path.exists(path) or "\n".join(lines_of(path)) + "\n" != text:
            print(f"ci/file_index.py: {PAGE} is not what the sources say; run ci/file_index.py", file=sys.stderr)
            return 1
        return 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
