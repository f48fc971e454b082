"""What a softroce_test makes of the cases that ran in its guests."""

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


if __name__ == "__main__":
    unittest.main()
