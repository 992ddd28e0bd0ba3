"""What the lanes of the vector unit read of an operand."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.abi.timing import SRAM_READ
from sley.abi.types import ElementType
from sley.hw.core.types import has_bits, is_type


def int8_part(part: Value, half: Value) -> Value:
    """Which part of int8 of a row it is, where lanes are of 16 bits: the lowest bit says which of the two that are one
    part of the memory, the others which part that is."""
    return Cat(part, half)


class Source:
    """Registers of what the lanes read of an operand: a word, a byte of the half, a bf16 or an fp16; the others are 0.

    ``part`` is what is read, ``load`` tells that data arrive, SRAM_READ later. They are held until the next do;
    ``unused`` makes all of them 0.
    """

    def __init__(
        self,
        m: Module,
        name: str,
        config: ChipConfig,
        part: Value,
        load: Value,
        unused: Value,
        scratchpad: wiring.PureInterface,
        accumulator: wiring.PureInterface,
        from_accumulator: Value,
        from_scratchpad: Value,
        half: Value,
        kind: Value,
    ) -> None:
        self._m, self._name, self._load, self._unused = m, name, load, unused
        types = config.vector_types
        int8 = scratchpad.data
        if config.lane_elements() > 1:
            which = int8_part(part, half)[0]
            for cycles in range(1, SRAM_READ + 1):
                later = Signal(name=f"{name}_which_{cycles}", reset_less=True)
                m.d.sync += later.eq(which)
                which = later
            int8 = int8.word_select(which, len(int8) // 2)
        kinds = {
            "word": (from_accumulator, accumulator.data, 32),
            "int8": (from_scratchpad & has_bits(kind, 8, types), int8, 8),
        }
        for wide in (ElementType.BF16, ElementType.FP16):
            if wide in types:
                kinds[wide.info.name] = (from_scratchpad & is_type(kind, wide, types), scratchpad.data, 16)
        self._kinds = {}
        for what, (condition, values, width) in kinds.items():
            taken = Signal(name=f"{name}_{what}_taken", reset_less=True)
            m.d.sync += taken.eq(condition)
            self._kinds[what] = (taken, values, width)

    def lane(self, lane: int) -> dict[str, Signal]:
        """For one of them, by what it is."""
        registers = {}
        for what, (taken, values, width) in self._kinds.items():
            registers[what] = register = Signal(width, name=f"{self._name}_{what}_{lane}", reset_less=True)
            with self._m.If(self._load):
                self._m.d.sync += register.eq(values.word_select(lane, width))
            with self._m.If((self._load & ~taken) | self._unused):
                self._m.d.sync += register.eq(0)
        return registers
