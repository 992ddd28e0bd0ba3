# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.sim import Simulator

from sley.abi.config import PRESETS
from sley.abi.faults import UNITS, Unit
from sley.abi.parameters import PARAMS, Param, unit_params
from sley.hw.core.params import UnitParams, params_layout
from sley.hw.testing.simulation.engine import QuickEngine

BASE = PRESETS["base"]


def fits(param: int, value: int, unit: Unit) -> int | None:
    """The parameter's new value, or None if SET must refuse."""
    if param not in {int(p) for p in unit_params(unit, BASE)}:
        return None
    info = PARAMS[Param(param)]
    if not info.signed:
        return value if value < 1 << info.width else None
    number = value - (1 << 32) if value >> 31 else value
    return number if -(1 << (info.width - 1)) <= number < 1 << (info.width - 1) else None


def values_to_try(rng: random.Random) -> list[int]:
    edges = [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_7FFF, 0xFFFF_8000, 0xFFFF_FFFF]
    return edges + [rng.getrandbits(rng.randrange(1, 33)) for _ in range(4)]


@pytest.mark.parametrize("unit", UNITS)
def test_every_parameter_against_every_width(unit: Unit) -> None:
    dut = UnitParams(unit, BASE)
    rng = random.Random(int(unit))
    names = {p: p.name.lower() for p in unit_params(unit, BASE)}
    expected = {p: PARAMS[p].reset for p in names}
    steps = [(p, v) for p in [*range(40), 255] for v in values_to_try(rng)]
    rng.shuffle(steps)

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        async def check() -> None:
            for p, name in names.items():
                assert ctx.get(dut.values[name]) == expected[p], name

        await check()
        for param, value in steps:
            chance = rng.random()
            ctx.set(dut.set, chance > 0.2)
            ctx.set(dut.clear, chance > 0.98)
            ctx.set(dut.param, param)
            ctx.set(dut.value, value)
            accepted = fits(param, value, unit)
            assert ctx.get(dut.bad) == (accepted is None), (param, hex(value))
            if chance > 0.2 and accepted is not None:
                expected[Param(param)] = accepted
            if chance > 0.98:
                expected.update({p: PARAMS[p].reset for p in names})
            await ctx.tick()
            await check()

    sim = Simulator(dut, engine=QuickEngine)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("unit", UNITS)
def test_layout_follows_the_contract(unit: Unit) -> None:
    layout = params_layout(unit, BASE)
    assert {name for name, _ in layout} == {p.name.lower() for p in unit_params(unit, BASE)}
    assert layout.size == sum(info.width for info in unit_params(unit, BASE).values())


def test_a_unit_without_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="SEQUENCER"):
        UnitParams(Unit.SEQUENCER, BASE)
