"""Runs the whole study on this machine and makes docs/study of what it measured.

Exit code: 0 everything was measured, 1 a part failed or is missing (the page says which, and why), 2 wrong use.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from . import records
from .bench import Bench
from .parts import PARTS, PLANS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse(arguments):
    made = argparse.ArgumentParser(prog="ci/paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
                                   epilog="Bazel's startup options are taken from BAZEL_STARTUP_OPTIONS.")
    add = made.add_argument
    extent = made.add_mutually_exclusive_group()
    extent.add_argument("--quick", dest="mode", action="store_const", const="quick", help="some 15 minutes on two processors; the default")
    extent.add_argument("--full", dest="mode", action="store_const", const="full", help="over night: more sizes, more rounds")
    add("--out", default=os.path.join(ROOT, "docs/study"), help="folder of the page; docs/study unless given")
    add("--from", dest="measured", metavar="DIR", help="measure nothing: make the page again of DIR/data")
    add("--only", action="append", choices=list(PARTS), metavar="PART",
        help=f"measure this part alone, others stay; may be repeated: {', '.join(PARTS)}")
    made.set_defaults(mode="quick")
    options = made.parse_args(arguments)
    if options.measured is not None and options.only:
        made.error("--from measures nothing: leave out --only")
    if options.measured is not None and not os.path.isdir(os.path.join(options.measured, "data")):
        made.error(f"--from {options.measured}: there is no folder 'data' in it; run ci/paper without --from to measure")
    return options


def copy_data(source, target):
    """Files of measurements that are somewhere else."""
    if os.path.abspath(source) != os.path.abspath(target):
        shutil.copytree(source, target, dirs_exist_ok=True)


def build(parts):
    """Installs and builds what these parts need; where the programs are, and which targets do not build."""
    subprocess.run([os.path.join(ROOT, "ci/setup"), "--for", "study", "--for", "lab"], check=True, cwd=ROOT)
    bazel = ["bazel", *shlex.split(os.environ.get("BAZEL_STARTUP_OPTIONS", ""))]
    broken = []
    for target in dict.fromkeys(target for part in parts for target in PARTS[part][1]):
        print(f"ci/paper: building {target}", file=sys.stderr, flush=True)
        command = [*bazel, "build", "--config=opt", "--show_result=0", "--ui_event_filters=-info", "--noshow_progress", target]
        if subprocess.run(command, check=False, cwd=ROOT).returncode != 0:
            broken.append(target)
    info = subprocess.run([*bazel, "info", "--config=opt", "bazel-bin"], check=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return info.stdout.strip(), broken


def measure(parts, options, programs, broken):
    data = os.path.join(options.out, "data")
    os.makedirs(data, exist_ok=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tokamak-study.") as work:
        bench = Bench(ROOT, programs, work, data, options.mode)
        for number, part in enumerate(parts, 1):
            bench.begin(part, f"{number}/{len(parts)}")
            run, targets = PARTS[part]
            missing = [target for target in targets if target in broken]
            if missing:
                bench.fail(part, f"{missing[0]} does not build")
            else:
                run(bench, PLANS[options.mode])
            records.write(data, bench.record())
            print(f"ci/paper: {part} done, {(time.monotonic() - begin) / 60:.1f} minutes in all", file=sys.stderr, flush=True)


def main(arguments):
    options = parse(arguments)
    parts = [part for part in PARTS if not options.only or part in options.only]
    try:
        if options.measured is not None:
            copy_data(os.path.join(options.measured, "data"), os.path.join(options.out, "data"))
        else:
            measure(parts, options, *build(parts))
        from . import page  # needs matplotlib, which ci/setup has installed by now
        missing = [part for part in page.make(options.out) if part in parts]
    except subprocess.CalledProcessError as failed:
        print(f"ci/paper: {shlex.join(failed.cmd[:3])} ... ended with {failed.returncode}; see its messages above", file=sys.stderr)
        return 1
    except records.Malformed as malformed:
        print(f"ci/paper: {malformed}", file=sys.stderr)
        return 1
    print(f"ci/paper: {os.path.join(options.out, 'README.md')}")
    for part in missing:
        print(f"ci/paper: {part} is not wholly measured; the page says why", file=sys.stderr)
    return 1 if missing else 0
