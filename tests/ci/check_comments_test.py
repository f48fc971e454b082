"""Comments that break the rules of plain English are found, and no others."""

import unittest

from ci import check_comments


def wrong(text):
    return [why for _, why in check_comments.wrong_comments("a.h", text)]


class CheckCommentsTest(unittest.TestCase):
    def test_finds_sentences_that_do_not_begin_with_their_subject(self):
        for word in ("What", "Whoever", "Those", "Of"):
            with self.subTest(word):
                self.assertEqual(wrong(f"// {word} the owner.\n"), [f"a sentence begins with '{word}'"])
                self.assertEqual(wrong(f"int a;  // bytes. {word} the owner\n"), [f"a sentence begins with '{word}'"])

    def test_finds_them_where_a_sentence_begins_within_a_paragraph(self):
        self.assertEqual(wrong("// Sends it.\n// What is left waits.\n"), ["a sentence begins with 'What'"])
        self.assertEqual(wrong("// Sends it to those,\n// What a name.\n"), [])

    def test_finds_what_is_told_or_said(self):
        self.assertEqual(len(wrong("// The peer is told so.\n")), 1)
        self.assertEqual(wrong("// The error is reported.\n"), [])

    def test_finds_lines_of_comment_that_are_too_long(self):
        self.assertEqual(len(wrong("// " + "x" * 98 + "\n")), 1)
        self.assertEqual(wrong("// " + "x" * 97 + "\n"), [])

    def test_takes_no_text_for_a_comment(self):
        self.assertEqual(wrong('Say("http://What is told. Of it");\n'), [])


if __name__ == "__main__":
    unittest.main()
