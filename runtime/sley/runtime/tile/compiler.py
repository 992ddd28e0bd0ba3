"""From a tile kernel to a program: its form on a chip, what is kept there, and what is issued ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from math import prod

from sley.abi.config import ChipConfig
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.program import Program
from sley.runtime.device.stream import Stream
from sley.runtime.errors import KernelError
from sley.runtime.tile.choices import Sides
from sley.runtime.tile.cost import Price, price
from sley.runtime.tile.emit.program import Emitter
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Block, Function, Value, saved
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.operations import STORES, RoomError
from sley.runtime.tile.passes.abilities import check_abilities
from sley.runtime.tile.passes.ahead import Ahead, early_operations
from sley.runtime.tile.passes.blocks import ON_ONE, Cut, along_longest, loop_over_blocks
from sley.runtime.tile.passes.gangs import gang, share_of
from sley.runtime.tile.passes.invariants import hoist_invariants
from sley.runtime.tile.passes.order import Early, Order, OrderError, orders
from sley.runtime.tile.passes.panels import keep_panels
from sley.runtime.tile.passes.placement import Placement, has_room, place
from sley.runtime.tile.passes.ranges import Range, check_places, index_ranges
from sley.runtime.tile.passes.zeros import replace_zeros
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.verify import verify


@dataclass(frozen=True)
class Compiled:
    """A program, the grid of blocks to launch it with, and whether they are a gang."""

    program: Program
    grid: Sides
    gang: bool = False

    def launch(self, stream: Stream, arrays: Sequence[Buffer]) -> None:
        """Runs it on arrays in the order of the function's."""
        stream.launch(self.program, list(arrays), self.grid, self.gang)


WORTH = 0.8
"""Panels, and one core for all blocks, are tried where loads keep their unit for more of the time of the busiest other
one."""


class Keep(IntEnum):
    """What is kept on the chip of what rounds of loops have in common: nothing, what is the same in each of them, or
    with it what all rounds of one loop around another load, piece by piece, or of one around several."""

    NOTHING = 0
    INVARIANTS = 1
    PANELS = 2
    DEEP_PANELS = 3


