"""Buffers in banks: apart if two are read at the same time, never over each other; and how many slots they have."""

import itertools
import random

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import types_of

from sley.abi.config import preset
from sley.abi.instructions import Space
from sley.bench.tile.products import product
from sley.runtime.tile.compiler import prepare
from sley.runtime.tile.ir import Block, Op
from sley.runtime.tile.passes.banks import BESIDE, TOGETHER, Conflicts, conflicts, place_in_banks
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.placement import Placement, place
from sley.runtime.tile.passes.slots import choose_slots
from sley.runtime.tile.text import parse

PRODUCT = """sley.tile 1
kernel product(%a: bf16[64, 64; 64, 1], %b: bf16[64, 64; 64, 1], %c: fp32[64, 64; 64, 1]) grid 1, 1, 1 {
  %0: index = const() {value=0}
  %1: bf16[64, 64] = load(%a, %0, %0) {axes=(0, 1), fill=0.0, shape=(64, 64)}
  %2: bf16[64, 64] = load(%b, %0, %0) {axes=(0, 1), fill=0.0, shape=(64, 64)}
  %3: fp32[64, 64] = full() {dtype=fp32, shape=(64, 64), value=0.0}
  %4: fp32[64, 64] = dot(%1, %2, %3)
  store(%c, %0, %0, %4) {axes=(0, 1)}
}
"""


def buffer(rows: int, loop: Op | None = None, space: Space = Space.SCRATCHPAD) -> Buffer:
    return Buffer(space, (rows, 1), rows, loop, 0)


