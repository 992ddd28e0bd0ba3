"""The signals of an SDRAM, its commands, and the pins of a board behind them."""

from typing import Any

from amaranth import Cat, Elaboratable, Module
from amaranth.lib import enum, io, wiring
from amaranth.lib.wiring import In, Out, Signature

from sley.fpga.memory.sdram.part import BANK_BITS, WORD_BYTES, SdramPart
from sley.fpga.memory.sdram.timing import sdram_timing

ROUND_TRIP_NS = 6.0
"""Longest round trip, of the clock to the part and of the data back, pins and set-up included. An estimate from the
tables of external switching characteristics in Lattice's data sheet FPGA-DS-02012; not measured."""
PRECHARGE_ALL = 1 << 10
"""Address bit of a precharge of all banks; in a column command it would precharge the bank by itself."""


class Command(enum.Enum):
    """RAS, CAS and WE, from the highest bit; 1 is what makes the pin low."""

    NOP = 0
    STOP = 1
    READ = 2
    WRITE = 3
    ACTIVATE = 4
    PRECHARGE = 5
    REFRESH = 6
    MODE = 7


def sdram_signature(row_bits: int) -> Signature:
    """An SDRAM as its controller sees it; ``Out`` from the controller. ``mask`` is DQM."""
    return Signature(
        {
            "command": Out(Command),
            "bank": Out(BANK_BITS),
            "address": Out(max(row_bits, 11)),
            "mask": Out(WORD_BYTES, init=-1 % (1 << WORD_BYTES)),
            "out": Out(8 * WORD_BYTES),
            "drive": Out(1),
            "data": In(8 * WORD_BYTES),
        }
    )


def check_pin_clock(part: SdramPart, clock_hz: int) -> None:
    """Raises ``ValueError`` if the data of a read do not arrive half a cycle after the part's clock edge."""
    needed = part.access[sdram_timing(part, clock_hz, 1).cas] + ROUND_TRIP_NS
    if 1e9 / clock_hz < 2 * needed:
        raise ValueError(
            f"clock_hz is {clock_hz}; data of {part.name} reach the FPGA {needed:g} ns after a clock edge, which must "
            f"be half a cycle: at most {int(1e9 / (2 * needed))}, lower the clock or take on-chip memory"
        )


class SdramPins(wiring.Component):
    """Registers in the I/O cells of the pins of an SDRAM.

    The part is always selected and its clock enabled. Its clock has to be the inverse of the design's (``SdramClock``).

    Parameters
    ----------
    row_bits : int
        Of the part.
    ports : object
        With the ports ``clk_en``, ``cs``, ``ras``, ``cas``, ``we``, ``ba``, ``a``, ``dq``, ``dqm``, as the resources of
        ``amaranth-boards`` have them.

    Members
    -------
    sdram : In(sdram_signature(row_bits))
        The controller.

    Latency
    -------
    1 cycle each way.
    """

    sdram: Any

    def __init__(self, row_bits: int, ports: Any) -> None:
        self._ports = ports
        super().__init__({"sdram": In(sdram_signature(row_bits))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        ports, sdram = self._ports, self.sdram
        command = sdram.command
        outputs = {
            "clk_en": 1,
            "cs": 1,
            "ras": command[2],
            "cas": command[1],
            "we": command[0],
            "ba": sdram.bank,
            "a": sdram.address,
            "dqm": sdram.mask,
        }
        for name, value in outputs.items():
            m.submodules[name] = buffer = io.FFBuffer("o", getattr(ports, name))
            m.d.comb += buffer.o.eq(value)
        m.submodules.dq = dq = io.FFBuffer("io", ports.dq)
        m.d.comb += [dq.o.eq(sdram.out), dq.oe.eq(sdram.drive), sdram.data.eq(dq.i)]
        return m


class SdramClock(Elaboratable):
    """Drives the clock pin with the inverse of ``sync``, by a DDR register like those of the other pins."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.buffer = buffer = io.DDRBuffer("o", self._port)
        m.d.comb += [Cat(buffer.o[0]).eq(0), Cat(buffer.o[1]).eq(1)]
        return m
