"""Checks the tests: applies each deliberate bug of tests/mutants in turn and sees whether a test fails.

  ci/mutants                  all of them
  ci/mutants NAME...          these: tests/mutants/NAME.patch
  ci/mutants --check          whether each still applies; runs nothing
  ci/mutants --seeds [NAME]   how many lives of clusters it takes to notice each (docs/testing.md, Lives of clusters)
  ci/mutants --in DIR         works in DIR and leaves it there, so that the next run starts faster

A patch begins with two lines, `Breaks: <the promise>` and `Tests: <targets>`; the targets run in that order until one fails.
First all of them must pass without any bug. Works in a private copy of the files that git tracks, as they are in the working
tree, with an output base of its own; both are removed. Bazel's startup options are taken from BAZEL_STARTUP_OPTIONS.

With --seeds, of the mutants that name //tests/sim:world_test: lives from 1, from 201 and so on, each until one notices; the
median of these counts is printed. The seeds of ci/test must be enough.

The last line is `N mutants, M caught`. A mutant that survives fails the run: a test is missing. So does a patch that does not
apply or does not build any more.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import count_tests

PATCHES = pathlib.Path("tests/mutants")
SECONDS_PER_TARGET = 240  # a mutant may well hang
CAUGHT, SURVIVED = "caught", "SURVIVED"
WORLDS = "//tests/sim:world_test"
LIVES_OF_TEST = 40  # in ci/test
LIVES, RANGES = 200, 5  # at most, from each of these first seeds
SECONDS_PER_RANGE = 600


class Mutant:
    def __init__(self, path, text):
        self.name = path.stem
        self.path = path.resolve()
        lines = text.splitlines()
        if len(lines) < 2 or not re.fullmatch(r"Breaks: \S.*", lines[0]) or not re.fullmatch(r"Tests:( //\S+:\S+)+", lines[1]):
            raise ValueError(f"{path} does not begin with `Breaks: PROMISE` and `Tests: //TARGET...`")
        self.breaks = lines[0].partition(" ")[2]
        self.targets = lines[1].split()[1:]
        self.files = re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
        if not self.files:
            raise ValueError(f"{path} changes no file")


def read_mutants(folder, names):
    paths = [folder / f"{name}.patch" for name in names] if names else sorted(folder.glob("*.patch"))
    return [Mutant(path, path.read_text(encoding="utf-8")) for path in paths]


def all_targets(mutants):
    """Each target once, in the order of first use."""
    return list(dict.fromkeys(target for mutant in mutants for target in mutant.targets))


def verdict(cases):
    """What one run of tests says of a mutant: (verdict, what showed it), or None to go on with the next target."""
    failed = [c for c in cases if c["status"] == count_tests.FAILED]
    if not failed:
        return None
    for case in failed:
        if case["reason"] == "did not build" or case["name"] == "bazel test":
            return "does not build", case["name"]
    case = failed[0]
    return CAUGHT, case["name"] if not case["name"].startswith("//") else f"{case['name']} ({case['reason']})"


def judge(mutant, apply, test):
    """Runs a mutant's targets until one notices. `apply(mutant)` says whether it could; `test(targets)` gives the cases."""
    if not apply(mutant):
        return "does not apply", ""
    for target in mutant.targets:
        result = verdict(test([target]))
        if result is not None:
            return result
    return SURVIVED, "write the test that is missing"


