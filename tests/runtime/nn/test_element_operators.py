"""Element-wise operators are equal, bit by bit, to their functions in golden arithmetic, on arrays of any kind."""

from typing import Any

import element_operators
import numpy as np
import pytest
from element_operators import TABLE, Of, lines
from golden_steps import judged_steps
from random_arrays import any_integer, any_type, narrowed, shape_of, values, view

from sley.runtime import Buffer, Device, nn
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8, INT32

NUMBERS = {*element_operators.ARITHMETIC, *element_operators.COMPARISONS} - {"where", "masked_fill"}
ORDER = (BOOL, INT8, INT32, BF16, FP32)


def result_type(name: str, line: Of, arrays: list[Buffer]) -> np.dtype[Any]:
    """As the documentation says."""
    if line.to_bool:
        return BOOL
    kind = max((array.dtype for array in arrays[name == "where" :]), key=ORDER.index)
    if name == "masked_fill":
        kind = arrays[0].dtype
    numbers = [number for number in (*line.more, *line.options.values()) if isinstance(number, float)]
    if kind not in (BF16, FP32) and (numbers or not (line.whole or name in element_operators.COMPARISONS)):
        return FP32
    if not line.floats and len(arrays) == line.arrays:
        return kind
    return INT8 if kind == BOOL and name in (*element_operators.ARITHMETIC, "masked_fill") else kind


def call(random: np.random.Generator, device: Device, name: str, line: Of) -> None:
    """One call on random arrays, whose result is new, given, a view, or in the place of an operand."""
    shape = shape_of(random)
    same = random.random() < 0.5
    any_kind = any_type if line.floats else any_integer
    kind = any_kind(random)
    arrays = []
    for _ in range(line.arrays):
        sides, own = narrowed(random, shape) if random.random() < 0.5 else shape, kind if same else any_kind(random)
        arrays.append(view(random, device, values(random, sides, own)))
    operands: list[Any] = list(arrays)
    if line.arrays == 2 and name in NUMBERS and random.random() < 0.2:
        place = int(random.integers(0, 2))
        operands[place] = 3 if random.random() < 0.5 or not line.floats else -2.5
        del arrays[place]
    together = np.broadcast_shapes(*(array.shape for array in arrays))
    dtype = result_type(name, line, arrays)
    if not line.to_bool and any(isinstance(operand, float) for operand in operands) and dtype not in (BF16, FP32):
        dtype = FP32
    places: list[Buffer | None] = [None, view(random, device, values(random, together, dtype))]
    places += [array for array in arrays if array.shape == together and array.dtype == dtype]
    out = places[int(random.integers(0, len(places)))]
    with judged_steps() as steps:
        result = getattr(nn, name)(*operands, *line.more, **line.options, out=out)
    assert steps.names, name
    assert (result.shape, result.dtype) == (together, dtype)
    assert out is None or result is out
    if dtype == BOOL:
        assert set(np.unique(np.ascontiguousarray(result.numpy()).view(np.uint8))) <= {0, 1}


@pytest.mark.parametrize("name", TABLE)
def test_equal_to_golden(base: Device, name: str) -> None:
    random = np.random.default_rng(sum(map(ord, name)))
    for line in lines(name):
        for _ in range(3 if len(lines(name)) == 1 else 1):
            call(random, base, name, line)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ORDER, ids=str)
def test_tiles_have_room(base: Device, dtype: np.dtype[Any]) -> None:
    """Whole tiles, on a row and on several, of one type."""
    random = np.random.default_rng(7)
    for name in TABLE:
        for line in lines(name):
            if not line.floats and dtype in (BF16, FP32):
                continue
            for shape in ((9001,), (67, 300)):
                arrays = [base.array(values(random, shape, dtype)) for _ in range(line.arrays)]
                with judged_steps():
                    getattr(nn, name)(*arrays, *line.more, **line.options)
