"""Public headers stand by themselves: each compiles alone, with nothing but their folder and the standard library."""

import concurrent.futures
import os
import subprocess
import tempfile
import unittest

ROOT = os.getcwd()
HEADERS = sorted(name for name in os.listdir(os.path.join(ROOT, "include/tokamak")) if name.endswith(".h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wnon-virtual-dtor", "-Werror"]
COMPILERS = [(compiler, standard) for compiler in ("g++", "clang++") for standard in ("c++17", "c++20")]


def compile_source(compiler, standard, source, *more):
    """What the compiler says of C++ `source`, "" where nothing."""
    command = [compiler, f"-std={standard}"] + WARNINGS + ["-I", os.path.join(ROOT, "include"), "-x", "c++"] + list(more) + ["-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=300, check=False)
    return done.stderr if done.stderr or done.returncode == 0 else f"exit code {done.returncode}"


class HeadersTest(unittest.TestCase):

    def test_each_compiles_by_itself(self):
        self.assertGreater(len(HEADERS), 8)
        # Twice: it guards itself. What it lacks, no other header has brought in before it.
        jobs = [(header, compiler, standard) for header in HEADERS for compiler, standard in COMPILERS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = pool.map(lambda job: compile_source(job[1], job[2], f'#include "tokamak/{job[0]}"\n' * 2, "-fsyntax-only"), jobs)
            for job, text in zip(jobs, said):
                with self.subTest(job):
                    self.assertEqual(text, "")

    def test_a_header_that_needs_another_is_found(self):
        self.assertIn("no_such_header", compile_source("g++", "c++17", "#include <no_such_header>\n", "-fsyntax-only"))
        self.assertNotEqual(compile_source("clang++", "c++20", "int Unused(int x) { return 1; }\n", "-fsyntax-only"), "")

    def test_a_span_is_what_the_standard_librarys_is(self):
        with open(os.path.join(ROOT, "tests/client/span_in_cxx20.cc"), encoding="utf-8") as file:
            source = file.read()
        for compiler in ("g++", "clang++"):
            with tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "program")
                self.assertEqual(compile_source(compiler, "c++20", source, "-o", program), "")
                self.assertEqual(subprocess.run([program], timeout=60, check=False).returncode, 0, compiler)


if __name__ == "__main__":
    unittest.main()
