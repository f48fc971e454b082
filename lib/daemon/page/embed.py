"""Writes files.cc: the files that are named, as text in a program. embed.py FILE..."""

import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
MARK = "tokamak_page"  # of raw strings


def entry(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert ")" + MARK + '"' not in text, path
    name = os.path.basename(path)
    at = "/" if name == "index.html" else "/" + name
    return f'    {{"{at}", "{TYPES[os.path.splitext(name)[1]]}", R"{MARK}({text}){MARK}"}},\n'


def main():
    print('#include "lib/daemon/page/files.h"\n\nnamespace tokamak::daemon::page {\n\nstatic constexpr File kFiles[] = {')
    print("".join(entry(path) for path in sys.argv[1:]) + "};\n")
    print("""const File* Find(absl::string_view path) {
  for (const File& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace tokamak::daemon::page""")


if __name__ == "__main__":
    main()
