"""The annotations: mypy agrees with them, and the stubs have what the extension has."""

import importlib
import os
import re
import subprocess
import sys

import pytest

import tokamak

PACKAGE = os.path.dirname(tokamak.__file__)
USES = """
import tokamak, tokamak.aio, tokamak.testing

def use(client: tokamak.Client) -> bytes:
    with client.create("x", 8, b"metadata", timeout=None) as writer:
        writer.data[:] = bytes(8)
    errors: list[tokamak.Error | None] = client.pin(["x"])
    got: tokamak.Object = client.get("x")
    return bytes(got) + got.metadata
"""


def run_mypy(tmp_path, *what):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["MYPYPATH"] = os.path.dirname(PACKAGE)
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *what], capture_output=True, text=True,
                          timeout=300, env=environment)


def test_mypy_is_content_with_the_package_and_with_a_program_that_uses_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USES, encoding="utf-8")
    done = run_mypy(tmp_path / "cache", "--ignore-missing-imports", "-p", "tokamak", "--python-version", "3.11")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    done = run_mypy(tmp_path / "cache", str(program))
    assert done.returncode == 0, done.stdout
    program.write_text(USES + "\nwrong: int = use(tokamak.Client())\n", encoding="utf-8")
    assert "Incompatible types" in run_mypy(tmp_path / "cache", str(program)).stdout


@pytest.mark.parametrize("name", ["Client", "ClusterView", "Event", "Events", "Evicted", "Gets", "Interrupt", "NodeInfo", "Object", "ObjectId", "ObjectInfo",
                                  "ObjectStat", "Subscription", "ViewedNode", "Writer"])
def test_the_stubs_have_what_the_extension_has(name):
    with open(os.path.join(PACKAGE, "_native.pyi"), encoding="utf-8") as file:
        stubs = file.read()
    native = importlib.import_module("tokamak._native")
    classes = {re.match(r"\w+", body).group(): body for body in stubs.split("\nclass ")[1:]}
    body = classes[name] + (classes["_Exporter"] if name in ("Object", "Writer") else "")
    for member in vars(getattr(native, name)):
        if not member.startswith("_"):
            assert f"def {member}(" in body or f"    {member}: Final[" in body, member
