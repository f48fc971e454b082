"""Completion for bash and zsh, from what --help says.

Flags, commands and choices are written out; names of objects are asked of the daemon, files of the shell.
"""

import re

def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def flags_of(help_):
    return [one for one in help_.entries("Options") if one.is_flag]


def takes_objects(help_):
    return any(is_object(one) for one in help_.entries("Positionals"))


def is_object(one):
    """tok calls an argument that names an object so, in every command."""
    return one.names == ["name"]


def patterns(entries):
    return "|".join(name for one in entries for name in one.names)


# ---- bash


def bash_values(helps):
    """The branches that complete what follows a flag."""
    branches = []
    for command, help_ in helps.items():
        for one in flags_of(help_):
            if not one.value:
                continue
            for name in one.names:
                words = " ".join(choice.replace(" ", "\\ ") for choice in one.choices)
                action = f"words={quoted(words)}" if words else "files=-f" if one.value == "FILE" else \
                    "files=-d" if one.value == "DIR" else "return"
                branches.append(f"    {command or '*'}:{name}) {action} ;;")
    # A command's own before those of every command.
    return sorted(branches, key=lambda branch: branch.strip().startswith("*"))


def bash(program, helps):
    """`helps` by command; "" is the program itself."""
    top = helps[""]
    with_value = patterns(one for one in flags_of(top) if one.value)
    every = " ".join(name for one in flags_of(top) for name in one.names)
    lines = [f"# bash completion for {program}, made of its --help", f"_{program}() {{",
             "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= at=1 words= files=",
             "  COMPREPLY=()",
             "  while ((at < COMP_CWORD)) && [ -z \"$command\" ]; do",
             "    case ${COMP_WORDS[at]} in",
             f"    {with_value or '--'}) ((at += 2)) ;;",
             "    -*) ((at += 1)) ;;",
             "    *) command=${COMP_WORDS[at]} ;;",
             "    esac",
             "  done",
             "  case $command:$previous in", *bash_values(helps),
             "  *) case $command:$current in"]
    for command, help_ in helps.items():
        own = " ".join(name for one in flags_of(help_) for name in one.names)
        both = " ".join(dict.fromkeys(f"{own} {every}".split()))
        lines.append(f"    {command}:-*) words={quoted(both)} ;;")
        if takes_objects(help_):
            lines.append(f'    {command}:*) words=$("${{COMP_WORDS[@]:0:at}}" ls --quiet --prefix "$current" --limit 200 '
                         "2>/dev/null) ;;")
        elif command == "help":
            lines.append(f"    {command}:*) words={quoted(' '.join(filter(None, helps)))} ;;")
        elif any(one.value == "FILE" for one in help_.entries("Positionals")):
            lines.append(f"    {command}:*) files=-f ;;")
    if len(helps) > 1:
        lines.append(f"    :*) words={quoted(' '.join(filter(None, helps)))} ;;")
    lines += ["    esac ;;", "  esac",
              '  [ -z "$files" ] || compopt -o filenames 2>/dev/null',
              "  local IFS=$' \\t\\n'",
              '  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current"))',
              "  IFS=$'\\n'",
              '  [ -z "$files" ] || COMPREPLY=($(compgen "$files" -- "$current"))', "}",
              f"complete -F _{program} {program}"]
    return "\n".join(lines) + "\n"


# ---- zsh


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_action(one):
    if one.choices:
        return "(" + " ".join(choice.replace(" ", "\\ ") for choice in one.choices) + ")"
    return {"FILE": "_files", "DIR": "_files -/"}.get(one.value, " ")


def zsh_specs(help_, command):
    specs = []
    for one in flags_of(help_):
        for name in one.names:
            value = f":{zsh_text(one.value.lower())}:{zsh_action(one)}" if one.value else ""
            specs.append(quoted(f"*{name}[{zsh_text(one.about)}]{value}"))
    for one in help_.entries("Positionals"):
        action = f"_{command[0]}_objects" if is_object(one) else \
            f"_{command[0]}_commands" if command[1:] == ["help"] else zsh_action(one)
        specs.append(quoted(f"{'*' if one.repeats else ''}:{zsh_text(one.names[0])}:{action}"))
    return specs


def zsh(program, helps):
    top = helps[""]
    lines = [f"#compdef {program}", f"# zsh completion for {program}, made of its --help"]
    if len(helps) > 1:
        lines += [f"_{program}_commands() {{", "  local -a commands=("]
        lines += [f"    {quoted(zsh_text(command) + ':' + zsh_text(help_.about))}" for command, help_ in helps.items()
                  if command]
        lines += ["  )", "  _describe command commands", "}",
                  f"_{program}_objects() {{",
                  "  local -a names=(${(f)\"$($called ls --quiet --prefix \"$PREFIX\" --limit 200 2>/dev/null)\"})",
                  "  compadd -a names", "}"]
    every = " ".join(zsh_specs(top, [program]))
    lines += [f"_{program}() {{", "  local context state line", "  typeset -A opt_args"]
    if len(helps) > 1:
        lines += ["  local -a called=($words[1])", f"  _arguments -C {every} \\",
                  f"    '1:command:_{program}_commands' '*::argument:->command' && return", "  case $line[1] in"]
        for command, help_ in helps.items():
            if command:
                lines.append(f"  {command}) _arguments {' '.join(zsh_specs(help_, [program, command]))} ;;")
        lines.append("  esac")
    else:
        lines.append(f"  _arguments {every}")
    lines += ["}", f'_{program} "$@"']
    return "\n".join(lines) + "\n"
