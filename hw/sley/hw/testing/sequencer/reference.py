"""An interpreter of programs, as the instruction set defines them."""

from sley.abi.faults import UNITS, FaultCode, Unit
from sley.abi.instructions import FORMATS, LOOP_DEPTH, REGISTERS, WORD, Op, decode
from sley.abi.layout import LayoutError
from sley.abi.scalar import ALU_OPS, BRANCH_OPS, alu, is_taken
from sley.hw.testing.sequencer.block import Block

_MASK = 0xFFFFFFFF


class _Stop(Exception):  # noqa: N818
    """The block ends; arguments: the status."""


def interpret(block: Block, limit: int = 10_000) -> Block:
    """The block as the instruction set defines it: same launch, with status and commands; SYNC does nothing."""
    result = Block(block.program, block.args, block.index, block.grid)
    registers = [0, *block.index, *block.grid, 0, *block.args]
    registers += [0] * (REGISTERS - len(registers))
    loops: list[list[int]] = []
    pc = 0
    try:
        for _ in range(limit):
            result.path.append(pc)
            pc = _instruction(result, registers, loops, pc)
    except _Stop as stop:
        result.code, result.unit, result.pc, result.address = stop.args
        return result
    raise AssertionError(f"the program did not end in {limit} instructions")


def _instruction(block: Block, registers: list[int], loops: list[list[int]], pc: int) -> int:
    words = len(block.program)

    def fault(code: FaultCode, address: int) -> _Stop:
        return _Stop(code, Unit.SEQUENCER, pc, address)

    if pc >= words:
        raise fault(FaultCode.PC_OUT_OF_RANGE, pc)
    word = block.program[pc]
    try:
        op, fields = decode(word)
    except LayoutError:
        raise fault(FaultCode.ILLEGAL_INSTRUCTION, word & _MASK) from None
    first, last, _ = loops[-1] if loops else (0, words, 0)
    if loops and pc == last and (op in BRANCH_OPS or op in (Op.LOOP, Op.END)):
        raise fault(FaultCode.ILLEGAL_INSTRUCTION, word & _MASK)
    values = {n: registers[fields.get(n, 0)] for n in ("ra", "rb", "rc", "rd")}
    if fields.get("use_imm"):
        values[FORMATS[op].immediate_replaces or ""] = fields["imm"] & _MASK
    a, b, target = values["ra"], values["rb"], fields.get("target", 0)
    written = {}
    if op is Op.END:
        raise _Stop(FaultCode.NONE, Unit.SEQUENCER, pc, 0)
    if op in ALU_OPS:
        written = {fields["rd"]: alu(op, a, b)}
    elif op in BRANCH_OPS:
        if is_taken(op, a, b):
            if target >= words:
                raise fault(FaultCode.PC_OUT_OF_RANGE, target)
            if not first <= target <= last:
                raise fault(FaultCode.BRANCH_OUT_OF_LOOP, target)
            return target
    elif op is Op.LOOP:
        if target >= words or target <= pc or (a == 0 and target + 1 == words):
            raise fault(FaultCode.PC_OUT_OF_RANGE, target)
        if loops and target >= last:
            raise fault(FaultCode.BRANCH_OUT_OF_LOOP, target)
        if a == 0:
            return target + 1
        if len(loops) == LOOP_DEPTH:
            raise fault(FaultCode.LOOP_OVERFLOW, target)
        loops.append([pc + 1, target, a])
        return pc + 1
    elif op is not Op.SYNC:
        unit = fields["unit"] if op is Op.SET else FORMATS[op].unit
        if unit not in UNITS:
            raise fault(FaultCode.ILLEGAL_INSTRUCTION, word & _MASK)
        flags = WORD.unpack(word)["flags"]
        operands = dict(zip("abc", (a, b, values["rc"]), strict=True))
        masks = {"wait": fields.get("wait", 0), "signal": fields.get("signal", 0)}
        block.commands[Unit(unit)].append({"op": op, "pc": pc, **masks, **operands, "flags": flags})
        if op is not Op.SET:
            written = {fields["ra"]: registers[fields["ra"]] + values["rd"]}
    for register, value in written.items():
        registers[register] = value & _MASK if register else 0
    if loops and pc == last:
        loops[-1][2] -= 1
        if loops[-1][2]:
            return first
        loops.pop()
    return pc + 1
