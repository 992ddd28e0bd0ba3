"""The clock of a board: from its oscillator through a PLL of the FPGA."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer


@dataclass(frozen=True)
class Pll:
    """Limits of a PLL, in Hz where they are frequencies.

    ``output_fed_back``: what is compared with the input is the output, and not the oscillator in front of its divider.
    """

    oscillator: tuple[float, float]
    detector: tuple[float, float]
    reference: Sequence[int]
    feedback: Sequence[int]
    output: Sequence[int]
    output_fed_back: bool = False


PLLS = {
    # Lattice FPGA-DS-02012, table of sysCLOCK PLL timing
    "ecp5": Pll((400e6, 800e6), (3.125e6, 400e6), range(1, 129), range(1, 129), range(1, 129), output_fed_back=True),
    # Lattice FPGA-DS-02008, table of sysCLOCK PLL timing; FPGA-TN-02052 for the dividers
    "ice40": Pll((533e6, 1066e6), (10e6, 133e6), range(1, 17), range(1, 129), [2, 4, 8, 16, 32, 64]),
    # Gowin DS102, table of PLL switching characteristics, speed grade C7/I6 and faster; UG286 for the dividers
    "gowin": Pll(
        (500e6, 1250e6),
        (3e6, 500e6),
        range(1, 65),
        range(1, 65),
        [2, 4, 8, *range(16, 129, 16)],
        output_fed_back=True,
    ),
    # AMD DS181, table of PLL specification, speed grade -1; UG472 for the dividers
    "xc7": Pll((800e6, 1600e6), (19e6, 450e6), range(1, 57), range(2, 65), range(1, 129)),
}
"""By the family's name."""


@dataclass(frozen=True)
class PllDividers:
    """Dividers of a PLL, by what they divide."""

    reference: int
    feedback: int
    output: int


