"""The C interface on a real daemon, and the one version that programs and library tell."""

import os
import signal
import subprocess
import tempfile
import unittest

ROOT = os.getcwd()
PROGRAM = os.path.join(ROOT, "tests/client/c_interface")
TOK = os.path.join(ROOT, "lib/cli/tok")
TOKD = os.path.join(ROOT, "lib/daemon/tokd")


class Tokd:
    """A daemon in a folder of its own."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.socket = os.path.join(self.folder.name, "tokd.sock")
        return self.start()

    def start(self):
        command = [TOKD, "--socket", self.socket, "--listen", "127.0.0.1:7000", "--memory", "32MiB", "--device", "soft:udp@127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Its output ends where it cannot start.
        said = []
        for line in self.process.stdout:
            said.append(line)
            if " ready: " in line:
                return self
        raise AssertionError("tokd did not start: " + "".join(said))

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.communicate(timeout=120)

    def __exit__(self, *_):
        self.end()
        self.folder.cleanup()


class CInterfaceTest(unittest.TestCase):

    def test_it_keeps_its_promises(self):
        with Tokd() as tokd:
            said = subprocess.run([PROGRAM, tokd.socket], capture_output=True, text=True, timeout=120, check=False)
        self.assertRegex(said.stdout + said.stderr, r"^\d+ promises of tokamak.h hold\n$")
        self.assertEqual(said.returncode, 0)

    def test_programs_and_library_tell_one_version(self):
        told = [subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
                for program in (TOK, TOKD, PROGRAM)]
        version = told[0].removeprefix("tok ")
        self.assertRegex(version, r"^\d+\.\d+\.\d+( \([0-9a-f]+\))?$")
        self.assertEqual(told, [f"tok {version}", f"tokd {version}", version])


if __name__ == "__main__":
    unittest.main()
