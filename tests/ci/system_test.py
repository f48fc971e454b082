"""ci/system: which parts are run, what is left out, and that no test is in nobody's set."""

import json
import unittest

import check_sets
import count_tests
import system


def part(name, minutes, targets=()):
    return system.Part(name, "", minutes, (), targets)


class BudgetTest(unittest.TestCase):

    def setUp(self):
        self.now = 0.0

    def budget(self, minutes):
        return system.Budget(minutes, clock=lambda: self.now)

    def test_without_minutes_all_is_run(self):
        self.assertTrue(self.budget(None).allows(part("long", 1000)))

    def test_a_part_that_does_not_fit_makes_room_for_a_shorter_one(self):
        budget = self.budget(10)
        self.now = 4 * 60
        self.assertFalse(budget.allows(part("long", 7)))
        self.assertTrue(budget.allows(part("short", 6)))

    def test_a_slow_machine_is_noticed(self):
        budget = self.budget(30)
        self.now = 12 * 60
        budget.ended(part("first", 6), 12 * 60)
        self.assertEqual(budget.pace(), 2)
        self.assertFalse(budget.allows(part("next", 10)))
        self.assertTrue(budget.allows(part("next", 9)))

    def test_a_part_that_had_little_to_do_promises_nothing(self):
        budget = self.budget(30)
        budget.ended(part("first", 10), 5)
        self.assertFalse(budget.allows(part("next", 31)))

    def test_nothing_is_begun_in_the_last_minute(self):
        self.assertFalse(self.budget(0.5).allows(part("tiny", 0.1)))
        self.assertFalse(self.budget(0).allows(part("tiny", 0.1)))


class RunTest(unittest.TestCase):

    def test_names_pick_parts_in_our_order(self):
        names = [part.name for part in system.PARTS]
        self.assertEqual([part.name for part in system.pick([names[2], names[0]])], [names[0], names[2]])
        self.assertEqual(system.pick([]), list(system.PARTS))
        with self.assertRaisesRegex(ValueError, "there is no part 'nothing': .*" + names[0]):
            system.pick(["nothing"])

    def test_a_script_that_is_out_of_time_is_ended_and_left_out(self):
        run = system.Run(system.Budget(0.005), None)
        self.assertFalse(run.script(["sleep", "1000"], "sleep"))
        self.assertEqual([(case["status"], case["name"]) for case in run.cases], [(count_tests.LEFT_OUT, "sleep")])

    def test_what_a_machine_cannot_do_is_skipped_and_what_fails_has_failed(self):
        run = system.Run(system.Budget(None), None)
        self.assertFalse(run.script(["bash", "-c", "exit 77"], "a"))
        self.assertFalse(run.script(["false"], "b"))
        self.assertTrue(run.script(["true"], "c"))
        self.assertTrue(run.script(["true"], "d", only_failures=True))
        self.assertEqual([case["status"] for case in run.cases], [count_tests.SKIPPED, count_tests.FAILED, count_tests.PASSED])

    def test_of_an_interrupted_run_those_count_that_came_to_their_end(self):
        events = [json.dumps({"id": {"testResult": {"label": label}}, "testResult": {"status": status}}, separators=(",", ":"))
                  for label, status in (("//a", "PASSED"), ("//b", "INCOMPLETE"))]
        events.append(json.dumps({"id": {"targetCompleted": {"label": "//c"}}, "aborted": {"reason": "USER_INTERRUPTED"}}))
        self.assertEqual(system.labels_of(system.finished_only(events)), {"//a"})

    def test_what_is_left_out_is_named_and_neither_passed_nor_skipped(self):
        lines, good = count_tests.report([count_tests.case(count_tests.PASSED, "a"), count_tests.case(count_tests.LEFT_OUT, "b", "no time")], [])
        self.assertEqual((lines, good), (["1 left out: b (no time)", "1 passed, 0 failed, 0 skipped"], True))


class SetsTest(unittest.TestCase):

    def judge(self, tests=("//a", "//s", "//m"), tagged=("//s",), manual=("//m",), run=("//m",), parts=(part("p", 1, ("//s",)),)):
        return check_sets.judge(set(tests), set(tagged), set(manual), set(run), parts)

    def test_each_test_in_one_set_is_right(self):
        self.assertEqual(self.judge(), [])

    def test_what_nobody_runs_is_wrong(self):
        self.assertRegex("".join(self.judge(parts=())), "^//s is tagged system, and no part of ci/system has it")
        self.assertRegex("".join(self.judge(run=())), "^//m is tagged manual, and nobody runs it")

    def test_what_two_run_is_wrong(self):
        self.assertRegex("".join(self.judge(parts=(part("p", 1, ("//s",)), part("q", 1, ("//s",))))), "//s is in several parts .*: p, q")
        self.assertRegex("".join(self.judge(tagged=())), "//s, of ci/system's part p, is not tagged system")

    def test_a_part_names_tests_only(self):
        self.assertRegex("".join(self.judge(tests=("//a", "//m"), tagged=())), "^//s, of ci/system's part p, is no test")


if __name__ == "__main__":
    unittest.main()