def pll_dividers(pll: Pll, input_hz: int, output_hz: int) -> PllDividers:
    """Dividers that give just this frequency. Raises ``ValueError`` that names the closest ones that can be had."""
    found: dict[float, PllDividers] = {}
    for reference in pll.reference:
        if not pll.detector[0] <= input_hz / reference <= pll.detector[1]:
            continue
        for feedback in pll.feedback:
            compared = input_hz * feedback / reference
            if pll.output_fed_back:
                made = {compared: [d for d in pll.output if pll.oscillator[0] <= compared * d <= pll.oscillator[1]]}
            elif pll.oscillator[0] <= compared <= pll.oscillator[1]:
                made = {compared / d: [d] for d in pll.output}
            else:
                continue
            for frequency, fitting in made.items():
                if fitting and frequency not in found:
                    found[frequency] = PllDividers(reference, feedback, fitting[len(fitting) // 2])
    if output_hz in found:
        return found[output_hz]
    near = sorted(sorted(found, key=lambda made: abs(made - output_hz))[:2])
    raise ValueError(
        f"the clock is {output_hz / 1e6:g} MHz; from {input_hz / 1e6:g} MHz the PLL makes "
        f"{' or '.join(f'{made / 1e6:g}' for made in near)} MHz, the closest to it"
    )


GATED = ("ecp5",)
"""Families whose clock is held until the PLL has locked. Flip-flops begin as they were configured, and a domain so
clocked has no reset, whose wires would lead to nearly all of them."""


class PllClock(Elaboratable):
    """Drives domain ``sync`` with ``clock_hz`` from the platform's default clock, once the PLL has locked: in reset, or
    without a clock, until then.

    ``family`` is the name of the FPGA's; of those in ``GATED`` the domain may be without reset. Raises ``ValueError``
    for a domain of another family that is, and for a frequency that the PLL cannot make.
    """

    def __init__(self, sync: ClockDomain, family: str, input_hz: int, clock_hz: int) -> None:
        self._sync = sync
        self._family = family
        self._input_hz = input_hz
        self._clock_hz = clock_hz
        self._dividers = pll_dividers(PLLS[family], input_hz, clock_hz)

    def elaborate(self, platform: Any) -> Module:
        if self._sync.rst is None and self._family not in GATED:
            raise ValueError(f"domain sync has no reset; the clock of {self._family} is not held, so it needs one")
        m = Module()
        locked = Signal()
        pin = platform.request(platform.default_clk, dir="-")
        makers = {"ecp5": self._ecp5, "ice40": self._ice40, "gowin": self._gowin, "xc7": self._xc7}
        ready = makers[self._family](m, pin, locked)
        if self._sync.rst is not None:
            m.submodules.reset = ResetSynchronizer(~ready, domain="sync")
        platform.add_clock_constraint(self._sync.clk, self._clock_hz)
        return m

    def _ecp5(self, m: Module, pin: Any, locked: Signal) -> Signal:
        m.submodules.input = buffer = io.Buffer("i", pin)
        made = self._gated(m, locked) if self._sync.rst is None else self._sync.clk
        m.submodules.pll = Instance(
            "EHXPLLL",
            p_CLKI_DIV=self._dividers.reference,
            p_CLKFB_DIV=self._dividers.feedback,
            p_CLKOP_DIV=self._dividers.output,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=self._dividers.output // 2,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_CLKI=buffer.i,
            i_CLKFB=made,
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=made,
            o_LOCK=locked,
        )
        return locked

    def _gated(self, m: Module, locked: Signal) -> Signal:
        """The clock in front of a gate, which opens while that is low: the first pulse behind it is a whole one."""
        made = Signal()
        m.domains.made = ClockDomain(local=True, async_reset=True, clk_edge="neg")
        m.d.comb += [ClockSignal("made").eq(made), ResetSignal("made").eq(~locked)]
        stable, ready = Signal(), Signal()
        m.d.made += [stable.eq(1), ready.eq(stable)]
        m.submodules.gate = Instance("DCCA", i_CLKI=made, i_CE=ready, o_CLKO=self._sync.clk)
        return made

    def _ice40(self, m: Module, pin: Any, locked: Signal) -> Signal:
        """A block RAM reads zeros for some microseconds after configuration: reset outlasts them."""
        detector = self._input_hz / self._dividers.reference
        filters = (17e6, 26e6, 44e6, 66e6, 101e6)  # as in icepll
        m.submodules.pll = Instance(
            "SB_PLL40_PAD",
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=self._dividers.reference - 1,
            p_DIVF=self._dividers.feedback - 1,
            p_DIVQ=self._dividers.output.bit_length() - 1,
            p_FILTER_RANGE=1 + sum(detector >= bound for bound in filters),
            i_PACKAGEPIN=pin.io,
            i_RESETB=1,
            i_BYPASS=0,
            o_PLLOUTGLOBAL=self._sync.clk,
            o_LOCK=locked,
        )
        m.domains.power_on = ClockDomain(local=True, async_reset=True)
        m.d.comb += [ClockSignal("power_on").eq(self._sync.clk), ResetSignal("power_on").eq(~locked)]
        cycles = int(15e-6 * self._clock_hz)
        count, ready = Signal(range(cycles + 1)), Signal()
        with m.If(count == cycles):
            m.d.power_on += ready.eq(1)
        with m.Else():
            m.d.power_on += count.eq(count + 1)
        return ready

    def _gowin(self, m: Module, pin: Any, locked: Signal) -> Signal:
        m.submodules.input = buffer = io.Buffer("i", pin)
        constants = {name: 0 for name in ("RESET", "RESET_P", "CLKFB", "FBDSEL", "IDSEL", "ODSEL", "PSDA", "DUTYDA")}
        m.submodules.pll = Instance(
            "rPLL",
            p_FCLKIN=f"{self._input_hz / 1e6:g}",
            p_IDIV_SEL=self._dividers.reference - 1,
            p_FBDIV_SEL=self._dividers.feedback - 1,
            p_ODIV_SEL=self._dividers.output,
            p_DYN_IDIV_SEL="false",
            p_DYN_FBDIV_SEL="false",
            p_DYN_ODIV_SEL="false",
            p_CLKFB_SEL="internal",
            p_CLKOUT_BYPASS="false",
            p_DEVICE="GW2A-18C",
            i_CLKIN=buffer.i,
            o_CLKOUT=self._sync.clk,
            o_LOCK=locked,
            **{f"i_{name}": value for name, value in constants.items()},
            i_FDLY=0,
        )
        return locked

    def _xc7(self, m: Module, pin: Any, locked: Signal) -> Signal:
        m.submodules.input = buffer = io.Buffer("i", pin)
        feedback, made = Signal(), Signal()
        m.submodules.pll = Instance(
            "PLLE2_BASE",
            p_CLKIN1_PERIOD=1e9 / self._input_hz,
            p_DIVCLK_DIVIDE=self._dividers.reference,
            p_CLKFBOUT_MULT=self._dividers.feedback,
            p_CLKOUT0_DIVIDE=self._dividers.output,
            i_CLKIN1=buffer.i,
            i_CLKFBIN=feedback,
            i_RST=0,
            i_PWRDWN=0,
            o_CLKFBOUT=feedback,
            o_CLKOUT0=made,
            o_LOCKED=locked,
        )
        m.submodules.global_buffer = Instance("BUFG", i_I=made, o_O=self._sync.clk)
        return locked
