"""ci/seeds says which seed failed and how to repeat it; what it says must be right also when a program crashes or hangs."""

import unittest

from ci import seeds

GTEST = """<testsuites><testsuite name="Conformance/ReadTest">
<testcase name="ARead/seed16" status="run" classname="Conformance/ReadTest" />
<testcase name="ARead/seed17" status="run" classname="Conformance/ReadTest"><failure message="wrong byte"/></testcase>
</testsuite></testsuites>"""

OUTPUT = """[ RUN      ] Conformance/ReadTest.ARead/seed16
[       OK ] Conformance/ReadTest.ARead/seed16 (3 ms)
[ RUN      ] Conformance/ReadTest.ARead/seed17
read_test.cc:9: Failure
wrong byte
[  FAILED  ] Conformance/ReadTest.ARead/seed17 (3 ms)
"""

FAILED = "Conformance/ReadTest.ARead/seed17"


class SeedsTest(unittest.TestCase):
    def test_every_seed_is_in_one_chunk(self):
        self.assertEqual(seeds.chunks(5, 5, 2), [(5, 2), (7, 2), (9, 1)])

    def test_the_seeds_of_a_commit_are_its_own_and_stay(self):
        self.assertEqual(seeds.first_of_commit("0" * 40), 1)
        a, b = seeds.first_of_commit("a" * 40), seeds.first_of_commit("b" * 40)
        self.assertNotEqual(a, b)
        self.assertEqual(a, seeds.first_of_commit("a" * 40))

    def test_a_failure_names_its_seed_and_the_command_that_repeats_it(self):
        cases = seeds.judge(GTEST, OUTPUT, 1, "seeds 16 to 17")
        self.assertEqual([c["status"] for c in cases], ["passed", "failed"])
        self.assertEqual(cases[1]["name"], FAILED)
        self.assertEqual(seeds.seed_of(FAILED), 17)
        self.assertEqual(seeds.repeat_command(FAILED, "asan"), f"ci/seeds --first 17 --seeds 1 --under asan --filter {FAILED}")
        self.assertEqual(seeds.repeat_command(FAILED, ""), f"ci/seeds --first 17 --seeds 1 --filter {FAILED}")

    def test_a_failure_shows_what_its_case_printed(self):
        self.assertEqual(seeds.output_of(FAILED, OUTPUT), "read_test.cc:9: Failure\nwrong byte\n")

    def test_a_crash_is_a_failure_of_the_case_that_ran(self):
        cases = seeds.judge(None, OUTPUT[: OUTPUT.index("read_test")], -6, "seeds 16 to 17")
        self.assertEqual([(c["status"], c["name"]) for c in cases], [("failed", FAILED)])
        self.assertIn("-6", cases[0]["reason"])

    def test_a_program_that_takes_too_long_is_a_failure_of_the_case_that_ran(self):
        cases = seeds.judge(None, OUTPUT[: OUTPUT.index("read_test")], None, "seeds 16 to 17")
        self.assertEqual([(c["status"], c["name"]) for c in cases], [("failed", FAILED)])

    def test_a_leak_that_a_sanitizer_found_after_the_tests_is_a_failure(self):
        cases = seeds.judge(GTEST.replace('<failure message="wrong byte"/>', ""), OUTPUT, 23, "seeds 16 to 17")
        self.assertEqual([c["status"] for c in cases], ["failed"])

    def test_the_sanitizers_options_are_those_of_bazelrc(self):
        bazelrc = "build:asan --copt=-x\nbuild:asan --test_env=ASAN_OPTIONS=halt_on_error=1:detect_leaks=1\ntest --a\n"
        bazelrc += "build:ubsan --test_env=UBSAN_OPTIONS=print_stacktrace=1\nbuild:both --config=asan --config=ubsan\n"
        self.assertEqual(seeds.test_environment(bazelrc, "asan"), {"ASAN_OPTIONS": "halt_on_error=1:detect_leaks=1"})
        self.assertEqual(sorted(seeds.test_environment(bazelrc, "both")), ["ASAN_OPTIONS", "UBSAN_OPTIONS"])
        self.assertEqual(seeds.test_environment(bazelrc, "tsan"), {})


if __name__ == "__main__":
    unittest.main()
