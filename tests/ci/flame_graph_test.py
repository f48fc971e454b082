"""Boxes of a flame graph are where the samples say, and the drawing is well formed."""

import unittest
import xml.etree.ElementTree as ElementTree

from ci import flame_graph

LINES = ["main;a;b 30", "main;a;c<int> 10", "main;a;b 10", "main 50", "", "no count", "odd line x"]


class FlameGraphTest(unittest.TestCase):

    def test_lines_of_one_stack_are_added_and_others_left_out(self):
        self.assertEqual(flame_graph.parse(LINES), {("main", "a", "b"): 40, ("main", "a", "c<int>"): 10, ("main",): 50})

    def test_a_box_is_as_wide_as_its_samples_and_above_its_caller(self):
        found = flame_graph.boxes(flame_graph.parse(LINES))
        self.assertEqual(sorted(found), [(0, 0, 100, "main"), (1, 0, 50, "a"), (2, 0, 40, "b"), (2, 40, 10, "c<int>")])

    def test_the_drawing_is_well_formed_and_names_each_box(self):
        root = ElementTree.fromstring(flame_graph.draw(flame_graph.parse(LINES), "a <title> & more"))
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("c<int>: 10 samples, 10.0 %", titles)
        self.assertEqual(len(titles), 4)

    def test_nothing_sampled_is_drawn_empty(self):
        self.assertIn("0 samples", flame_graph.draw({}, "nothing"))


if __name__ == "__main__":
    unittest.main()
