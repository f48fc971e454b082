"""Writes the manual pages and the completion of tok and tokd, from what their --help says, into a tar archive.

usage: help_pages.py TOK TOKD ARCHIVE

It has what goes below PREFIX/share: man/man1/tok.1 and a page for each command, man/man8/tokd.8,
bash-completion/completions/tok and tokd, zsh/vendor-completions/_tok and _tokd.
"""

import io
import sys
import tarfile

import completion
import help_text
import man_page


def pages(tok, tokd):
    """Text by path."""
    top = help_text.of(tok)
    helps = {"": top} | {one.names[0]: help_text.of(tok, one.names[0]) for one in top.entries("Subcommands")}
    daemon = help_text.of(tokd)
    version = help_text.version_of(tok)
    of_commands = [f"tok-{command}(1)" for command in helps if command]
    texts = {"man/man8/tokd.8": man_page.write("tokd", [], daemon, "8", version, ["tok(1)"])}
    for command, help_ in helps.items():
        words, others = ([command], ["tok(1)"]) if command else ([], [*of_commands, "tokd(8)"])
        texts[f"man/man1/{'-'.join(['tok', *words])}.1"] = man_page.write("tok", words, help_, "1", version, others)
    for program, table in (("tok", helps), ("tokd", {"": daemon})):
        texts[f"bash-completion/completions/{program}"] = completion.bash(program, table)
        texts[f"zsh/vendor-completions/_{program}"] = completion.zsh(program, table)
    return texts


def main():
    tok, tokd, archive = sys.argv[1:]
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path, text in sorted(pages(tok, tokd).items()):
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            member.mode = 0o644
            tar.addfile(member, io.BytesIO(text.encode()))


if __name__ == "__main__":
    main()
