"""Manual pages and completion, as they are made of --help, before those who read them: groff and bash."""

import pathlib
import subprocess
import tarfile
import tempfile
import unittest

TOK = pathlib.Path("lib/cli/tok").resolve()

# Prints what bash offers for the words given; `tok ls` is answered by a function, for there is no daemon.
ASK = r"""
tok() { [ "$*" = "--node 2 ls --quiet --prefix re --limit 200" -o "$*" = "ls --quiet --prefix re --limit 200" ] && echo release; }
compopt() { :; }
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_"$1"; printf '%s\n' "${COMPREPLY[@]}"
"""


class HelpPagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.share = pathlib.Path(cls.folder.name)
        with tarfile.open("lib/cli/man_and_completion.tar") as tar:
            tar.extractall(cls.share)
        printed = subprocess.run([TOK, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
        below = printed.split("Subcommands:\n")[1].split("\n\n")[0]
        cls.commands = [line.split()[0] for line in below.splitlines() if line[2:3] != " "]

    def offers(self, *words):
        script = self.share / "bash-completion/completions" / words[0]
        asked = subprocess.run(["bash", "--norc", "-c", ASK, "bash", script, *words], check=True, capture_output=True,
                               text=True, timeout=60)
        self.assertEqual(asked.stderr, "")
        return asked.stdout.split()

    def test_every_command_has_a_page_that_groff_reads_without_a_warning(self):
        pages = sorted(self.share.glob("man/man?/*"))
        self.assertEqual({page.name for page in pages},
                         {f"tok-{command}.1" for command in self.commands} | {"tok.1", "tokd.8"})
        for page in pages:
            read = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbou", "-ww", page], check=True, capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(read.stderr, "", page.name)
            for heading in ("NAME", "SYNOPSIS", "OPTIONS"):
                self.assertIn(heading, read.stdout, page.name)

    def test_every_command_s_page_has_its_example(self):
        for command in self.commands:
            text = (self.share / f"man/man1/tok-{command}.1").read_text()
            self.assertIn(".SH EXAMPLE\n.nf\ntok ", text, command)

    def test_bash_offers_commands_flags_and_choices(self):
        self.assertEqual(sorted(self.offers("tok", "")), sorted(self.commands))
        self.assertEqual(self.offers("tok", "--json", "pre"), ["prefetch"])
        self.assertEqual(self.offers("tok", "get", "--pro"), ["--protocol"])
        self.assertEqual(self.offers("tok", "get", "--protocol", "r"), ["read"])
        self.assertEqual(self.offers("tok", "help", "ben"), ["bench"])
        self.assertIn("--config", self.offers("tokd", "--con"))

    def test_bash_offers_names_of_objects_to_each_command_that_takes_them(self):
        taking = {"get", "stat", "rm", "wait", "prefetch", "pin", "unpin", "push"}
        for command in self.commands:
            offered = self.offers("tok", command, "re")
            self.assertEqual("release" in offered, command in taking, command)
        self.assertEqual(self.offers("tok", "--node", "2", "get", "re"), ["release"])

    def test_bash_offers_files(self):
        name = self.share / "a-file"
        name.write_text("")
        self.assertEqual(self.offers("tok", "put", str(self.share / "a-f")), [str(name)])


if __name__ == "__main__":
    unittest.main()
