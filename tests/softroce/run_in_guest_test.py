"""What a softroce_test makes of the cases that ran in its guests."""

import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import run_in_guest

RAN = ElementTree.fromstring("""<testsuites>
  <testsuite name="By/KilledHolderTest"><testcase classname="By/KilledHolderTest" name="TheNextHolderServes/Read@1"/></testsuite>
  <testsuite name="FaultsTest"><testcase classname="FaultsTest" name="ACutIsSurvived@0"/></testsuite>
</testsuites>""")


class WithoutACaseTest(unittest.TestCase):
    def missed(self, *arguments, ran=RAN):
        return run_in_guest.without_a_case(["PROGRAM", *arguments], ran)

    def test_each_pattern_needs_a_case(self):
        self.assertEqual(self.missed("--gtest_filter=*Serves/Read:FaultsTest.*"), [])
        self.assertEqual(self.missed("--gtest_filter=*Serves/Write:*Cut*:*Flap*"), ["*Serves/Write", "*Flap*"])

    def test_what_is_left_out_needs_none(self):
        self.assertEqual(self.missed("--gtest_filter=*/Read:-*Flap*"), [])
        self.assertEqual(self.missed("--gtest_filter=-*Flap*"), [])

    def test_without_a_filter_some_case_has_to_run(self):
        self.assertEqual(self.missed(), [])
        self.assertEqual(self.missed(ran=ElementTree.Element("testsuites")), ["*"])


CASES = """<testsuites><testsuite name="Some"><testcase classname="Some" name="Case">%s</testcase></testsuite></testsuites>"""
WRITE = """echo '{}' >"$XML_OUTPUT_FILE"; exit {}"""


class ProgramsTest(unittest.TestCase):
    """Runs what guests run, here, once for each rank."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_all(self, *programs, ranks="0"):
        status = 0
        for rank in ranks:
            environment = {**os.environ, "TOKAMAK_LAB_OUT": str(self.out), "TOKAMAK_LAB_RANK": rank}
            ended = subprocess.run(["sh", "-c", run_in_guest.script(programs)], env=environment, check=False,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            status = status or ended.returncode
        return status

    def told(self, programs, well):
        """Each case's name, with what it failed of."""
        cases = [case for one in run_in_guest.by_program(self.out, programs, well) for case in one.iter("testcase")]
        return [(f"{case.get('classname')}.{case.get('name')}", *[f.get("message") for f in case.iter("failure")]) for case in cases]

    def test_programs_are_divided(self):
        self.assertEqual(run_in_guest.split(["--hosts=1", "--", "a", "-x", "--", "b"]), (["--hosts=1"], [["a", "-x"], ["b"]]))

    def test_arguments_reach_their_program(self):
        self.assertEqual(self.run_all(["test", "a b", "=", "a b"], ["test", "$HOME", "!=", os.environ.get("HOME", "")]), 0)

    def test_all_run_and_the_first_failure_counts(self):
        programs = [["true"], ["sh", "-c", "exit 3"], ["sh", "-c", "exit 4"], ["true"]]
        self.assertEqual(self.run_all(*programs), 3)
        self.assertEqual(self.told(programs, False), [
            ("Softroce.true",), ("Softroce.sh", "ended with status 3"), ("Softroce.sh", "ended with status 4"), ("Softroce.true",)
        ])

    def test_cases_of_several_guests_are_told_apart(self):
        programs = [["sh", "-c", WRITE.format(CASES % "", 0)], ["true"]]
        self.assertEqual(self.run_all(*programs, ranks="01"), 0)
        self.assertEqual(self.told(programs, True), [("Some.Case@0",), ("Some.Case@1",), ("Softroce.true@0",), ("Softroce.true@1",)])

    def test_a_failure_is_told_once(self):
        programs = [["sh", "-c", WRITE.format(CASES % '<failure message="odd"/>', 1)]]
        self.assertEqual(self.run_all(*programs), 1)
        self.assertEqual(self.told(programs, False), [("Some.Case", "odd")])

    def test_a_program_that_fails_after_its_cases_is_told(self):
        programs = [["sh", "-c", WRITE.format(CASES % "", 9)]]
        self.assertEqual(self.run_all(*programs), 9)
        self.assertEqual(self.told(programs, False), [("Some.Case",), ("Softroce.sh", "ended with status 9")])

    def test_what_did_not_end_is_told_unless_it_was_killed_on_purpose(self):
        programs = [["true"], ["true"]]
        self.run_all(*programs, ranks="01")
        (self.out / "1.1.status").unlink()
        self.assertEqual(self.told(programs, False)[-1], ("Softroce.true@1", "did not end"))
        self.assertEqual(self.told(programs, True)[-1], ("Softroce.true@0",))

    def test_a_program_before_others_has_its_own_time_out(self):
        run_in_guest.SECONDS_OF_A_PROGRAM, before = 0.1, run_in_guest.SECONDS_OF_A_PROGRAM
        self.addCleanup(setattr, run_in_guest, "SECONDS_OF_A_PROGRAM", before)
        programs = [["cat", "/dev/zero"], ["true"]]
        self.assertEqual(self.run_all(*programs), 124)
        self.assertEqual(self.told(programs, False), [("Softroce.cat", "ran out of time"), ("Softroce.true",)])


if __name__ == "__main__":
    unittest.main()
