"""ci/progress.py: what is shown of a run of Bazel."""

import io
import json
import os
import sys
import tempfile
import unittest

from ci import progress


def summary(label, status, milliseconds=0, cached=0):
    return json.dumps({"id": {"testSummary": {"label": label}},
                       "testSummary": {"overallStatus": status, "totalRunDurationMillis": str(milliseconds), "totalNumCached": cached}})


class ProgressTest(unittest.TestCase):

    def test_steps_are_counted_and_bazels_own_words_are_not_shown(self):
        seen = progress.Progress()
        for line in ("Loading: 3 packages loaded", "Analyzing: 2 targets (15 packages loaded)", "INFO: Found 2 targets...", "",
                     "    currently loading: @system//", "[1,123 / 2,456] Compiling a.cc; 3s linux-sandbox ... (2 actions running)",
                     "//tests/base:base_test                     PASSED in 0.8s", "//tests/python:python_test                 SKIPPED",
                     "Executed 1 out of 1 test: 1 test passes."):
            self.assertIsNone(seen.take_message(line), line)
        self.assertEqual(seen.line(80), "building: 1123 of 2456 steps, 1:20")

    def test_compilers_and_failed_tests_are_heard(self):
        seen = progress.Progress()
        for line in ("lib/a.cc:3:1: error: expected ';'", "ERROR: lib/BUILD:3:1: C++ compilation of rule '//lib:a' failed", "[  FAILED  ] A.B (3 ms)",
                     "//tests/base:base_test                     FAILED in 0.8s", "WARNING: something is odd"):
            self.assertEqual(seen.take_message(line), line)

    def test_each_test_target_has_a_line_with_its_time_and_number(self):
        seen = progress.Progress()
        seen.take_message("[19 / 21] 1 / 12 tests; Testing //a:b; 1s linux-sandbox")
        self.assertEqual(seen.take_event(summary("//a:a", "PASSED", 3400)), "//a:a passed, 3 s (1 of 12)")
        self.assertEqual(seen.take_event(summary("//a:b", "FAILED", 61000)), "//a:b FAILED, 61 s (2 of 12)")
        self.assertEqual(seen.take_event(summary("//a:c", "TIMEOUT", 240000)), "//a:c TIMED OUT, 240 s (3 of 12)")
        self.assertEqual(seen.take_event(summary("//a:d", "PASSED", 50000, cached=1)), "//a:d passed, as before (4 of 12)")
        self.assertIsNone(seen.take_event(summary("//a:e", "NO_STATUS")))
        self.assertIsNone(seen.take_event(json.dumps({"id": {"progress": {}}, "progress": {}})))
        self.assertEqual(seen.line(600), "building: 19 of 21 steps, 4 of 12 tests, 10:00")
        self.assertTrue(seen.last_line(600).endswith("slowest: //a:c 240 s, //a:b 61 s, //a:a 3 s"))

    def test_before_bazel_says_how_many_tests_there_are_those_count_that_it_looked_at(self):
        seen = progress.Progress()
        for _ in range(3):
            seen.take_event(json.dumps({"id": {"targetConfigured": {}}, "configured": {"targetKind": "cc_test rule", "testSize": "SMALL"}}))
        seen.take_event(json.dumps({"id": {"targetConfigured": {}}, "configured": {"targetKind": "cc_library rule"}}))
        self.assertEqual(seen.take_event(summary("//a:a", "PASSED", 3400)), "//a:a passed, 3 s (1 of 3)")

    def test_on_a_terminal_the_line_is_rewritten_else_it_comes_each_ten_seconds(self):
        terminal, pipe = progress.Screen(io.StringIO(), True), progress.Screen(io.StringIO(), False)
        for screen in (terminal, pipe):
            for second in range(12):
                screen.move(f"line {second}", second)
            screen.say("said")
        self.assertIn("\r\x1b[Kline 0\r\x1b[Kline 1", terminal.out.getvalue())
        self.assertTrue(terminal.out.getvalue().endswith("line 11\r\x1b[Ksaid\n"))
        self.assertEqual(pipe.out.getvalue(), "line 0\nline 10\nsaid\n")

    def run_program(self, text, **options):
        screen = progress.Screen(io.StringIO(), False)
        with tempfile.TemporaryDirectory() as folder:
            events = os.path.join(folder, "events")
            code = progress.run([sys.executable, "-c", text, events], events, screen, **options)
        return code, screen.out.getvalue()

    def test_a_run_shows_events_as_they_come_and_hands_its_exit_code_on(self):
        event = summary("//a:a", "PASSED", 1000)
        code, out = self.run_program(f"import sys; open(sys.argv[1], 'a').write({event + chr(10)!r}); print('odd'); sys.exit(3)")
        self.assertEqual(code, 3)
        self.assertIn("odd\n", out)
        self.assertIn("//a:a passed, 1 s (1 of 1)\n", out)

    def test_a_run_that_is_out_of_time_is_interrupted_and_says_so(self):
        code, out = self.run_program("import signal, sys\ntry: signal.pause()\nexcept KeyboardInterrupt: print('ended'); sys.exit(8)", seconds=1)
        self.assertEqual(code, progress.INTERRUPTED)
        self.assertIn("ended\n", out)


if __name__ == "__main__":
    unittest.main()
