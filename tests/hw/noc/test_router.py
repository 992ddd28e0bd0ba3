"""One router: every legal turn, timing, fairness and whole packets."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.lib import data
from traffic_bench import Packets

from sley.hw.noc.direction import Direction, all_turns
from sley.hw.noc.messages import Coordinate
from sley.hw.noc.router import Router
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

FLIT = data.StructLayout({"payload": 16, "dest": Coordinate, "last": 1})
HERE = (2, 3)


def packet(to: Direction, length: int, start: int, far: int = 1) -> list[dict[str, Any]]:
    dest = {"x": HERE[0] + far * to.value[0], "y": HERE[1] + far * to.value[1]}
    return [{"payload": start + k, "dest": dest, "last": k == length - 1} for k in range(length)]


TURNS = all_turns()

COVERAGE = Coverage(
    "router",
    {
        "turn": [(a.name, b.name, how) for a, b in TURNS for how in ("alone", "among others")],
        "flits of a packet": range(1, 6),
        "output": [(side.name, state) for side in Direction for state in ("idle", "moves", "waits")],
    },
)


def watch(bench: StreamBench) -> None:
    """Which turns are asked for, and what the outputs do."""
    dut = bench.dut
    inputs, outputs = ([port(side) for side in Direction] for port in (dut.side_i, dut.side_o))

    async def states(ctx: Any) -> None:
        while True:
            values = await ctx.tick().sample(
                *(b for o in outputs for b in (o.valid, o.ready)),
                *(b for i in inputs for b in (i.valid, i.payload.dest)),
            )
            values = values[2:]
            for k, side in enumerate(Direction):
                valid, ready = values[2 * k : 2 * k + 2]
                COVERAGE.hit("output", (side.name, ("moves" if ready else "waits") if valid else "idle"))
            asks: dict[Direction, list[Direction]] = {}
            for k, side in enumerate(Direction, len(Direction)):
                valid, dest = values[2 * k : 2 * k + 2]
                if valid:
                    dx, dy = dest.x - HERE[0], dest.y - HERE[1]
                    asks.setdefault(Direction(((dx > 0) - (dx < 0), 0 if dx else (dy > 0) - (dy < 0))), []).append(side)
            for to, sides in asks.items():
                for side in sides:
                    COVERAGE.hit("turn", (side.name, to.name, "alone" if len(sides) == 1 else "among others"))

    bench.add(states)


def test_legal_turns() -> None:
    names = sorted(a.name[0] + b.name[0] for a, b in TURNS)
    assert " ".join(names) == "EL EN ES EW LE LN LS LW NL NS SL SN WE WL WN WS"


@pytest.mark.parametrize("turn", TURNS, ids=lambda t: f"{t[0].name}-{t[1].name}")
def test_turn(turn: tuple[Direction, Direction]) -> None:
    """Latency 1, a flit per cycle, no gap between packets; only the right output speaks."""
    bench = StreamBench(Router(FLIT, HERE, TURNS))
    flits = packet(turn[1], 3, 0) + packet(turn[1], 1, 3) + packet(turn[1], 4, 4, far=2 if turn[1].value[0] else 1)
    sent = bench.send(bench.dut.side_i(turn[0]), flits)
    outs = {d: bench.receive(bench.dut.side_o(d), 8 if d is turn[1] else 0) for d in Direction}
    bench.run()
    got = outs[turn[1]]
    assert [x.payload for x in got.items] == list(range(8))
    assert sent.cycles == list(range(1, 9))
    assert got.cycles == list(range(2, 10))


@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.2), (0.1, 0.6)])
def test_random_traffic(idle: float, pause: float) -> None:
    bench = StreamBench(Router(FLIT, HERE, TURNS), seed=int(10 * idle))
    packets = Packets()
    for side in Direction:
        flits: list[dict[str, Any]] = []
        for _ in range(15):
            to = bench.rng.choice([b for a, b in TURNS if a is side])
            length = bench.rng.randint(1, 5)
            COVERAGE.hit("flits of a packet", length)
            flits += packet(to, length, packets.add(side, [to], length))
        bench.send(bench.dut.side_i(side), flits, idle=idle)
    watch(bench)
    packets.run(bench, pause)


def test_fair() -> None:
    """Four inputs to one output: each gets every fourth packet."""
    bench = StreamBench(Router(FLIT, HERE, TURNS))
    sides = [Direction.NORTH, Direction.EAST, Direction.SOUTH, Direction.WEST]
    for k, side in enumerate(sides):
        bench.send(bench.dut.side_i(side), [f for n in range(5) for f in packet(Direction.LOCAL, 2, 100 * k + 10 * n)])
    got = bench.receive(bench.dut.o_local, 40)
    bench.run()
    assert [x.payload // 100 for x in got.items] == [0, 0, 1, 1, 2, 2, 3, 3] * 5
    assert got.cycles == list(range(2, 42))


def test_some_turns() -> None:
    """There are no other ports than the turns have; what has one way only takes it, whatever its destination."""
    turns = [(Direction.WEST, Direction.LOCAL), (Direction.LOCAL, Direction.EAST), (Direction.LOCAL, Direction.SOUTH)]
    router = Router(FLIT, HERE, turns)
    assert sorted(router.signature.members) == ["i_local", "i_west", "o_east", "o_local", "o_south"]
    bench = StreamBench(router)
    bench.send(router.side_i(Direction.WEST), packet(Direction.LOCAL, 2, 0) + packet(Direction.NORTH, 2, 2))
    bench.send(router.side_i(Direction.LOCAL), packet(Direction.SOUTH, 3, 10) + packet(Direction.EAST, 3, 20))
    local, south, east = (
        bench.receive(router.side_o(side), count)
        for side, count in ((Direction.LOCAL, 4), (Direction.SOUTH, 3), (Direction.EAST, 3))
    )
    bench.run()
    assert [x.payload for x in local.items] == [0, 1, 2, 3]
    assert [x.payload for x in south.items] == [10, 11, 12]
    assert [x.payload for x in east.items] == [20, 21, 22]


def test_parameters() -> None:
    with rejects("a router that no packet passes need not exist"):
        Router(FLIT, (0, 0), [])
    with rejects("NORTH to EAST, which dimension order, x first, never takes"):
        Router(FLIT, (0, 0), [(Direction.LOCAL, Direction.EAST), (Direction.NORTH, Direction.EAST)])


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
