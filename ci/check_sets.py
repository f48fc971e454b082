#!/usr/bin/env python3
"""Each test is run by somebody: by ci/test, or, tagged `system`, by exactly one part of ci/system.

  check_sets.py            asks Bazel for the tests of the tree; prints what is wrong, and fails if anything is

A test that is `manual` and not `system` is a program that another test runs, say in a guest.
"""

import os
import shlex
import subprocess
import sys

import system


def judge(tests, tagged, manual, run_by_others, parts):
    """What is wrong, in words. All are sets of labels: all tests, those tagged system, those tagged manual, those that a test of either
    set runs. `parts`: ci/system's."""
    wrong = []
    of_parts = {}
    for part in parts:
        for label in part.targets:
            of_parts.setdefault(label, []).append(part.name)
    for label in sorted(tagged - set(of_parts)):
        wrong.append(f"{label} is tagged system, and no part of ci/system has it: add it to one in ci/system.py")
    for label, names in sorted(of_parts.items()):
        if len(names) > 1:
            wrong.append(f"{label} is in several parts of ci/system: {', '.join(names)}")
        if label not in tests:
            wrong.append(f"{label}, of ci/system's part {names[0]}, is no test")
        elif label not in tagged:
            wrong.append(f"{label}, of ci/system's part {names[0]}, is not tagged system, so ci/test runs it as well")
    for label in sorted(manual - tagged - run_by_others):
        wrong.append(f"{label} is tagged manual, and nobody runs it: tag it system, too, and add it to a part of ci/system")
    return wrong


def query(expression):
    command = ["bazel", *shlex.split(os.environ.get("BAZEL_STARTUP_OPTIONS", "")), "query", "--keep_going", "--noshow_progress",
               "--output=label", expression]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):  # 3: parts of Bazel's own repositories are not there
        sys.exit(f"bazel query failed: {done.stderr[-2000:]}")
    return set(done.stdout.split())


def main():
    tests = query("tests(//...)")
    tagged = query(r"attr(tags, '[\[ ]system[,\]]', tests(//...))")
    manual = query(r"attr(tags, '[\[ ]manual[,\]]', tests(//...))")
    run_by_others = query(r"let m = attr(tags, '[\[ ]manual[,\]]', tests(//...)) in let s = attr(tags, '[\[ ]system[,\]]', tests(//...)) in "
                          r"kind(rule, deps((tests(//...) except $m) union $s, 6)) intersect $m")
    wrong = judge(tests, tagged, manual, run_by_others - tagged, system.PARTS)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(tests)} tests: {len(tests - tagged - manual)} of ci/test, {len(tagged)} of ci/system, {len(manual - tagged)} run by others of these")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
