"""ci/test's verdict rests on ci/count_tests.py: each way in which a run can be less than green must show."""

import json
import unittest

from ci import count_tests

GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" name="AllTests">
  <testsuite name="Credits" tests="4">
    <testcase name="Take" status="run" result="completed" classname="Credits" />
    <testcase name="Grant" status="run" result="completed" classname="Credits">
      <failure message="credits.cc:3&#x0A;Expected 1" type=""></failure>
    </testcase>
    <testcase name="Hardware" status="run" result="skipped" classname="Credits">
      <skipped message="no RDMA device"><![CDATA[no RDMA device]]></skipped>
    </testcase>
    <testcase name="DISABLED_Later" status="notrun" result="suppressed" classname="Credits" />
  </testsuite>
</testsuites>"""

SHELL = """<testsuites><testsuite name="a" tests="1" errors="0">
<testcase name="a" status="run"></testcase><system-out><![CDATA[colour \x1b[1m]]></system-out></testsuite></testsuites>"""

CRASHED = """<testsuites><testsuite name="a" tests="1" errors="1">
<testcase name="a" status="run"><error message="exited with error code 139"></error></testcase></testsuite></testsuites>"""


def tested(label, status="PASSED", xml="xml", **identity):
    outputs = [{"name": "test.xml", "uri": xml}] if xml else []
    return json.dumps(
        {"id": {"testResult": {"label": label, **identity}}, "testResult": {"status": status, "testActionOutput": outputs}}
    )


def completed(label, success):
    return json.dumps({"id": {"targetCompleted": {"label": label}}, "completed": {"success": True} if success else {}})


def statuses(cases):
    return [c["status"] for c in cases]


class CountTestsTest(unittest.TestCase):
    def collect(self, events, exit_code=0, **files):
        return count_tests.collect(events, exit_code, read=files.__getitem__)

    def test_counts_each_case_of_a_googletest_target(self):
        cases = self.collect([tested("//a:a", "FAILED")], 3, xml=GTEST)
        self.assertEqual(statuses(cases), ["passed", "failed", "skipped", "skipped"])
        self.assertEqual(cases[1]["name"], "Credits.Grant")
        self.assertEqual(cases[2]["reason"], "no RDMA device")

    def test_a_target_without_cases_counts_once(self):
        self.assertEqual(self.collect([tested("//a:a")], xml=SHELL), [count_tests.case("passed", "//a:a")])

    def test_a_crash_counts_once_as_failed(self):
        self.assertEqual(statuses(self.collect([tested("//a:a", "FAILED")], 3, xml=CRASHED)), ["failed"])

    def test_a_program_that_ends_before_googletest_does_is_a_failure(self):
        cases = self.collect([tested("//a:a")], xml=SHELL.replace("colour", "[==========] Running 2 tests from 1 suite."))
        self.assertEqual(cases, [count_tests.case("failed", "//a:a", "the program ended before GoogleTest did")])

    def test_failing_after_all_cases_passed_still_counts_as_failed(self):
        only_passed = GTEST.replace("<failure", "<properties").replace("</failure", "</properties")
        cases = self.collect([tested("//a:a", "FAILED")], 3, xml=only_passed)
        self.assertEqual(cases[-1], count_tests.case("failed", "//a:a", "ended as FAILED"))

    def test_a_time_out_counts_as_failed_once(self):
        for files, events in (({}, tested("//a:a", "TIMEOUT", xml=None)), ({"xml": CRASHED}, tested("//a:a", "TIMEOUT"))):
            cases = self.collect([events], 3, **files)
            self.assertEqual(cases, [count_tests.case("failed", "//a:a", "timed out")])

    def test_what_did_not_build_counts_as_failed_once(self):
        aborted = json.dumps({"id": {"targetCompleted": {"label": "//a:a"}}, "aborted": {"reason": "ANALYSIS_FAILURE"}})
        cases = self.collect([completed("//a:a", False), aborted, completed("//b:b", True)], 1)
        self.assertEqual(cases, [count_tests.case("failed", "//a:a", "did not build")])

    def test_an_unreadable_package_counts_as_failed(self):
        aborted = json.dumps({"id": {"pattern": {"pattern": ["//nowhere:all"]}}, "aborted": {"reason": "LOADING_FAILURE"}})
        self.assertEqual(self.collect([aborted], 1)[0]["name"], "//nowhere:all")

    def test_a_failed_target_is_not_counted_twice_when_its_completion_also_failed(self):
        self.assertEqual(statuses(self.collect([tested("//a:a", "FAILED"), completed("//a:a", False)], 3, xml=CRASHED)), ["failed"])

    def test_bazel_failing_for_another_reason_is_a_failure(self):
        self.assertEqual(statuses(self.collect([tested("//a:a")], 37, xml=SHELL)), ["passed", "failed"])

    def test_a_passed_target_whose_cases_cannot_be_read_is_a_failure(self):
        self.assertEqual(statuses(self.collect([tested("//a:a", xml=None)])), ["failed"])
        self.assertEqual(statuses(self.collect([tested("//a:a")], xml="<broken")), ["failed"])
        self.assertEqual(statuses(self.collect([tested("//a:a")], xml="<testsuites/>")), ["failed"])

    def test_shards_add_up_and_of_several_attempts_the_last_counts(self):
        shards = [tested("//a:a", shard=1), tested("//a:a", shard=2)]
        self.assertEqual(statuses(self.collect(shards, xml=SHELL)), ["passed", "passed"])
        attempts = [tested("//a:a", "FAILED", "crash", attempt=1), tested("//a:a", attempt=2)]
        self.assertEqual(statuses(self.collect(attempts, xml=SHELL, crash=CRASHED)), ["passed"])

    def test_the_last_line_holds_the_totals(self):
        cases = [count_tests.case(*c) for c in (("passed", "a"), ("passed", "b"), ("skipped", "Ibv.Reads", "no device"))]
        self.assertEqual(count_tests.report(cases, ["Ibv.*"]), (["2 passed, 0 failed, 1 skipped"], True))

    def test_an_unlisted_skip_is_not_well(self):
        lines, well = count_tests.report([count_tests.case("skipped", "Store.Seals", "later")], ["Ibv.*"])
        self.assertFalse(well)
        self.assertEqual(
            lines, ["SKIPPED but not in tests/allowed_skips.txt: Store.Seals: later", "0 passed, 0 failed, 1 skipped"]
        )

    def test_a_failure_and_an_empty_run_are_not_well(self):
        self.assertFalse(count_tests.report([count_tests.case("failed", "a", "why")], [])[1])
        self.assertFalse(count_tests.report([], [])[1])

    def test_an_allowed_skip_needs_a_reason(self):
        self.assertEqual(count_tests.parse_allowed_skips("# why\n\nIbv.*  no RDMA device\n"), ["Ibv.*"])
        with self.assertRaises(ValueError):
            count_tests.parse_allowed_skips("Ibv.*\n")


if __name__ == "__main__":
    unittest.main()
