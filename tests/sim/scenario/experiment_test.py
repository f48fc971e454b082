"""The program: what it writes, what it says, and its exit codes."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath("sim/scenario/experiment")
SCENARIOS = os.path.abspath("sim/scenario/scenarios")
TABLES = ("transfers.csv", "ports.csv", "queues.csv", "rates.csv")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class ExperimentTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name + "/new/folder"

    def experiment(self, command, scenario, *arguments):
        """Exit code and messages."""
        done = subprocess.run([PROGRAM, command, f"{SCENARIOS}/{scenario}.json", "--out", self.out, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def test_a_run_writes_tables_a_summary_and_a_page_that_needs_no_other_file(self):
        code, said = self.experiment("run", "incast16", "--set", "workload.0.bytes=50KB")
        self.assertEqual(code, 0, said)
        self.assertIn("finished after", said)
        self.assertEqual(len(read(self.out, "transfers.csv").splitlines()), 17)
        self.assertEqual(json.loads(read(self.out, "summary.json"))["ending"], "finished")
        report = read(self.out, "report.html")
        self.assertGreaterEqual(report.count("<svg"), 3)
        for outside in ("<script", "<img", "<link", "src="):
            self.assertNotIn(outside, report)

    def test_what_goes_through_the_store_is_told_by_protocol(self):
        code, said = self.experiment("run", "store_trace")
        self.assertEqual(code, 0, said)
        rows = [line.split(",")[-2:] for line in read(self.out, "transfers.csv").splitlines()]
        self.assertEqual(rows[0], ["protocol", "holder"])
        self.assertIn(["read", "host0"], rows)
        self.assertIn(["eager", "host2"], rows)
        report = read(self.out, "report.html")
        self.assertIn("by protocol", report)
        for protocol in ("read", "eager", "local"):
            self.assertIn(f"<td>{protocol}</td>", report)

    def test_the_same_scenario_gives_the_same_bytes(self):
        results = []
        for _ in range(2):
            self.experiment("run", "victim", "--set", "duration=100us", "--no-report")
            results.append([read(self.out, name) for name in TABLES])
        self.assertEqual(results[0], results[1])

    def test_a_frozen_network_is_told_and_has_an_exit_code(self):
        code, said = self.experiment("run", "cyclic")
        self.assertEqual(code, 3, said)
        self.assertIn("frozen", said)
        self.assertIn("A:1 -> B", said)
        self.assertIn("froze", read(self.out, "report.html"))

    def test_a_duration_that_is_over_has_an_exit_code(self):
        self.assertEqual(self.experiment("run", "incast16", "--set", "duration=20us", "--no-report")[0], 4)

    def test_a_program_without_its_script_says_so_before_it_runs(self):
        bare = shutil.copy(PROGRAM, os.path.dirname(os.path.dirname(self.out)))
        done = subprocess.run([bare, "run", f"{SCENARIOS}/two_hosts.json", "--out", self.out], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--no-report", done.stdout)
        self.assertFalse(os.path.exists(self.out))

    def test_mistakes_are_told_in_a_sentence(self):
        code, said = self.experiment("run", "incast16", "--set", "nic.mtu=1000")
        self.assertEqual(code, 2)
        self.assertIn("nic.mtu: it is 256, 512, 1024, 2048 or 4096", said)
        code, said = self.experiment("run", "missing")
        self.assertEqual(code, 2)
        self.assertIn("cannot read", said)
        self.assertEqual(self.experiment("dance", "incast16")[0], 2)

    def test_a_sweep_compares_its_points(self):
        code, said = self.experiment("sweep", "incast16", "--set", "nic.congestion=fixed,dcqcn", "--set",
                                     "workload.0.bytes=50KB")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(json.loads(read(self.out, "points.json"))), 2)
        page = read(self.out, "report.html")
        self.assertIn("congestion=fixed", page)
        self.assertIn("congestion=dcqcn", page)
        self.assertIn("<svg", read(self.out, "1", "report.html"))

    def test_a_sweep_over_sizes_draws_a_line_for_each_value_of_the_first_key(self):
        code, said = self.experiment("sweep", "incast16", "--set", "nic.congestion=fixed,dcqcn", "--set",
                                     "workload.0.senders=1,4", "--set", "workload.0.bytes=1KiB,4KiB,16KiB")
        self.assertEqual(code, 0, said)
        page = read(self.out, "report.html")
        self.assertIn("by size: senders=1", page)
        self.assertIn("by size: senders=4", page)

    def test_a_sweep_over_two_sizes_draws_no_line(self):
        self.experiment("sweep", "incast16", "--set", "workload.0.bytes=1KiB,4KiB")
        self.assertNotIn("by size", read(self.out, "report.html"))

    def test_a_point_that_is_wrong_makes_the_sweep_fail(self):
        code, said = self.experiment("sweep", "incast16", "--set", "nic.mtu=1024,1000", "--set", "workload.0.bytes=1KB")
        self.assertEqual(code, 2, said)
        self.assertIn("exit code 2", said)


if __name__ == "__main__":
    unittest.main()
