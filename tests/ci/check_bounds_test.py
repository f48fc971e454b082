"""A table of bounds that says something else than the code is found."""

import unittest

from ci import check_bounds

GOOD = "| `kMaxThings` | `4 * 1024` | things | all peers | `lib/node/things.h` |\n"
SOURCE = "constexpr size_t kMaxThings =\n    4 * 1024;  // of one\n"


class CheckBoundsTest(unittest.TestCase):
    def test_takes_what_is_right(self):
        self.assertEqual(check_bounds.differences(GOOD, {"lib/node/things.h": SOURCE}), [])

    def test_finds_another_value(self):
        wrong = check_bounds.differences(GOOD, {"lib/node/things.h": SOURCE.replace("4 *", "8 *")})
        self.assertEqual(wrong, ["docs/bounds.md: kMaxThings is 8 * 1024 in lib/node/things.h, not 4 * 1024"])

    def test_finds_a_constant_that_is_gone(self):
        wrong = check_bounds.differences(GOOD, {"lib/node/other.h": ""})
        self.assertEqual(wrong, ["docs/bounds.md: there is no kMaxThings in lib/node/things.h"])

    def test_finds_a_bound_without_a_row(self):
        sources = {"lib/node/things.h": SOURCE, "lib/store/new.h": "static constexpr uint32_t kMaxNew = 1;\n"}
        self.assertEqual(check_bounds.differences(GOOD, sources), ["docs/bounds.md: kMaxNew of lib/store/new.h has no row"])

    def test_asks_for_rows_in_some_rooms_only(self):
        bound = "constexpr size_t kMaxNew = 1;\n"
        sources = {"lib/node/things.h": SOURCE, "lib/verbs/ibv/a.h": bound, "lib/verbs/soft/b.h": bound, "lib/verbs/ibver.h": bound}
        self.assertEqual(check_bounds.differences(GOOD, sources), ["docs/bounds.md: kMaxNew of lib/verbs/ibv/a.h has no row"])

    def test_finds_a_document_without_rows(self):
        self.assertEqual(len(check_bounds.differences("words", {})), 1)

    def test_knows_members_of_options(self):
        row = "| `Options::slots` | `128` | slots | one connection | `lib/transport/x.h` |\n"
        self.assertEqual(check_bounds.differences(row, {"lib/transport/x.h": "  uint32_t slots = 128;  // each\n"}), [])


if __name__ == "__main__":
    unittest.main()
