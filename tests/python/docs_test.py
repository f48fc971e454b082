"""The examples of README and docs/python.md, run as they stand."""

import os
import re
import subprocess
import sys

import pytest



def examples_of(page):
    with open(page, encoding="utf-8") as file:
        return re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)


OF_README = examples_of("README.md")
EXAMPLES = OF_README + examples_of("docs/python.md")


def test_there_are_examples():
    assert len(OF_README) == 1
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(number) for number in range(len(EXAMPLES))])
def test_example(cluster, example):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", example], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TOKAMAK_SOCKET": cluster.nodes[0].socket})
    assert (done.returncode, done.stderr) == (0, "")
