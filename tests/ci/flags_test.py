"""Flags of scripts are looked at before anything is installed or built."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOK = pathlib.Path("lib/cli/tok").resolve()
CI = pathlib.Path("ci").resolve()
HELP = {"--help", "--version"}  # which ci/demo has of its own, or has no use for


def flags_of(*command):
    """As ci/demo lists them, of what a program prints as its flags."""
    printed = subprocess.run([TOK, *command, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    lines = printed.split("Options:\n")[1].split("\n\n")[0].splitlines()
    found = re.findall(r"^  (?:-\w,)?(--[\w-]+)( [A-Z]+)?", "\n".join(lines), re.MULTILINE)
    return {name + ("=" if value else "") for name, value in found if name not in HELP}


class FlagsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(CI, self.root / "ci", symlinks=False, ignore=lambda _, names: [n for n in names if n == "lab"])
        (self.root / "tests/ci").mkdir(parents=True)
        (self.root / ".bazelrc").write_text("build:asan --copt=-g\n")
        # Where the script goes on it sets up first.
        setup = self.root / "ci/setup"
        setup.unlink(missing_ok=True)
        setup.write_text("#!/bin/sh\necho sets up\nexit 3\n")
        setup.chmod(0o755)

    def said(self, code, *command):
        ended = subprocess.run([self.root / command[0], *command[1:]], capture_output=True, text=True, timeout=60,
                               env={"PATH": "/usr/bin:/bin", "BAZEL_STARTUP_OPTIONS": "--no-such-option"})
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout if code == 3 else ended.stderr

    def test_ci_demo_knows_the_flags_of_tok_demo(self):
        listed = re.search(r'^tok_demo_flags="(.*)"$', (CI / "demo").read_text(), re.MULTILINE)[1].split()
        self.assertEqual(set(listed), flags_of("demo") | flags_of())

    def test_a_mistyped_flag_of_the_demo_installs_nothing(self):
        for words, text in [
            (["--form", "/usr/include"], "ci/demo: unknown flag --form (see ci/demo --help)\n"),
            (["--device=rxe", "--lest=1MiB"], "ci/demo: unknown flag --lest (see ci/demo --help)\n"),
            (["--json=1"], "ci/demo: unknown flag --json (see ci/demo --help)\n"),
            (["--least"], "ci/demo: --least needs a value (see ci/demo --help)\n"),
            (["--device", "siw", "/usr/include"], "ci/demo: /usr/include is no flag (see ci/demo --help)\n"),
        ]:
            self.assertEqual(self.said(2, "ci/demo", *words), text)

    def test_right_flags_of_the_demo_go_on(self):
        for words in [[], ["--from", "/usr/include", "--from=/usr/lib", "--json"], ["--device", "soft:udp", "--tokd", "--engines=2"],
                      ["--device=rxe", "--memory=96MiB"]]:
            self.assertEqual(self.said(3, "ci/demo", *words), "sets up\n")

    def test_a_wrong_configuration_of_the_test_installs_nothing(self):
        self.assertIn(".bazelrc has no configuration asna", self.said(2, "ci/test", "--under=asna"))
        self.assertIn("--under needs a configuration", self.said(2, "ci/test", "--under"))
        self.assertEqual(self.said(3, "ci/test", "--under", "asan", "//tests/ci/..."), "sets up\n")

    # Bazel is asked, as far as it is there; here one is that knows one option.
    def test_bazel_says_which_options_of_the_test_are_wrong(self):
        bazel = self.root / "bazel"
        bazel.write_text('#!/bin/sh\ntest "$*" = "canonicalize-flags --for_command=test -- --test_filter=A.*" && exit 0\n'
                         'echo "INFO: of itself"; echo "ERROR: Unrecognized option: --tset_filter" >&2; exit 2\n')
        bazel.chmod(0o755)
        script = f"PATH={self.root}:$PATH; source {self.root}/ci/flags.sh; check_bazel_options ci/test"
        for option, code, text in [("--test_filter='A.*'", 0, ""),
                                   ("--tset_filter=x", 2,
                                    "ci/test: ERROR: Unrecognized option: --tset_filter (see ci/test --help)\n")]:
            ended = subprocess.run(["bash", "-c", f"{script} {option}"], capture_output=True, text=True, timeout=60)
            self.assertEqual((ended.returncode, ended.stderr), (code, text))


if __name__ == "__main__":
    unittest.main()
