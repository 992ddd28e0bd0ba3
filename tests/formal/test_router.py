"""Routers: flits go where dimension order says, in order, packets whole, everybody has a turn; links in no circle."""

from collections.abc import Collection, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.hw.noc.direction import Direction, Turn, all_turns, may_turn
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.noc.router import Router
from sley.hw.noc.routes import request_pairs, response_pairs
from sley.hw.noc.routes import turns as turns_of
from sley.hw.testing.in_order import InOrder
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, prove

PLACE = data.StructLayout({"x": 2, "y": 2})
PAYLOAD = data.StructLayout({"source": 3, "data": 1})
PLAIN = data.StructLayout({"payload": PAYLOAD, "dest": PLACE, "last": 1})
COPIED = data.StructLayout({"payload": PAYLOAD, "dest": PLACE, "far": PLACE, "last": 1})
SIDES = list(Direction)
ALL = all_turns()


def turns(side: Direction, to: Direction) -> bool:
    """The rule of dimension order: x first, then y, and never back."""
    along_y = side in (Direction.NORTH, Direction.SOUTH)
    return side is not to and not (along_y and to in (Direction.EAST, Direction.WEST))


class Place(NamedTuple):
    x: int
    y: int


HERE = Place(1, 1)


def ways(side: Direction, here: Place, near: Any, far: Any) -> dict[Direction, Any]:
    """Where a flit to the nodes between two corners, come from a side, has to leave, by the words of the rule: along x
    through all columns of the rectangle, and in each of them along y."""
    column = (near.x <= here.x) & (far.x >= here.x)
    tests = {
        Direction.LOCAL: column & (near.y <= here.y) & (far.y >= here.y),
        Direction.NORTH: column & (near.y < here.y),
        Direction.EAST: far.x > here.x,
        Direction.SOUTH: column & (far.y > here.y),
        Direction.WEST: near.x < here.x,
    }
    return {to: test for to, test in tests.items() if turns(side, to)}


