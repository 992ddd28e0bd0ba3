"""The instructions of a kernel under construction: emitted one after the other, encoded at the end."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.instructions import FORMATS, Op, encode
from sley.abi.layout import LayoutError
from sley.runtime.assembler.operands import ZERO, Label, Register, Value
from sley.runtime.assembler.semaphores import SemaphoreUse
from sley.runtime.errors import KernelError


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

    def _emit(self, op: Op, **fields: int) -> None:
        assert set(fields) <= set(FORMATS[op].fields), (op, fields)
        self._semaphores.note_wait(FORMATS[op].unit, fields.get("wait", 0))
        self._code.append(Instruction(op, fields))

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
