"""The netlist: what a design computes, as one graph of values without hierarchy.

A *value* is a number of bits, never negative, made by one operator from other values, and named by its index. Equal
values exist once. Operands come before results, so the graph has no loops; what closes loops are *registers* and
*memories*, whose next contents are values again.

| operator | operands | result, ``w`` bits |
| --- | --- | --- |
| ``const`` | | ``parameter`` |
| ``input`` | | top-level input number ``parameter`` |
| ``register`` | | contents of register number ``parameter`` |
| ``read`` | address | segment ``parameter`` of a memory row (0 outside the memory) |
| ``not`` ``and`` ``or`` ``xor`` ``add`` ``sub`` ``mul`` | all ``w`` bits wide | modulo ``2**w`` |
| ``divu`` ``modu`` ``divs`` ``mods`` | dividend, divisor, ``w`` bits wide | floor division; 0 if the divisor is 0 |
| ``shl`` ``shr`` ``sar`` | value of ``w`` bits, amount of at most 32 | shifted; ``sar`` repeats the sign |
| ``eq`` ``ne`` ``ltu`` ``leu`` ``lts`` ``les`` | two of one width | 1 bit |
| ``parity`` | one | 1 bit |
| ``mux`` | select (1 bit), value if 0, value if 1 | one of them |
| ``slice`` | one | ``w`` bits from bit ``parameter`` on |
| ``concat`` | two or more, least significant first | all bits |
| ``sext`` | one, narrower | its sign repeated |
| ``pick`` | value of any width, amount | ``w`` bits from bit ``parameter + amount`` on, 0 outside |
"""

from dataclasses import dataclass, field

SOURCES = frozenset({"const", "input", "register"})
WORD = 64
"""Values up to this width live in machine words; wider ones in arrays of them."""


@dataclass(slots=True)
class Port:
    name: str
    width: int
    value: int
    """Of an input: its ``input`` value. Of an output: the value it shows."""


@dataclass(slots=True)
class Clock:
    """A clock: one edge of one top-level input."""

    name: str
    rising: bool


@dataclass(slots=True)
class Register:
    """At most 64 bits that change together. A wider flip-flop is several of them, with one ``name``."""

    name: str
    """Path of the signal from the top, joined with dots."""
    low: int
    """Position in the signal."""
    width: int
    init: int
    clock: int
    """Number of the clock; -1 if it never ticks."""
    value: int
    """The ``register`` value of its contents."""
    next: int = -1
    """The value it takes with the clock's edge."""
    reset: int = -1
    """An asynchronous reset to ``init`` while this value is 1; -1 if there is none."""
    source: str = ""


@dataclass(slots=True)
class Segment:
    """At most 64 bits of every row of a memory."""

    memory: int
    low: int
    width: int


@dataclass(slots=True)
class Memory:
    name: str
    width: int
    depth: int
    init: list[int]
    segments: list[int] = field(default_factory=list)
    """Numbers of its segments, the lowest bits first; together they are all bits of a row."""


@dataclass(slots=True)
class Write:
    """A write port's part of one segment. Ports of one memory write in the order of this list."""

    segment: int
    clock: int
    address: int
    data: int
    enable: int
    """One bit, or one for each bit of data."""


@dataclass(slots=True)
class Event:
    """A ``Print``, ``Assert``, ``Assume`` or ``Cover``."""

    kind: str
    """``print``, ``assert``, ``assume``, ``cover``."""
    clock: int
    """-1: whenever the design has settled."""
    enable: int
    test: int
    """What must hold; -1 for a print."""
    format: str
    """As RTLIL's ``$print`` has it."""
    arguments: list[int]
    """Pieces of at most 64 bits of the arguments, the least significant first."""
    path: str
    source: str


@dataclass
class Netlist:
    op: list[str] = field(default_factory=list)
    width: list[int] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    parameter: list[int] = field(default_factory=list)
    home: list[int] = field(default_factory=list)
    """Number of the instance whose logic makes the value."""
    instances: list[str] = field(default_factory=list)
    """Paths of all instances."""
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def sinks(self) -> list[int]:
        """Every value that something outside of the graph needs."""
        values = [port.value for port in self.outputs]
        for register in self.registers:
            values.append(register.next)
            if register.reset >= 0:
                values.append(register.reset)
        for write in self.writes:
            values += (write.address, write.data, write.enable)
        for event in self.events:
            values.append(event.enable)
            if event.test >= 0:
                values.append(event.test)
            values += event.arguments
        return values

    def reachable(self, sinks: list[int]) -> bytearray:
        """Marks, one byte for each value: whether the sinks depend on it."""
        marks = bytearray(len(self.op))
        for sink in sinks:
            marks[sink] = 1
        operands = self.operands
        for value in range(len(marks) - 1, -1, -1):
            if marks[value]:
                for operand in operands[value]:
                    marks[operand] = 1
        return marks
