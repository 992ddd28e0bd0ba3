"""A controller with its SDRAM, for benches."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from sley.abi.config import ChipConfig
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.testing.sdram_chip import SdramChip, SdramRule, attach
from sley.hw.memory.axi import axi4_signature


class SdramBench(wiring.Component):
    """``SdramMemory`` and ``SdramChip``.

    Attributes: ``memory``; ``sdram``: the signals between the two.

    Parameters
    ----------
    config : ChipConfig
        Of the bus.
    clock_hz : int
        The clock of both.
    part : SdramPart
        The part.
    memory_bytes : int
        See ``SdramMemory``.
    stored_rows : int
        See ``SdramChip``.

    Members
    -------
    bus : In(axi4_signature(config))
        To the controller.
    fault : Out(len(SdramRule))
        Rules of the part that were broken.
    """

    bus: Any
    fault: Signal

    def __init__(
        self,
        config: ChipConfig,
        clock_hz: int,
        part: SdramPart,
        memory_bytes: int | None = None,
        stored_rows: int | None = None,
    ) -> None:
        self.memory = SdramMemory(config, clock_hz, part, memory_bytes)
        self.sdram = self.memory.sdram
        self._chip = SdramChip(part, clock_hz, stored_rows)
        super().__init__({"bus": In(axi4_signature(config)), "fault": self._chip.signature.members["fault"]})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self.memory
        m.submodules.chip = chip = self._chip
        connect(m, flipped(self.bus), memory.bus)
        attach(m, memory.sdram, chip)
        m.d.comb += self.fault.eq(chip.fault)
        return m


def broken_rules(fault: int) -> set[str]:
    """Names of the rules whose bits are set."""
    return {rule.name for rule in SdramRule if fault >> rule & 1}
