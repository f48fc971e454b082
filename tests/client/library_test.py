"""libtokamak.so.0 as a program outside of this tree has it: its C interface on a real daemon, and the names that it shows."""

import os
import re
import subprocess
import tempfile
import unittest

from c_interface_test import Tokd

LIBRARY = os.path.abspath("lib/client/shared/libtokamak.so.0")
STRICT_C = ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def exports():
    """Names that the library shows, as people write them. Inline functions (W, V), which programs have themselves, are left out."""
    lines = output("nm", "--dynamic", "--defined-only", "--with-symbol-versions", "--demangle", LIBRARY).splitlines()
    return sorted({line.split(" ", 2)[2] for line in lines if line.split(" ", 2)[1] not in "AWV"})


class LibraryTest(unittest.TestCase):

    def test_it_shows_the_listed_names_and_no_others(self):
        with open("lib/client/shared/exports.txt", encoding="utf-8") as file:
            listed = file.read().splitlines()
        self.assertEqual(exports(), listed, "what docs/library.md allows goes into lib/client/shared/exports.txt")

    def test_names_of_others_are_not_shown(self):
        lines = output("nm", "--dynamic", "--defined-only", "--demangle", LIBRARY).splitlines()
        names = [line.split(" ", 2)[2] for line in lines]
        self.assertEqual([name for name in names if not re.match(r"tokamak(::|_)|TOKAMAK_0|vtable for tokamak|typeinfo .*for tokamak", name)], [])

    def test_it_shows_each_function_of_the_c_interface(self):
        with open("include/tokamak/tokamak.h", encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/|//.*?$", "", file.read(), flags=re.S | re.M)
        declared = set(re.findall(r"\b(tokamak_\w+)\(", text))
        shown = {name.split("@")[0] for name in exports() if name.startswith("tokamak_")}
        self.assertGreater(len(declared), 30)
        self.assertEqual(declared, shown)

    def test_its_name_says_which_interface_it_has(self):
        soname = re.findall(r"\(SONAME\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", LIBRARY))
        self.assertEqual(soname, ["libtokamak.so.0"])

    def test_its_c_interface_keeps_its_promises(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "c_interface")
            subprocess.run(STRICT_C + ["-I", "include", "tests/client/c_interface.c", "-o", program, LIBRARY], check=True, timeout=300)
            with Tokd() as tokd:
                said = subprocess.run([program, tokd.socket], capture_output=True, text=True, timeout=300, check=False,
                                      env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(LIBRARY)))
        self.assertRegex(said.stdout + said.stderr, r"^\d+ promises of tokamak.h hold\n$")
        self.assertEqual(said.returncode, 0)


if __name__ == "__main__":
    unittest.main()
