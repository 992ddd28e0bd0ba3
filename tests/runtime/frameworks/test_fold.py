"""Operators on the host: what onnx's reference implementation gets wrong is computed here."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator


@pytest.mark.parametrize(
    ("shape", "numbers", "axis"), [((3, 70), (3, 5), 1), ((70, 4), (2, 3), 0), ((2, 3, 65), (1, 3, 7), -1)]
)
def test_elements_by_numbers(shape: tuple[int, ...], numbers: tuple[int, ...], axis: int) -> None:
    """Long axes, shorter other ones, and numbers from the end."""
    random = np.random.default_rng(1)
    x = random.standard_normal(shape).astype(np.float32)
    side = shape[axis]
    index = random.integers(-side, side, numbers)
    node = Node("GatherElements", ("x", "i"), ("y",), {"axis": axis})
    (found,) = fold(node, [x, index])
    assert found.shape == numbers
    for place in np.ndindex(*numbers):
        source = list(place)
        source[axis] = index[place]
        assert found[place] == x[tuple(source)]


def test_numbers_outside_are_refused() -> None:
    node = Node("GatherElements", ("x", "i"), ("y",), {"axis": 1}, "tokens")
    with pytest.raises(UnsupportedOperator, match=r"GatherElements 'tokens' takes elements that .* \(1, 4\) lacks"):
        fold(node, [np.zeros((1, 4)), np.array([[4]])])