def copy_tree(to):
    """The files that git tracks, as they are; one that is equal already keeps its time, so that Bazel need not look at it."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    names = {name for name in listed if name and os.path.isfile(name)}
    if os.path.exists("user.bazelrc"):
        names.add("user.bazelrc")
    for path in [p for p in to.rglob("*") if p.is_file()]:
        if str(path.relative_to(to)) not in names:
            path.unlink()
    for name in names:
        copy_file(name, to / name)


def copy_file(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    data = pathlib.Path(source).read_bytes()
    if not target.exists() or target.read_bytes() != data:
        target.write_bytes(data)
        shutil.copymode(source, target)


# -C1: whoever edits near a patch does not invalidate it.
APPLY = ["git", "apply", "-C1", "--whitespace=nowarn"]


def those_that_do_not_apply(mutants):
    """To the files as they are."""
    check = [*APPLY, "--check"]
    return [mutant for mutant in mutants if subprocess.run([*check, str(mutant.path)], check=False, capture_output=True).returncode != 0]


class Workshop:
    """The private copy, and Bazel in it."""

    def __init__(self, folder):
        self.tree = folder / "tree"
        self.log = folder / "log"
        self.events = folder / "events"
        options = [o for o in shlex.split(os.environ.get("BAZEL_STARTUP_OPTIONS", "")) if "--output_base" not in o]
        self.bazel = ["bazel", *options, f"--output_base={folder / 'output'}"]
        self.tree.mkdir(parents=True, exist_ok=True)
        copy_tree(self.tree)

    def apply(self, mutant):
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.tree.parent)}
        return subprocess.run([*APPLY, str(mutant.path)], cwd=self.tree, env=environment, check=False).returncode == 0

    def restore(self, mutant):
        for name in mutant.files:
            copy_file(name, self.tree / name)

    def test(self, targets):
        self.events.write_text("")
        command = [
            *[*self.bazel, "test", "--keep_going", "--noshow_progress", "--test_output=errors"],
            *["--experimental_convenience_symlinks=ignore", f"--test_timeout={SECONDS_PER_TARGET}"],
            *[f"--build_event_json_file={self.events}", "--test_env=GTEST_FAIL_FAST=1", "--", *targets],
        ]
        with open(self.log, "w", encoding="utf-8") as log:
            code = subprocess.run(command, cwd=self.tree, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        with open(self.events, encoding="utf-8", errors="replace") as events:
            return count_tests.collect(events, code)

    def build_worlds(self):
        """The optimised program, or None."""
        build = [*self.bazel, "build", "-c", "opt", "--noshow_progress", "--experimental_convenience_symlinks=ignore", WORLDS]
        with open(self.log, "w", encoding="utf-8") as log:
            if subprocess.run(build, cwd=self.tree, stdout=log, stderr=subprocess.STDOUT, check=False).returncode != 0:
                return None
        info = subprocess.run([*self.bazel, "info", "-c", "opt", "bazel-bin"], cwd=self.tree, check=True, capture_output=True)
        return pathlib.Path(info.stdout.decode().strip()) / "tests/sim/world_test"

    def close(self):
        subprocess.run([*self.bazel, "shutdown"], cwd=self.tree, check=False)

    def remove(self):
        # Bazel knows how to remove what it wrote; it makes some folders read-only.
        subprocess.run(
            [*self.bazel, "clean", "--expunge"], cwd=self.tree, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def run(mutants, workshop):
    began = time.monotonic()
    failed = [c for c in workshop.test(all_targets(mutants)) if c["status"] == count_tests.FAILED]
    if failed:
        for case in failed:
            print(f"ci/mutants: {case['name']} fails without any mutant: {case['reason']}", file=sys.stderr)
        print(workshop.log.read_text(encoding="utf-8", errors="replace")[-3000:], file=sys.stderr)
        return False
    print(f"{time.monotonic() - began:6.0f} s  all tests pass without a mutant", flush=True)
    width = max(len(mutant.name) for mutant in mutants)
    caught = 0
    for mutant in mutants:
        began = time.monotonic()
        try:
            result, what = judge(mutant, workshop.apply, workshop.test)
        finally:
            workshop.restore(mutant)
        caught += result == CAUGHT
        print(f"{time.monotonic() - began:6.0f} s  {mutant.name:{width}}  {result}: {what}", flush=True)
        if result != CAUGHT:
            print(f"          {mutant.breaks}", flush=True)
            if result == "does not build":
                print(workshop.log.read_text(encoding="utf-8", errors="replace")[-3000:], file=sys.stderr)
    print(f"{len(mutants)} mutants, {caught} caught")
    return caught == len(mutants)


def lives_until_noticed(program, first):
    """How many lives from seed `first` it took, or None."""
    environment = {**os.environ, "TOKAMAK_SEEDS": f"{first}-{first + LIVES - 1}", "GTEST_FAIL_FAST": "1"}
    command = ["timeout", str(SECONDS_PER_RANGE), str(program), "--gtest_filter=Seeds/*", "--gtest_brief=0"]
    life = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return count_lives(life.stdout.decode(errors="replace"), life.returncode)


def count_lives(output, code):
    return None if code == 0 else 1 + len(re.findall(r"^\[ +OK \] Seeds/.* ms\)$", output, re.MULTILINE))


def run_seeds(mutants, workshop):
    width = max(len(mutant.name) for mutant in mutants)
    caught = 0
    for mutant in mutants:
        applied = workshop.apply(mutant)
        program = workshop.build_worlds() if applied else None
        counts = [lives_until_noticed(program, 1 + LIVES * i) for i in range(RANGES)] if program else []
        workshop.restore(mutant)
        if program is None:
            print(f"{mutant.name:{width}}  does not {'build' if applied else 'apply'}", flush=True)
            continue
        caught += counts[0] is not None and counts[0] <= LIVES_OF_TEST
        median = statistics.median(LIVES + 1 if count is None else count for count in counts)
        words = " ".join(f"{count or 'none'}" for count in counts)
        print(f"{mutant.name:{width}}  noticed by life {words}; median {median:.0f}", flush=True)
    print(f"{len(mutants)} mutants, {caught} caught by the first {LIVES_OF_TEST} lives")
    return caught == len(mutants)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--in", dest="folder", type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    try:
        mutants = read_mutants(PATCHES, args.names)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if args.seeds:
        mutants = [mutant for mutant in mutants if WORLDS in mutant.targets]
    if not mutants:
        parser.error(f"no patch in {PATCHES}" + (f" that names {WORLDS}" if args.seeds else ""))
    if args.check:
        rotten = those_that_do_not_apply(mutants)
        for mutant in rotten:
            print(f"ci/mutants: {PATCHES / mutant.name}.patch does not apply any more: write it anew", file=sys.stderr)
        sys.exit(1 if rotten else 0)
    subprocess.run(["ci/setup"], check=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    folder = args.folder.resolve() if args.folder else pathlib.Path(tempfile.mkdtemp(prefix="tokamak-mutants."))
    workshop = None
    try:
        workshop = Workshop(folder)
        good = run_seeds(mutants, workshop) if args.seeds else run(mutants, workshop)
    finally:
        if args.folder:
            workshop and workshop.close()
        else:
            workshop and workshop.remove()
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
