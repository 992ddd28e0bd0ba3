"""Lets the tests of this folder import their helpers, whose assertions explain themselves like those of tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("element_bench", "load_bench", "matrix_bench", "vector_bench")


@pytest.fixture
def _dsp_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """DSP blocks of an ECP5 are simulated."""
    from ecp5_bench import DspBlock

    monkeypatch.setattr("sley.hw.core.ecp5_multiplier.Instance", DspBlock)
