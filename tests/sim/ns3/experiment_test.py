"""Experiments on ns-3's scheduler and in our own virtual time: the same, to the last byte."""

import os
import subprocess
import tempfile
import unittest

SCENARIOS = os.path.abspath("sim/scenario/scenarios")
PROGRAMS = ("sim/scenario/experiment", "sim/ns3/experiment")
TABLES = ("transfers.csv", "ports.csv", "queues.csv", "rates.csv")


class Ns3ExperimentTest(unittest.TestCase):

    def tables(self, program, scenario, code, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.abspath(program), "run", f"{SCENARIOS}/{scenario}.json", "--out", folder,
                                   "--no-report", *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
            self.assertEqual(done.returncode, code, done.stdout)
            written = []
            for name in TABLES:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    written.append(file.read())
            return written

    def test_results_are_the_same(self):
        for scenario, arguments, code in (
                ("two_hosts", (), 0),
                ("incast16", ("--set", "workload.0.bytes=100KB"), 0),
                ("victim", ("--set", "duration=100us"), 4),
                ("lossy", (), 0),
                ("cyclic", (), 3),
                ("store_trace", ("--set", "payload=real"), 0),
                ("store_hot_object", (), 0),
                ("store_shuffle64", ("--set", "topology.hosts_per_leaf=2", "--set", "workload.0.bytes=200KB", "--set",
                                     "store.engines=2"), 0),
                ("thresholds", ("--set", "workload.0.protocol=eager", "--set", "workload.0.senders=16"), 0),
                ("thresholds", ("--set", "workload.0.protocol=write", "--set", "store.engines=2"), 0),
        ):
            with self.subTest(scenario):
                ours, ns3 = (self.tables(program, scenario, code, *arguments) for program in PROGRAMS)
                self.assertGreater(len(ns3[0].splitlines()), 1)
                self.assertEqual(ours, ns3)


if __name__ == "__main__":
    unittest.main()
