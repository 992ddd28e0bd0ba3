"""Chips that products run on, and which cases exist on each."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType

CHIPS = [
    *(PRESETS[name] for name in ("nano", "edge", "quad")),
    ChipConfig(
        name="one_bank",
        operand_types=("int8", "bf16"),
        vector_lanes=1,
        scratchpad_rows=64,
        scratchpad_banks=1,
        accumulator_rows=16,
        accumulator_banks=1,
        unit_queue=2,
    ),
    ChipConfig(name="square", cores_x=2, cores_y=2),
]
MORE_CHIPS = [
    PRESETS["base"],
    ChipConfig(name="int8_16", array=16, scratchpad_rows=256, accumulator_rows=64, program_words=512),
    ChipConfig(name="row_of_3", array=8, cores_x=3, scratchpad_rows=128, accumulator_rows=32, queues=1),
]


def chips(needs_bf16: bool = False) -> list[Any]:
    """Parameters: each chip, or those that multiply bf16; the larger ones are slow."""
    return _params([()], lambda: needs_bf16)


def on_chips(names: Sequence[str], cases: Iterable[Sequence[Any]], needs_bf16: Callable[..., bool]) -> Any:
    """Each case on each chip that has what it needs, as ``config`` and the names; ``needs_bf16`` takes a case."""
    return pytest.mark.parametrize(("config", *names), _params(list(cases), needs_bf16))


def _params(cases: Sequence[Sequence[Any]], needs_bf16: Callable[..., bool]) -> list[Any]:
    marks = [*((chip, []) for chip in CHIPS), *((chip, [pytest.mark.slow]) for chip in MORE_CHIPS)]
    return [
        pytest.param(chip, *case, id="-".join([chip.name, *map(str, case)]), marks=mark)
        for chip, mark in marks
        for case in cases
        if chip.has(ElementType.BF16) or not needs_bf16(*case)
    ]
