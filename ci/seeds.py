"""Runs the conformance suite over simulated networks that are drawn from seeds: 0 to 20 % loss, reordering, duplication.

  ci/seeds                              200 seeds, with the program that ci/test built
  ci/seeds --under asan_ubsan           the same under sanitizers, or opt
  ci/seeds --first 17 --seeds 1 --filter '*ReadTest.*'     what a failure says to repeat
  ci/seeds --of-commit                  a few seeds that the commit's hash chooses, as ci/test runs them

Each seed is one network that all tests meet. The last line counts; a failure is printed with its seed and the command that
repeats it. Bazel's startup options are taken from BAZEL_STARTUP_OPTIONS.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import count_tests

TARGET = "//tests/verbs/conformance:sim_test"
SEEDS = 200
SEEDS_OF_COMMIT = 8
SEEDS_PER_PROCESS = 4  # a process that crashes or hangs takes no more with it
SECONDS_PER_SEED = 900  # a bound for the slowest sanitizer on a busy machine, not an expectation
MOST_FAILURES_TOLD = 10


def chunks(first, seeds, size=SEEDS_PER_PROCESS):
    """[(first, count)] that cover `seeds` seeds from `first` on."""
    return [(at, min(size, first + seeds - at)) for at in range(first, first + seeds, size)]


def first_of_commit(commit):
    """A seed that differs with each commit, and is the same for all who run it: from its hash, 1 to a million."""
    return 1 + int(commit[:12], 16) % 1_000_000


def test_environment(bazelrc, config):
    """What .bazelrc gives the tests of a configuration, and of those that it is made of: the sanitizers' options."""
    options = " ".join(re.findall(rf"^build:{re.escape(config)} (.*)$", bazelrc, re.MULTILINE))
    environment = {}
    for part in re.findall(r"--config=(\S+)", options):
        environment.update(test_environment(bazelrc, part))
    environment.update(re.findall(r"--test_env=(\w+)=(\S+)", options))
    return environment


def seed_of(name):
    """The seed in the name of a case, Conformance/ReadTest.ARead/seed17; None for any other."""
    match = re.search(r"/seed(\d+)$", name)
    return int(match.group(1)) if match else None


def repeat_command(name, config):
    """How to run the one case again."""
    under = f" --under {config}" if config else ""
    return f"ci/seeds --first {seed_of(name)} --seeds 1{under} --filter {shlex.quote(name)}"


def last_started(output):
    """The case that was running when a program ended before its time."""
    started = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return started[-1] if started else None


def output_of(name, output):
    """What a program printed while one case ran, shortened."""
    match = re.search(rf"^\[ RUN      \] {re.escape(name)}\n(.*?)^\[  FAILED  \]", output, re.MULTILINE | re.DOTALL)
    text = match.group(1) if match else output[-3000:]
    return text if len(text) <= 3000 else text[:2000] + "\n  ...\n" + text[-1000:]


def judge(xml, output, exit_code, what):
    """The cases of one process, from its report where it wrote one."""
    if xml is not None:
        cases = count_tests.parse_test_xml(xml, what)
        if exit_code == 0 or any(c["status"] == count_tests.FAILED for c in cases):
            return cases
    ended = "was stopped: it took too long" if exit_code is None else f"ended with {exit_code}"
    return [count_tests.case(count_tests.FAILED, last_started(output) or what, f"the program {ended}")]


running = set()  # processes, for whoever ends this program before its time


def end_all(pool):
    pool.shutdown(wait=False, cancel_futures=True)
    for process in list(running):
        process.kill()


def run_chunk(binary, first, count, pattern, environment, folder):
    xml, log = folder / f"{first}.xml", folder / f"{first}.log"
    command = [binary, f"--gtest_output=xml:{xml}", f"--gtest_filter={pattern}"]
    environment = {**environment, "TOKAMAK_FIRST_SEED": str(first), "TOKAMAK_SEEDS": str(count)}
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
        running.add(process)
        try:
            code = process.wait(timeout=SECONDS_PER_SEED * count)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        running.discard(process)
    output = log.read_text(encoding="utf-8", errors="replace")
    text = xml.read_text(encoding="utf-8", errors="replace") if xml.exists() else None
    return judge(text, output, code, f"seeds {first} to {first + count - 1}"), output


def build(config):
    """Builds the suite and returns its program."""
    bazel = ["bazel", *shlex.split(os.environ.get("BAZEL_STARTUP_OPTIONS", ""))]
    options = [f"--config={config}"] if config else []
    subprocess.run([*bazel, "build", "--show_result=0", "--noshow_progress", *options, TARGET], check=True)
    place = subprocess.run([*bazel, "info", *options, "bazel-bin"], check=True, stdout=subprocess.PIPE, text=True)
    return place.stdout.strip() + TARGET.replace("//", "/").replace(":", "/")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--under", default="", metavar="CONFIG", help="a configuration of .bazelrc: asan_ubsan, tsan, opt")
    parser.add_argument("--filter", default="*", metavar="PATTERN", help="of GoogleTest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--of-commit", action="store_true", help="a few seeds that the commit's hash chooses")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    subprocess.run(["ci/setup"], check=True)
    config, first, seeds = args.under, args.first, args.seeds
    if args.of_commit:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        first, seeds = first_of_commit(commit), SEEDS_OF_COMMIT
        config = config or "tested"  # as ci/test has built it
    if seeds < 1 or first < 0:
        parser.error("at least one seed is needed, and none below 0")

    binary = build(config)
    environment = {**os.environ, **test_environment(pathlib.Path(".bazelrc").read_text(encoding="utf-8"), config)}
    print(f"ci/seeds: seeds {first} to {first + seeds - 1}{' under ' + config if config else ''}", flush=True)
    began = time.monotonic()
    all_cases, told = [], 0
    with tempfile.TemporaryDirectory(prefix="tokamak-seeds.") as folder:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            runs = [
                pool.submit(run_chunk, binary, at, count, args.filter, environment, pathlib.Path(folder))
                for at, count in chunks(first, seeds)
            ]
            try:
                for run in concurrent.futures.as_completed(runs):
                    cases, output = run.result()
                    all_cases += cases
                    for case in cases:
                        if case["status"] != count_tests.FAILED or told >= MOST_FAILURES_TOLD:
                            continue
                        told += 1
                        print(f"FAILED {case['name']}: {case['reason']}\n{output_of(case['name'], output)}")
                        if seed_of(case["name"]) is not None:
                            print(f"seed {seed_of(case['name'])}; repeat it with: {repeat_command(case['name'], config)}")
                        sys.stdout.flush()
            except BaseException:  # Ctrl-C, SIGTERM: nothing goes on behind it
                end_all(pool)
                raise
    count = {s: sum(c["status"] == s for c in all_cases) for s in (count_tests.PASSED, count_tests.FAILED, count_tests.SKIPPED)}
    print(
        f"{seeds} seeds in {time.monotonic() - began:.0f} s: {count['passed']} passed, {count['failed']} failed,"
        f" {count['skipped']} skipped"
    )
    sys.exit(0 if count["passed"] > 0 and count["failed"] == 0 else 1)


if __name__ == "__main__":
    main()
