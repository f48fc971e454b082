"""Runs the commands of a part of the study, with a limit of time and progress on standard error, and keeps what they said."""

import collections
import json
import os
import shlex
import signal
import subprocess
import sys
import threading

from . import machine, records

LINES_SHOWN = 3  # of what a failed command said last


class Failure(Exception):
    """Why a command gave no result."""


def pass_on(stream, kept):
    for line in stream:
        sys.stderr.write(line)
        sys.stderr.flush()
        if line.strip():
            kept.append(line.strip())


def end_group(process):
    """Of a session of its own: whatever is left of it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def output_of(command, limit, cwd=None, environment=None):
    """Standard output of a command; its standard error is passed on. Failure: it was not there, did not end well, or in time."""
    try:
        process = subprocess.Popen(command, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    except OSError as error:
        raise Failure(f"{os.path.basename(command[0])}: {error.strerror}") from error
    said = collections.deque(maxlen=LINES_SHOWN)
    listener = threading.Thread(target=pass_on, args=(process.stderr, said), daemon=True)
    listener.start()
    late = threading.Event()
    alarm = threading.Timer(limit, lambda: (late.set(), end_group(process)))
    alarm.start()
    try:
        with process.stdout:
            printed = process.stdout.read()
        process.wait()
    finally:
        alarm.cancel()
        end_group(process)
        process.wait()
    listener.join()
    process.stderr.close()
    if late.is_set():
        raise Failure(f"did not end within {limit} s")
    if process.returncode != 0:
        last = list(said)[-LINES_SHOWN:] or printed.strip().splitlines()[-LINES_SHOWN:] or ["it said nothing"]
        raise Failure(f"ended with {process.returncode}: {' / '.join(last)}")
    return printed


class Bench:
    """What a part needs to run its commands. `programs` is bazel-bin, `work` a folder for what passes by."""

    def __init__(self, root, programs, work, data, mode):
        self.root, self.programs, self.work, self.data, self.mode = root, programs, work, data, mode
        self.places = [(programs, "bazel-bin"), (os.path.realpath(programs), "bazel-bin"), (work, "/tmp/study"), (root + "/", "")]
        self.part, self.number, self.runs, self.trouble = None, "", [], []

    def begin(self, part, number):
        """`number` such as 2/7, for who watches."""
        self.part, self.number, self.runs, self.trouble = part, number, [], []

    def record(self):
        return records.make(self.part, self.mode, machine.environment(self.root), self.runs, self.trouble)

    def runfiles(self, target):
        """Where a program finds what it needs, as under `bazel run`: tests/bench/pull."""
        return os.path.join(self.programs, target + ".runfiles", "tokamak")

    def fail(self, name, reason):
        line = records.without_places(f"{name}: {reason}", self.places).replace("`", "'")
        self.trouble.append(line)
        print(f"ci/paper: {self.part}: {line}", file=sys.stderr, flush=True)

    def run(self, name, command, read, limit, cwd=None, environment=None):
        """Adds a run, whose results are what `read` makes of the output; where it fails, trouble. Whether it did not."""
        variables = "".join(f"{key}={value} " for key, value in (environment or {}).items())
        shown = records.without_places(variables + shlex.join(command), self.places)
        print(f"ci/paper: [{self.number} {self.part}] {name}: {shown}", file=sys.stderr, flush=True)
        watch = machine.Watch()
        try:
            # What a command that is ended leaves lying about goes with the folder.
            results = read(output_of(command, limit, cwd, {"TMPDIR": self.work, **(environment or {})}))
        except Failure as failure:
            self.fail(name, failure)
            return False
        except (ValueError, LookupError, OSError) as error:
            self.fail(name, f"its output is not as expected: {error}")
            return False
        self.runs.append({"name": name, "command": shown, **watch.stop(), "results": records.without_places(results, self.places)})
        return True

    def pull(self, name, options, limit):
        """tests/bench/pull, by whose JSON rows it is judged."""
        program = os.path.join(self.programs, "tests/bench/pull")
        return self.run(name, [program, "--json", *options], json.loads, limit, cwd=self.runfiles("tests/bench/pull"))
