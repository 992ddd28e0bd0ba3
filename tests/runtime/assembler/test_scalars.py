"""Registers, and arithmetic with them."""

from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.config import preset
from sley.runtime import KernelBuilder, KernelError

NANO = preset("nano")
Reporting = Callable[[], Any]


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("sub", 3, 5, -2),
        ("mul", -3, 7, -21),
        ("min", -1, 1, -1),
        ("max", -1, 1, 1),
        ("and_", 12, 10, 8),
        ("or_", 12, 10, 14),
        ("shl", 3, 4, 48),
        ("shr", -1, 28, 15),
        ("sar", -100, 3, -13),
    ],
)
def test_arithmetic_with_registers_and_immediates(
    reporting: Reporting, name: str, a: int, b: int, expected: int
) -> None:
    kernel = reporting()
    k = kernel.k
    x = k.arg("x")
    getattr(k, name)(x, x, b)
    assert kernel.result(x, a) == expected
    kernel = reporting()
    k = kernel.k
    x, y = k.arg("x"), k.arg("y")
    getattr(k, name)(x, x, y)
    assert kernel.result(x, a, b) == expected


@pytest.mark.parametrize(
    ("divisor", "below"), [(1, 2**31), (3, 2**15), (7, 1000), (10, 4096), (64, 2**20), (1000, 2**12)]
)
def test_divide(reporting: Reporting, divisor: int, below: int) -> None:
    for value in {0, 1, divisor - 1, divisor, below // 2, below - 1}:
        kernel = reporting()
        x = kernel.k.arg("x")
        kernel.k.divide(x, x, divisor, below)
        assert kernel.result(x, value) == value // divisor


def test_divide_is_exact_below_its_bound() -> None:
    """The factor and the shift that it chooses, for all values below the bound."""
    for divisor in (3, 5, 7, 11, 13, 100):
        k = KernelBuilder("divide", NANO)
        x = k.reg("x")
        k.divide(x, x, divisor, 5000)
        multiply, shift = (instruction.fields["imm"] for instruction in k._code)
        assert all(value * multiply >> shift == value // divisor for value in range(5000))
        assert 4999 * multiply < 2**32


@pytest.mark.parametrize(("divisor", "below", "message"), [(0, 5, "divide by 0"), (7, 2**30, "more than 32 bits")])
def test_divide_refuses(divisor: int, below: int, message: str) -> None:
    k = KernelBuilder("divide", NANO)
    x = k.reg("x")
    with pytest.raises(KernelError, match=message):
        k.divide(x, x, divisor, below)


def test_registers_run_out_and_come_back() -> None:
    k = KernelBuilder("registers", NANO)
    taken = [k.reg(f"r{i}") for i in range(25)]
    with pytest.raises(KernelError, match="no register left for 'more'"):
        k.reg("more")
    k.free(taken[3])
    assert k.reg("more").number == taken[3].number
    k.free(taken[4])
    with pytest.raises(KernelError, match="not in use"):
        k.free(taken[4])
    with k.scratch("one") as (one,):
        assert one.number == taken[4].number
    with pytest.raises(KernelError, match="before taking registers"):
        k.arg("late")
