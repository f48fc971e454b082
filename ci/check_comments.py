"""Holds the comments of our C++ to the plain English that docs/contributing.md asks for: what a grep can hold.

  check_comments.py FILE...        prints each comment that breaks a rule

- A line that is all comment has at most 100 columns.
- No sentence begins with What, Whoever, Those or Of: the subject comes first, a method's comment begins with its verb.
- Something "is reported" to a caller, not "told" or "said".
"""

import re
import sys

COLUMNS = 100
COMMENT = re.compile(r'^(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*?//(?!/)(.*)$')
OPENING = re.compile(r"(?:^|[.!?:] )(What|Whoever|Those|Of)\b(?! (?:is|are) [^.]*\?)")
TOLD = re.compile(r"\b(?:is|are|was|were|be|been) (told|said)\b")


def wrong_comments(path, text):
    """(line number, what is wrong with it) of each."""
    wrong = []
    paragraph, number_of_first = "", 0

    def judge():
        for found in OPENING.finditer(paragraph):
            wrong.append((number_of_first, f"a sentence begins with '{found.group(1)}'"))
        for found in TOLD.finditer(paragraph):
            wrong.append((number_of_first, f"'{found.group(0)}': say reported, or who does it"))

    for number, line in enumerate(text.splitlines(), 1):
        alone = line.lstrip().startswith("//")
        if alone and line.endswith("\\"):
            wrong.append((number, "a comment that ends with a backslash goes on in the next line of code"))
        if alone and len(line) > COLUMNS:
            wrong.append((number, f"{len(line)} columns, a comment has at most {COLUMNS}"))
        found = COMMENT.match(line)
        said = found.group(1).strip() if found else ""
        if alone and said and paragraph:
            paragraph += " " + said
            continue
        if paragraph:
            judge()
        paragraph, number_of_first = said, number
    if paragraph:
        judge()
    return wrong


def main():
    code = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for number, why in wrong_comments(path, text):
            print(f"{path}:{number}: {why}", file=sys.stderr)
            code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
