#!/usr/bin/env python3
"""What ci/test leaves out: guests with real verbs, packages in a bare Debian, containers, and tests that take minutes of real time.

Parts are run in order of what they tell for their time. Each installs what it needs (ci/setup), and ends with its cases counted;
the last line is `N passed, M failed, K skipped` over all. Targets are those tagged `system`: ci/check_sets.py compares.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import count_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST_MINUTES = 1  # for a part to be begun at all
SECONDS_TO_END = 60  # of a script that is out of time, until it is killed
UNAVAILABLE = 77  # the exit code of a script that this machine cannot run


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    about: str
    minutes: float  # as measured on 2 processors after ci/test, installing included
    setup: tuple  # parts of ci/setup
    targets: tuple = ()  # of bazel test
    builds: tuple = ()  # of bazel build
    in_units: bool = True  # several sources of a target are compiled as one (build/cc.bzl)
    commands: tuple = ()  # scripts, after them; $EVENTS is the events of the targets


# In order of value. The minutes are for choosing only.
PARTS = (
    Part("daemons", "real daemons, judged by the contract while nodes and directories are stopped and killed", 5, ("test",),
         ("//tests/daemon/truth:redis_failover_test", "//tests/daemon/truth:truth_test")),
    Part("conformance", "the conformance suite on Soft-RoCE and SoftiWARP", 6, ("test", "lab"),
         ("//tests/verbs:rxe_conformance_test", "//tests/verbs:rxe_fences_test", "//tests/verbs:siw_conformance_test"),
         commands=(("ci/conformance_table", "--check", "$EVENTS"),)),
    Part("packages", "Debian packages, installed, used and removed in a bare Debian", 9, ("system",),
         commands=(("ci/package_test", "--bazel"),)),
    Part("faults", "cut wires, loss, killed hosts between real devices", 8, ("test", "lab"),
         ("//tests/faults:rxe_faults_test", "//tests/faults:rxe_rails_test", "//tests/faults:rxe_two_hosts_test")),
    Part("guests", "daemons, rdma-core backend and tok doctor on real devices", 9, ("test", "lab"),
         ("//tests/softroce:rxe_doctor_test", "//tests/softroce:rxe_ping_on_three_hosts_test", "//tests/softroce:rxe_ping_test",
          "//tests/softroce:rxe_test", "//tests/softroce:siw_doctor_test", "//tests/softroce:siw_test", "//tests/sim/ns3:emulate_rxe_test",
          "//tests/interop:programs_with_rxe_test")),
    Part("watching", "Prometheus, systemd and a browser look on; benchmarks under MPI", 4, ("system",),
         ("//tests/bench/cluster:mpi_test", "//tests/daemon:operation_test")),
    Part("frameworks", "torch and pandas read and write objects in place", 2, ("system",), ("//tests/python:frameworks_test",)),
    Part("builds", "everything is built, also what no test needs: benchmarks and long runs", 5, ("system",), builds=("//...",)),
    Part("containers", "the image: three containers move objects, a holder is killed", 6, ("package", "docker"), commands=(("ci/docker",),)),
    Part("interop", "the software NIC beside Soft-RoCE, the demo on Soft-RoCE: what takes minutes in a guest", 20, ("test", "lab"),
         ("//tests/cli:rxe_demo_test", "//tests/interop:exchange_with_rxe_test", "//tests/interop:rping_with_rxe_test",
          "//tests/interop:tokd_with_rxe_test")),
    Part("files", "each source is compiled by itself: it includes what it uses", 30, ("system",), builds=("//...",), in_units=False),
    Part("debian", "ci/test in the other Debian, 13 beside 12 and 12 beside 13", 60, ("system",), commands=(("ci/other_debian",),)),
)


class Budget:
    """Minutes, and what parts are worth beginning. A machine that is slower than ours is noticed by what parts took before."""

    def __init__(self, minutes, clock=time.monotonic):
        self.clock = clock
        self.end = None if minutes is None else clock() + minutes * 60
        self.expected = self.taken = 0.0  # seconds of the parts that have ended

    def seconds_left(self):
        return None if self.end is None else self.end - self.clock()

    def pace(self):
        """How much longer than expected things take here; never less than 1, since a part may have been done before."""
        return max(1.0, self.taken / self.expected) if self.expected else 1.0

    def allows(self, part):
        left = self.seconds_left()
        if left is None:
            return True
        return left >= LEAST_MINUTES * 60 and part.minutes * 60 * self.pace() <= left

    def ended(self, part, seconds):
        self.expected += part.minutes * 60
        self.taken += seconds


def pick(names):
    """The parts of these names, in our order; ValueError names one that there is not."""
    known = {part.name: part for part in PARTS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no part '{name}': {', '.join(known)}")
    return [part for part in PARTS if not names or part.name in names]


def end_group(process):
    """Ends a script with all that it has started: as Ctrl-C does, and after a while for good."""
    for number, patience in ((signal.SIGINT, SECONDS_TO_END), (signal.SIGTERM, SECONDS_TO_END), (signal.SIGKILL, None)):
        os.killpg(process.pid, number)
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def call(command, seconds):
    """The exit code of a command, or None if it was out of time."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        end_group(process)
        return None
    except BaseException:
        end_group(process)
        raise


