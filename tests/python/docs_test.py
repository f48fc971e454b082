"""The examples of docs/python.md, run as they stand."""

import os
import re
import subprocess
import sys

import pytest

with open("docs/python.md", encoding="utf-8") as file:
    EXAMPLES = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(number) for number in range(len(EXAMPLES))])
def test_example(cluster, example):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", example], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TOKAMAK_SOCKET": cluster.nodes[0].socket})
    assert (done.returncode, done.stderr) == (0, "")
