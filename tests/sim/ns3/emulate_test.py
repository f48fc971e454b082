"""Three real tokd on a fabric in real time: every file arrives, marks and losses are counted, the lag is printed.

  emulate_test.py [option of ci/emulate]...

A machine that has no network namespaces or taps is told of by a skipped case.
"""

import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

OPTIONS = [argument for argument in sys.argv[1:] if argument.startswith("--")]
SKIPPED = 77


def tell_skipped(reason):
    """As a test.xml of one case."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="EmulateTest")
    case = ElementTree.SubElement(suite, "testcase", classname="EmulateTest", name=os.environ.get("TEST_TARGET", "test"))
    ElementTree.SubElement(case, "skipped", message=reason)
    if "XML_OUTPUT_FILE" in os.environ:
        ElementTree.ElementTree(suites).write(os.environ["XML_OUTPUT_FILE"])


class EmulateTest(unittest.TestCase):

    def test_files_arrive_through_marks_and_losses_and_the_lag_is_told(self):
        done = subprocess.run([sys.executable, "ci/emulation.py", "--programs", os.getcwd(), *OPTIONS],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        if done.returncode == SKIPPED:
            reason = done.stdout.splitlines()[-1]
            tell_skipped(reason)
            self.skipTest(reason)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"verified 12 files of \d+ bytes on 3 nodes in [\d.]+ s, 0 mismatches\n")
        counted = re.search(r"\nmarks (\d+), losses (\d+), drops \d+, pauses \d+; lag ([\d.]+) ms \(99 %\), ([\d.]+) ms \(most\)\n",
                            done.stdout)
        self.assertIsNotNone(counted)
        marks, losses, usual, most = (float(number) for number in counted.groups())
        self.assertGreater(marks, 0)
        self.assertGreater(losses, 0)
        self.assertGreater(most, 0)
        self.assertLessEqual(usual, most)
        # And each second, beside what was delivered.
        self.assertRegex(done.stdout, r"\n1 s: [\d.]+ Mb/s delivered, .*, lag .* \(99 %\), .* \(most\)\n")


class WrongUseTest(unittest.TestCase):

    def refusal(self, *arguments):
        done = subprocess.run(["sim/ns3/emulate", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        return done.stdout

    def test_what_is_wrong_is_told_with_a_remedy(self):
        topology = "sim/emulation/topologies/leaf_spine.json"
        self.assertIn("no-such-file", self.refusal("no-such-file", "--attach", "host0=eth0"))
        self.assertIn("--attach is required", self.refusal(topology))
        self.assertIn("write HOST=INTERFACE", self.refusal(topology, "--attach", "host0"))
        self.assertIn("it has host0, host1, host2, host3", self.refusal(topology, "--attach", "leaf0=fd:0"))
        self.assertIn("see `ip netns list`",
                      self.refusal(topology, "--attach", "host0=eth0@no-such"))
        self.assertIn("is no datagram socket", self.refusal(topology, "--attach", "host0=fd:99"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
