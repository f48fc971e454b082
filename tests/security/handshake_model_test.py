"""The model of the handshake holds, in all of its states, and each part that it is made of is needed."""

import pathlib
import re
import subprocess
import tempfile
import unittest

MODEL = pathlib.Path("docs/models/handshake.pml").resolve()


def errors(*defined):
    """How many errors spin finds in all states of the model, and how many states these are."""
    with tempfile.TemporaryDirectory() as folder:
        for command in (["spin", "-a", *(f"-D{name}" for name in defined), str(MODEL)], ["gcc", "-DSAFETY", "-o", "pan", "pan.c"]):
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = subprocess.run(["./pan", "-m100000"], cwd=folder, check=False, stdout=subprocess.PIPE, text=True).stdout
    if "max search depth too small" in said or "error:" in said:
        raise AssertionError(said)
    return int(re.search(r"errors: (\d+)", said)[1]), int(re.search(r"(\d+) states, stored", said)[1])


class HandshakeModelTest(unittest.TestCase):
    def test_both_sides_agree_and_nobody_comes_between(self):
        found, states = errors()
        self.assertEqual(found, 0)
        self.assertGreater(states, 10000)

    def test_an_honest_handshake_finishes(self):
        self.assertEqual(errors("REACHED")[0], 1)

    def test_each_part_is_needed(self):
        for missing in ("NO_CONFIRMING", "NO_PROLOGUE", "NO_SECRET", "NO_ROLES"):
            with self.subTest(missing):
                self.assertEqual(errors(missing)[0], 1)


if __name__ == "__main__":
    unittest.main()