class Routed(InOrder):
    """Of the flits from any one side to any other one: they leave as they came, in order, none lost, doubled or added,
    and only to the sides that dimension order says: towards its node, or along x through the columns of its rectangle
    and from there along y. Packets stay whole; what is offered stays until it is taken; what was taken is offered in
    the next cycle at the latest.

    While a flit waits for a side, each other input begins one packet to that side at most. If an output has room,
    is not inside a packet, and is asked for, something moves to it; with ``copies``, if all outputs have room and all
    inputs go on with what they began, something moves.

    Assumed: all flits of a packet have one destination; what enters on a side came there by the same rule, and what
    enters from the node is for another one; no flit needs a turn besides ``turns``, those of the router; with
    ``copies``, only one side has packets to several others.
    """

    def __init__(self, dut: Any, shape: Any, turns: Collection[Turn], *, copies: bool = False) -> None:
        super().__init__(dut)
        self.shape, self.turns, self.copies = shape, turns, copies
        self.enters = [side for side in SIDES if any(side is came_from for came_from, _ in turns)]
        self.exits = [side for side in SIDES if any(side is goes_to for _, goes_to in turns)]

    def ways(self, side: Direction, flit: Any) -> dict[Direction, Any]:
        return ways(side, HERE, flit.dest, flit.far if self.copies else flit.dest)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        self.names = self.inner(m, dut)
        self.free_inputs(m, dut)
        i = {side: dut.side_i(side) for side in self.enters}
        self.flits = {side: port.payload for side, port in i.items()}
        self.taken = {side: port.valid & port.ready for side, port in i.items()}
        self.leaves = {side: self.ways(side, self.flits[side]) for side in self.enters}
        self.asks = {
            to: {side: i[side].valid & self.leaves[side][to] for side in self.enters if (side, to) in self.turns}
            for to in self.exits
        }
        self.open = {side: Signal(name=f"{side.name}_open") for side in self.enters}
        self.begun = {side: Signal(self.shape, name=f"{side.name}_begun", reset_less=True) for side in self.enters}
        self.assumptions(m)

        source, to = self.constant(range(5), "source"), self.constant(range(5), "to")
        m.d.comb += Assume((source < 5) & (to < 5))
        come, came, go, gone = Signal(), Signal(self.shape), Signal(), Signal(self.shape)
        inside, held, front, back = Signal(2), Signal(2), Signal(self.shape), Signal(self.shape)
        for k, side in enumerate(SIDES):
            for n, leaving in enumerate(SIDES):
                if (side, leaving) in self.turns:
                    with m.If((source == k) & (to == n)):
                        m.d.comb += [come.eq(self.taken[side] & self.leaves[side][leaving]), came.eq(self.flits[side])]
        moves = {leaving: self.output(m, leaving) for leaving in self.exits}
        for n, leaving in enumerate(SIDES):
            if leaving not in self.exits:
                continue
            o = dut.side_o(leaving)
            spare_valid, spare = self.spare(leaving)
            mine = o.valid & (o.payload.payload.source == source)
            with m.If(to == n):
                m.d.comb += [
                    go.eq(mine & o.ready),
                    gone.eq(o.payload),
                    held.eq(mine + (spare_valid & (spare.payload.source == source))),
                    back.eq(spare),
                    front.eq(Mux(mine, Value.cast(o.payload), Value.cast(spare))),
                    Assert((inside == 0) | o.valid),
                ]
            self.turn(m, leaving, source, to == n)
        m.d.sync += inside.eq(inside + come - go)
        chosen, ahead, item = self.follow(m, inside, come, came, go, gone)
        # Lemmas: what is inside, and which of it is the chosen one.
        m.d.comb += Assert(inside == held)
        with m.If(chosen):
            m.d.comb += Assert(Mux(ahead == 0, Value.cast(front), Value.cast(back)) == item)
        self.progress(m, moves)
        return m

    def destination(self, flit: Any) -> Any:
        return Cat(flit.dest, flit.far) if self.copies else Cat(flit.dest)

    def assumptions(self, m: Module) -> None:
        several = self.constant(range(5), "several")
        for k, side in enumerate(SIDES):
            if side not in self.enters:
                continue
            flit, begun = self.flits[side], self.begun[side]
            same = self.destination(flit) == self.destination(begun)
            far = flit.far if self.copies else flit.dest
            column = (flit.dest.x <= HERE.x) & (far.x >= HERE.x)
            came = {
                Direction.LOCAL: Cat(self.leaves[side].values()).any(),
                Direction.NORTH: column & (far.y >= HERE.y),
                Direction.EAST: flit.dest.x <= HERE.x,
                Direction.SOUTH: column & (flit.dest.y <= HERE.y),
                Direction.WEST: far.x >= HERE.x,
            }[side]
            m.d.comb += [
                Assume(flit.payload.source == k),
                Assume((flit.dest.x <= far.x) & (flit.dest.y <= far.y)),
                Assume(came),
                *(Assume(~leaves) for to, leaves in self.leaves[side].items() if (side, to) not in self.turns),
                Assume(~self.open[side] | same),
                Assume((several == k) | (sum(self.leaves[side].values()) <= 1)),
            ]
            with m.If(self.taken[side]):
                m.d.sync += [self.open[side].eq(~flit.last), begun.eq(flit)]

    def spare(self, to: Direction) -> tuple[Any, Any]:
        path = f"{to.name.lower()}." if self.copies else f"{to.name.lower()}.buffer."
        return self.names[f"{path}spare_valid"], data.View(self.shape, Value.cast(self.names[f"{path}spare"]))

    def grant(self, to: Direction, register: str) -> Any:
        path = f"{to.name.lower()}_grant." if self.copies else f"{to.name.lower()}.grant."
        return self.names[path + register]

    def output(self, m: Module, to: Direction) -> Any:
        """The rules of one output; whether it has room."""
        o = self.dut.side_o(to)
        flit, name = o.payload, to.name
        sources = list(self.asks[to])
        unfinished, owner = Signal(name=f"{name}_unfinished"), Signal(self.shape, name=f"{name}_owner", reset_less=True)
        waits, offered = Signal(name=f"{name}_waits"), Signal(self.shape, name=f"{name}_offered", reset_less=True)
        m.d.sync += [waits.eq(o.valid & ~o.ready), offered.eq(flit)]

        def goes_on(flit: Any, owner: Any) -> Any:
            same = self.destination(flit) == self.destination(owner)
            return (flit.payload.source == owner.payload.source) & same

        def right(flit: Any) -> Any:
            """It came from a side from which it may turn here, and has to leave here."""
            return Cat(
                (flit.payload.source == k) & self.ways(side, flit)[to]
                for k, side in enumerate(SIDES)
                if side in sources
            ).any()

        m.d.comb += [
            Assert(~o.valid | right(flit)),
            Assert(~(o.valid & unfinished) | goes_on(flit, owner)),
            Assert(~waits | (o.valid & (Value.cast(flit) == Value.cast(offered)))),
        ]
        with m.If(o.valid & o.ready):
            m.d.sync += [unfinished.eq(~flit.last), owner.eq(flit)]

        # Lemmas: so it is inside, up to the packet that the inputs are in.
        spare_valid, spare = self.spare(to)
        after = Mux(o.valid, ~flit.last, unfinished)
        last = data.View(self.shape, Mux(o.valid, Value.cast(flit), Value.cast(owner)))
        m.d.comb += [
            Assert(o.valid | ~spare_valid),
            Assert(~spare_valid | right(spare)),
            Assert(~(spare_valid & after) | goes_on(spare, last)),
        ]
        after = Mux(spare_valid, ~spare.last, after)
        last = data.View(self.shape, Mux(spare_valid, Value.cast(spare), Value.cast(last)))
        if len(sources) == 1:
            locked, granted = after, Const(1)
        else:
            locked, granted = ~self.grant(to, "eligible").all(), self.grant(to, "owner")
            m.d.comb += Assert(~locked | ((granted != 0) & ((granted & (granted - 1)) == 0)))
            m.d.comb += Assert(~locked | (self.grant(to, "eligible") == granted))
            self.order(m, to, locked, granted)
        m.d.comb += Assert(locked == after)
        for k, side in enumerate(SIDES):
            if side in sources:
                place = sources.index(side)
                begun = self.open[side] & self.ways(side, self.begun[side])[to]
                m.d.comb += [
                    Assert((locked & (granted == 1 << place)) == begun),
                    Assert(~begun | goes_on(last, self.begun[side])),
                    Assert(~begun | (last.payload.source == k)),
                    Assert(~self.open[side] | (self.begun[side].payload.source == k)),
                ]
        return ~spare_valid

    def order(self, m: Module, to: Direction, locked: Any, granted: Any) -> None:
        """Lemma: of each two inputs one goes first, by the round; an owner before all others."""
        n = len(self.asks[to])
        above = Mux(locked, ~(granted - 1)[:n], self.above(to))
        for j, k in combinations(range(n), 2):
            m.d.comb += Assert(self.grant(to, f"passed{j}_{k}") == (above[k] & ~above[j]))

    def above(self, to: Direction) -> Any:
        """The inputs to which the round comes before it ends, without an owner."""
        n, may = len(self.asks[to]), self.grant(to, "eligible")
        passed = Cat(Const(0, 1), *(self.grant(to, f"passed0_{k}") for k in range(1, n)))
        return Mux(may.all(), passed, ~(may | (may - 1))[:n])

    def turn(self, m: Module, to: Direction, source: Any, chosen: Any) -> None:
        """How many packets of others begin while one flit waits."""
        sources, n = list(self.asks[to]), len(self.asks[to])
        if n == 1:
            return
        waited = Signal(range(n + 1), name=f"{to.name}_waited")
        begins = [self.taken[side] & self.leaves[side][to] & ~self.open[side] for side in sources]
        above = self.above(to)
        m.d.comb += Assert((above == 0) | ((above | (above - 1)) == (1 << n) - 1))
        for k, side in enumerate(SIDES):
            if side in sources:
                with m.If(chosen & (source == k)):
                    with m.If(~self.asks[to][side] | self.taken[side]):
                        m.d.sync += waited.eq(0)
                    with m.Elif(Cat(begins).any()):
                        m.d.sync += waited.eq(waited + 1)
                    m.d.comb += Assert(waited <= n - 1)
                    # Lemma: who is before it in the round.
                    w = sources.index(side)
                    before = sum(above[j] for j in range(w))
                    left = Mux(above[w], before, sum(above[j] for j in range(w, n)) + w)
                    m.d.comb += Assert((waited == 0) | (waited + left <= n - 1))

    def progress(self, m: Module, room: dict[Direction, Any]) -> None:
        if self.copies:
            goes_on = [~self.open[side] | self.dut.side_i(side).valid for side in self.enters]
            there = Cat(self.dut.side_i(side).valid for side in self.enters).any()
            m.d.comb += Assert(~(Cat([*room.values(), *goes_on]).all() & there) | Cat(self.taken.values()).any())
            return
        for to in self.exits:
            asks = self.asks[to]
            inside = Cat(self.open[side] & self.ways(side, self.begun[side])[to] for side in asks)
            free = ~inside.any() | (inside & Cat(asks.values())).any()
            moves = Cat(self.taken[side] & self.leaves[side][to] for side in asks).any()
            m.d.comb += Assert(~(room[to] & free & Cat(asks.values()).any()) | moves)


