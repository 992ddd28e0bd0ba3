"""Programs of one unit that moves rows, as a sequencer would give them."""

from dataclasses import dataclass, field

from sley.abi.faults import Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op, Space
from sley.abi.parameters import Param

WORD = 0xFFFFFFFF


@dataclass
class DmaCommand:
    """A LOAD or STORE (``a`` memory, ``b`` row, ``c`` runs), or a SET of ``param`` to ``a``."""

    op: Op
    a: int
    b: int = 0
    c: int = 0
    space: Space = Space.SCRATCHPAD
    param: int = 0
    unit: Unit = Unit.LOAD
    signal: int = 0
    pc: int = 0
    interleave: int = 0
    transpose: int = 0
    by_list: int = 0

    def payload(self) -> dict[str, int]:
        fields = {"param": self.param, "unit": self.unit}
        if self.op is not Op.SET:
            fields = {"space": self.space, "by_list": self.by_list}
        if self.op is Op.LOAD:
            fields |= {"interleave": self.interleave, "transpose": self.transpose}
        layout = FORMATS[self.op].layout.fields
        flags = sum(value << (layout[name].lsb - FLAGS_LSB) for name, value in fields.items())
        operands = {name: getattr(self, name) & WORD for name in "abc"}
        return {"op": self.op, "pc": self.pc, "wait": 0, "signal": self.signal, "flags": flags, **operands}


@dataclass
class Program:
    """Commands of one unit in order; each has its place as ``pc``. ``lists``: words that the accumulators hold, by
    their number, lane after lane and row after row."""

    unit: Unit
    commands: list[DmaCommand] = field(default_factory=list)
    lists: dict[int, int] = field(default_factory=dict)

    def move(
        self,
        a: int,
        b: int,
        c: int,
        space: Space = Space.SCRATCHPAD,
        signal: int = 0,
        interleave: int = 0,
        transpose: int = 0,
        by_list: int = 0,
    ) -> None:
        op = Op.LOAD if self.unit is Unit.LOAD else Op.STORE
        command = DmaCommand(op, a, b, c, space, signal=signal, pc=len(self.commands))
        command.interleave, command.transpose, command.by_list = interleave, transpose, by_list
        self.commands.append(command)

    def set(self, param: int, value: int) -> None:
        self.commands.append(DmaCommand(Op.SET, value, param=param, unit=self.unit, pc=len(self.commands)))

    def sets(self, **values: int) -> None:
        for name, value in values.items():
            self.set(Param[name.upper()], value)

    def payloads(self) -> list[dict[str, int]]:
        return [c.payload() for c in self.commands]

    def signals(self) -> list[int]:
        return [c.signal for c in self.commands]