@dataclass(frozen=True)
class Prepared:
    """A function in its last form, with everything decided but its instructions. ``form`` brings it there, ``before``
    to where nothing is kept."""

    function: Function
    config: ChipConfig
    ranges: dict[Value, Range]
    placement: Placement
    ahead: Ahead
    early: Early
    orders: dict[Block, Order]
    slots: int
    schedule: Schedule
    keep: Keep
    form: Callable[[], None]
    before: Callable[[], None]

    @cached_property
    def price(self) -> Price:
        """Asked for while the function is in this form."""
        return price(self.function, self.placement, self.config, self.early, self.orders)

    def compiled(self) -> Compiled:
        """Its program; if there are no instructions or registers for it, with less issued ahead, then with less kept on
        the chip, then with fewer slots. Raises ``KernelError`` if it is too long."""
        try:
            program = self._program()
        except KernelError:
            less = self._with_less()
            if less is None:
                raise
            return less.compiled()
        stored = {op.operands[0] for op in self.function.body.walk() if op.name in STORES}
        reads = frozenset(array.name for array in self.function.arrays if array not in stored)
        shared = any(share_of(op) for op in self.function.body.walk())
        return Compiled(replace(program, reads=reads), self.function.grid, shared)

    def _with_less(self) -> Prepared | None:
        """The same with less of what takes instructions, if there is any."""
        for ahead in reversed(Ahead):
            less = self._issued(ahead) if ahead < self.ahead else None
            if less is not None and less.early != self.early:
                return less
        for keep in reversed(Keep):
            if keep < self.keep and _keeps(self.function, self.config, keep, self.before):
                changed = replace(self, keep=keep, ranges=index_ranges(self.function), form=saved(self.function))
                less = changed._placed(self.slots)
                if less is not None:
                    return less
        self.form()
        return self._placed(self.slots // 2)

    def _placed(self, slots: int) -> Prepared | None:
        """With tiles placed anew, in at most so many slots, or in fewer if semaphores are not enough."""
        while slots:
            again = replace(self, placement=place(self.function, self.config, slots), slots=slots)
            for ahead in _levels(self.schedule):
                made = again._issued(ahead)
                if made is not None:
                    return made
            slots //= 2
        return None

    def _issued(self, ahead: Ahead) -> Prepared | None:
        """With so much ahead; none if semaphores are not enough."""
        early = early_operations(self.function, self.placement, self.config, ahead)
        try:
            return replace(self, ahead=ahead, early=early, orders=orders(self.function, self.placement, early))
        except OrderError:
            return None

    def _program(self) -> Program:
        first = Room(self.function, self.config, self.placement, self.ranges)
        Emitter(self.function, first, self.orders).instructions()
        again = Room(self.function, self.config, self.placement, self.ranges, first)
        return Emitter(self.function, again, self.orders).program()


def prepare(function: Function, config: ChipConfig, schedule: Schedule = AUTOMATIC, verified: bool = True) -> Prepared:
    """All passes. The function is changed. ``verified``: whether each of them is; otherwise the first and the last form
    alone are, which does for a price. Raises ``TileError``; ``RoomError`` if the chip is too small."""
    lower(function, config.array, schedule, verified=verified)
    replace_zeros(function)
    check_abilities(function, config)
    start = saved(function)
    cut = (gang(function, config) if schedule.gang else None) or along_longest(function.grid, config.cores)
    made = _dealt(function, config, schedule, cut)
    if prod(cut.grid) > 1 and made.price.loads > WORTH:
        start()
        with suppress(RoomError):
            made = min(made, _dealt(function, config, schedule, ON_ONE), key=lambda form: form.price.cycles)
        made.form()
    return made


def _dealt(function: Function, config: ChipConfig, schedule: Schedule, cut: Cut) -> Prepared:
    """A function whose blocks are dealt to cores, in the form that takes the fewest cycles."""
    loop_over_blocks(function, cut, schedule.order)
    before = saved(function)
    keep = Keep.INVARIANTS if schedule.resident and _keeps(function, config, Keep.INVARIANTS, before) else Keep.NOTHING
    if keep is Keep.NOTHING:
        before()
    made = _prepared(function, config, schedule, keep, before)
    for keep in (Keep.PANELS, Keep.DEEP_PANELS) if schedule.resident else ():
        if made.price.loads > WORTH and _keeps(function, config, keep, before):
            with suppress(OrderError):
                panels = _prepared(function, config, schedule, keep, before)
                made = min(made, panels, key=lambda form: form.price.cycles)
        made.form()
    return made


def _keeps(function: Function, config: ChipConfig, keep: Keep, before: Callable[[], None]) -> bool:
    """Brings a function to the form in which so much is kept; whether that is one of its own, for which there is room.
    ``before``: to the form in which nothing is."""
    before()
    if keep is Keep.NOTHING:
        return True
    panels = keep > Keep.INVARIANTS and keep_panels(function, config, keep is Keep.DEEP_PANELS)
    changed = hoist_invariants(function)
    return (panels or (changed and keep is Keep.INVARIANTS)) and has_room(function, config)


def _prepared(
    function: Function, config: ChipConfig, schedule: Schedule, keep: Keep, before: Callable[[], None]
) -> Prepared:
    """A function in a form of its own, with the most slots and the most ahead that semaphores are enough for."""
    verify(function)
    ranges = index_ranges(function)
    check_places(function, ranges)
    for ahead, slots in _attempts(schedule):
        placement = place(function, config, slots)
        early = early_operations(function, placement, config, ahead)
        try:
            order = orders(function, placement, early)
        except OrderError as error:
            unordered = error
        else:
            return Prepared(
                function, config, ranges, placement, ahead, early, order, slots, schedule, keep, saved(function), before
            )
    raise unordered


def _attempts(schedule: Schedule) -> Iterator[tuple[Ahead, int]]:
    """What is issued ahead, and most slots of a tile: as many as semaphores can count. If there are too few for one
    slot, less is issued ahead."""
    for ahead in _levels(schedule):
        slots = schedule.buffer
        while slots:
            yield ahead, slots
            slots //= 2


def _levels(schedule: Schedule) -> Iterable[Ahead]:
    """What may be issued ahead, the most first."""
    return reversed(Ahead) if schedule.prefetch else (Ahead.NOTHING,)


def compile_function(function: Function, config: ChipConfig, schedule: Schedule = AUTOMATIC) -> Compiled:
    """The program of a function for a chip. The function is changed. Raises ``TileError``, ``KernelError``."""
    return prepare(function, config, schedule).compiled()