def plain(component: Any = Router, turns: Collection[Turn] = ALL) -> Routed:
    return Routed(component(PLAIN, HERE, turns), PLAIN, turns)


def copying(component: Any = MulticastRouter, turns: Collection[Turn] = ALL) -> Routed:
    return Routed(component(COPIED, HERE, turns), COPIED, turns, copies=True)


@pytest.mark.campaign
def test_router() -> None:
    prove(plain(), 2)


@planted(
    {
        "dropped": ("with m.If(leaves[side][to] & merge.i[k].ready):", "with m.If(leaves[side][to]):"),
        "two ways": ("Direction.EAST: dest.x > x,", "Direction.EAST: dest.x >= x,"),
        "y first": ("Direction.NORTH: same_column & (dest.y < y),", "Direction.NORTH: dest.y < y,"),
        "wrong way": ("Direction.SOUTH: same_column & (dest.y > y),", "Direction.SOUTH: same_column & (dest.y < y),"),
        "everywhere": ("merge.i[k].valid.eq(port.valid & leaves[side][to])", "merge.i[k].valid.eq(port.valid)"),
        "wrong source": (
            "merge.i[k].payload.eq(port.payload)",
            "merge.i[k].payload.eq(self.side_i(sources[0]).payload)",
        ),
        "stops": ("m.d.comb += port.ready.eq(1)", "m.d.comb += port.ready.eq(0)"),
        "unfair": (
            "PacketArbiter(self._shape, len(sources))",
            "PacketArbiter(self._shape, len(sources), (2,) * len(sources))",
        ),
        "unread": ("if len(leaves) > 1 else 1", "if len(leaves) > 2 else 1"),
    }
)
def test_router_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(plain(mutated(Router, line, bug)), 8)


