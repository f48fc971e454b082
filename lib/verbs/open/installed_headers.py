"""Packs headers for users outside of this tree: those named, with all that they include of ours, and no others.

  installed_headers.py OUTPUT.tar NAMED... -- HEADER...

NAMED is as one includes it, such as lib/verbs/verbs.h. HEADER... are the files that there are, of a library and of what it depends
on; include/ is left away, as one does. The same headers make the same archive.
"""

import re
import sys
import tarfile

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def closure(named, files):
    """The headers `named`, with all that they include, to their text. `files`: name as one includes it -> path."""
    texts = {}
    waiting = list(named)
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        if name not in files:
            raise SystemExit(f"installed_headers.py: the library has no {name}")
        with open(files[name], encoding="utf-8") as file:
            texts[name] = file.read()
        waiting += [header for header in INCLUDE.findall(texts[name]) if header in files or header.startswith(("lib/", "tokamak/"))]
    return texts


def main():
    output, *arguments = sys.argv[1:]
    split = arguments.index("--")
    files = {path[len("include/"):] if path.startswith("include/") else path: path for path in arguments[split + 1:]}
    names = sorted(closure(arguments[:split], files))
    with tarfile.open(output, "w") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            with open(files[name], "rb") as file:
                entry.size = len(file.read())
                file.seek(0)
                archive.addfile(entry, file)


if __name__ == "__main__":
    main()
