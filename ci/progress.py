#!/usr/bin/env python3
"""Runs Bazel and shows how far it is: a line that moves, and one for each test target that has finished.

  progress.py build|test [--events FILE] [--seconds N] -- OPTION... TARGET...

On a terminal the line is rewritten each second; elsewhere it is printed each ten seconds. Compilers' and tests' messages are shown as
they come, what Bazel says of itself is not. With --seconds Bazel is interrupted after that time, and the exit code is 124. Startup
options are taken from BAZEL_STARTUP_OPTIONS.
"""

import argparse
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

QUIET = ["--color=no", "--curses=no", "--show_progress_rate_limit=1", "--show_result=0", "--ui_event_filters=-info"]
INTERRUPTED = 124
SECONDS_TO_END = 60  # from the interruption on
SLOWEST_SHOWN = 5

STEPS = re.compile(r"\[([\d,]+) / ([\d,]+)\] (?:([\d,]+) / ([\d,]+) tests)?")
# What Bazel says of itself; with the summary of tests, each of which had its line.
ITS_OWN = re.compile(
    r"Loading:|Analyzing:|INFO:|Computing main repo|Starting local Bazel|WARNING: (Running Bazel server|Waiting for server)"
    r"|\s+currently loading:|\s+Fetching |(FAIL|TIMEOUT|FLAKY|INCOMPLETE): //|//\S+ .*(PASSED|SKIPPED|NO STATUS)|Executed \d+ out of"
    r"|There were tests whose specified size|\s*$"
)
WORDS = {"PASSED": "passed", "FLAKY": "passed at another try", "FAILED": "FAILED", "TIMEOUT": "TIMED OUT"}


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """What is known so far, from Bazel's messages and from its events."""

    def __init__(self):
        self.steps = self.all_steps = 0
        self.all_tests = 0  # as Bazel says, after the first has finished
        self.known_tests = 0  # until then: those that were looked at
        self.finished = []  # (label, seconds)

    def take_message(self, line):
        """A line that Bazel wrote; returns it if it is to be shown."""
        match = STEPS.match(line)
        if match:
            self.steps, self.all_steps = (int(text.replace(",", "")) for text in match.groups()[:2])
            if match[4]:
                self.all_tests = int(match[4].replace(",", ""))
            return None
        return None if ITS_OWN.match(line) else line

    def take_event(self, text):
        """A line of the build event file; returns what to say of a test target that has finished."""
        event = json.loads(text)
        if "testSize" in event.get("configured", {}):
            self.known_tests += 1
        summary = event.get("testSummary")
        if summary is None or "testSummary" not in event["id"]:
            return None
        label, status = event["id"]["testSummary"]["label"], summary.get("overallStatus", "NO_STATUS")
        if status == "NO_STATUS":
            return None  # not built, or interrupted; what did not build has said so
        seconds = int(summary.get("totalRunDurationMillis", 0)) / 1000
        cached = summary.get("totalNumCached", 0) > 0
        self.finished.append((label, 0 if cached else seconds))
        count = f"{len(self.finished)} of {max(self.all_tests or self.known_tests, len(self.finished))}"
        taken = "as before" if cached else f"{seconds:.0f} s"
        return f"{label} {WORDS.get(status, status)}, {taken} ({count})"

    def line(self, elapsed):
        """The line that moves."""
        if not self.all_steps:
            return f"building: reading what there is to do, {clock(elapsed)}"
        tests = f", {len(self.finished)} of {self.all_tests} tests" if self.all_tests else ""
        return f"building: {self.steps} of {self.all_steps} steps{tests}, {clock(elapsed)}"

    def last_line(self, elapsed):
        tests = f", {len(self.finished)} test targets" if self.finished else ""
        slow = sorted(self.finished, key=lambda one: -one[1])[:SLOWEST_SHOWN]
        slowest = ", ".join(f"{label} {seconds:.0f} s" for label, seconds in slow if seconds >= 1)
        return f"built: {self.steps} steps{tests}, {clock(elapsed)}" + (f"; slowest: {slowest}" if slowest else "")


class Screen:
    """A line that is rewritten among others that stay; without a terminal all stay, and the moving one comes each ten seconds."""

    def __init__(self, out, terminal):
        self.out, self.terminal = out, terminal
        self.every = 1 if terminal else 10
        self.moved = float("-inf")
        self.shown = False

    def say(self, line):
        self.clear()
        print(line, file=self.out, flush=True)

    def move(self, line, now):
        if now - self.moved < self.every:
            return
        self.moved = now
        if self.terminal:
            self.out.write(f"\r\x1b[K{line[:100]}")
            self.out.flush()
            self.shown = True
        else:
            print(line, file=self.out, flush=True)

    def clear(self):
        if self.shown:
            self.out.write("\r\x1b[K")
            self.shown = False


class Lines:
    """Whole lines of bytes that come in pieces."""

    def __init__(self):
        self.rest = b""

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def run(command, events, screen, seconds=None, progress=None):
    """Runs Bazel to its end, and returns its exit code, or INTERRUPTED."""
    progress = progress or Progress()
    began = time.monotonic()
    open(events, "w", encoding="utf-8").close()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    end_at = None
    interrupted = False

    def interrupt(*_):
        process.send_signal(signal.SIGINT)  # Bazel ends what it runs, and then itself

    before = signal.signal(signal.SIGTERM, interrupt), signal.signal(signal.SIGINT, interrupt)
    messages, happened = Lines(), Lines()
    try:
        with open(events, "rb") as told:
            running = True
            while running:
                elapsed = time.monotonic() - began
                if seconds is not None and end_at is None and elapsed >= seconds:
                    interrupted, end_at = True, elapsed + SECONDS_TO_END
                    interrupt()
                if end_at is not None and elapsed > end_at:
                    process.kill()
                if select.select([process.stdout], [], [], 0.5)[0]:
                    data = os.read(process.stdout.fileno(), 1 << 16)
                    running = bool(data)
                    for line in messages.take(data):
                        if progress.take_message(line) is not None:
                            screen.say(line)
                for line in happened.take(told.read()):
                    said = progress.take_event(line)
                    if said:
                        screen.say(said)
                if running:
                    screen.move(progress.line(elapsed), time.monotonic())
        code = process.wait()
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
        process.stdout.close()
    screen.clear()
    if code == 0:
        screen.say(progress.last_line(time.monotonic() - began))
    return INTERRUPTED if interrupted else code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "test"])
    parser.add_argument("--events", help="the build event file, which is kept")
    parser.add_argument("--seconds", type=float, help="at most so long")
    parser.add_argument("rest", nargs="+", metavar="-- OPTION... TARGET")
    args = parser.parse_args()
    screen = Screen(sys.stderr, sys.stderr.isatty())
    with tempfile.TemporaryDirectory() as folder:
        events = args.events or os.path.join(folder, "events")
        bazel = ["bazel", *shlex.split(os.environ.get("BAZEL_STARTUP_OPTIONS", ""))]
        command = [*bazel, args.command, *QUIET, f"--build_event_json_file={events}", *args.rest]
        sys.exit(run(command, events, screen, args.seconds))


if __name__ == "__main__":
    main()