def test_multicast_router() -> None:
    prove(copying(), 2)


@planted(
    {
        "one by one": ("(grant.grant & Cat(moves[side] for side in sources)).any()", "grant.grant.any()"),
        "outside": ("column & (far.y > y)", "far.y > y"),
        "not to all": ("Direction.WEST: near.x < x,", "Direction.WEST: far.x < x,"),
        "not chosen": ("(grant.grant[k] & buffer.i.ready)", "buffer.i.ready"),
        "no room": ("(grant.grant[k] & buffer.i.ready)", "grant.grant[k]"),
        "one is enough": ("Cat(chosen[side]).all()", "Cat(chosen[side]).any()"),
        "choice forgotten": ("grant.moved.eq(buffer.i.valid)", "grant.moved.eq(grant.grant.any())"),
        "torn": ("grant.last.eq(buffer.i.payload.last)", "grant.last.eq(1)"),
    }
)
def test_multicast_router_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(copying(mutated(MulticastRouter, line, bug)), 8)


def named(turns: Collection[Turn]) -> str:
    return " ".join(f"{side.name[0]}{to.name[0]}" for side, to in ALL if (side, to) in turns)


@cache
def built(*, copies: bool) -> dict[str, set[Turn]]:
    """The turns of all routers of the meshes up to 8 x 8 cores, each choice once."""
    kinds = {}
    for x, y in product(range(1, 9), repeat=2):
        config = ChipConfig(cores_x=x, cores_y=y)
        answers = response_pairs(config)
        of_copies = [answers] if config.cores > 1 else []
        of_others = [request_pairs(config)] if config.cores > 1 else [request_pairs(config), answers]
        for pairs in of_copies if copies else of_others:
            kinds.update({named(taken): taken for taken in turns_of(pairs).values()})
    return kinds


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sorted(built(copies=False)))
def test_routers_with_some_turns(kind: str) -> None:
    prove(plain(turns=built(copies=False)[kind]), 2)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sorted(built(copies=True)))
