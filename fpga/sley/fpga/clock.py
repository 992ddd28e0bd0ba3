"""The clock of an ECP5: from the board's oscillator through a PLL."""

from dataclasses import dataclass
from typing import Any

from amaranth import ClockDomain, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

VCO_HZ = (400e6, 800e6)
PHASE_DETECTOR_HZ = (3.125e6, 400e6)
"""Both from Lattice's data sheet FPGA-DS-02012, table of sysCLOCK PLL timing."""


@dataclass(frozen=True)
class PllDividers:
    """Dividers of an EHXPLLL whose output is fed back: output = input * ``feedback`` / ``reference``."""

    reference: int
    feedback: int
    output: int


def pll_dividers(input_hz: int, output_hz: int) -> PllDividers:
    """Dividers that give just this frequency. Raises ``ValueError`` that names the closest ones that can be had."""
    found: dict[float, PllDividers] = {}
    for reference in range(1, 129):
        if not PHASE_DETECTOR_HZ[0] <= input_hz / reference <= PHASE_DETECTOR_HZ[1]:
            continue
        for feedback in range(1, 129):
            made = input_hz * feedback / reference
            fitting = [d for d in range(1, 129) if VCO_HZ[0] <= made * d <= VCO_HZ[1]]
            if fitting and made not in found:
                found[made] = PllDividers(reference, feedback, fitting[len(fitting) // 2])
    if output_hz in found:
        return found[output_hz]
    near = sorted(sorted(found, key=lambda made: abs(made - output_hz))[:2])
    raise ValueError(
        f"the clock is {output_hz / 1e6:g} MHz; from {input_hz / 1e6:g} MHz the PLL makes "
        f"{' or '.join(f'{made / 1e6:g}' for made in near)} MHz, the closest to it"
    )


class Ecp5Clock(Elaboratable):
    """Drives domain ``sync`` with ``clock_hz`` from the platform's default clock; in reset until the PLL has locked.

    Raises ``ValueError`` for a frequency that the PLL cannot make.
    """

    def __init__(self, sync: ClockDomain, input_hz: int, clock_hz: int) -> None:
        self._sync = sync
        self._dividers = pll_dividers(input_hz, clock_hz)
        self._clock_hz = clock_hz

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        sync, dividers = self._sync, self._dividers
        locked = Signal()
        m.submodules.input = pin = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        m.submodules.pll = Instance(
            "EHXPLLL",
            p_CLKI_DIV=dividers.reference,
            p_CLKFB_DIV=dividers.feedback,
            p_CLKOP_DIV=dividers.output,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=dividers.output // 2,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_CLKI=pin.i,
            i_CLKFB=sync.clk,
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=sync.clk,
            o_LOCK=locked,
        )
        m.submodules.reset = ResetSynchronizer(~locked, domain="sync")
        platform.add_clock_constraint(sync.clk, self._clock_hz)
        return m
