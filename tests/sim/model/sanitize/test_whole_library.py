"""All tests of the runtime and of the examples with all sanitizers, which report nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TESTS = ("tests/runtime", "tests/examples")
LEFT_OUT = (
    "deadlock",  # programs that cannot end
    "watchdog",
    "memory_statistics",  # red zones count as memory
    "tuned",  # cycles, which the engine has none of
    "cli",  # texts of other engines
)


@pytest.mark.campaign
def test_reports_nothing() -> None:
    chosen = " and ".join(f"not {name}" for name in LEFT_OUT)
    plugin = (f"--rootdir={ROOT}", "-p", "every_engine", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile")
    command = (sys.executable, "-m", "pytest", "-q", *plugin, "-k", chosen, *TESTS)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(result.stdout[-2000:])
    assert not result.returncode, result.stdout[-20_000:]
