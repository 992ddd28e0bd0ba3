"""What scalar instructions compute: edges of the range, by number."""

import pytest

from sley.abi.instructions import FORMATS, Op
from sley.abi.scalar import ALU_OPS, BRANCH_OPS, alu, is_taken, signed

TOP, BOTTOM, ONES = 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        (Op.ADD, ONES, 1, 0),
        (Op.ADD, TOP, 1, BOTTOM),
        (Op.SUB, 0, 1, ONES),
        (Op.SUB, BOTTOM, 1, TOP),
        (Op.MUL, ONES, ONES, 1),
        (Op.MUL, 0x10001, 0x10001, 0x20001),
        (Op.MIN, BOTTOM, TOP, BOTTOM),
        (Op.MIN, ONES, 0, ONES),
        (Op.MAX, ONES, 0, 0),
        (Op.MAX, BOTTOM, TOP, TOP),
        (Op.AND, 0xFF00FF00, 0x0FF00FF0, 0x0F000F00),
        (Op.OR, 0xFF00FF00, 0x0FF00FF0, 0xFFF0FFF0),
        (Op.SHL, 1, 31, BOTTOM),
        (Op.SHL, 3, 33, 6),
        (Op.SHR, BOTTOM, 31, 1),
        (Op.SHR, ONES, 32, ONES),
        (Op.SAR, BOTTOM, 31, ONES),
        (Op.SAR, TOP, 30, 1),
        (Op.SAR, BOTTOM, 33, 0xC0000000),
    ],
)
def test_results(op: Op, a: int, b: int, result: int) -> None:
    assert alu(op, a, b) == result


@pytest.mark.parametrize(
    ("op", "pairs"),
    [
        (Op.BEQ, {(5, 5): True, (BOTTOM, TOP): False}),
        (Op.BNE, {(5, 5): False, (BOTTOM, TOP): True}),
        (Op.BLT, {(BOTTOM, TOP): True, (ONES, 0): True, (0, ONES): False, (7, 7): False}),
        (Op.BGE, {(BOTTOM, TOP): False, (ONES, 0): False, (0, ONES): True, (7, 7): True}),
    ],
)
def test_conditions(op: Op, pairs: dict[tuple[int, int], bool]) -> None:
    assert {pair: is_taken(op, *pair) for pair in pairs} == pairs


def test_every_scalar_instruction_is_one_of_the_two() -> None:
    assert {op for op, form in FORMATS.items() if "target" in form.fields} - {Op.LOOP} == BRANCH_OPS
    assert {op for op, form in FORMATS.items() if form.fields[:4] == ("op", "rd", "ra", "rb")} >= ALU_OPS
    assert [signed(value) for value in (0, TOP, BOTTOM, ONES)] == [0, TOP, -(1 << 31), -1]