def test_multicast_routers_with_some_turns(kind: str) -> None:
    prove(copying(turns=built(copies=True)[kind]), 2)


Link = tuple[Node, Direction]
"""The side on which it leaves a node; LOCAL: into the node itself."""


def neighbour(node: Node, side: Direction) -> Node:
    return node[0] + side.value[0], node[1] + side.value[1]


def waits_for(width: int, height: int, allowed: Any) -> dict[Link, set[Link]]:
    """Which links a packet can wait for while it holds one."""
    graph: dict[Link, set[Link]] = {}
    for node in ((x, y) for x in range(width) for y in range(height)):
        exist = {side for side in Direction if 0 <= neighbour(node, side)[0] < width}
        exist = {side for side in exist if 0 <= neighbour(node, side)[1] < height}
        for side in exist - {Direction.LOCAL}:
            graph[neighbour(node, side), side.opposite] = {(node, to) for to in exist if allowed(side, to)}
    return graph


@pytest.mark.parametrize("width", range(1, 11))
def test_links_wait_in_no_circle(width: int) -> None:
    """Dally and Seitz 1987: routing whose links depend on each other in no circle cannot deadlock."""
    for height in range(1, 11):
        TopologicalSorter(waits_for(width, height, may_turn)).prepare()


def test_a_turn_back_to_x_closes_a_circle() -> None:
    with pytest.raises(CycleError):
        TopologicalSorter(waits_for(2, 2, lambda side, to: side is not to)).prepare()


def path(start: Node, near: Place, far: Place) -> Iterator[Link]:
    """All links that a packet takes from a node, in the order of its way."""
    reached = [(Place(*start), Direction.LOCAL)]
    while reached:
        node, side = reached.pop()
        for to, leaves in ways(side, node, near, far).items():
            if leaves:
                yield node, to
                if to is not Direction.LOCAL:
                    reached.append((Place(*neighbour(node, to)), to.opposite))


@pytest.mark.parametrize(("columns", "rows"), [(2, 1), (8, 1), (1, 2), (2, 2), (3, 3), (4, 4), (1, 8), (8, 2)])
def test_copies_reach_every_node_once(columns: int, rows: int) -> None:
    """From the memory port to all rectangles of cores; and what cores send to the command processor never waits for a
    link of those paths, so a packet that needs several links at a time closes no circle either."""
    config = ChipConfig(cores_x=columns, cores_y=rows)
    cores = [Place(*core_node(config, k)) for k in range(config.cores)]
    copied: set[Link] = set()
    for near in cores:
        for far in cores:
            if near.x <= far.x and near.y <= far.y:
                links = list(path(memory_node(config), near, far))
                nodes = [node for node, to in links if to is Direction.LOCAL]
                assert len(links) == len(set(links))
                assert sorted(nodes) == sorted(c for c in cores if near.x <= c.x <= far.x and near.y <= c.y <= far.y)
                copied.update(links)
    into = {(neighbour(node, to) if to is not Direction.LOCAL else (*node, "in")) for node, to in copied}
    assert len(into) == len(copied), "the paths are a tree: no node is entered from two sides"
    command = Place(*command_node(config))
    for core in cores:
        assert not copied & set(path(core, command, command))
