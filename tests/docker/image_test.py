"""The image installs exactly the libraries that tokd and tok are linked to."""

import os
import re
import subprocess
import sys
import unittest

PROGRAMS = ("lib/daemon/tokd", "lib/cli/tok")
EVERY_DEBIAN_HAS = {"libc6", "libgcc-s1", "libstdc++6"}  # apt is linked to them
SANITIZERS = re.compile(r"lib(asan|tsan|ubsan|lsan)\d+")  # the compiler's; no image holds a sanitized program
without = set()


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked_libraries(program):
    """Those that the program itself names; what they need in turn, apt brings."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", program))
    paths = dict(re.findall(r"(\S+) => (\S+)", output("ldd", program)))
    return {os.path.realpath(paths[name]) for name in needed if not name.startswith("ld-linux")}


def packages_of(paths):
    """The Debian packages of these libraries. dpkg knows some by their path below /usr, some by that below /."""
    known_as = [name for path in paths for name in (path, re.sub("^/usr/", "/", path))]
    answer = subprocess.run(["dpkg-query", "--search", *known_as], capture_output=True, text=True).stdout
    packages = {path.removeprefix("/usr"): package for package, path in re.findall(r"^([^:]+):.* (\S+)$", answer, re.M)}
    return {packages[path.removeprefix("/usr")] for path in paths}


class ImageTest(unittest.TestCase):

    def test_installs_what_the_programs_are_linked_to_and_no_more(self):
        linked = packages_of(set.union(*(linked_libraries(program) for program in PROGRAMS)))
        self.assertIn("libc6", linked)
        linked = {package for package in linked - EVERY_DEBIAN_HAS if not SANITIZERS.fullmatch(package)}
        with open("docker/Dockerfile", encoding="utf-8") as file:
            installed = re.search(r'^ARG LIBRARIES="(.*)"$', file.read(), re.M).group(1).split()
        self.assertEqual(sorted(set(installed) - without), sorted(linked), "mend ARG LIBRARIES in docker/Dockerfile")


if __name__ == "__main__":
    without = {a.split("=", 1)[1] for a in sys.argv[1:] if a.startswith("--without=")}
    unittest.main(argv=[a for a in sys.argv if not a.startswith("--without=")])
