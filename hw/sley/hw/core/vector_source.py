"""What the lanes of the vector unit read of an operand."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.abi.instructions import OperandType


class Source:
    """Registers of what the lanes read of an operand: a word, an int8 of the half or a bf16, the others being 0.

    Each part has registers, of which all are reset but those of the part that arrives: merging them takes an OR.
    ``then`` is the part whose data arrive in the next cycle, ``load`` tells that they do; they are held until the next
    do. ``unused`` makes all of them 0.
    """

    def __init__(
        self,
        m: Module,
        name: str,
        config: ChipConfig,
        then: Value,
        load: Value,
        unused: Value,
        scratchpad: wiring.PureInterface,
        accumulator: wiring.PureInterface,
        from_accumulator: Value,
        from_scratchpad: Value,
        half: Value,
        kind: Value,
    ) -> None:
        self._m, self._name, self._config, self._load, self._unused = m, name, config, load, unused
        is_bf16 = (kind == OperandType.BF16) & config.bf16
        parts = Cat(then == part for part in range(config.row_parts))
        kinds = {
            "word": (from_accumulator, accumulator.data, 32, 0),
            "int8": (
                from_scratchpad & ~is_bf16,
                scratchpad.data,
                8,
                half * config.array if config.lane_elements > 1 else 0,
            ),
        }
        if config.bf16:
            kinds["bf16"] = (from_scratchpad & is_bf16, scratchpad.data, 16, 0)
        self._kinds = {}
        for what, (condition, values, width, first) in kinds.items():
            selects = Signal(config.row_parts, name=f"{name}_{what}_selects", reset_less=True)
            m.d.sync += selects.eq(Mux(condition, parts, 0))
            self._kinds[what] = (selects, values, width, first)

    def lane(self, lane: int) -> dict[str, Value]:
        """For one of them, by what it is."""
        m, c = self._m, self._config
        columns = range(lane, c.array, c.vector_lanes)
        merged: dict[str, Value] = {}
        for what, (selects, values, width, first) in self._kinds.items():
            taken = []
            for part, column in enumerate(columns):
                register = Signal(width, name=f"{self._name}_{what}_{lane}_{part}", reset_less=True)
                with m.If(self._load):
                    m.d.sync += register.eq(values.word_select(first + column, width))
                with m.If((self._load & ~selects[part]) | self._unused):
                    m.d.sync += register.eq(0)
                taken.append(register)
            merged[what] = reduce(or_, taken)
        return merged
