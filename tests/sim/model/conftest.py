"""What tests of the whole library on another engine share."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RunWith = Callable[[Path, Sequence[str], Sequence[str]], None]


@pytest.fixture
def run_with() -> RunWith:
    """Runs tests with a plugin of pytest, without those whose names have certain words, and fails if one fails."""

    def run(plugin: Path, tests: Sequence[str], left_out: Sequence[str]) -> None:
        chosen = " and ".join(f"not {name}" for name in left_out)
        options = (f"--rootdir={ROOT}", "-p", plugin.stem, "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile")
        command = (sys.executable, "-m", "pytest", "-q", *options, "-k", chosen, *tests)
        environment = os.environ | {"PYTHONPATH": str(plugin.parent)}
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        print(result.stdout[-2000:])
        assert not result.returncode, result.stdout[-20_000:]

    return run
