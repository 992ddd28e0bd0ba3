"""Evaluation of a netlist on arrays, operator by operator against its definition."""

import random

import numpy as np
import pytest

from sley.sim.fast.read.semantics import compute
from sley.sim.fast.read.simplify import Builder
from sley.sim.fast.run.evaluate import apply, cone, evaluate, full, sources

WIDTHS = (1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 200)
SAMPLES = 40


def numbers(source: random.Random, width: int, count: int = SAMPLES) -> list[int]:
    ones = (1 << width) - 1
    extremes = [0, ones, 1 & ones, 1 << max(width - 1, 0) & ones, ones >> 1]
    return [source.choice(extremes) if source.random() < 0.4 else source.getrandbits(width) for _ in range(count)]


def as_array(values: list[int], width: int):
    if width <= 64:
        return np.array(values, np.uint64)
    result = np.empty(len(values), object)
    result[:] = values
    return result


def check(op: str, width: int, parameter: int, columns: list[list[int]], widths: list[int]) -> None:
    arrays = [as_array(values, size) for values, size in zip(columns, widths, strict=True)]
    got = apply(op, width, parameter, arrays, widths)
    assert got.dtype == (np.uint64 if width <= 64 else object)
    expected = [compute(op, width, parameter, row, widths) for row in zip(*columns, strict=True)]
    assert got.tolist() == expected, (op, width, parameter, widths)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("op", ["and", "or", "xor", "add", "sub", "mul", "divu", "modu", "divs", "mods"])
def test_arithmetic(op: str, width: int) -> None:
    source = random.Random(f"{op} {width}")
    check(op, width, 0, [numbers(source, width), numbers(source, width)], [width, width])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("op", ["eq", "ne", "ltu", "leu", "lts", "les"])
def test_comparison(op: str, width: int) -> None:
    source = random.Random(f"{op} {width}")
    a, b = numbers(source, width), numbers(source, width)
    check(op, 1, 0, [a, [x if source.random() < 0.3 else y for x, y in zip(a, b, strict=True)]], [width, width])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("op", ["shl", "shr", "sar"])
def test_shift(op: str, width: int) -> None:
    source = random.Random(f"{op} {width}")
    for size in (1, 3, 6, 7, 9, 32):
        amounts = [min(number, source.choice((number, 70, width))) for number in numbers(source, size)]
        check(op, width, 0, [numbers(source, width), amounts], [width, size])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("op", ["not", "parity", "sext", "slice", "pick", "mux", "concat"])
def test_bits(op: str, width: int) -> None:
    source = random.Random(f"{op} {width}")
    values = numbers(source, width)
    if op == "not":
        check(op, width, 0, [values], [width])
    elif op == "parity":
        check(op, 1, 0, [values], [width])
    elif op == "sext":
        for wider in (width, width + 1, 64, 65, 190):
            if wider >= width:
                check(op, wider, 0, [values], [width])
    elif op == "mux":
        check(op, width, 0, [numbers(source, 1), values, numbers(source, width)], [1, width, width])
    else:
        for _ in range(12):
            other = source.choice(WIDTHS)
            if op == "concat":
                check(op, width + other, 0, [values, numbers(source, other)], [width, other])
                check(op, 2 * width + other, 0, [values, numbers(source, other), values], [width, other, width])
            elif op == "slice":
                low = source.randrange(width)
                check(op, source.randint(1, width - low), low, [values], [width])
            else:
                size = source.choice((1, 4, 6, 8, 32))
                check(op, other, source.randrange(width), [values, numbers(source, size)], [width, size])


class Stored:
    """Leaves with one input, one register and one memory."""

    moments = 3

    def input(self, name: str, width: int):
        assert (name, width) == ("a", 8)
        return np.array([1, 2, 3], np.uint64)

    def register(self, name: str, low: int, width: int):
        assert (name, low, width) == ("top.r", 64, 8)
        return np.array([10, 20, 30], np.uint64)

    def read(self, memory: str, low: int, width: int, address):
        assert (memory, low, width) == ("top.m", 0, 8)
        return address + np.uint64(100)


def test_a_cone_is_computed_from_its_leaves() -> None:
    from sley.sim.fast.read.netlist import Memory, Port, Register, Segment

    net = Builder()
    a = net.make("input", 8, (), 0)
    net.inputs.append(Port("a", 8, a))
    r = net.make("register", 8, (), 0)
    net.registers.append(Register("top.r", 64, 8, 0, 0, r))
    net.memories.append(Memory("top.m", 8, 16, [], [0]))
    net.segments.append(Segment(0, 0, 8))
    row = net.make("read", 8, (net.arithmetic("add", a, r),), 0)
    total = net.arithmetic("add", row, net.const(1, 8))
    result = evaluate(net, [total, a], Stored())
    assert result[total].tolist() == [112, 123, 134]
    assert result[a].tolist() == [1, 2, 3]
    assert sources(net, [total]) == ({"a"}, {"top.r"}, {"top.m"})
    assert cone(net, [a]) == [a]
    assert full(1 << 99, 100, 2).tolist() == [1 << 99] * 2
