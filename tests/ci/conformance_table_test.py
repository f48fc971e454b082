"""docs/conformance.md may be trusted as far as ci/conformance_table.py is: what is broken, skipped or missing must show in it."""

import unittest

from ci import conformance_table, count_tests

FILE = """// Two-sided messages: a SEND meets
// the oldest receive.
#include <vector>

class SendTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(SendTest);

// Further things.
class MoreTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(MoreTest);
"""
SUITES = [conformance_table.Suite("SendTest", "Messages.")]


def run(*cases):
    return conformance_table.promises_of(
        [count_tests.case(status, f"Conformance/SendTest.{name}", reason) for status, name, reason in cases]
    )


class ConformanceTableTest(unittest.TestCase):
    def row(self, *cases):
        text, troubles = conformance_table.render(SUITES, [("sim", run(*cases))])
        rows = [line for line in text.splitlines() if line.startswith("| A ")]
        self.assertEqual(len(rows), 1)
        return rows[0], troubles

    def test_a_name_becomes_a_sentence(self):
        for name, sentence in [
            ("AWriteOneByteTooLongIsDenied", "A write one byte too long is denied"),
            ("QueuePairNumbersHave24BitsAndDiffer", "Queue pair numbers have 24 bits and differ"),
            ("AReadFetchesThePeersBytes", "A read fetches the peer's bytes"),
        ]:
            self.assertEqual(conformance_table.sentence(name), sentence)

    def test_suites_are_introduced_by_their_file_or_their_class(self):
        self.assertEqual(
            conformance_table.suites_of("send_test.cc", FILE),
            [("SendTest", "Two-sided messages: a SEND meets the oldest receive."), ("MoreTest", "Further things.")],
        )

    def test_a_promise_is_kept_where_its_test_passed(self):
        self.assertEqual(self.row(("passed", "ASend/udp", "")), ("| A send | kept |", []))
        self.assertEqual(
            self.row(("passed", "ASend/clean", ""), ("passed", "ASend/busy", "")), ("| A send | kept, 2 of 2 |", [])
        )

    def test_a_promise_that_fails_anywhere_is_broken(self):
        row, troubles = self.row(("passed", "ASend/clean", ""), ("failed", "ASend/busy", "lost"))
        self.assertEqual(row, "| A send | **broken** |")
        self.assertEqual(troubles, ["SendTest.ASend is broken on sim"])

    def test_a_skip_shows_the_capability_that_it_names(self):
        row, troubles = self.row(("skipped", "ASend/udp", "skipped: device lacks Limits::immediate"))
        self.assertEqual((row, troubles), ("| A send | lacks `immediate` |", []))

    def test_a_skip_that_names_no_capability_is_trouble(self):
        row, troubles = self.row(("skipped", "ASend/udp", "not today"))
        self.assertEqual(row, "| A send | **skipped** |")
        self.assertEqual(len(troubles), 1)

    def test_a_promise_that_one_backend_did_not_run_is_trouble(self):
        _, troubles = conformance_table.render(SUITES, [("sim", run(("passed", "ASend/clean", ""))), ("udp", {})])
        self.assertEqual(troubles, ["SendTest.ASend was not run on udp"])

    def test_a_backend_that_this_machine_lacks_keeps_its_column(self):
        here, there = run(("passed", "ASend/udp", "")), run(("passed", "ASend/raw", ""))
        before, _ = conformance_table.render(SUITES, [("udp", here), ("raw", there)])
        nowhere = run(("skipped", "ASend/raw", "skipped: no network namespace"))
        after, troubles = conformance_table.render(SUITES, [("udp", here), ("raw", nowhere)], before)
        self.assertEqual((after, troubles), (before, []))
        _, troubles = conformance_table.render(SUITES, [("udp", here), ("raw", nowhere)])
        self.assertEqual(len(troubles), 1)

    def test_a_backend_whose_test_did_not_come_to_run_keeps_its_column(self):
        here, there = run(("passed", "ASend/udp", "")), run(("passed", "ASend/rxe", ""))
        before, _ = conformance_table.render(SUITES, [("udp", here), ("rxe", there)])
        after, troubles = conformance_table.render(SUITES, [("udp", here), ("rxe", {})], before, absent=["rxe"])
        self.assertEqual((after, troubles), (before, []))
        self.assertTrue(conformance_table.is_skipped([{"status": "skipped"}]))
        self.assertFalse(conformance_table.is_skipped([]))

    def test_a_check_of_a_run_without_the_guests_keeps_their_columns(self):
        labels = dict(conformance_table.BACKENDS)
        cases = {labels["udp"]: [count_tests.case("passed", "Conformance/SendTest.ASend/udp")], labels["raw"]: []}
        promises = {"udp": conformance_table.promises_of(cases[labels["udp"]])}
        absent = conformance_table.absent_backends(cases, promises, partly=True)
        self.assertIn("rxe", absent)
        self.assertNotIn("udp", absent)
        self.assertNotIn("raw", absent)  # its test ran, and should have had cases
        self.assertEqual(conformance_table.absent_backends(cases, promises, partly=False), [])

    def test_a_suite_without_tests_is_trouble(self):
        _, troubles = conformance_table.render(SUITES, [("sim", {})])
        self.assertEqual(troubles, ["SendTest has no test that ran"])


if __name__ == "__main__":
    unittest.main()