def test_operands_of_a_product_are_apart() -> None:
    function = parse(PRODUCT)
    values = {value.name or number: value for number, op in enumerate(function.body.ops) for value in op.results}
    a, b, sums = buffer(256), buffer(256), buffer(256, space=Space.ACCUMULATOR)
    costs = conflicts(
        function.body, {values[1]: a, values[2]: b, values[3]: sums, values[4]: sums}, {}, {}, {}, preset("base")
    )
    assert costs.between[a][b] == TOGETHER
    assert sums not in costs.between
    place_in_banks([a, b], 1024, 2, costs)
    assert {a.first // 512, b.first // 512} == {0, 1}


def test_how_often_two_tiles_are_in_one_bank() -> None:
    function = parse(PRODUCT)
    (loop, *_), base = function.body.ops, preset("base")
    values = {value.name or number: value for number, op in enumerate(function.body.ops) for value in op.results}
    bank = base.scratchpad_rows // base.scratchpad_banks
    a, b, sums = buffer(bank, loop), buffer(bank // 2, loop), buffer(64, space=Space.ACCUMULATOR)
    placement = Placement([a, b, sums], {values[1]: a, values[2]: b, values[4]: sums})
    found = []
    for slots, first in ((1, 0), (1, bank // 2), (1, bank), (2, bank), (2, bank // 2), (2, 2 * bank)):
        a.slots, b.slots, b.first = slots, slots, first
        found.append(placement.at_once(values[1], values[2], base))
    # Of b: in the bank of a; there, too; in the next one; both slots in the second one of a; one in each; in a third.
    assert found == [1, 1, 0, 0.5, 1, 0]
    assert placement.at_once(values[1], values[4], base) == 0


def test_without_room_apart_they_are_packed() -> None:
    parts = [buffer(300), buffer(300), buffer(424)]
    costs = Conflicts({a: {b: BESIDE for b in parts if b is not a} for a in parts}, {})
    place_in_banks(parts, 1024, 4, costs)
    assert sorted(part.first for part in parts) in ([0, 300, 600], [0, 424, 724], [0, 300, 724])


@pytest.mark.parametrize("seed", range(40))
def test_no_two_overlap(seed: int) -> None:
    dice = random.Random(seed)
    rows, banks = 1024, dice.choice((1, 2, 4, 16))
    parts, left = [], rows
    while left:
        size = dice.choice((1, 7, 64, 100, 256))
        parts.append(buffer(min(size, left)))
        left -= parts[-1].rows
        if dice.random() < 0.1:
            break
    costs = Conflicts({a: {b: dice.choice((BESIDE, TOGETHER)) for b in parts if b is not a} for a in parts}, {})
    place_in_banks(parts, rows, banks, costs)
    taken = sorted((part.first, part.first + part.all_rows) for part in parts)
    assert taken[0][0] >= 0
    assert taken[-1][1] <= rows
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(taken))


@pytest.mark.parametrize(
    ("sizes", "rows", "most", "slots"),
    [
        ((10, 10), 80, 4, [4, 4]),
        ((10, 10), 79, 4, [2, 2]),
        ((10, 10), 80, 2, [2, 2]),
        ((10, 10), 80, 1, [1, 1]),
        ((10, 30), 50, 4, [2, 1]),
        ((10, 30), 40, 4, [1, 1]),
    ],
)
def test_slots(sizes: tuple[int, ...], rows: int, most: int, slots: list[int]) -> None:
    loop = Op("for", [], {"count": 3, "lower": 0, "step": 1}, body=Block())
    parts = [*(buffer(size, loop) for size in sizes)]
    once, alone = buffer(0), buffer(0, loop)
    memories = {Space.SCRATCHPAD: rows, Space.ACCUMULATOR: 0}
    choose_slots([*parts, once, alone], {*parts, once}, set(), {loop: 0}, memories, most)
    assert [part.slots for part in parts] == slots
    assert once.slots == alone.slots == 1


def test_inner_loops_have_slots_first() -> None:
    inner, outer = (Op("for", [], {"count": 3, "lower": 0, "step": 1}, body=Block()) for _ in range(2))
    small, large = buffer(10, outer), buffer(30, inner)
    choose_slots([small, large], {small, large}, set(), {outer: 0, inner: 1}, {Space.SCRATCHPAD: 75}, 4)
    assert (small.slots, large.slots) == (1, 2)


def test_sums_that_are_stored_have_two() -> None:
    loop = Op("for", [], {"count": 3, "lower": 0, "step": 1}, body=Block())
    sums, factor = buffer(10, loop), buffer(10, loop)
    choose_slots([sums, factor], {sums, factor}, {sums}, {loop: 0}, {Space.SCRATCHPAD: 60}, 4)
    assert (sums.slots, factor.slots) == (2, 4)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, ml_dtypes.bfloat16)


@pytest.mark.parametrize(("count", "slots"), [(1, 4), (3, 2)])
def test_sums_of_a_loop_are_in_two_banks(count: int, slots: int) -> None:
    """Of a round that is one product they have four slots."""
    function = product.function(
        types_of({"a": zeros(96, 32 * count), "b": zeros(32 * count, 32), "c": np.zeros((96, 32), np.float32)}),
        {"lanes": 16, "rows": 32, "columns": 32, "depth": 32},
        (1, 3, 1),
    )
    config = preset("base")
    (sums,) = (b for b in prepare(function, config).placement.buffers if b.space is Space.ACCUMULATOR)
    bank = config.accumulator_rows // config.accumulator_banks
    assert sums.slots == slots
    assert slots == 4 or sums.first // bank < (sums.first + sums.rows) // bank == (sums.first + sums.rows) / bank


SMALLEST = """sley.tile 1
kernel smallest(%x: bf16[64, 256; 256, 1], %out: fp32[64, 1; 1, 1]) grid 1, 1, 1 {
  %0: index = const() {value=0}
  %1: bf16[64, 256] = load(%x, %0, %0) {axes=(0, 1), fill=0.0, shape=(64, 256)}
  %2: fp32[64, 1] = reduce(%1) {axis=1, kind='min'}
  store(%out, %0, %0, %2) {axes=(0, 1)}
}
"""


def test_halves_that_are_read_together_are_apart() -> None:
    config = preset("base")
    bank = config.scratchpad_rows // config.scratchpad_banks
    for kind, apart in (("min", True), ("sum", False)):
        placement = place(parse(SMALLEST.replace("min", kind)), config)
        (tile,) = (b for b in placement.buffers if b.space is Space.SCRATCHPAD)
        assert ((tile.first % bank) == bank - tile.rows // 2) == apart


SUMS = """sley.tile 1
kernel sums(%a: bf16[512, 112; 112, 1], %b: bf16[112, 112; 112, 1], %c: fp32[512, 112; 112, 1]) grid 1, 1, 1 {
  %0: index = const() {value=0}
  for() {count=8, lower=0, step=64} (%row: index) {
    %1: bf16[63, 112] = load(%a, %row, %0) {axes=(0, 1), fill=0.0, shape=(63, 112)}
    %2: bf16[112, 112] = load(%b, %0, %0) {axes=(0, 1), fill=0.0, shape=(112, 112)}
    %3: fp32[63, 112] = full() {dtype=fp32, shape=(63, 112), value=0.0}
    %4: fp32[63, 112] = dot(%1, %2, %3)
    store(%c, %row, %0, %4) {axes=(0, 1)}
    yield()
  }
}
"""


def test_sums_that_are_stored_are_apart_from_those_of_the_product_behind() -> None:
    config = preset("base")
    placement = place(parse(SUMS), config)
    (sums,) = (b for b in placement.buffers if b.space is Space.ACCUMULATOR)
    assert sums.slots == 2
    assert sums.first + sums.rows == config.accumulator_rows // config.accumulator_banks
