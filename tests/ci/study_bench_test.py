"""Commands of the study: what they say is kept, and what fails is said and does not stop the rest."""

import contextlib
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import unittest

from study import bench, machine, parts


class BenchTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bench = bench.Bench(root=os.path.join(folder.name, "tree"), programs=os.path.join(folder.name, "bin"), work=folder.name + "/spare",
                                 data=folder.name, mode="quick")
        self.bench.begin("pulls", "1/1")
        self.folder = folder.name

    def run_python(self, program, read=json.loads, limit=30):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            done = self.bench.run("a", [sys.executable, "-c", program], read, limit)
        return done, said.getvalue()

    def test_results_are_kept_with_command_time_and_load(self):
        done, said = self.run_python("import sys; print('[1, 2]'); print('half way', file=sys.stderr)")
        self.assertTrue(done)
        self.assertIn("half way", said)
        run, = self.bench.runs
        self.assertEqual((run["name"], run["results"]), ("a", [1, 2]))
        self.assertEqual(len(run["load"]), 2)
        self.assertTrue(0 <= run["others"] <= 1)
        self.assertIn("print", run["command"])

    def test_no_place_of_the_machine_gets_into_a_record(self):
        done, _ = self.run_python(f"print('[\"{self.folder}/bin/x {self.folder}/spare/y\"]')")
        self.assertTrue(done)
        self.assertEqual(self.bench.runs[0]["results"], ["bazel-bin/x /tmp/study/y"])
        self.assertNotIn(self.folder, json.dumps(self.bench.runs))

    def test_a_command_that_fails_is_trouble_with_its_last_lines(self):
        done, _ = self.run_python("import sys; print('first', file=sys.stderr); sys.exit('it broke')")
        self.assertFalse(done)
        self.assertEqual(self.bench.trouble, ["a: ended with 1: first / it broke"])
        self.assertEqual(self.bench.runs, [])

    def test_what_comes_after_is_still_measured_and_the_record_says_partly(self):
        self.run_python("import sys; sys.exit(3)")
        self.run_python("print('[]')")
        self.assertEqual(len(self.bench.runs), 1)
        self.assertEqual(self.bench.trouble, ["a: ended with 3: it said nothing"])

    def test_output_that_cannot_be_read_is_trouble(self):
        self.run_python("print('no json')")
        self.run_python("print('{}')", read=lambda text: json.loads(text)["rows"])
        self.assertEqual(len(self.bench.trouble), 2)
        self.assertIn("its output is not as expected", self.bench.trouble[0])

    def test_a_program_that_is_not_there_is_trouble(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.bench.run("a", [self.folder + "/bin/none"], json.loads, 5)
        self.assertEqual(self.bench.trouble, ["a: none: No such file or directory"])

    def test_one_that_does_not_end_is_ended_with_all_that_it_started(self):
        program = ("import subprocess, sys; child = subprocess.Popen(['cat'], stdin=subprocess.PIPE); "
                   "print(child.pid, file=sys.stderr, flush=True); child.wait()")
        done, said = self.run_python(program, limit=2)
        self.assertFalse(done)
        self.assertEqual(self.bench.trouble, ["a: did not end within 2 s"])
        child = next(int(line) for line in said.splitlines() if line.isdigit())
        with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(child)) as end:
            self.assertEqual(select.select([end], [], [], 10)[0], [end], "it still runs")


class PlansTest(unittest.TestCase):

    def test_each_part_is_described(self):
        self.assertEqual(set(parts.ABOUT), set(parts.PARTS) | {"phases"})

    def test_full_measures_at_least_what_quick_does(self):
        quick, full = parts.PLANS["quick"], parts.PLANS["full"]
        for name in quick._fields:
            a, b = getattr(quick, name), getattr(full, name)
            if isinstance(a, list):
                self.assertLessEqual(set(a), set(b), name)
            elif isinstance(a, int):
                self.assertLess(a, b, name)

    def test_sizes_of_sweeps_are_read(self):
        for plan in parts.PLANS.values():
            sizes = [parts.bytes_of(text) for text in plan.fabric_sizes]
            self.assertEqual(sizes, sorted(sizes))


class CommitTest(unittest.TestCase):

    def test_only_sources_that_changed_make_a_commit_dirty(self):
        with tempfile.TemporaryDirectory() as root:
            def git(*words):
                own = ["-c", "user.name=a", "-c", "user.email=a@b"]
                subprocess.run(["git", "-C", root, *own, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def write(path, text):
                with open(os.path.join(root, path), "w", encoding="ascii") as file:
                    file.write(text)

            self.assertEqual(machine.commit_of(root), "unknown")
            git("init")
            os.makedirs(os.path.join(root, "docs/study"))
            write("docs/study/README.md", "one")
            write("code.cc", "one")
            git("add", ".")
            git("commit", "-m", "one")
            clean = machine.commit_of(root)
            self.assertRegex(clean, "^[0-9a-f]+$")
            write("docs/study/README.md", "two")
            self.assertEqual(machine.commit_of(root), clean)
            write("code.cc", "two")
            self.assertEqual(machine.commit_of(root), clean + "-dirty")


if __name__ == "__main__":
    unittest.main()
