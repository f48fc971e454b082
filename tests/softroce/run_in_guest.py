"""The program of every softroce_test (softroce.bzl): runs other tests' programs in the lab and hands on their cases and their status.

  run_in_guest.py [option of ci/softroce]... -- PROGRAM [ARGUMENT]... [-- PROGRAM [ARGUMENT]...]...

Several programs run one after the other, whatever becomes of those before them.
"""

import fnmatch
import os
import pathlib
import re
import shlex
import shutil
import sys
import xml.etree.ElementTree as ElementTree

from lab import machine, program

SECONDS_TO_TELL = 15  # before Bazel's time-out, for the consoles of guests that hang
# What Bazel and its caller tell a test.
HANDED_ON = re.compile(r"(TEST_|TESTBRIDGE_|RUNFILES_|GTEST_|TOKAMAK_).*|.*SAN_OPTIONS")
SECONDS_OF_A_PROGRAM = 300  # where another follows; the last one has what is left of Bazel's time-out
TIMED_OUT = "124"  # timeout(1)
# In each guest a program writes a test.xml of its own, and what it ended with is put beside that.
RUN = """
failed=0
run() {
  out="$TOKAMAK_LAB_OUT/$TOKAMAK_LAB_RANK.$1"
  shift
  XML_OUTPUT_FILE="$out.xml" "$@"
  status=$?
  echo "$status" >"$out.status"
  [ "$failed" != 0 ] || failed=$status
}
"""


def split(arguments):
    """The lab's options, and the programs with their arguments."""
    parts = [[]]
    for argument in arguments:
        if argument == "--":
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts[0], parts[1:]


def script(programs):
    """What each guest's shell does."""
    lines = [RUN]
    for number, program in enumerate(programs):
        if number + 1 < len(programs):
            program = ["timeout", "-k", "5", str(SECONDS_OF_A_PROGRAM), *program]
        if len(programs) > 1:
            lines.append(f"echo {shlex.quote(f'--- {shlex.join(program)}')} >&2\n")
        lines.append(f"run {number} {shlex.join(program)}\n")
    return "".join([*lines, 'exit "$failed"\n'])


def skipped(reason):
    """A test.xml of one case, skipped."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="Softroce")
    case = ElementTree.SubElement(suite, "testcase", classname="Softroce", name=os.environ.get("TEST_TARGET", "test"))
    ElementTree.SubElement(case, "skipped", message=reason)
    return suites


def failure(name, message):
    """A test.xml's case that failed outside of GoogleTest."""
    case = ElementTree.Element("testcase", classname="Softroce", name=name)
    ElementTree.SubElement(case, "failure", message=message)
    return case


def of_program(out, rank, number, name, well):
    """The suites of a program in one guest; of one that GoogleTest did not run, a suite with a case of its own."""
    file, ended = out / f"{rank}.{number}.xml", out / f"{rank}.{number}.status"
    suites = list(ElementTree.parse(file).getroot().iter("testsuite")) if file.exists() else []
    status = ended.read_text().strip() if ended.exists() else None
    own = ElementTree.Element("testsuite", name="Softroce")
    if status == "0":
        if not suites:
            ElementTree.SubElement(own, "testcase", classname="Softroce", name=name)
    elif status is None:
        if not well:  # else another guest killed this one, as it should
            own.append(failure(name, "did not end"))
    elif not any(True for suite in suites for _ in suite.iter("failure")):
        own.append(failure(name, "ran out of time" if status == TIMED_OUT else f"ended with status {status}"))
    return suites + ([own] if len(own) else [])


def by_program(out, programs, well):
    """A test.xml of each program in all guests; with several guests, a case's name ends with @ and the guest's rank. `well`: the lab
    has nothing to complain of."""
    ranks = sorted({file.name[0] for file in out.glob("?.*.*")})
    made = []
    for number, program in enumerate(programs):
        suites = ElementTree.Element("testsuites")
        for rank in ranks:
            for suite in of_program(out, rank, number, pathlib.PurePath(program[0]).name, well):
                if len(ranks) > 1:
                    for case in suite.iter("testcase"):
                        case.set("name", f"{case.get('name')}@{rank}")
                suites.append(suite)
        made.append(suites)
    return made


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
        reason = f"{machine.QEMU} is missing, so nothing was tested on real verbs: run ci/setup --for lab"
        print(f"SKIPPED: {reason}")
        write_xml(skipped(reason))
        return 0
    options, programs = split(arguments)
    out = pathlib.Path(os.environ["TEST_TMPDIR"], "guests")
    options += [f"--out={out}", f"--timeout={int(os.environ['TEST_TIMEOUT']) - SECONDS_TO_TELL}"]
    options += [f"--env={name}" for name in sorted(os.environ) if HANDED_ON.fullmatch(name)]
    code = program.main([*options, "--", "sh", "-c", script(programs)])
    ran = by_program(out, programs, code == 0)
    suites = ElementTree.Element("testsuites")
    for some in ran:
        suites.extend(some)
    write_xml(suites)
    if code != 0 or "TESTBRIDGE_TEST_ONLY" in os.environ:  # bazel test --test_filter
        return code
    for one, some in zip(programs, ran):
        missed = without_a_case(one, some)
        if missed:
            print(f"FAILED: no test case of {one[0]} ran for {', '.join(missed)}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
