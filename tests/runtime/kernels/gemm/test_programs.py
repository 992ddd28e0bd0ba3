"""Programs: every variant fits the program memory and the registers of every chip, however the product is cut."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.kernel import gemm_program
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.plan import candidates
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Tiling

Epilogues = Callable[[ChipConfig, ElementType], list[Epilogue]]


def variants(config: ChipConfig, epilogues: Epilogues) -> list[Problem]:
    """A small product of each kind that the chip can do."""
    operands = [ElementType.INT8, *([ElementType.BF16] if config.has(ElementType.BF16) else [])]
    return [
        Problem(1, 1, 1, operand, trans_a, trans_b, epilogue)
        for operand in operands
        for epilogue in epilogues(config, operand)
        for trans_a, trans_b in product((False, True), repeat=2)
    ]


@pytest.mark.some(2)
@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_longest_programs_fit(config: ChipConfig, epilogues: Epilogues, batch: int) -> None:
    """Cut unevenly in each direction, so that nothing is known beforehand, over all cores in a row."""
    n = config.array
    longest = 0
    for problem in variants(config, epilogues):
        deep = config.fold_depth(problem.dtype)
        cut = replace(problem, m=10, n=11 * n + 1, k=5 * deep + 1, batch=batch)
        for wide, folds, resident in product((1, 2), (1, 2), ("", "a", "b") if batch == 1 else ("",)):
            tiling = Tiling(3, wide * n, folds * deep, 2, (min(config.cores, 3), 1, 1), resident)
            if resident == "a":
                tiling = replace(tiling, tile_m=10)
                if wide == 2 and folds == 1 and not (problem.trans_b or problem.epilogue.value_rows) and batch == 1:
                    tiling = replace(tiling, margin=2)
            if resident == "b":
                tiling = replace(tiling, tile_n=12 * n, tile_m=1, grid=(1, 1, 1))
            if Placement.of(config, cut, tiling).fits:
                longest = max(longest, len(gemm_program(config, cut, tiling).words))
    assert 100 < longest <= config.program_words


@pytest.mark.some(2)
def test_planned_programs_fit(config: ChipConfig, epilogues: Epilogues) -> None:
    rng = np.random.default_rng(8)
    for problem in variants(config, epilogues):
        m, n, k = (int(2**e) for e in rng.uniform(0, 12, 3))
        batch = int(rng.choice([1, 3]))
        problem = replace(problem, m=m, n=n, k=k, batch=batch, share_a=batch > 1 and bool(rng.integers(2)))
        for plan in candidates(config, problem, 2):
            program = gemm_program(config, plan.problem, plan.tiling)
            assert len(program.words) <= config.program_words
            assert program.config_hash == config.hash


def test_arguments_are_named_after_what_they_are(config: ChipConfig) -> None:
    def arguments(epilogue: Epilogue) -> tuple[str, ...]:
        problem = Problem(5, 5, 5, epilogue=epilogue)
        return gemm_program(config, problem, Tiling(5, 2 * config.array, 2 * config.fold_depth(), 2)).args

    assert arguments(Epilogue()) == ("a", "b", "c")
    assert arguments(Epilogue(bias=True, scale=True)) == ("a", "b", "c", "bias", "scale")
    assert arguments(Epilogue(bias=True, scale=True, scale_rows=True)) == ("a", "b", "c", "bias", "scale")
    assert arguments(Epilogue(scale=True)) == ("a", "b", "c", "scale")


def test_programs_are_made_once(config: ChipConfig) -> None:
    problem = Problem(5, 6, 7)
    tiling = candidates(config, problem, 1)[0].tiling
    assert gemm_program(config, problem, tiling) is gemm_program(config, replace(problem), replace(tiling))
