"""The instructions of a kernel under construction: emitted one after the other, encoded at the end."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FORMATS, Op, encode
from sley.abi.layout import LayoutError
from sley.runtime.assembler.operands import ZERO, Label, Register, Semaphore, Semaphores, Value
from sley.runtime.assembler.semaphores import SemaphoreUse, mask
from sley.runtime.errors import KernelError

EMPTY = {
    Unit.SEQUENCER: Op.SYNC,
    Unit.LOAD: Op.LOAD,
    Unit.STORE: Op.STORE,
    Unit.MATRIX: Op.MATMUL,
    Unit.VECTOR: Op.VECTOR,
}
"""An operation of each unit that does nothing but wait and signal; without rows, if it takes any."""


@dataclass
class Instruction:
    """One that is not encoded yet; ``target`` is where it branches to, or where its loop ends."""

    op: Op
    fields: dict[str, int]
    target: Label | None = None


class Instructions:
    """What all groups of instructions are built on: each is a base of ``KernelBuilder`` and emits its own.

    Parameters
    ----------
    name: name of the kernel. config: the chip to build for.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        self.name = name
        self.config = config
        self._code: list[Instruction] = []
        self._semaphores = SemaphoreUse(name)
        self._pending: dict[Unit, int] = {}
        self._last: dict[Unit, Instruction] = {}

    def _emit(self, op: Op, **fields: int) -> None:
        assert set(fields) <= set(FORMATS[op].fields), (op, fields)
        instruction, unit = Instruction(op, fields), FORMATS[op].unit
        if "wait" in FORMATS[op].fields:
            pending = self._pending.pop(unit, 0)
            if pending:
                fields["wait"] = fields.get("wait", 0) | pending
            self._last[unit] = instruction
        self._semaphores.note_wait(unit, fields.get("wait", 0))
        self._code.append(instruction)

    def empty(self, unit: Unit, wait: Semaphores = (), signal: Semaphores = ()) -> None:
        """An instruction of a unit that does nothing but wait and signal."""
        self._emit(EMPTY[unit], wait=mask(wait), signal=mask(signal))

    def wait_next(self, unit: Unit, semaphore: Semaphore) -> None:
        """The next instruction of the unit waits for the semaphore; an empty one if a loop, a label or a branch comes
        before, or if that waits for it already."""
        if self._pending.get(unit, 0) & mask(semaphore):
            self._emit(EMPTY[unit])
        self._pending[unit] = self._pending.get(unit, 0) | mask(semaphore)

    def signal_last(self, unit: Unit, semaphore: Semaphore) -> None:
        """The last instruction of the unit signals the semaphore; an empty one if a loop, a label or a branch came
        since, or if that signals it already."""
        last = self._last.get(unit)
        if last is None or last.fields.get("signal", 0) & mask(semaphore):
            self.empty(unit, signal=semaphore)
        else:
            last.fields["signal"] = last.fields.get("signal", 0) | mask(semaphore)

    def _straight_line_ends(self) -> None:
        """What comes next is not run as often as what was before."""
        for unit in list(self._pending):
            self._emit(EMPTY[unit])
        self._last.clear()

    def _register(self, value: Value, operand: str) -> Register:
        """The register that an operand is in, which cannot be an immediate."""
        if isinstance(value, Register):
            return value
        if value == 0:
            return ZERO
        raise KernelError(f"{self.name}: operand {operand} is {value}; it must be a register: reg(name, {value})")

    def _encode(self, inserted: list[Instruction], at: int) -> tuple[int, ...]:
        """The words of all instructions, with some more inserted in front of the one with index ``at``. Raises
        ``KernelError`` if they are too many, one does not fit its format, or a label is not placed."""
        code = [*self._code[:at], *inserted, *self._code[at:]]
        count = len(code)
        if count > self.config.program_words:
            raise KernelError(f"{self.name} has {count} instructions; a core holds {self.config.program_words}")
        words = []
        for index, instruction in enumerate(code):
            fields = dict(instruction.fields)
            if instruction.target is not None:
                place = instruction.target.index
                if place is None:
                    raise KernelError(f"{self.name}: label {instruction.target.name!r} is not placed")
                fields["target"] = place + len(inserted) * (place >= at)
            try:
                words.append(encode(instruction.op, **fields))
            except LayoutError as error:
                raise KernelError(f"{self.name}: instruction {index}: {error}") from None
        return tuple(words)
