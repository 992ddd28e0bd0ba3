"""DSP blocks for the tests of multipliers."""

import pytest


@pytest.fixture
def _dsp_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """DSP blocks of an ECP5 are simulated."""
    from ecp5_bench import DspBlock

    monkeypatch.setattr("sley.hw.core.matrix.multiplier.ecp5.Instance", DspBlock)
