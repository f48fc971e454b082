"""Runs a program under gperftools' CPU profiler, and shows where each of its processes spent its processor time.

  cpu_profile.py --out FOLDER --program PROGRAM -- [option of it]...
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import flame_graph

PROFILER = "libprofiler.so.0"
FREQUENCY = "250"  # samples a second; more than the kernel's clock has would be a promise that it does not keep
LEAST_SAMPLES = 25
SHOWN = 10
LONGEST = 110  # of a function's name

# What the profiler adds to names: addresses, versions of symbols, the arguments.
NOISE = re.compile(r"<[0-9a-f]{16}>|@@\w[\w.]*|\[inline\]|\([^;]*\)( const)?")


def program_of(profile):
    """The path of the program that wrote a profile: the first that its map of memory runs code of."""
    with open(profile, "rb") as file:
        text = file.read().decode("latin-1")
    found = re.search(r"^[0-9a-f]+-[0-9a-f]+ r.x. \S+ \S+ \d+\s+(/\S+)$", text, re.M)
    return found.group(1) if found else None


def collapsed(program, profile):
    """{(function, ..., function): samples}, outermost first."""
    done = subprocess.run(["google-pprof", "--collapsed", program, profile], capture_output=True, text=True, check=False)
    lines = (";".join(NOISE.sub("", name) for name in line.split(";")) for line in done.stdout.splitlines())
    return flame_graph.parse(lines)


def hottest(stacks):
    """[(function, samples in itself, samples in it and what it called)], most first."""
    own, whole = collections.Counter(), collections.Counter()
    for stack, samples in stacks.items():
        own[stack[-1]] += samples
        for function in set(stack):
            whole[function] += samples
    return [(function, samples, whole[function]) for function, samples in own.most_common(SHOWN)]


def shorten(name):
    return name if len(name) <= LONGEST else name[:LONGEST - 3] + "..."


def show(name, stacks, out):
    total = sum(stacks.values())
    print(f"\n{name}: {total} samples, {total / int(FREQUENCY):.2f} s of processor time")
    for function, own, whole in hottest(stacks):
        print(f"  {100 * own / total:5.1f} %  ({100 * whole / total:5.1f} % with what it calls)  {shorten(function)}")
    path = os.path.join(out, name + ".svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(flame_graph.draw(stacks, name))
    print(f"  {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tokamak-profile-") as folder:
        environment = dict(os.environ, LD_PRELOAD=PROFILER, CPUPROFILE=os.path.join(folder, "cpu"), CPUPROFILE_FREQUENCY=FREQUENCY)
        runfiles = options.program + ".runfiles/tokamak"
        done = subprocess.run([options.program] + options.arguments, env=environment, check=False,
                              cwd=runfiles if os.path.isdir(runfiles) else None)
        shown = 0
        for profile in sorted(os.listdir(folder)):
            path = os.path.join(folder, profile)
            program = program_of(path)
            stacks = collapsed(program, path) if program else {}
            if sum(stacks.values()) < LEAST_SAMPLES:
                continue
            shown += 1
            process = profile.partition("_")[2] or "first"
            show(f"{os.path.basename(program)}-{process}", stacks, options.out)
    if done.returncode != 0:
        sys.exit(f"ci/profile: {options.program} ended with {done.returncode}")
    if shown == 0:
        sys.exit(f"ci/profile: no process ran for {LEAST_SAMPLES} samples: let it work longer (see its --help)")


if __name__ == "__main__":
    main()
