"""Lets the tests of each unit import the benches of its folder; their assertions explain themselves as tests do."""

import sys
from pathlib import Path

import pytest

BENCHES = sorted(Path(__file__).parent.rglob("*_bench.py"))

sys.path[:0] = sorted({str(bench.parent) for bench in BENCHES})
pytest.register_assert_rewrite(*(bench.stem for bench in BENCHES))


@pytest.fixture
def _dsp_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """DSP blocks of an ECP5 are simulated."""
    from ecp5_bench import DspBlock

    monkeypatch.setattr("sley.hw.core.matrix.multiplier.ecp5.Instance", DspBlock)
