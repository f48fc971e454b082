"""The page of the study: of small files it makes the same bytes each time, and it says what is missing."""

import contextlib
import gzip
import io
import os
import re
import shutil
import tempfile
import unittest
from unittest import mock

from study import page, program, records

# In the form of what is measured; the numbers are made up.
FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "study_files", "data")
ALL = [name[:-len(".json")] for name in sorted(os.listdir(FILES))]


def copy(folder, parts):
    os.makedirs(os.path.join(folder, "data"))
    for part in parts:
        with open(os.path.join(FILES, part + ".json"), "rb") as plain, gzip.open(records.path_of(os.path.join(folder, "data"), part), "wb") as file:
            shutil.copyfileobj(plain, file)


def make(parts, change=None):
    """{file: bytes} of a page of these parts, and what parts it lacks."""
    with tempfile.TemporaryDirectory() as folder:
        copy(folder, parts)
        if change is not None:
            change(os.path.join(folder, "data"))
        missing = page.make(folder)
        files = {}
        for file in os.listdir(folder):
            if file != "data":
                with open(os.path.join(folder, file), "rb") as opened:
                    files[file] = opened.read()
    return files, missing


class PageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.whole, cls.missing = make(ALL)

    def test_the_same_files_give_the_same_bytes(self):
        one, other = self.whole, make(ALL)[0]
        self.assertEqual(sorted(one), sorted(other))
        for name, content in one.items():
            self.assertEqual(content, other[name], name)

    def test_each_chart_is_shown(self):
        files = self.whole
        shown = set(re.findall(r"\]\((\S+)\.svg\)", files["README.md"].decode()))
        self.assertEqual({name[:-4] for name in files if name.endswith(".svg")}, shown)
        self.assertLessEqual({"latency", "bandwidth", "causes", "registration", "processor", "fabric", "cluster-one-to-one"}, shown)

    def test_numbers_come_from_the_files(self):
        text = self.whole["README.md"].decode()
        self.assertIn("| 1 KiB | 19.4 us | 23.3 us | 19.3 us |", text)
        self.assertIn("| simulated, 100Gb/s, alone | arena | 14.4 KiB | at all sizes from 1 KiB |", text)

        def slower(folder):
            record = records.read(folder, "fabric")
            for row in record["runs"][0]["results"]:
                row["mean_seconds"] *= 1 if row["protocol"] == "eager" else 100
            records.write(folder, record)

        text = make(["fabric"], slower)[0]["README.md"].decode()
        self.assertIn("| simulated, 100Gb/s, alone | arena | at no size to 64 KiB | at no size to 64 KiB |", text)

    def test_what_is_missing_or_failed_is_said(self):
        text = self.whole["README.md"].decode()
        self.assertEqual(self.missing, ["loopback", "softroce"])
        self.assertIn("`ci/paper --only softroce` measures it", text)
        self.assertIn("**Measured in part.** `ucx ucp_get: ended with 1: no such device`", text)
        self.assertNotIn("softroce.svg", text)

    def test_the_policy_is_judged(self):
        text = self.whole["README.md"].decode()
        self.assertIn("takes at most 1.010 times as long as the best protocol (700 B, beside eager)", text)
        self.assertIn("1 found the first table again", text)
        self.assertIn("explored with 1.5 % of pulls and 0.5 % of their time", text)
        self.assertIn("| 1 | eager up to 64 KiB, then write | eager to write: 48.8 KiB to 87.9 KiB |", text)

    def test_a_simulated_cluster_is_judged(self):
        text = self.whole["README.md"].decode()
        self.assertIn("read with `on_demand` takes 2.00 times as long as `arena` at 64 B, 2.00 times at 1 MiB.", text)
        self.assertIn("By eager, read, write and policy all together move at least 0.8 times what two ranks alone move in 16 of 16 cases", text)
        self.assertIn("| simulated, 100Gb/s, one-to-one | on_demand |", text)

    def test_checkpoints_are_judged(self):
        text = self.whole["README.md"].decode()
        self.assertIn("With non-blocking checkpoints the mean step takes 1.030 times as long as without any (1.020 to 1.040 over the turns); 7 were "
                      "taken, 1 left out.", text)
        self.assertIn("| blocking | 56.5 ms | 50 ms | 200 ms | 300 ms |", text)

    def test_a_busy_machine_is_said(self):
        text = self.whole["README.md"].decode()
        self.assertIn("**The machine was not idle**: up to 30 % of its processors", text)

    def test_nothing_measured_still_gives_a_page(self):
        files, missing = make([])
        self.assertEqual(list(files), ["README.md"])
        self.assertEqual(len(missing), 10)


class ProgramTest(unittest.TestCase):

    def run_program(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = program.main(list(arguments))
            except SystemExit as end:
                code = end.code
        return code, said.getvalue()

    def test_pages_are_made_again_of_files_elsewhere_and_the_exit_code_tells_of_what_is_missing(self):
        with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as folder:
            copy(source, ["loopback"])
            code, said = self.run_program("--from", source, "--out", folder)
            self.assertEqual(code, 1)
            self.assertIn("softroce is not wholly measured", said)
            self.assertTrue(os.path.exists(os.path.join(folder, "README.md")))
            self.assertTrue(os.path.exists(os.path.join(folder, "data", "loopback.json.gz")))
            self.assertEqual(self.run_program("--from", folder, "--out", folder)[0], 1)

    def test_a_file_that_is_no_record_ends_it_with_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "data"))
            with gzip.open(records.path_of(os.path.join(folder, "data"), "pulls"), "wt", encoding="utf-8") as file:
                file.write("{}")
            code, said = self.run_program("--from", folder, "--out", folder)
            self.assertEqual(code, 1)
            self.assertEqual(said.count("\n"), 1)
            self.assertIn("--only pulls", said)

    def test_a_target_that_does_not_build_is_said_and_the_other_parts_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            options = program.parse(["--out", folder])
            ran = []
            with mock.patch.dict(program.PARTS, {"fabric": (lambda bench, plan: ran.append("fabric"), ["//sim/scenario:experiment"])}), \
                    contextlib.redirect_stderr(io.StringIO()):
                program.measure(["cluster", "fabric"], options, "/nowhere", ["//tests/bench:cluster"])
            record = records.read(os.path.join(folder, "data"), "cluster")
            self.assertEqual((record["state"], record["trouble"]), ("failed", ["cluster: //tests/bench:cluster does not build"]))
            self.assertEqual(ran, ["fabric"])

    def test_wrong_use(self):
        for arguments in (["--from", "/nowhere"], ["--only", "nothing"], ["--quick", "--full"], ["--from", os.path.dirname(FILES), "--only", "pulls"]):
            self.assertEqual(self.run_program(*arguments)[0], 2, arguments)


if __name__ == "__main__":
    unittest.main()
