"""What the sequencer of a core hands to the units in one block: commands with their operands, and who they are for.

Programs load no scalars from memory, so the commands follow from the program, the block and the arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import (
    ARG_REGISTER,
    BLOCK_REGISTER,
    FORMATS,
    GRID_REGISTER,
    LOOP_DEPTH,
    REGISTERS,
    Op,
    decode,
)
from sley.abi.parameters import PARAMS, Param
from sley.abi.scalar import ALU_OPS, BRANCH_OPS, alu, is_taken, signed
from sley.runtime.errors import KernelError

MASK = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class Command:
    """One instruction as a unit, or SYNC as the sequencer, executes it. Attributes: ``a``, ``b``, ``c``: its operands.
    ``params``: those of its unit, by number."""

    unit: Unit
    op: Op
    pc: int
    a: int
    b: int
    c: int
    fields: dict[str, int]
    params: dict[int, int] = field(repr=False)

    @property
    def wait(self) -> int:
        """Mask of semaphores."""
        return self.fields.get("wait", 0)

    @property
    def signal(self) -> int:
        """Mask of semaphores."""
        return self.fields.get("signal", 0)


class LimitError(KernelError):
    """A program runs longer than it is followed."""


def commands(
    words: Sequence[int],
    config: ChipConfig,
    arguments: Sequence[int],
    block: tuple[int, int, int],
    grid: tuple[int, int, int],
    limit: int,
) -> list[Command]:
    """All commands of a block in the order of the sequencer. Raises ``KernelError`` for a program that faults there,
    ``LimitError`` behind ``limit`` instructions."""
    code = [decode(word) for word in words]
    registers = [0] * REGISTERS
    registers[BLOCK_REGISTER : BLOCK_REGISTER + 3] = block
    registers[GRID_REGISTER : GRID_REGISTER + 3] = grid
    registers[ARG_REGISTER : ARG_REGISTER + len(arguments)] = arguments
    resets = {int(param): info.reset for param, info in PARAMS.items()}
    params: dict[Unit, dict[int, int]] = {unit: dict(resets) for unit in Unit}
    loops: list[list[int]] = []  # first, last, passes that are left
    found: list[Command] = []
    pc, steps = 0, 0

    def write(register: int, value: int) -> None:
        if register:
            registers[register] = value & MASK

    while True:
        if not 0 <= pc < len(code):
            raise KernelError(f"the program runs past its end, to {pc}")
        steps += 1
        if steps > limit:
            raise LimitError(f"the program takes more than {limit:,} instructions; check it for a smaller problem")
        op, f = code[pc]
        here, pc = pc, pc + 1
        if op is Op.END:
            return found
        if op in ALU_OPS:
            second = f["imm"] if f["use_imm"] else registers[f["rb"]]
            write(f["rd"], alu(op, registers[f["ra"]], second & MASK))
        elif op in BRANCH_OPS:
            if is_taken(op, registers[f["ra"]], registers[f["rb"]]):
                if loops and not loops[-1][0] <= f["target"] <= loops[-1][1]:
                    raise KernelError(f"instruction {here} branches out of its loop")
                pc = f["target"]
        elif op is Op.LOOP:
            count = (f["imm"] if f["use_imm"] else registers[f["ra"]]) & MASK
            if count and len(loops) == LOOP_DEPTH:
                raise KernelError(f"instruction {here} is one loop too many; {LOOP_DEPTH} fit into each other")
            if count:
                loops.append([pc, f["target"], count])
            else:
                pc = f["target"] + 1
            continue
        elif op is Op.SET:
            value = (f["imm"] if f["use_imm"] else registers[f["ra"]]) & MASK
            unit = Unit(f["unit"])
            params[unit] = {**params[unit], f["param"]: _cut(f["param"], value)}
        else:
            found.append(_command(op, f, here, registers, params))
            if "rd" in f:
                write(f["ra"], registers[f["ra"]] + registers[f["rd"]])
        while loops and here == loops[-1][1]:
            loops[-1][2] -= 1
            if loops[-1][2]:
                pc = loops[-1][0]
                break
            loops.pop()


def _command(op: Op, f: dict[str, int], pc: int, registers: list[int], params: dict[Unit, dict[int, int]]) -> Command:
    format = FORMATS[op]
    a, b, c = (registers[f.get(name, 0)] for name in ("ra", "rb", "rc"))
    if f.get("use_imm"):
        if format.immediate_replaces == "rc":
            c = f["imm"] & MASK
        else:
            a = f["imm"] & MASK
    return Command(format.unit, op, pc, a, b, c, f, params[format.unit])


def _cut(param: int, value: int) -> int:
    """A parameter as the unit reads it."""
    try:
        info = PARAMS[Param(param)]
    except ValueError:  # a word of a chain
        return value
    return signed(value) if info.signed else value
