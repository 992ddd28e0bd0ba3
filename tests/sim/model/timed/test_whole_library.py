"""All tests of whole systems, kernels and operators on the chip of twins and the gateware at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TESTS = ("tests/system", "tests/runtime/kernels", "tests/runtime/nn", "tests/runtime/tile", "tests/examples")
LEFT_OUT = (
    "fuzz",  # their chip is a watched one, which has no twin
    "watched",
    "soak",
    "isolation",
    "test_random_traffic_against_the_model",  # reads what it has not waited for
    "test_a_warm_launch",  # peeks into the gateware
)


@pytest.mark.campaign
def test_every_cycle_is_the_same() -> None:
    chosen = " and ".join(f"not {name}" for name in LEFT_OUT)
    plugin = (f"--rootdir={ROOT}", "-p", "paired_engine", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile")
    command = (sys.executable, "-m", "pytest", "-q", *plugin, "-k", chosen, *TESTS)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(result.stdout[-2000:])
    assert not result.returncode, result.stdout[-20_000:]
