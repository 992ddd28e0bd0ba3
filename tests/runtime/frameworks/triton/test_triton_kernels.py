"""Triton kernels on a device against the oracle, from their TTIR: equal in every bit."""

import numpy as np
import pytest
from triton_agreement import agree
from triton_cases import CASES, Case

from sley.runtime import Device
from sley.runtime.frameworks.triton import TritonKernel

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(base: Device, case: Case) -> None:
    agree(base, case.text, *case.make(np.random.default_rng(7)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_on_four_cores(quad: Device, case: Case) -> None:
    agree(quad, case.text, *case.make(np.random.default_rng(8)))


def test_attention_is_attention(base: Device) -> None:
    """Against float64: what the oracle shares with the converter, the meaning of operations, is right."""
    case = BY_NAME["attention_causal"]
    grid, arguments = case.make(np.random.default_rng(1))
    found = agree(base, case.text, grid, arguments)[3].astype(np.float64)
    q, k, v = (one.astype(np.float64).swapaxes(1, 2) for one in arguments[:3])
    t = q.shape[2]
    scores = np.where(np.tri(t) > 0, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]), -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    right = (powers / powers.sum(-1, keepdims=True)) @ v
    np.testing.assert_allclose(found.swapaxes(1, 2), right, atol=0.02)


def test_cross_entropy_is_cross_entropy(base: Device) -> None:
    case = BY_NAME["cross_entropy"]
    grid, arguments = case.make(np.random.default_rng(1))
    loss, grad = agree(base, case.text, grid, arguments)[2:4]
    x, labels = arguments[0].astype(np.float64), arguments[1]
    shares = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    rows = np.arange(len(labels))
    np.testing.assert_allclose(loss, -np.log(shares[rows, labels]), atol=1e-5)
    shares[rows, labels] -= 1
    np.testing.assert_allclose(grad, shares, atol=1e-6)


def test_grouped_programs_are_one_launch(base: Device) -> None:
    """Quotients and remainders of program ids become the grid; a grid of rows becomes rows of tiles."""
    for name, launches in (("matmul_grouped", 1), ("attention_causal", 3), ("scaled_add", 2), ("rms_norm", 1)):
        grid, arguments = BY_NAME[name].make(np.random.default_rng(2))
        kernel = TritonKernel(BY_NAME[name].text)
        given = [base.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
        _, memories, scalars = kernel.bind(given)
        x, y, z = (*grid, 1, 1)[:3]
        steps = kernel.steps(memories, scalars, (x, y, z), base.config)
        assert len(steps) == launches, name
        assert name != "rms_norm" or steps[0].compiled.grid[0] < grid[0]


def test_views_and_arguments_that_share_memory(base: Device) -> None:
    """A pointer is where its view begins; a result may be the argument; the array around it stays what it was."""
    rng = np.random.default_rng(3)
    host = rng.standard_normal((40, 64)).astype(np.float32)
    whole = base.array(host)
    case = BY_NAME["scaled_add"]
    TritonKernel(case.text)[2](whole[3], whole[8], whole[3], 64, -2.0)
    host[3] = host[3] * np.float32(-2.0) + host[8]
    np.testing.assert_array_equal(whole.numpy(), host)
