"""Builds kernel programs: registers and semaphores by name, loops and conditions as context managers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import (
    ARG_REGISTER,
    BLOCK_REGISTER,
    FORMATS,
    GRID_REGISTER,
    MAX_ARGS,
    REGISTERS,
    SEMAPHORE_MAX,
    SEMAPHORES,
    BinaryOp,
    Op,
    Param,
    Share,
    Space,
    VectorRow,
    encode,
)
from sley.abi.layout import LayoutError
from sley.abi.types import ElementType
from sley.runtime.assembler.operands import ZERO, Label, Register, Semaphore, Semaphores, Value
from sley.runtime.device.program import Program
from sley.runtime.errors import KernelError

EMPTY = {Unit.LOAD: Op.LOAD, Unit.STORE: Op.STORE, Unit.MATRIX: Op.MATMUL, Unit.VECTOR: Op.VECTOR}
"""An operation of each unit that does nothing without rows."""
_INVERSE = {"<": Op.BGE, ">=": Op.BLT, "==": Op.BNE, "!=": Op.BEQ}


def _wrapped(value: int) -> int:
    """The signed 32-bit number that a sum modulo 2^32 takes instead; what is no such number at all is left to fail."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if abs(value) < 1 << 32 else value


@dataclass
class _Instruction:
    op: Op
    fields: dict[str, int]
    target: Label | None = None


