"""Registers by name, and the arithmetic on them that the sequencer does itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from sley.abi.config import ChipConfig
from sley.abi.instructions import ARG_REGISTER, BLOCK_REGISTER, GRID_REGISTER, MAX_ARGS, REGISTERS, Op
from sley.runtime.assembler.instructions import Instructions
from sley.runtime.assembler.operands import ZERO, Register, Value, wrapped
from sley.runtime.errors import KernelError


class Scalars(Instructions):
    """Arguments, registers and scalar instructions.

    Attributes
    ----------
    block, grid: the registers with the block's x, y, z and the grid's size; ``free`` those that are not needed.
    spare: registers that were never taken so far.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        super().__init__(name, config)
        self.block = tuple(Register(BLOCK_REGISTER + i, f"block_{axis}") for i, axis in enumerate("xyz"))
        self.grid = tuple(Register(GRID_REGISTER + i, f"grid_{axis}") for i, axis in enumerate("xyz"))
        self._args: list[Register] = []
        self._strided: set[str] = set()
        self._bounds: list[tuple[str, int]] = []
        used = {0, *(r.number for r in (*self.block, *self.grid))}
        self._free = [number for number in range(REGISTERS) if number not in used]
        self.spare = len(self._free)

    # Names

    def arg(self, name: str, strided: bool = False, bound: int | None = None) -> Register:
        """The next kernel argument. Arguments come first, before other registers are taken. An array is given as its
        address, and its elements must be contiguous, unless the kernel knows its strides: ``strided``. ``bound``:
        of an array of int32 that the kernel only reads; a launch with an element beyond it is refused."""
        number = ARG_REGISTER + len(self._args)
        if len(self._args) == MAX_ARGS:
            raise KernelError(f"{self.name}: argument {name!r} is one too many; a kernel has at most {MAX_ARGS}")
        if number not in self._free:
            raise KernelError(f"{self.name}: name argument {name!r} before taking registers with reg()")
        self._free.remove(number)
        register = Register(number, name)
        self._args.append(register)
        if strided:
            self._strided.add(name)
        if bound is not None:
            self._bounds.append((name, bound))
        return register

    def reg(self, name: str, value: Value | None = None) -> Register:
        """A register that nobody uses, set to ``value`` if one is given."""
        if not self._free:
            raise KernelError(f"{self.name}: no register left for {name!r}; free() one that is not needed any more")
        register = Register(self._free.pop(), name)
        self.spare = min(self.spare, len(self._free))
        if value is not None:
            self.mov(register, value)
        return register

    def free(self, *registers: Register) -> None:
        """Lets ``reg`` hand these registers out again."""
        for register in registers:
            if register.number in self._free or register is ZERO:
                raise KernelError(f"{self.name}: register {register.name!r} is not in use")
            self._free.append(register.number)

    @contextmanager
    def scratch(self, names: str) -> Iterator[list[Register]]:
        """Registers for the time of a ``with`` block; ``names`` is separated by spaces."""
        registers = [self.reg(name) for name in names.split()]
        yield registers
        self.free(*reversed(registers))

    # Instructions

    def mov(self, rd: Register, value: Value) -> None:
        """rd = value."""
        if isinstance(value, Register):
            self._emit(Op.ADD, rd=rd.number, ra=value.number)
        else:
            self._alu(Op.ADD, rd, ZERO, value)

    def add(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.ADD, rd, ra, b)

    def sub(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.SUB, rd, ra, b)

    def mul(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.MUL, rd, ra, b)

    def min(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.MIN, rd, ra, b)

    def max(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.MAX, rd, ra, b)

    def and_(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.AND, rd, ra, b)

    def or_(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.OR, rd, ra, b)

    def shl(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.SHL, rd, ra, b)

    def shr(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.SHR, rd, ra, b)

    def sar(self, rd: Register, ra: Register, b: Value) -> None:
        self._alu(Op.SAR, rd, ra, b)

    def divide(self, rd: Register, ra: Register, divisor: int, below: int) -> None:
        """rd = ra // divisor, for a divisor that is known and 0 <= ra < ``below``: a product and a shift. Raises
        ``KernelError`` if 32 bits do not hold the product for all of these."""
        if divisor < 1 or below < 1:
            raise KernelError(f"{self.name}: divide by {divisor} below {below}; both are 1 or more")
        for shift in range(32):
            factor = -(-(1 << shift) // divisor)
            exact = (factor * divisor - (1 << shift)) * (below - 1) < 1 << shift
            if exact and factor * (below - 1) < 1 << 32:
                self.mul(rd, ra, factor)
                self.shr(rd, rd, shift)
                return
        raise KernelError(
            f"{self.name}: divide by {divisor} below {below}: the product needs more than 32 bits; divide a smaller "
            "value, or shift both first"
        )

    def _alu(self, op: Op, rd: Register, ra: Register, b: Value) -> None:
        if isinstance(b, Register):
            self._emit(op, rd=rd.number, ra=ra.number, rb=b.number)
        else:
            self._emit(op, rd=rd.number, ra=ra.number, use_imm=1, imm=wrapped(b))
