"""A manual page in roff, from what --help says."""

import re

ENDINGS = {"1": "User Commands", "8": "System Administration"}


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def of_entry(one):
    """A paragraph for a flag, an argument or a command."""
    value = f" \\fI{escape(one.value)}\\fR" if one.value and one.is_flag else ""
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in one.names)
    about = one.about
    if one.choices:
        about += f"; one of {', '.join(one.choices)}"
    if one.default:
        about += f" ({one.default} unless given)"
    return [".TP", names + value, escape(about.strip("; "))]


def write(program, command, help_, section, version, others):
    """`others` are the pages to see besides, as "tok(1)"."""
    name = "-".join([program, *command])
    words = " ".join([program, *command])
    page = [f'.TH {name.upper()} {section} "" "tokamak {version}" "{ENDINGS[section]}"', ".SH NAME",
            f"{escape(name)} \\- {escape(help_.about.rstrip('.'))}", ".SH SYNOPSIS",
            f".B {escape(words)}", escape(help_.usage[len(words):].strip())]
    for title, heading in (("Subcommands", "COMMANDS"), ("Positionals", "ARGUMENTS"), ("Options", "OPTIONS")):
        if help_.entries(title):
            page.append(f".SH {heading}")
        for one in help_.entries(title):
            page += of_entry(one)
    if help_.example:
        page += [".SH EXAMPLE", ".nf", *map(escape, help_.example), ".fi"]
    if help_.remarks:
        page += [".SH NOTES", *sum(([escape(line), ".br"] for line in help_.remarks), [])[:-1]]
    if others:
        page += [".SH SEE ALSO", ",\n".join(re.sub(r"^(.*)\((.)\)$", r".BR \1 (\2)", other).replace("-", "\\-")
                                            for other in others)]
    return "\n".join(page) + "\n"
