"""The index of files says of each what its first sentence says."""

import os
import tempfile
import unittest

from ci import file_index


class FileIndexTest(unittest.TestCase):
    def test_the_first_sentence_ends_where_the_next_begins(self):
        self.assertEqual(file_index.first_sentence("Credits count slots (see slots.h). Law: more."), "Credits count slots (see slots.h).")
        self.assertEqual(file_index.first_sentence("Speaks RoCEv2 in 4.096 us steps, e.g. here"), "Speaks RoCEv2 in 4.096 us steps, e.g. here")

    def test_a_header_stands_for_its_source(self):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, "lib", "store")
            os.makedirs(folder)
            for name, text in (("BUILD", 'load("x")\n\n# Objects in an arena.\npackage()\n'), ("pin.h", "// Pin holds an\n// object | fast.\n//\n// Law.\n"),
                               ("pin.cc", "// Not this.\n"), ("main.cc", "// Starts it.\n"), ("silent.cc", "#include <x>\n")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            page = file_index.page(root)
        self.assertIn("## lib/store\n\nObjects in an arena.\n", page)
        self.assertIn("| `pin.h` | Pin holds an object \\| fast. |\n", page)
        self.assertIn("| `main.cc` | Starts it. |\n", page)
        self.assertNotIn("silent", page)
        self.assertNotIn("Not this", page)


if __name__ == "__main__":
    unittest.main()
