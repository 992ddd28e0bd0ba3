"""The definition of attention: against float64, and what follows from it exactly."""

from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from sley.sim.golden.attention import attention

FACTOR = np.float32(0.125 * np.log2(np.e)).view(np.uint32)


def values(seed: int, *shape: int) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(bfloat16)


def run(*arrays: NDArray[Any], key_block: int = 32, causal: bool = False) -> NDArray[np.float64]:
    bits = (x.view(np.uint16) for x in arrays)
    found = attention(*bits, factor=FACTOR, key_block=key_block, group=16, causal=causal)
    return found.view(bfloat16).astype(np.float64)


def test_against_float64() -> None:
    given = values(1, 40, 64), values(2, 70, 64), values(3, 70, 64)
    q, k, v = (x.astype(np.float64) for x in given)
    for causal in (False, True):
        p = np.exp(0.125 * q @ k.T) * (np.tri(40, 70) if causal else 1)
        p /= p.sum(1, keepdims=True)
        for key_block in (16, 32, 128):
            error = abs(run(*given, key_block=key_block, causal=causal) - p @ v)
            assert (error <= 3 * 2.0**-8 * (p @ abs(v))).all()


def test_one_key_gives_its_value() -> None:
    v = values(4, 1, 16)
    assert (run(values(5, 9, 16), values(6, 1, 16), v) == v.astype(np.float64)).all()
    assert (run(values(5, 9, 16), values(6, 9, 16), np.repeat(v, 9, 0), causal=True)[0] == v.astype(np.float64)).all()


def test_scores_of_minus_infinity_have_no_weight_but_all_of_them_are_nan() -> None:
    q, k, v = np.ones((3, 16), bfloat16), values(7, 40, 16), values(8, 40, 16)
    k[5] = -np.inf
    others = np.arange(40) != 5
    part = run(q, k[others], v[others], key_block=64)
    assert (run(q, k, v, key_block=64) == part).all()
    assert np.isnan(run(q, np.full((40, 16), -np.inf, bfloat16), v)).all()


def test_heads_are_independent() -> None:
    given = values(9, 2, 3, 5, 16), values(10, 2, 3, 7, 16), values(11, 2, 3, 7, 16)
    assert (run(*given)[1, 2] == run(*(x[1, 2] for x in given))).all()
