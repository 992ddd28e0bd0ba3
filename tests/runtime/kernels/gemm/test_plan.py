"""Plans: every one fits its chip, and nothing but chip and problem decides it."""

from collections.abc import Callable
from dataclasses import astuple, replace

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import OPERAND_TYPES, ElementType
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm import plan as planner
from sley.runtime.kernels.gemm.candidates import Candidates, Ints
from sley.runtime.kernels.gemm.cost import estimate, least
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.plan import candidates
from sley.runtime.kernels.gemm.problem import Bound, Problem, Strides, lower_bound
from sley.runtime.kernels.gemm.tiling import Plan, Tiling, tiling_text

Epilogues = Callable[[ChipConfig, ElementType], list[Epilogue]]


def random_problem(config: ChipConfig, rng: np.random.Generator, epilogues: Epilogues, largest: int = 11) -> Problem:
    """Sizes up to 2^largest, and whatever else the chip can do."""
    operands = ElementType.BF16 if config.has(ElementType.BF16) and rng.random() < 0.5 else ElementType.INT8
    m, n, k = (int(2**e) for e in rng.uniform(0, largest, 3))
    trans_a, trans_b, share_a, share_b = (bool(x) for x in rng.integers(0, 2, 4))
    of = epilogues(config, operands)
    batch = int(rng.choice([1, 1, 2, 3, 12]))
    shared = share_a and batch > 1, share_b and batch > 1 and not share_a
    problem = Problem(m, n, k, operands, trans_a, trans_b, of[rng.integers(len(of))], batch, *shared)
    if rng.random() < 0.5:
        return problem
    more = (int(x) for x in rng.choice([0, 1, 48], 6))
    return replace(problem, strides=Strides(*(x + y for x, y in zip(astuple(problem.steps), more, strict=True))))


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_left_out_is_slower(name: str, epilogues: Epilogues, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that are not estimated could not have been chosen, as no estimate is below the least."""
    rng, config = np.random.default_rng(3), PRESETS[name]

    def checked(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
        cycles = estimate(config, problem, c)
        assert (cycles >= least(config, problem, c)).all()
        return cycles

    monkeypatch.setattr(planner, "estimate", checked)
    for _ in range(12):
        problem = random_problem(config, rng, epilogues)
        found = candidates(config, problem, 3)
        with monkeypatch.context() as patch:
            patch.setattr(planner, "FIRST", 1 << 30)
            assert [plan.estimate for plan in candidates(config, problem, 3)] == [plan.estimate for plan in found]


@pytest.mark.parametrize("name", ["base", "quad"])
def test_few_candidates_are_estimated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan takes milliseconds as long as most candidates need no estimate."""
    estimated: list[int] = []

    def counted(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
        estimated[-1] += len(c.tile_m)
        return estimate(config, problem, c)

    monkeypatch.setattr(planner, "estimate", counted)
    for m, n, k in ((1, 4096, 4096), (1, 1000, 512), (16, 4096, 4096), (512, 512, 512), (12544, 64, 147)):
        estimated.append(0)
        candidates(PRESETS[name], Problem(m, n, k), 1)
    assert max(estimated) <= 1024, estimated


def assert_fits(config: ChipConfig, problem: Problem, plan: Plan) -> None:
    assert plan.problem == problem or (problem.swappable and plan.problem == problem.swapped())
    p, t = plan.problem, plan.tiling
    place = Placement.of(config, p, t)
    assert place.fits
    wide, rest = divmod(t.tile_n, config.array)
    assert rest == 0
    assert t.chunk % config.fold_depth(p.dtype) == 0
    assert t.slots >= 2
    # Operands, then two slots of results, none over the other.
    ends = [place.a.base + place.a.rows, place.b.base + place.b.rows, place.out_base + 2 * place.out_step]
    assert [place.a.base, place.b.base, place.out_base] == sorted([place.a.base, place.b.base, place.out_base])
    assert ends[0] <= place.b.base
    assert ends[1] <= place.out_base
    assert ends[2] <= config.scratchpad_rows
    # A slot holds every chunk that comes there.
    deep = config.fold_depth(p.dtype)
    chunks = [-(-min(t.chunk, p.k - start) // deep) for start in range(0, p.k, t.chunk)]
    for operand in (place.a, place.b):
        for number in range(1 if operand.resident else t.slots * len(chunks)):
            folds = -(-p.k // deep) if operand.resident else chunks[number % len(chunks)]
            last_row = (
                (folds - 1) * operand.pitch + t.tile_m
                if operand is place.a
                else (wide - 1) * operand.pitch + folds * config.array
            )
            assert number % t.slots * (operand.step + operand.shift) + operand.shift + last_row <= operand.rows
    # Sums of two macro tiles and the bias of all that may be on their way.
    assert t.tile_m * wide <= place.half
    assert t.tile_m * wide <= place.values_base
    if p.epilogue.value_rows:
        assert place.values_base + place.value_slots * wide * p.epilogue.value_rows <= place.half
        assert 2 * place.value_slots >= t.slots + 2
    # No more blocks than cores, none without a macro tile.
    x, y, z = t.grid
    assert x * y * z <= config.cores
    assert (x - 1) * t.tile_n < p.n
    assert (y - 1) * t.tile_m < p.m
    assert z <= p.batch
    assert y == 1 or p.batch == 1 or t.gang
    # In a gang all cores have as many macro tiles.
    if t.gang:
        assert config.cores > 1
        assert t.grid == (config.cores_x, config.cores_y, 1)
        assert -(-p.n // t.tile_n) % x == 0
        assert -(-p.m // t.tile_m) % y == 0
    # What is loaded once must serve all macro tiles.
    if t.resident == "a":
        assert t.tile_m >= p.m
        assert p.batch == 1 or p.share_a
    if t.resident == "b":
        assert t.tile_n >= p.n
        assert p.batch == 1 or p.share_b


def test_plans_fit_the_chip(config: ChipConfig, epilogues: Epilogues) -> None:
    rng = np.random.default_rng(3)
    problems = [random_problem(config, rng, epilogues) for _ in range(60)]
    problems += [Problem(1, 1, 1), Problem(4096, 4096, 4096), Problem(1, 4096, 4096), Problem(4096, 1, 100_000)]
    for problem in problems:
        for plan in candidates(config, problem, 3):
            assert_fits(config, problem, plan)


def test_plans_depend_on_nothing_else(config: ChipConfig, epilogues: Epilogues) -> None:
    rng = np.random.default_rng(4)
    problems = [random_problem(config, rng, epilogues, 9) for _ in range(10)]
    first = [candidates(config, problem, 1) for problem in problems]
    assert [candidates(config, problem, 1) for problem in reversed(problems)] == first[::-1]


def test_candidates_are_different_and_best_first(config: ChipConfig, epilogues: Epilogues) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        problem = random_problem(config, rng, epilogues, 8)
        found = candidates(config, problem, 8)
        assert found[:1] == candidates(config, problem, 1)
        assert len(set(found)) == len(found)
        assert [plan.estimate for plan in found] == sorted(plan.estimate for plan in found)
        assert len({tiling_text(plan) for plan in found if plan.problem == problem}) == sum(
            plan.problem == problem for plan in found
        )


@pytest.mark.parametrize("operands", OPERAND_TYPES)
@pytest.mark.parametrize("result", [ElementType.INT8, ElementType.FP32])
def test_large_problems_use_all_cores(operands: ElementType, result: ElementType) -> None:
    epilogue = Epilogue(result, scale=True)
    for m, n, k in ((512, 512, 512), (1024, 512, 768)):
        x, y, z = candidates(PRESETS["quad"], Problem(m, n, k, operands, epilogue=epilogue), 1)[0].tiling.grid
        assert (x * y, z) == (4, 1)


@pytest.mark.parametrize("operands", OPERAND_TYPES)
@pytest.mark.parametrize("trans", [(False, False), (True, True)])
def test_large_problems_share_their_loads(operands: ElementType, trans: tuple[bool, bool]) -> None:
    """A gang reads less, so it is expected to be nearly four times as fast as one core."""
    problem = Problem(1024, 1024, 1024, operands, *trans)
    alone, together = (candidates(PRESETS[name], problem, 1)[0] for name in ("base", "quad"))
    assert together.tiling.gang
    assert alone.estimate / together.estimate > 3.5
    small = candidates(PRESETS["quad"], Problem(16, 16, 16, operands, *trans), 1)[0]
    assert not small.tiling.gang


@pytest.mark.parametrize("trans", [(False, True), (True, False), (True, True)])
def test_pieces_of_a_run_are_of_one_size(trans: tuple[bool, bool]) -> None:
    """One that is much shorter than the one before would wait for it in the transposer."""
    config = PRESETS["base"]
    for operands, most_a in ((ElementType.INT8, 4), (ElementType.BF16, 8)):
        deep = config.fold_depth(operands)
        for chunks in range(1, 30):
            problem = Problem(deep * chunks, 16, deep * chunks, operands, *trans)
            place = Placement.of(config, problem, Tiling(deep * chunks, 16, deep * chunks, 2))
            for operand, most in ((place.a, most_a), (place.b, 8)):
                if operand.transpose:
                    pieces = -(-chunks // most)
                    assert operand.piece == -(-chunks // pieces) * deep


def test_batches_are_spread_over_cores() -> None:
    assert candidates(PRESETS["quad"], Problem(128, 128, 128, batch=8), 1)[0].tiling.grid == (1, 1, 4)


def test_no_estimate_is_below_what_the_chip_can_do(config: ChipConfig, epilogues: Epilogues) -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        problem = random_problem(config, rng, epilogues)
        plan = candidates(config, problem, 1)[0]
        assert plan.estimate >= lower_bound(config, problem).cycles, (problem, plan)


@pytest.mark.parametrize(
    ("problem", "bound"),
    [
        (Problem(256, 256, 256), Bound(32768, 4096, 8192)),
        (Problem(1, 512, 512, epilogue=Epilogue(ElementType.INT8)), Bound(512, 8208, 16)),
        (Problem(16, 16, 16, ElementType.BF16, epilogue=Epilogue(ElementType.BF16)), Bound(16, 32, 16)),
        (Problem(16, 16, 32, batch=3), Bound(48, 96, 96)),
        (Problem(16, 16, 32, batch=3, share_a=True), Bound(48, 64, 96)),
        (Problem(16, 16, 32, batch=3, share_b=True), Bound(48, 64, 96)),
        (Problem(1, 1, 1), Bound(1, 1, 1)),
    ],
)
def test_lower_bound(problem: Problem, bound: Bound) -> None:
    assert lower_bound(PRESETS["base"], problem) == bound
    assert bound.cycles == max(bound.compute, bound.read, bound.write)


@pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
def test_a_product_of_one_row_may_swap_its_operands(trans: tuple[bool, bool]) -> None:
    problem = Problem(1, 70, 50, ElementType.INT8, *trans, batch=3, share_a=True)
    assert problem.swappable
    assert problem.swapped() == Problem(70, 1, 50, ElementType.INT8, not trans[1], not trans[0], batch=3, share_b=True)
    assert problem.swapped().swapped() == problem
    assert not Problem(1, 5, 5, epilogue=Epilogue(ElementType.INT8, bias=True, scale=True)).swappable
    assert not Problem(2, 5, 5).swappable


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda c: c.name)
@pytest.mark.parametrize("size", [(16384, 16384, 16384), (4096, 128000, 4096)], ids=str)
def test_estimates_of_huge_products_do_not_overflow(config: ChipConfig, size: tuple[int, int, int]) -> None:
    (found,) = candidates(config, Problem(*size), 1)
    assert found.estimate >= lower_bound(config, Problem(*size)).cycles
    assert found.estimate < 2.5 * lower_bound(config, Problem(*size)).cycles
