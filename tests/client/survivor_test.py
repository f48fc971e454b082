"""Programs in C++ and C that reconnect, through restarts of a real daemon."""

import os
import signal
import subprocess
import time
import unittest

from c_interface_test import ROOT, Tokd

PATIENCE = 60.0  # seconds


class Survivor:
    """One of the programs, which are told a name a line."""

    def __init__(self, program, socket):
        self.process = subprocess.Popen([os.path.join(ROOT, "tests/client", program), socket], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.names = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.ended = self.process.wait(timeout=PATIENCE)

    def put_and_get(self):
        self.names += 1
        self.process.stdin.write(f"object {self.names}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def put_and_get_at_the_next_daemon(self):
        """One attempt to connect is made in a while."""
        limit = time.monotonic() + PATIENCE
        while (said := self.put_and_get()).startswith("UNAVAILABLE") and time.monotonic() < limit:
            pass
        return said


class SurvivorTest(unittest.TestCase):

    def lives_through_restarts(self, program):
        with Tokd() as tokd, Survivor(program, tokd.socket) as survivor:
            self.assertEqual(survivor.put_and_get(), "OK")
            # It tries to connect at once, unless it has connected a moment ago.
            for how, says in ((signal.SIGKILL, "no tokd listens at .*start one with tokd"),
                              (signal.SIGTERM, "no tokd listens at |the connection .* is lost: .*; the next call connects anew")):
                tokd.end(how)
                self.assertRegex(survivor.put_and_get(), f"^UNAVAILABLE: ({says})")
                tokd.start()
                self.assertEqual(survivor.put_and_get_at_the_next_daemon(), "OK")
        self.assertEqual(survivor.ended, 0)
        # One that is there again at the next call: nobody has noticed.
        with Tokd() as tokd, Survivor(program, tokd.socket) as survivor:
            self.assertEqual(survivor.put_and_get(), "OK")
            tokd.end(signal.SIGKILL)
            tokd.start()
            self.assertEqual(survivor.put_and_get(), "OK")
        self.assertEqual(survivor.ended, 0)

    def test_a_program_in_cpp_lives_through_restarts(self):
        self.lives_through_restarts("survivor_cpp")

    def test_a_program_in_c_lives_through_restarts(self):
        self.lives_through_restarts("survivor_c")


if __name__ == "__main__":
    unittest.main()
