"""What a program's --help says, as data: the one table that manual pages and completion are made of.

CLI11 writes it, and HelpFormat breaks its lines: an entry is indented by two spaces, and what it does stands from column 30 on, or on
the next lines.
"""

import dataclasses
import re
import subprocess

COLUMN = 30


@dataclasses.dataclass
class Entry:
    """A flag, an argument or a command."""
    names: list  # "-o", "--output"; or one word
    value: str  # "FILE"; "" where a flag takes none
    choices: list
    default: str
    required: bool
    repeats: bool
    about: str

    @property
    def is_flag(self):
        return self.names[0].startswith("-")


@dataclasses.dataclass
class Help:
    about: str
    usage: str
    sections: dict  # "Options" -> [Entry]
    footer: list  # lines

    def entries(self, section):
        return self.sections.get(section, [])

    @property
    def example(self):
        """The lines below "Example:"."""
        if "Example:" not in self.footer:
            return []
        lines = []
        for line in self.footer[self.footer.index("Example:") + 1:]:
            if not line.startswith("  "):
                break
            lines.append(line.strip())
        return lines

    @property
    def remarks(self):
        """What the footer says beside the example."""
        example = set(self.example)
        return [line for line in self.footer if line != "Example:" and line.strip() not in example]


def entry(left):
    """"--protocol TEXT:{auto,read}=auto ... REQUIRED Excludes: --x", as CLI11 writes it."""
    left = re.sub(r" (Needs|Excludes): .*$| \(Env:[^)]*\)", "", left)
    required = left.endswith(" REQUIRED")
    left = left[:-len(" REQUIRED")] if required else left
    repeats = left.endswith(" ...")
    left = left[:-len(" ...")] if repeats else left
    names, _, rest = left.partition(" ")
    default = re.search(r"=([^{}]*)$", rest)
    choices = re.search(r"\{([^}]*)\}", rest)
    value = re.match(r"[^:=]*", rest).group(0)
    return Entry(names.split(","), {"UINT": "NUMBER", "INT": "NUMBER"}.get(value, value),
                 choices.group(1).split(",") if choices else [], default.group(1) if default else "", required, repeats, "")


def parse(text):
    lines = text.rstrip("\n").split("\n")
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage:"))
    help_ = Help(" ".join(line for line in lines[:usage] if line), lines[usage][len("Usage:"):].strip(), {}, [])
    section, last = None, None
    for i, line in enumerate(lines[usage + 1:], usage + 1):
        title = re.fullmatch(r"([A-Z][A-Za-z ]*):", line)
        if title and lines[i - 1] == "" and not help_.footer and title.group(1) != "Example":
            # Flags may stand in groups, each with a title of its own.
            kind = title.group(1) if title.group(1) in ("Positionals", "Subcommands") else "Options"
            section, last = help_.sections.setdefault(kind, []), None
        elif section is None or line == "":
            continue
        elif help_.footer or not line.startswith("  "):
            help_.footer.append(line)
        elif line[2] != " ":
            # What it does begins on the next line where its names are too long, and goes on there where that is.
            is_long = line[COLUMN - 2:COLUMN] != "  " and lines[i + 1:i + 2] and lines[i + 1].startswith(" " * COLUMN)
            last = entry((line if is_long else line[:COLUMN]).strip())
            last.about = "" if is_long else line[COLUMN:].strip()
            section.append(last)
        elif last is not None:
            last.about = (last.about + " " + line.strip()).strip()
    return help_


def of(program, *command):
    """Of a program, or of one of its commands."""
    asked = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True, timeout=60)
    return parse(asked.stdout)


def version_of(program):
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True,
                          timeout=60).stdout.split()[1]
