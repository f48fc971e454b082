"""Runs the pytest suite beside this file as one test of Bazel's: its cases are those of the report that Bazel reads."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.relpath(__file__)) or "."
PACKAGE = os.path.abspath("python")


def main() -> int:
    sys.path.insert(0, PACKAGE)
    os.environ["PYTHONPATH"] = PACKAGE  # of programs that tests start
    os.environ.setdefault("TOKAMAK_TOKD", os.path.abspath("lib/daemon/tokd"))
    options = ["-p", "no:cacheprovider", "--rootdir", os.getcwd(), "--durations", "5", "-q"]
    if report := os.environ.get("XML_OUTPUT_FILE"):
        options += ["--junitxml", report]
    return pytest.main(options + (sys.argv[1:] or [HERE]))


if __name__ == "__main__":
    sys.exit(main())
