"""The program of every softroce_test (softroce.bzl): runs another test's program in the lab and hands on its cases and its status.

  run_in_guest.py [option of ci/softroce]... -- PROGRAM [ARGUMENT]...
"""

import fnmatch
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

from lab import machine, program

SECONDS_TO_TELL = 15  # before Bazel's time-out, for the consoles of guests that hang
# What Bazel and its caller tell a test.
HANDED_ON = re.compile(r"(TEST_|TESTBRIDGE_|RUNFILES_|GTEST_|TOKAMAK_).*|.*SAN_OPTIONS")
# Each guest's program writes a test.xml of its own.
PROGRAM = 'XML_OUTPUT_FILE="$TOKAMAK_LAB_OUT/$TOKAMAK_LAB_RANK.xml" exec "$@"'


def skipped(reason):
    """A test.xml of one case, skipped."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="Softroce")
    case = ElementTree.SubElement(suite, "testcase", classname="Softroce", name=os.environ.get("TEST_TARGET", "test"))
    ElementTree.SubElement(case, "skipped", message=reason)
    return suites


def merged(files):
    """One test.xml of the guests' files; with several, a case's name ends with @ and the guest's rank."""
    suites = ElementTree.Element("testsuites")
    for file in files:
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            if len(files) > 1:
                for case in suite.iter("testcase"):
                    case.set("name", f"{case.get('name')}@{file.stem}")
            suites.append(suite)
    return suites


def without_a_case(arguments, suites):
    """The patterns of a program's --gtest_filter that no case ran for: it passes then, and tests nothing."""
    names = [f"{case.get('classname')}.{case.get('name').partition('@')[0]}" for case in suites.iter("testcase")]
    filters = [argument.partition("=")[2] for argument in arguments if argument.startswith("--gtest_filter=")]
    wanted = (filters[-1].partition("-")[0].strip(":") if filters else "") or "*"
    return [pattern for pattern in wanted.split(":") if not any(fnmatch.fnmatchcase(name, pattern) for name in names)]


def write_xml(suites):
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        ElementTree.ElementTree(suites).write(path, encoding="unicode")


def main(arguments):
    if shutil.which(machine.QEMU) is None:
        reason = f"{machine.QEMU} is missing, so nothing was tested on real verbs: run ci/setup"
        print(f"SKIPPED: {reason}")
        write_xml(skipped(reason))
        return 0
    split = arguments.index("--")
    out = pathlib.Path(os.environ["TEST_TMPDIR"], "guests")
    options = [*arguments[:split], f"--out={out}", f"--timeout={int(os.environ['TEST_TIMEOUT']) - SECONDS_TO_TELL}"]
    options += [f"--env={name}" for name in sorted(os.environ) if HANDED_ON.fullmatch(name)]
    code = program.main([*options, "--", "sh", "-c", PROGRAM, "sh", *arguments[split + 1:]])
    files = sorted(out.glob("?.xml"))
    if files:
        suites = merged(files)
        write_xml(suites)
        missed = without_a_case(arguments[split + 1:], suites)
        if code == 0 and missed and "TESTBRIDGE_TEST_ONLY" not in os.environ:  # bazel test --test_filter
            print(f"FAILED: no test case ran for {', '.join(missed)}")
            return 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