def finished_only(events):
    """Those lines of a build event file that belong to tests that came to their end, of a bazel test that was interrupted."""
    kept = []
    for line in events:
        if '"testResult"' in line and re.search(r'"status":"(PASSED|FAILED|FLAKY|TIMEOUT)"', line):
            kept.append(line)
    return kept


def labels_of(events):
    return {match[1] for line in events for match in [re.search(r'"testResult":\{"label":"([^"]+)"', line)] if match}


class Run:
    """Runs parts and collects cases; what was out of time is left out, and named."""

    def __init__(self, budget, events):
        self.budget, self.events = budget, events
        self.cases = []

    def run(self, part):
        began = time.monotonic()
        print(f"ci/system: {part.name}: {part.about}", file=sys.stderr, flush=True)
        self.part(part)
        seconds = time.monotonic() - began
        self.budget.ended(part, seconds)
        print(f"ci/system: {part.name} took {seconds:.0f} s", file=sys.stderr, flush=True)

    def part(self, part):
        setup = ["ci/setup"] + [word for name in part.setup for word in ("--for", name)]
        if not self.script(setup, f"{part.name}: ci/setup", only_failures=True):
            return
        if part.builds:
            as_built = ["--config=tested"] if part.in_units else []
            self.script(["ci/progress.py", "build", "--", *as_built, "--keep_going", *part.builds], f"{part.name}: bazel build")
        if part.targets and not self.bazel_test(part):
            return
        for command in part.commands:
            self.script([word.replace("$EVENTS", str(self.events)) for word in command], command[0])

    def left_out(self, name):
        self.cases.append(count_tests.case(count_tests.LEFT_OUT, name, "out of time"))

    def script(self, command, name, only_failures=False):
        """One case; returns whether to go on with the part."""
        code = call(command, self.budget.seconds_left())
        if code is None:
            self.left_out(name)
        elif code == UNAVAILABLE:
            self.cases.append(count_tests.case(count_tests.SKIPPED, name, "this machine cannot do it: see its messages above"))
        elif code != 0:
            self.cases.append(count_tests.case(count_tests.FAILED, name, "see its messages above"))
        elif not only_failures:
            self.cases.append(count_tests.case(count_tests.PASSED, name))
        return code == 0

    def bazel_test(self, part):
        """The cases of these targets; returns whether all of them came to their end."""
        left = self.budget.seconds_left()
        limit = [] if left is None else [f"--seconds={max(left, 1):.0f}"]
        command = ["ci/progress.py", "test", f"--events={self.events}", *limit, "--", "--config=tested", "--keep_going", "--", *part.targets]
        code = call(command, None if left is None else max(left, 1) + 3 * SECONDS_TO_END)
        with open(self.events, encoding="utf-8", errors="replace") as file:
            events = file.readlines()
        if code not in (None, 124):
            self.cases += count_tests.collect(events, code)
            return True
        events = finished_only(events)
        self.cases += count_tests.collect(events, 0)
        for label in sorted(set(part.targets) - labels_of(events)):
            self.left_out(label)
        return False


def parse(arguments):
    parser = argparse.ArgumentParser(prog="ci/system", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PART", help="only these; default: all")
    parser.add_argument("--list", action="store_true", help="name the parts, how long they take on 2 processors, and what they are")
    parser.add_argument("--minutes", type=float, metavar="N",
                        help="run what fits into N minutes, in the order of --list, and name at the end what was left out")
    parser.add_argument("--cases", metavar="FILE", help="append the test cases to FILE, for a count over several commands")
    options = parser.parse_args(arguments)
    try:
        options.parts = pick(options.names)
    except ValueError as error:
        parser.error(str(error))
    if options.minutes is not None and not options.minutes >= 0:
        parser.error("--minutes needs a number that is not below 0")
    return options


def main(arguments):
    options = parse(arguments)
    if options.list:
        for part in options.parts:
            print(f"{part.name:<12} {part.minutes:>3.0f} min  {part.about}")
        return 0
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    budget = Budget(options.minutes)
    with tempfile.TemporaryDirectory(prefix="tokamak-system.") as folder:
        run = Run(budget, pathlib.Path(folder, "events"))
        for part in options.parts:
            if budget.allows(part):
                run.run(part)
            else:
                left = budget.seconds_left() / 60
                run.cases.append(count_tests.case(count_tests.LEFT_OUT, f"ci/system {part.name}",
                                                  f"takes {part.minutes * budget.pace():.0f} minutes here, {max(left, 0):.0f} were left"))
    if options.cases:
        count_tests.append(options.cases, run.cases, "")
    patterns = count_tests.parse_allowed_skips(pathlib.Path("tests/allowed_skips.txt").read_text(encoding="utf-8"))
    lines, good = count_tests.report(run.cases, patterns)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
