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
SUITES = [conformance_table.Suite("SendTest", "Messages.", "tests/verbs/conformance/send_test.cc")]


def run(*cases):
    return conformance_table.promises_of(
        [count_tests.case(status, f"Conformance/SendTest.{name}", reason) for status, name, reason in cases]
    )


class ConformanceTableTest(unittest.TestCase):
    def promise(self, *cases):
        text, troubles = conformance_table.render(SUITES, [("sim", run(*cases)), ("udp", run(("passed", "ASend/udp", "")))])
        (answer,) = [said for (_, _, name), said in conformance_table.page_of(text).answers.items() if name == "sim"]
        return answer, troubles

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
            [
                ("SendTest", "Two-sided messages: a SEND meets the oldest receive.", "send_test.cc"),
                ("MoreTest", "Further things.", "send_test.cc"),
            ],
        )

    def test_a_promise_is_kept_where_its_test_passed(self):
        self.assertEqual(self.promise(("passed", "ASend/clean", "")), ("kept", []))
        self.assertEqual(self.promise(("passed", "ASend/clean", ""), ("passed", "ASend/busy", "")), ("kept", []))
        self.assertEqual(
            self.promise(("passed", "ASend/clean", ""), ("skipped", "ASend/busy", "device lacks Limits::immediate")),
            ("kept on 1 of 2, else no `immediate`", []),
        )

    def test_a_promise_that_fails_anywhere_is_broken(self):
        answer, troubles = self.promise(("passed", "ASend/clean", ""), ("failed", "ASend/busy", "lost"))
        self.assertEqual(answer, "**broken**")
        self.assertEqual(troubles, ["SendTest.ASend is broken on sim"])

    def test_a_skip_shows_the_capability_that_it_names(self):
        answer, troubles = self.promise(("skipped", "ASend/udp", "skipped: device lacks Limits::immediate"))
        self.assertEqual((answer, troubles), ("no `immediate`", []))

    def test_a_skip_that_names_no_capability_is_trouble(self):
        answer, troubles = self.promise(("skipped", "ASend/udp", "not today"))
        self.assertEqual(answer, "**skipped**")
        self.assertEqual(len(troubles), 1)

    def test_the_page_is_read_as_it_was_written(self):
        without = ("skipped", "ASend/udp", "device lacks Limits::immediate")
        text, troubles = conformance_table.render(
            SUITES,
            [
                ("sim", run(("passed", "ASend/clean", ""), ("passed", "ASend/busy", ""), ("passed", "BRead/clean", ""))),
                ("rxe", run(without, ("passed", "BRead/udp", ""))),
                ("siw", run(without, ("skipped", "BRead/udp", "device lacks Limits::atomics"))),
                ("raw", run(("skipped", "ASend/udp", "lacks Limits::depth"), ("skipped", "BRead/udp", "lacks Limits::depth"))),
            ],
        )
        self.assertEqual(troubles, [])
        for line in (
            "| raw | software NICs over raw sockets | 0 of 2 | 0 | `depth` 2 |",
            "Messages. ([send_test.cc](../tests/verbs/conformance/send_test.cc))",
            "The whole suite (raw: no `depth`):",
            "- A send (rxe, siw: no `immediate`)",
            "- B read (siw: no `atomics`)",
        ):
            self.assertIn(line, text.splitlines())
        page = conformance_table.page_of(text)
        answers = [page.answers["Send", promise, backend] for promise in ("A send", "B read") for backend in page.passed]
        self.assertEqual(
            answers,
            ["kept", "no `immediate`", "no `immediate`", "no `depth`"] + ["kept", "kept", "no `atomics`", "no `depth`"],
        )
        self.assertEqual(page.passed, {"sim": 3, "rxe": 1, "siw": 0, "raw": 0})

    def test_a_network_that_did_not_run_a_promise_shows(self):
        both = run(("passed", "ASend/clean", ""), ("passed", "ASend/busy", ""))
        one = run(("passed", "ASend/clean", ""))
        self.assertNotEqual(
            conformance_table.render(SUITES, [("sim", both)]), conformance_table.render(SUITES, [("sim", one)])
        )

    def test_a_promise_that_one_backend_did_not_run_is_trouble(self):
        _, troubles = conformance_table.render(SUITES, [("sim", run(("passed", "ASend/clean", ""))), ("udp", {})])
        self.assertEqual(troubles, ["SendTest.ASend was not run on udp"])

    def test_a_backend_that_this_machine_lacks_keeps_its_answers(self):
        here, there = run(("passed", "ASend/udp", "")), run(("passed", "ASend/raw", ""))
        before, _ = conformance_table.render(SUITES, [("udp", here), ("raw", there)])
        nowhere = run(("skipped", "ASend/raw", "skipped: no network namespace"))
        after, troubles = conformance_table.render(SUITES, [("udp", here), ("raw", nowhere)], before)
        self.assertEqual((after, troubles), (before, []))
        _, troubles = conformance_table.render(SUITES, [("udp", here), ("raw", nowhere)])
        self.assertEqual(len(troubles), 1)

    def test_a_backend_whose_test_did_not_come_to_run_keeps_its_answers(self):
        here, there = run(("passed", "ASend/udp", "")), run(("passed", "ASend/rxe", ""))
        before, _ = conformance_table.render(SUITES, [("udp", here), ("rxe", there)])
        after, troubles = conformance_table.render(SUITES, [("udp", here), ("rxe", {})], before, absent=["rxe"])
        self.assertEqual((after, troubles), (before, []))
        self.assertTrue(conformance_table.is_skipped([{"status": "skipped"}]))
        self.assertFalse(conformance_table.is_skipped([]))

    def test_a_check_of_a_run_without_the_guests_keeps_their_answers(self):
        labels = {name: label for name, label, _ in conformance_table.BACKENDS}
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
