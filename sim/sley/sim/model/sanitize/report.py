"""What a sanitizer reports, and how it reads."""

from dataclasses import dataclass
from enum import IntEnum

from sley.abi.asm import disassemble
from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES, Space
from sley.sim.model.sanitize.kinds import OF, Finding


class Stuck(IntEnum):
    """What a part of a core that does not move waits for."""

    IDLE = 0
    SIGNALS = 1
    ROOM = 2
    QUEUE = 3
    UNITS = 4


@dataclass(frozen=True)
class Where:
    """An instruction of a block. ``program``: its name, or its address. ``word``: the instruction. Of a packet, its
    queue is the core, and there is no word."""

    core: int
    block: tuple[int, int, int]
    context: int
    program: str
    unit: Unit
    pc: int
    word: int | None

    @property
    def instruction(self) -> str:
        """Its text."""
        return "no instruction" if self.word is None else disassemble([self.word]).strip()

    @property
    def place(self) -> str:
        """Where it ran."""
        if self.unit is Unit.COMMAND:
            return f"queue {self.core}, context {self.context}"
        return f"core {self.core}, block {self.block}, context {self.context}, {self.program}"

    def __str__(self) -> str:
        return self.program if self.unit is Unit.COMMAND else f"{self.unit.name} at pc {self.pc}: {self.instruction}"


@dataclass(frozen=True)
class Access:
    """What an instruction did with a row or with memory."""

    where: Where
    writes: bool

    @property
    def verb(self) -> str:
        return "writes" if self.writes else "reads"


@dataclass(frozen=True)
class Row:
    """A row of a local memory; ``byte``: the first that counts."""

    space: Space
    number: int
    byte: int

    def __str__(self) -> str:
        return f"{self.space.name.lower()} row {self.number}"


@dataclass(frozen=True)
class Waits:
    """A part of a core that does not move, and the semaphores that it waits for, a bit each."""

    unit: Unit
    state: Stuck
    pc: int
    semaphores: int
    word: int | None = None

    def __str__(self) -> str:
        text = "" if self.word is None else f" ({disassemble([self.word]).strip()})"
        names = semaphore_names(self.semaphores)
        return (
            f"{self.unit.name} at pc {self.pc}{text} waits for "
            + {
                Stuck.SIGNALS: f"{names} to be signalled",
                Stuck.ROOM: f"{names}, full at {SEMAPHORE_MAX}, to be taken, so that it can signal",
                Stuck.QUEUE: "room in the queue of a unit",
                Stuck.UNITS: "the units to finish",
                Stuck.IDLE: "nothing",
            }[self.state]
        )


def semaphore_names(mask: int) -> str:
    """Semaphores of a mask in words."""
    numbers = [str(number) for number in range(SEMAPHORES) if mask >> number & 1]
    return f"semaphore{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"


@dataclass(frozen=True)
class Report:
    """A fault in a program.

    Attributes: ``finding``: which. ``access``: the instruction that shows it. ``row``: of a local memory, or a row
    register. ``other``: the access before that it is in conflict with. ``address``: in device memory. ``detail``: what
    is known of that address. ``waits``: who waits for what. ``times``: how often it was found.
    """

    finding: Finding
    access: Access
    row: Row | None = None
    other: Access | None = None
    address: int = 0
    detail: str = ""
    waits: tuple[Waits, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what is the same fault of a program, found again."""
        here, other = self.access.where, self.other
        before = None if other is None else (other.where.unit, other.where.pc, other.writes)
        return self.finding, here.program, here.unit, here.pc, self.access.writes, before

    def __str__(self) -> str:
        where = self.access.where
        what, remedy = _TEXTS[self.finding](self)
        return f"{OF[self.finding].name.lower()}: {what}\n    {where.place}\n    {where}\n    {remedy}"


def _unwritten_row(report: Report) -> tuple[str, str]:
    row = report.row
    assert row is not None
    return (
        f"byte {row.byte} of {row} is read, and this block has not written it",
        "write the row before: LOAD it, fill it by LOAD with RUN_BYTES 0, or let MATMUL begin without accumulate",
    )


def _undefined_row(report: Report) -> tuple[str, str]:
    row = report.row
    assert row is not None
    loaded = "" if report.other is None else f" by {report.other.where}"
    return (
        f"byte {row.byte} of {row} counts, and was loaded{loaded} from device memory that nobody has written",
        "write the array before, let a launch that writes it come first, or make RUN_BYTES end where the array does",
    )


def _derived_row(report: Report) -> tuple[str, str]:
    row, other = report.row, report.other
    assert row is not None
    assert other is not None
    return (
        f"byte {row.byte} of {row} counts, and was computed by {other.where} from rows that this block has not written",
        "write what that instruction reads before it, or take fewer rows here",
    )


def _unwritten_register(report: Report) -> tuple[str, str]:
    assert report.row is not None
    return (
        f"row register {report.row.number} is read, and this block has not written it",
        "write it before by VROW, by VFOLD, or by a chain that keeps its last row",
    )


def _unwritten_weights(report: Report) -> tuple[str, str]:
    row, other = report.row, report.other
    assert row is not None
    assert other is not None
    return (
        f"element {row.byte} of K is not zero in the activations, and its weights are those of {row}, taken by "
        f"{other.where}, which this block has not written",
        "load as many rows of weights as K has, or pad the activations with zeros behind K",
    )


def _row_race(report: Report) -> tuple[str, str]:
    other = report.other
    assert other is not None
    first, second = other.where.unit.name, report.access.where.unit.name
    return (
        f"{second} {report.access.verb} {report.row}, which {other.where} {other.verb}, and no semaphore orders them",
        f"let {first} signal a semaphore behind its access, and {second} wait for it; one token for each access",
    )


def _memory_race(report: Report) -> tuple[str, str]:
    other = report.other
    assert other is not None
    return (
        f"{report.access.where.unit.name} {report.access.verb} {report.address:#x}, which {other.where} of block "
        f"{other.where.block} {other.verb}, and nothing orders them",
        "give each block its own part of memory, or put the accesses into launches that follow each other",
    )


def _outside(report: Report) -> tuple[str, str]:
    return (
        f"{report.access.where.unit.name} {report.access.verb} {report.address:#x}, {report.detail}",
        "check address, strides and count against the array; keep an array until the work that uses it is done",
    )


def _stuck(report: Report) -> tuple[str, str]:
    return (
        "no part of the core can go on: " + "; ".join(map(str, report.waits)),
        "let every wait have a signal that comes before, in an order that no unit has to break",
    )


def _leftover(report: Report) -> tuple[str, str]:
    other = report.other
    assert other is not None
    return (
        f"{semaphore_names(report.waits[0].semaphores)} is above zero at the end; it was signalled last at pc "
        f"{other.where.pc}: {other.where.instruction}",
        "let somebody wait for this signal, or leave it out",
    )


_TEXTS = {
    Finding.UNWRITTEN_ROW: _unwritten_row,
    Finding.UNDEFINED_ROW: _undefined_row,
    Finding.DERIVED_ROW: _derived_row,
    Finding.UNWRITTEN_REGISTER: _unwritten_register,
    Finding.UNWRITTEN_WEIGHTS: _unwritten_weights,
    Finding.ROW_RACE: _row_race,
    Finding.MEMORY_RACE: _memory_race,
    Finding.OUTSIDE: _outside,
    Finding.STUCK: _stuck,
    Finding.LEFTOVER: _leftover,
}
"""What is wrong, and what to do about it."""
