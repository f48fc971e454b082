"""ci/demo, ci/test, ci/setup, ci/system, ci/other_debian and .ci/run: what they refuse, and that they do so before anything is installed or built."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.getcwd())
SCRIPTS = ("ci/debian.sh", "ci/demo", "ci/flags.sh", "ci/other_debian", "ci/test", "ci/setup", "ci/count_tests.py", "ci/progress.py", ".ci/run")
# What a user has who wants to see the main job; none of it is for that.
NOT_FOR_THE_DEMO = {"chromium", "prometheus", "libns3-dev", "qemu-system-x86", "tshark", "libopenmpi-dev", "pybind11-dev", "python3-matplotlib",
                    "clang", "googletest", "mmdebstrap", "docker.io"}


def said(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


class ScriptsTest(unittest.TestCase):

    def setUp(self):
        # A tree in which installing, building and running leave a mark.
        self.tree = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        for script in SCRIPTS:
            (self.tree / script).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / script, self.tree / script)
        shutil.copy(ROOT / ".bazelrc", self.tree / ".bazelrc")
        (self.tree / "tests").mkdir()
        (self.tree / "tests/allowed_skips.txt").write_text("")
        self.mark = self.tree / "mark"
        self.fake("ci/setup", 'echo "ci/setup $*" >>mark')
        (self.tree / "bin").mkdir()

    def tearDown(self):
        shutil.rmtree(self.tree)

    def fake(self, name, text):
        path = self.tree / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_here(self, *command):
        return said(*command, cwd=self.tree, env={**os.environ, "PATH": f"{self.tree}/bin:/usr/bin:/bin"})

    def path_without_bazel(self):
        """A PATH with links to all programs of this machine but bazel, behind the tree's own."""
        programs = self.tree / "programs"
        programs.mkdir()
        for folder in ("/usr/bin", "/bin"):
            for program in os.listdir(folder):
                if not program.startswith("bazel") and not (programs / program).exists():
                    (programs / program).symlink_to(f"{folder}/{program}")
        return f"{self.tree}/bin:{programs}"

    def marks(self):
        return self.mark.read_text().splitlines() if self.mark.exists() else []

    def assert_refused(self, words, *command):
        done = self.run_here(*command)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(self.marks(), [])

    # Flags as such: flags_test.py.
    def test_the_demo_looks_at_values_before_it_installs_anything(self):
        self.assert_refused("--memory: '1 mug' is no size", "ci/demo", "--json", "--memory", "1 mug")
        self.assert_refused("--least: 'x' is no size", "ci/demo", "--least=x")
        self.assert_refused("--from: there is no folder '/no/such'", "ci/demo", "--from", "/usr", "--from=/no/such")

    def test_the_demo_installs_its_part_builds_and_hands_its_flags_on(self):
        self.fake("ci/progress.py", 'echo "built $*" >>mark')
        (self.tree / "bazel-bin/lib/cli").mkdir(parents=True)
        self.fake("bazel-bin/lib/cli/tok", 'echo "tok ${*:3}" >>mark')
        done = self.run_here("ci/demo", "--least", "1.5GiB", "--device=soft:udp", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.marks(), ["ci/setup --for demo", "built build -- --config=opt --config=units //lib/cli:tok //lib/daemon:tokd",
                                        "tok demo --least 1.5GiB --device=soft:udp --json"])

    def test_the_demo_in_a_guest_installs_the_lab_and_moves_less_unless_told_how_much(self):
        self.fake("ci/progress.py", "true")
        self.fake("ci/softroce", 'echo "guest $*" >>mark')
        done = self.run_here("ci/demo", "--device", "rxe", "--memory", "64MiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        setup, guest = self.marks()
        self.assertEqual(setup, "ci/setup --for demo --for lab")
        self.assertIn("--device rxe ", guest)
        self.assertIn("--device ibv:rxe0,ibv:rxe1 --from=/usr/lib/x86_64-linux-gnu --least=16MiB --memory 64MiB", guest)

    def test_ci_test_looks_for_targets_before_it_installs_anything(self):
        self.assert_refused("there is no folder 'tests/stor'", "ci/test", "//tests/stor/...")
        self.assert_refused("there is no folder 'tests/stor'", "ci/test", "tests/stor:store_test")

    def test_ci_test_asks_a_bazel_that_it_had_to_install_too(self):
        self.fake("ci/setup", 'echo "ci/setup $*" >>mark; printf "#!/bin/bash\\necho ERROR: odd >&2; exit 2\\n" >bin/bazel; chmod +x bin/bazel')
        done = said("/bin/bash", "ci/test", "--tset_filter=x", cwd=self.tree, env={"PATH": self.path_without_bazel()})
        self.assertEqual((done.returncode, self.marks()), (2, ["ci/setup --for test"]), done.stderr)
        self.assertIn("ERROR: odd", done.stderr)

    def test_sanitizers_run_what_ci_system_has_too(self):
        self.fake("ci/setup", 'echo "ci/setup $*" >>mark; exit 9')
        self.run_here("ci/test", "--under", "asan")
        self.assertEqual(self.marks(), ["ci/setup --for system"])

    def test_setup_knows_its_parts_only(self):
        shutil.copy(ROOT / "ci/setup", self.tree / "ci/setup")
        self.assert_refused("there is no part 'tests'", "ci/setup", "--for", "tests")
        self.assert_refused("unknown argument --without-lab", "ci/setup", "--without-lab")

    def test_the_other_debian_needs_the_values_of_its_flags(self):
        self.assert_refused("--in needs a value", "ci/other_debian", "--in")
        self.assert_refused("--install needs a value", "ci/other_debian", "--in=/no/such", "--install")

    def test_the_run_refuses_what_it_does_not_know(self):
        self.assert_refused("unknown argument //tests", ".ci/run", "//tests")
        self.assert_refused("--minutes needs a number", ".ci/run", "--minutes", "soon")

    def test_the_run_counts_all_and_names_what_it_had_no_time_for(self):
        for name in ("passed", "failed"):
            self.fake(f"bin/{name}", f'python3 ci/count_tests.py add "$1" {name} "$2" why')
        self.fake("ci/demo", "true")
        self.fake("ci/test", 'passed "$2" one; passed "$2" two')
        self.fake("ci/system", 'echo "ci/system $1 $2" >>mark; python3 ci/count_tests.py add "$4" "left out" "ci/system packages" "no time"')
        done = self.run_here(".ci/run", "--minutes", "10")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.marks(), ["ci/system --minutes 8"])
        self.assertEqual(done.stdout.splitlines(), ["1 left out: ci/system packages (no time)", "3 passed, 0 failed, 0 skipped"])

        self.fake("ci/demo", "exit 3")
        self.fake("ci/test", 'failed "$2" three; exit 1')
        done = self.run_here(".ci/run")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 2 failed, 0 skipped")

        self.fake("ci/demo", "true")
        self.fake("ci/test", "exit 1")  # before it has counted anything
        done = self.run_here(".ci/run")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed, 0 skipped")


class SetupTest(unittest.TestCase):

    def packages(self, *parts):
        done = said("ci/setup", *(word for part in parts for word in ("--for", part)), "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        return set(done.stdout.split())

    def test_the_demo_needs_little(self):
        demo = self.packages("demo")
        self.assertIn("bazel-bootstrap", demo)
        self.assertEqual(demo & NOT_FOR_THE_DEMO, set())
        self.assertLess(len(demo), 30)

    def test_parts_have_those_that_they_begin_with(self):
        self.assertLess(self.packages("demo"), self.packages("test"))
        self.assertLess(self.packages("test") | self.packages("lab"), self.packages("system"))
        self.assertEqual(self.packages("demo", "docker"), self.packages("demo") | self.packages("docker"))
        self.assertEqual(self.packages(), self.packages("test"))

    def test_what_ci_test_does_without_it_does_not_install(self):
        self.assertEqual(self.packages("test") & {"chromium", "prometheus", "qemu-system-x86", "mmdebstrap", "libopenmpi-dev"}, set())


if __name__ == "__main__":
    unittest.main()
