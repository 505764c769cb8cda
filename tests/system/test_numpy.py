"""Runs the numpy example in docs/formats.md."""

import re
import subprocess
import sys

import pytest

import harness
import reference
from harness import ROOT, equal, run


def test_the_documented_example_reads_a_trace(tmp):
    if subprocess.run([sys.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("numpy is not installed (python3-numpy)")
    example = re.search(r"```python\n(.*?)```", (ROOT / "docs/formats.md").read_text(), re.S).group(1)
    equal(example.count("\n"), 5, "lines")
    data = harness.sim_records(20000)
    (tmp / "trace.byu").write_bytes(data)
    done = run(sys.executable, "-c", example, cwd=tmp)
    equal(done.returncode, 0, done.stderr.decode())
    expected = reference.expect_byu(data)
    addresses = {int.from_bytes(data[at : at + 4], "little") >> 12 for at in range(0, len(data), 12)}
    wanted = (len(data) // 12, sum(data[5::12]), len(addresses), expected.ticks[-1])
    equal(tuple(map(int, done.stdout.split())), wanted, "the output")
