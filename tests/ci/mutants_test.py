"""ci/mutants judges the tests: a survivor, a patch that rotted and a build that broke must not pass for a bug that was caught."""

import contextlib
import pathlib
import tempfile
import unittest

from ci import count_tests, mutants

PATCH = """Breaks: a request is carried out once.
Tests: //tests/a:unit_test //tests/b:suite_test
--- a/lib/a.cc
+++ b/lib/a.cc
@@ -1 +1 @@
-one
+two
"""
PASSED = [count_tests.case("passed", "A.B")]
FAILED = [count_tests.case("passed", "A.B"), count_tests.case("failed", "C.D", "Expected 1")]
BROKEN = [count_tests.case("failed", "//tests/a:unit_test", "did not build")]
HANGS = [count_tests.case("failed", "//tests/b:suite_test", "timed out")]


class MutantsTest(unittest.TestCase):
    def judge(self, *runs, applies=True):
        self.tested = []
        results = iter(runs)

        def test(targets):
            self.tested += targets
            return next(results)

        return mutants.judge(mutants.Mutant(pathlib.Path("m.patch"), PATCH), lambda mutant: applies, test)

    def test_a_patch_says_what_it_breaks_and_which_tests_may_notice(self):
        mutant = mutants.Mutant(pathlib.Path("twice.patch"), PATCH)
        self.assertEqual((mutant.name, mutant.breaks), ("twice", "a request is carried out once."))
        self.assertEqual(mutant.targets, ["//tests/a:unit_test", "//tests/b:suite_test"])
        self.assertEqual(mutant.files, ["lib/a.cc"])

    def test_a_patch_without_its_two_lines_is_refused(self):
        for text in (PATCH.replace("Breaks: ", ""), PATCH.replace("Tests: ", "Run: "), PATCH.replace("+++ b/", "+++ ")):
            with self.assertRaises(ValueError):
                mutants.Mutant(pathlib.Path("m.patch"), text)

    def test_the_first_test_that_fails_catches_and_ends_the_search(self):
        self.assertEqual(self.judge(FAILED), ("caught", "C.D"))
        self.assertEqual(self.tested, ["//tests/a:unit_test"])

    def test_later_targets_run_where_earlier_ones_pass(self):
        self.assertEqual(self.judge(PASSED, FAILED), ("caught", "C.D"))
        self.assertEqual(self.tested, ["//tests/a:unit_test", "//tests/b:suite_test"])

    def test_a_hang_catches(self):
        self.assertEqual(self.judge(PASSED, HANGS), ("caught", "//tests/b:suite_test (timed out)"))

    def test_what_no_test_notices_survived(self):
        self.assertEqual(self.judge(PASSED, PASSED)[0], mutants.SURVIVED)

    def test_lives_are_counted_to_the_first_that_notices(self):
        kept = "[       OK ] Seeds/WorldTest.KeepsTheContract/0 (3 ms)\n"
        noticed = "[  FAILED  ] Seeds/WorldTest.KeepsTheContract/2, where GetParam() = 3 (9 ms)\n"
        self.assertEqual(mutants.count_lives(kept * 2 + noticed, 1), 3)
        self.assertEqual(mutants.count_lives(kept, -11), 2)  # it died
        self.assertIsNone(mutants.count_lives(kept * 3, 0))

    def test_what_does_not_apply_or_build_is_not_caught(self):
        self.assertEqual(self.judge(applies=False)[0], "does not apply")
        self.assertEqual(self.judge(BROKEN)[0], "does not build")

    def test_a_patch_that_rotted_is_found(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            path = pathlib.Path("m.patch")
            path.write_text(PATCH, encoding="utf-8")
            pathlib.Path("lib").mkdir()
            for text, rotten in (("one\n", []), ("three\n", ["m"])):
                pathlib.Path("lib/a.cc").write_text(text, encoding="utf-8")
                self.assertEqual([mutant.name for mutant in mutants.those_that_do_not_apply([mutants.Mutant(path, PATCH)])], rotten)

    def test_every_patch_of_the_tree_can_be_read(self):
        found = mutants.read_mutants(pathlib.Path("tests/mutants"), [])
        self.assertGreaterEqual(len(found), 15)


if __name__ == "__main__":
    unittest.main()