class KernelBuilder:
    """Collects instructions; ``build`` makes the program.

    Operands are registers; where an instruction takes an immediate, a plain number will do. ``0`` is always accepted.

    Parameters
    ----------
    name: name of the kernel. config: the chip to build for.

    Attributes
    ----------
    block, grid: the registers with the block's x, y, z and the grid's size; ``free`` those that are not needed.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        self.name = name
        self.config = config
        self.block = tuple(Register(BLOCK_REGISTER + i, f"block_{axis}") for i, axis in enumerate("xyz"))
        self.grid = tuple(Register(GRID_REGISTER + i, f"grid_{axis}") for i, axis in enumerate("xyz"))
        self._args: list[Register] = []
        self._strided: set[str] = set()
        used = {0, *(r.number for r in (*self.block, *self.grid))}
        self._free = [number for number in range(REGISTERS) if number not in used]
        self._semaphores: list[Semaphore] = []
        self._raised_at = 0
        self._waiters: dict[int, set[Unit]] = {}
        self._takers: dict[int, Unit] = {}
        self._code: list[_Instruction] = []
        self._loop_ends: set[int] = set()
        self._labels: list[Label] = []

    # Names

    def arg(self, name: str, strided: bool = False) -> Register:
        """The next kernel argument. Arguments come first, before other registers are taken. An array is given as its
        address, and its elements must be contiguous, unless the kernel knows its strides: ``strided``."""
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
        return register

    def reg(self, name: str, value: Value | None = None) -> Register:
        """A register that nobody uses, set to ``value`` if one is given."""
        if not self._free:
            raise KernelError(f"{self.name}: no register left for {name!r}; free() one that is not needed any more")
        register = Register(self._free.pop(), name)
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

    def semaphore(self, name: str, initial: int = 0) -> Semaphore:
        """A semaphore. It is raised to ``initial`` when a block starts, and ``end`` takes as much back; then one unit
        alone may wait for it."""
        if len(self._semaphores) == SEMAPHORES:
            raise KernelError(f"{self.name}: semaphore {name!r} is one too many; a core has {SEMAPHORES}")
        if not 0 <= initial <= SEMAPHORE_MAX:
            raise KernelError(f"{self.name}: semaphore {name!r} starts at {initial}; it counts 0 to {SEMAPHORE_MAX}")
        semaphore = Semaphore(len(self._semaphores), name, initial)
        self._semaphores.append(semaphore)
        return semaphore

    def raise_semaphores(self) -> None:
        """Raises all semaphores to their initial values here, not at the start: nothing before may wait for one of
        them, and the place is passed once."""
        self._raised_at = len(self._code)

    # Scalar instructions

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

    def sync(self, wait: Semaphores = (), signal: Semaphores = ()) -> None:
        """Waits for and signals semaphores in the sequencer itself."""
        self._emit(Op.SYNC, wait=self._mask(wait), signal=self._mask(signal))

    def take_back(self, semaphore: Semaphore, unit: Unit) -> None:
        """Lets ``unit`` take its initial value back at the end, instead of the unit that waits for it: one whose last
        instruction begins after nothing waits for it any more, and that is done sooner."""
        self._takers[semaphore.number] = unit

    def end(self) -> None:
        """Takes the initial values of the semaphores back, and ends the block.

        A unit that waits for a semaphore takes it back behind all its instructions, unless ``take_back`` names another
        one: the sequencer, which has run ahead, would take what they still need.
        """
        for semaphore in self._semaphores:
            units = self._waiters.get(semaphore.number, set())
            if len(units) > 1 and semaphore.initial:
                names = " and ".join(sorted(unit.name for unit in units))
                raise KernelError(
                    f"{self.name}: semaphore {semaphore.name!r} starts at {semaphore.initial}, but {names} wait; "
                    "let one unit wait, so that it can take the rest back at the end"
                )
        for unit in Unit:
            mine = [s for s in self._semaphores if self._taker(s) is unit]
            for mask in self._initial_masks(mine):
                if unit is Unit.SEQUENCER:
                    self._emit(Op.SYNC, wait=mask)
                else:
                    self._emit(EMPTY[unit], wait=mask)
        self._emit(Op.END)

    def _taker(self, semaphore: Semaphore) -> Unit | None:
        """Who takes its initial value back; none if several units wait for one that starts at zero."""
        waiters = self._waiters.get(semaphore.number, {Unit.SEQUENCER})
        only = next(iter(waiters)) if len(waiters) == 1 else None
        return self._takers.get(semaphore.number, only)

    # Control

    def label(self, name: str = "label") -> Label:
        """A label for ``place`` and ``branch``."""
        label = Label(name)
        self._labels.append(label)
        return label

    def place(self, label: Label) -> None:
        """Puts the label in front of the next instruction."""
        if label.index is not None:
            raise KernelError(f"{self.name}: label {label.name!r} is placed twice")
        label.index = len(self._code)

    def branch(self, op: Op, ra: Register, rb: Value, label: Label) -> None:
        """BEQ, BNE, BLT or BGE to a label."""
        if op not in _INVERSE.values():
            raise KernelError(f"{self.name}: {op.name} is no branch")
        self._emit(op, ra=ra.number, rb=self._register(rb, "rb").number)
        self._code[-1].target = label

    def jump(self, label: Label) -> None:
        self.branch(Op.BEQ, ZERO, ZERO, label)

    @contextmanager
    def loop(self, count: Value) -> Iterator[None]:
        """Hardware loop: runs the body ``count`` times, not at all for 0; the way back costs nothing."""
        end = self.label("loop end")
        if isinstance(count, Register):
            self._emit(Op.LOOP, ra=count.number)
        else:
            self._emit(Op.LOOP, use_imm=1, imm=count)
        self._code[-1].target = end
        first = len(self._code)
        yield
        if len(self._code) == first:
            raise KernelError(f"{self.name}: the body of a loop is empty")
        last = len(self._code) - 1
        unfit = self._code[-1].op in (*_INVERSE.values(), Op.LOOP, Op.END) or last in self._loop_ends
        if unfit or any(label.index == last + 1 for label in self._labels):
            self.mov(ZERO, ZERO)
        end.index = len(self._code) - 1
        self._loop_ends.add(end.index)

    @contextmanager
    def if_(self, ra: Register, relation: str, rb: Value) -> Iterator[None]:
        """Runs the body if ``ra relation rb``; the relation is one of ``<``, ``>=``, ``==``, ``!=`` (signed)."""
        end = self.label("if end")
        self.branch(self._inverse(relation), ra, rb, end)
        yield
        self.place(end)

    @contextmanager
    def while_(self, ra: Register, relation: str, rb: Value) -> Iterator[None]:
        """Runs the body as long as ``ra relation rb``, for trip counts that are not known beforehand."""
        head, end = self.label("while"), self.label("while end")
        self.place(head)
        self.branch(self._inverse(relation), ra, rb, end)
        yield
        self.jump(head)
        self.place(end)

    # Unit instructions

    def set(self, unit: Unit, **params: Value) -> None:
        """Writes parameters of a unit by name, for example ``set(Unit.LOAD, run_bytes=64, mem_stride=pitch)``."""
        for name, value in params.items():
            try:
                param = Param[name.upper()]
            except KeyError:
                raise KernelError(
                    f"{self.name}: no parameter {name!r}; there are {', '.join(Param.__members__)}"
                ) from None
            operand = {"ra": value.number} if isinstance(value, Register) else {"use_imm": 1, "imm": value}
            self._emit(Op.SET, unit=unit, param=param, **operand)

    def load(
        self,
        address: Register,
        row: Value,
        runs: Value,
        *,
        space: Space = Space.SCRATCHPAD,
        interleave: bool = False,
        transpose: bool = False,
        share: Share = Share.NONE,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Reads ``runs`` runs from memory to local rows; then address += step. If they ``share`` a load, all cores of
        the gang's row or column make the same loads in the same order."""
        flags = {"space": space, "interleave": int(interleave), "transpose": int(transpose), "share": share}
        self._unit(Op.LOAD, address, row, runs, step, wait, signal, **flags)

    def store(
        self,
        address: Register,
        row: Value,
        runs: Value,
        *,
        space: Space = Space.SCRATCHPAD,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Writes ``runs`` runs from local rows to memory; then address += step."""
        self._unit(Op.STORE, address, row, runs, step, wait, signal, space=space)

    def weights(
        self,
        row: Value,
        rows: Value,
        *,
        dtype: ElementType = ElementType.INT8,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Loads the spare weights from ``rows`` scratchpad rows starting at ``row``; then row += step."""
        self._unit(Op.WEIGHTS, row, None, rows, step, wait, signal, dtype=dtype)

    def matmul(
        self,
        source: Value,
        destination: Value,
        rows: Value,
        *,
        accumulate: bool = False,
        dtype: ElementType = ElementType.INT8,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Streams ``rows`` scratchpad rows through the array to accumulator rows; then source += step."""
        self._unit(Op.MATMUL, source, destination, rows, step, wait, signal, accumulate=int(accumulate), dtype=dtype)

    def vector(
        self,
        source: Value,
        destination: Value,
        rows: Value,
        *,
        a_space: Space = Space.ACCUMULATOR,
        a_half: int = 0,
        a_type: ElementType = ElementType.INT8,
        b_op: BinaryOp = BinaryOp.NONE,
        b_space: Space = Space.ACCUMULATOR,
        b_half: int = 0,
        b_type: ElementType = ElementType.INT8,
        dtype: ElementType = ElementType.INT32,
        bias: bool = False,
        scale: bool = False,
        relu: bool = False,
        out: ElementType | None = None,
        out_half: int = 0,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Element-wise work on ``rows`` rows; then source += step. The flags are those of the instruction; ``out``
        is by default the word that the steps leave: FP32 if ``dtype`` is or it is scaled, else INT32."""
        if out is None:
            out = ElementType.FP32 if scale else dtype
        # A field that the operation does not look at must still be zero where it says so: B without an operation.
        b = {"b_space": b_space, "b_half": b_half, "b_type": b_type} if b_op else {}
        a = {"a_space": a_space, "a_half": a_half, "a_type": a_type}
        flags: dict[str, int] = {**a, "b_op": b_op, "dtype": dtype, **b}
        steps = {"bias": int(bias), "scale": int(scale), "relu": int(relu), "out": out, "out_half": out_half}
        self._unit(Op.VECTOR, source, destination, rows, step, wait, signal, **flags, **steps)

    def vrow(
        self,
        row: VectorRow,
        source: Value,
        *,
        splat: bool = False,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Fills a row register from accumulator row ``source``, or with the value ``source`` in all lanes."""
        flags: dict[str, int] = {"row": row, "splat": int(splat)}
        if isinstance(source, int):
            flags.update(use_imm=1, imm=source)
            source = ZERO
        self._unit(Op.VROW, source, None, None, step, wait, signal, **flags)

    # Building

    def build(self) -> Program:
        """The program. Raises ``KernelError`` if it is too long, or a label is not placed."""
        seeds = [_Instruction(Op.SYNC, {"signal": mask}) for mask in self._initial_masks(self._semaphores)]
        code = [*self._code[: self._raised_at], *seeds, *self._code[self._raised_at :]]
        count = len(code)
        if count > self.config.program_words:
            raise KernelError(f"{self.name} has {count} instructions; a core holds {self.config.program_words}")
        words = []
        for index, instruction in enumerate(code):
            fields = dict(instruction.fields)
            if instruction.target is not None:
                if instruction.target.index is None:
                    raise KernelError(f"{self.name}: label {instruction.target.name!r} is not placed")
                at = instruction.target.index
                fields["target"] = at + len(seeds) * (at >= self._raised_at)
            try:
                words.append(encode(instruction.op, **fields))
            except LayoutError as error:
                raise KernelError(f"{self.name}: instruction {index}: {error}") from None
        args = tuple(arg.name for arg in self._args)
        return Program(self.name, tuple(words), args, self.config.hash, frozenset(self._strided))

    def _initial_masks(self, semaphores: list[Semaphore]) -> list[int]:
        most = max((s.initial for s in semaphores), default=0)
        return [self._mask(s for s in semaphores if s.initial > i) for i in range(most)]

    def _mask(self, semaphores: Semaphores) -> int:
        if isinstance(semaphores, Semaphore):
            semaphores = (semaphores,)
        return sum(1 << number for number in {s.number for s in semaphores})

    def _inverse(self, relation: str) -> Op:
        if relation not in _INVERSE:
            raise KernelError(f"{self.name}: no relation {relation!r}; there are {' '.join(_INVERSE)}")
        return _INVERSE[relation]

    def _register(self, value: Value, operand: str) -> Register:
        if isinstance(value, Register):
            return value
        if value == 0:
            return ZERO
        raise KernelError(f"{self.name}: operand {operand} is {value}; it must be a register: reg(name, {value})")

    def _alu(self, op: Op, rd: Register, ra: Register, b: Value) -> None:
        if isinstance(b, Register):
            self._emit(op, rd=rd.number, ra=ra.number, rb=b.number)
        else:
            self._emit(op, rd=rd.number, ra=ra.number, use_imm=1, imm=_wrapped(b))

    def _unit(
        self,
        op: Op,
        ra: Value,
        rb: Value | None,
        rc: Value | None,
        step: Register,
        wait: Semaphores,
        signal: Semaphores,
        **flags: int,
    ) -> None:
        if isinstance(rc, int):
            flags.update(use_imm=1, imm=rc)
            rc = None
        operands = {
            name: self._register(value, name).number
            for name, value in (("ra", ra), ("rb", rb), ("rc", rc))
            if value is not None
        }
        self._emit(op, rd=step.number, **operands, wait=self._mask(wait), signal=self._mask(signal), **flags)

    def _emit(self, op: Op, **fields: int) -> None:
        assert set(fields) <= set(FORMATS[op].fields), (op, fields)
        for number in range(SEMAPHORES):
            if fields.get("wait", 0) >> number & 1:
                self._waiters.setdefault(number, set()).add(FORMATS[op].unit)
        self._code.append(_Instruction(op, fields))
