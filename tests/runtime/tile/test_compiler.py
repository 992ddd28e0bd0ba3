"""Programs that are too long for a core, as they are, are made with less that takes instructions."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.config import preset
from sley.driver import Driver
from sley.runtime import Device
from sley.runtime.errors import KernelError
from sley.runtime.tile.compiler import Keep, Prepared, prepare
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.sim.engines.model import ModelTransport

GRID, ROWS = (4, 1, 1), 16


def arrays() -> dict[str, Any]:
    x = np.random.default_rng(5).standard_normal((64, 256)).astype(ml_dtypes.bfloat16)
    return {"x": x, "out": np.zeros_like(x)}


def of_softmax(words: int, schedule: Schedule = AUTOMATIC) -> Prepared:
    function = kernels.softmax.function(types_of(arrays()), {"rows": ROWS}, GRID)
    return prepare(function, replace(preset("base"), program_words=words), schedule)


def test_less_is_issued_ahead_and_fewer_slots_are_taken() -> None:
    whole = of_softmax(512)
    assert len(whole.compiled().program.words) > 128
    less = of_softmax(128)
    made = [less]
    while (found := made[-1]._with_less()) is not None:
        made.append(found)
    assert all(after.ahead < before.ahead or after.slots <= before.slots for before, after in pairwise(made))
    assert made[-1].slots == 1
    assert made[-1].keep is Keep.NOTHING
    assert len(of_softmax(128).compiled().program.words) <= 128


def test_what_a_schedule_says_stays() -> None:
    made: Prepared | None = of_softmax(128, Schedule(prefetch=False, buffer=2))
    while made is not None:
        assert not made.early
        assert made.slots <= 2
        made = made._with_less()


def test_bits() -> None:
    config = replace(preset("base"), program_words=128)
    with Device(Driver(ModelTransport(config, 1 << 22))) as device:
        kernel_agrees(device, kernels.softmax, arrays(), GRID, rows=ROWS)


def test_what_is_too_long_however_it_is_made() -> None:
    with pytest.raises(KernelError, match=r"softmax has \d+ instructions; a core holds 16"):
        of_softmax(16).compiled()
