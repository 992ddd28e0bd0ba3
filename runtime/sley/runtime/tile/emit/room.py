"""What the instructions of tiles are written with: the builder, parameters, indices, and where tiles are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.parameters import Parameters
from sley.runtime.tile.emit.scalars import Scalars
from sley.runtime.tile.ir import Function, Op, Value
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.passes.ranges import Range

LAST_CHAIN = "last chain"


class Room:
    """Attributes: ``k``: the builder of the program. ``parameters``: what is known of them. ``scalars``: indices.
    ``config``: the chip. ``turns``: the slot of this round, by loop.

    ``chains``: all that are named, as far as that is known. The table holds them from the beginning; of more than it
    has room for the last ones are written into its last entry where they are needed.
    """

    def __init__(
        self,
        function: Function,
        config: ChipConfig,
        placement: Placement,
        ranges: dict[Value, Range],
        chains: tuple[Chain, ...] = (),
    ) -> None:
        self.config, self.placement = config, placement
        self.k = KernelBuilder(function.name, config)
        self.scalars = Scalars(self.k, function, ranges)
        self.parameters = Parameters(self.k)
        self.k.free(*self.k.grid)
        self.chains: dict[Chain, None] = {}
        for chain in chains[: config.vector_chains]:
            self.k.chain(chain)
        self._kept = set(chains if len(chains) <= config.vector_chains else chains[: config.vector_chains - 1])
        self.turns: dict[Op, Register] = {}
        for op in function.body.walk():
            if op.body is not None and any(b.loop is op and b.slots > 1 for b in placement.buffers):
                self.turns[op] = self.k.reg("turn", 0)

    def chain(self, chain: Chain) -> int:
        """The index of a chain for the instruction that follows."""
        self.chains.setdefault(chain)
        last = self.config.vector_chains
        if chain in self._kept or not last or len(self.k.chains) < last:
            return self.k.chain(chain)
        if not self.parameters.holds(Unit.VECTOR, LAST_CHAIN, chain):
            self.k.exchange_chain(last, chain)
        return last

    def place(self, value: Value, into: Register, offset: int = 0) -> int | Register:
        """The first row of a tile in this round, plus an offset; in the register if it has slots."""
        buffer = self.placement.of[value]
        if buffer.slots == 1 or buffer.loop is None:
            return buffer.first + offset
        self.k.mul(into, self.turns[buffer.loop], buffer.rows)
        self.k.add(into, into, buffer.first + offset)
        return into

    def row(self, value: Value, into: Register, offset: int = 0) -> Register:
        """The same, in the register in any case."""
        row = self.place(value, into, offset)
        if row is not into:
            self.k.mov(into, row)
        return into

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        """A hardware loop, if there is more than one round. Its body may name chains, but changes no parameter that is
        known when it begins."""
        with self.k.loop(count) if count > 1 else nullcontext():
            if count > 1:
                self.parameters.drop(Unit.VECTOR, LAST_CHAIN)
            yield
