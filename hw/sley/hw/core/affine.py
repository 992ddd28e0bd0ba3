"""Affine address generator: nested loops of (count, stride) walked with one addition a step."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

POSITION_BITS = 32


def check_walk(dims: int, limits: tuple[int, ...]) -> None:
    """Raises ``ValueError`` if no walk has these."""
    if dims < 1:
        raise ValueError(f"dims is {dims}; a walk has at least 1 dimension")
    for limit in limits:
        if limit < 2 or limit & (limit - 1) or limit > 1 << POSITION_BITS:
            raise ValueError(f"limits holds {limit}; it must be a power of two in 2..2**{POSITION_BITS}")


def ends_beyond(position: Value, length: Value, addr_bits: int) -> Value:
    """Whether ``length`` bytes, at least 1, from an address on do not end within ``addr_bits`` bits. ``length`` has 16
    bits, so of a carry into the bits above, all that matters is whether it goes through to the end."""
    bits = len(length)
    end = (position[:bits] + length)[: bits + 1]
    return position[addr_bits:].any() | (position[bits:addr_bits].all() & end[bits] & end[:bits].any())


class Loops(wiring.Component):
    """Counts nested loops, dimension 0 innermost.

    Parameters
    ----------
    count_bits : tuple of int
        Width of each count.
    unit_bits : dict
        Of the dimensions whose count is rounded up to whole units: the width of the mask.

    Members
    -------
    start : In(1)
        Captures the counts; the first turn is there in the next cycle. Wins over ``step``.
    count_K : In(count_bits[K])
        At least 1.
    mask_K : In(unit_bits[K])
        Size of a unit, a power of two, less 1.
    step : In(1)
        Go to the next turn, which is there in the next cycle.
    last : Out(dims)
        Bit k: dimension k is at its last index.

    Latency one cycle, one turn a cycle. Cost: for each dimension a counter and an equality.
    """

    start: Signal
    step: Signal
    last: Signal

    def __init__(self, count_bits: tuple[int, ...], unit_bits: dict[int, int] | None = None) -> None:
        self._count_bits = count_bits
        self._unit_bits = unit_bits or {}
        super().__init__(
            {
                "start": In(1),
                **{f"count_{k}": In(bits) for k, bits in enumerate(count_bits)},
                **{f"mask_{k}": In(bits) for k, bits in self._unit_bits.items()},
                "step": In(1),
                "last": Out(len(count_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for k, bits in enumerate(self._count_bits):
            given: Any = getattr(self, f"count_{k}")
            mask: Any = getattr(self, f"mask_{k}", None)
            count = Signal(bits, name=f"count_{k}_kept", reset_less=True)
            # Two ahead, so that ``last`` is a register: whoever steps by it need not wait for a comparison. An up
            # counter starts at a constant, which takes no multiplexer.
            ahead = Signal(bits, name=f"ahead_{k}", reset_less=True)
            last = Signal(name=f"last_{k}", reset_less=True)
            single = Signal(name=f"single_{k}", reset_less=True)
            turn = self.step & self.last[:k].all()
            m.d.comb += self.last[k].eq(last)
            with m.If(turn):
                m.d.sync += ahead.eq(ahead + 1)
            with m.If(self.start | (turn & last)):
                m.d.sync += ahead.eq(2)
            with m.If(self.start):
                m.d.sync += [count.eq(given), single.eq(given == 1)]
            if mask is None:
                with m.If(turn):
                    m.d.sync += last.eq(Mux(last, single, ahead == count))
                with m.If(self.start):
                    m.d.sync += last.eq(given == 1)
                continue
            unit = Signal.like(mask, name=f"mask_{k}_kept", reset_less=True)
            reached = Signal(name=f"reached_{k}", reset_less=True)  # the index is the count's last one, or beyond
            reaches = Mux(last, single, reached | (ahead == count))
            with m.If(turn):
                m.d.sync += [reached.eq(reaches), last.eq(reaches & ~(Mux(last, 1, ahead) & unit).any())]
            with m.If(self.start):
                m.d.sync += [reached.eq(given == 1), last.eq((given == 1) & ~mask.any()), unit.eq(mask)]
        return m


class Positions(wiring.Component):
    """The positions of nested loops that are counted elsewhere: ``base + sum(index[k] * stride[k])``.

    Parameters
    ----------
    dims : int
        Nested loops, at least 1.
    limits : tuple of int
        Sizes of the address spaces that the walk may be in: powers of two up to 2**32.
    stride_bits : int
        Width of the (signed) strides.

    Members
    -------
    start : In(1)
        Captures ``base`` and ``space``; the first position is there in the next cycle. Wins over ``step``.
    base : In(32), space : In(range(len(limits)))
        Where to begin, and which of ``limits`` holds for this walk.
    strides : In(signed(stride_bits)).array(dims)
        Must not change during a walk.
    last : In(dims)
        As of ``Loops``, of this position; bits above the lowest 0 do not matter.
    step : In(1)
        Go to the next position, which is there in the next cycle. What comes after the last one means nothing.
    position : Out(32)
        The position in two's complement: a step out of the space to below 0 shows as a negative number.
    outside : Out(1)
        ``position`` is not in [0, limit). The position is exact, but no position after it is.
    leaves : Out(1)
        With ``step``: the next position is not. Combinational.

    Exactness: a start of each loop is kept with as many bits as the largest limit needs. It is a position that the
    walk has visited, so it is inside as long as nobody steps on from an ``outside`` position, and the step from it
    cannot wrap. A limit of 2**32 makes every position valid, modulo 2**32.

    Latency one cycle, one position a cycle. Cost: one adder, and registers for the starts of the outer loops.
    """

    start: Signal
    base: Signal
    space: Signal
    strides: list[Signal]
    last: Signal
    step: Signal
    position: Signal
    outside: Signal
    leaves: Signal

    def __init__(self, dims: int, *, limits: tuple[int, ...], stride_bits: int) -> None:
        check_walk(dims, limits)
        self.dims = dims
        self.limits = limits
        super().__init__(
            {
                "start": In(1),
                "base": In(POSITION_BITS),
                "space": In(range(len(limits))),
                "strides": In(signed(stride_bits)).array(dims),
                "last": In(dims),
                "step": In(1),
                "position": Out(POSITION_BITS),
                "outside": Out(1),
                "leaves": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = (max(self.limits) - 1).bit_length()
        position = Signal(POSITION_BITS, reset_less=True)
        space = Signal.like(self.space, reset_less=True)
        outside = Signal(reset_less=True)  # a register: whoever steps by it need not wait for a comparison
        # The innermost loop steps from where it is; each outer one from where its current index began.
        outer = [Signal(kept, name=f"begin_{k}", reset_less=True) for k in range(1, self.dims)]
        begin = [position[:kept], *outer]
        m.d.comb += [self.position.eq(position), self.outside.eq(outside)]

        # The innermost loop that is not at its last index advances; one adder serves them all.
        origin, by = begin[-1], self.strides[-1]
        for k in reversed(range(self.dims - 1)):
            origin, by = Mux(self.last[k], origin, begin[k]), Mux(self.last[k], by, self.strides[k])
        onward = Signal(POSITION_BITS)
        m.d.comb += [onward.eq(origin + by), self.leaves.eq(self._is_outside(onward, space))]

        with m.If(self.step):
            m.d.sync += [position.eq(onward), outside.eq(self.leaves)]
        with m.If(self.start):
            m.d.sync += [position.eq(self.base), space.eq(self.space)]
            m.d.sync += outside.eq(self._is_outside(self.base, self.space))
        for k, start in enumerate(outer, 1):
            with m.If(self.start | (self.step & self.last[:k].all())):
                m.d.sync += start.eq(Mux(self.start, self.base, onward))
        return m

    def _is_outside(self, position: Value, space: Value) -> Value:
        beyond = [position[(limit - 1).bit_length() :].any() for limit in self.limits]
        return Cat(beyond).bit_select(space, 1) if len(beyond) > 1 else beyond[0]


class AffineWalk(wiring.Component):
    """Walks ``base + sum(index[k] * stride[k])`` with dimension 0 innermost, one position a cycle.

    Parameters
    ----------
    dims : int
        Nested loops, at least 1.
    limits : tuple of int
        Sizes of the address spaces that the walk may be in: powers of two up to 2**32.
    stride_bits, count_bits : int
        Widths of the (signed) strides and of the counts.

    Members
    -------
    start : In(1)
        Captures ``base``, ``counts``, ``strides`` and ``space``; the first position is there in the next cycle. Wins
        over ``step``.
    base : In(32), counts : In(count_bits).array(dims), strides : In(signed(stride_bits)).array(dims)
        What to walk. Every count is at least 1.
    space : In(range(len(limits)))
        Which of ``limits`` holds for this walk.
    step : In(1)
        Go to the next position, which is there in the next cycle. Not at ``end``.
    position : Out(32)
        The position in two's complement: a step out of the space to below 0 shows as a negative number.
    outside : Out(1)
        ``position`` is not in [0, limit). The position is exact, but no position after it is.
    last : Out(dims)
        Bit k: dimension k is at its last index.
    end : Out(1)
        All of them are: this is the last position.

    Latency one cycle, one position a cycle. Cost: ``Loops`` and ``Positions``, and registers for the strides.
    """

    start: Signal
    base: Signal
    counts: list[Signal]
    strides: list[Signal]
    space: Signal
    step: Signal
    position: Signal
    outside: Signal
    last: Signal
    end: Signal

    def __init__(self, dims: int, *, limits: tuple[int, ...], stride_bits: int, count_bits: int) -> None:
        check_walk(dims, limits)
        self._stride_bits = stride_bits
        self._count_bits = count_bits
        self.dims = dims
        self.limits = limits
        super().__init__(
            {
                "start": In(1),
                "base": In(POSITION_BITS),
                "counts": In(count_bits).array(dims),
                "strides": In(signed(stride_bits)).array(dims),
                "space": In(range(len(limits))),
                "step": In(1),
                "position": Out(POSITION_BITS),
                "outside": Out(1),
                "last": Out(dims),
                "end": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.positions = positions = Positions(self.dims, limits=self.limits, stride_bits=self._stride_bits)
        m.submodules.loops = loops = Loops((self._count_bits,) * self.dims)
        for part in (loops, positions):
            m.d.comb += [part.start.eq(self.start), part.step.eq(self.step)]
        m.d.comb += [
            positions.base.eq(self.base),
            positions.space.eq(self.space),
            positions.last.eq(loops.last),
            self.position.eq(positions.position),
            self.outside.eq(positions.outside),
            self.last.eq(loops.last),
            self.end.eq(loops.last.all()),
        ]
        for k, given in enumerate(self.strides):
            stride = Signal.like(given, name=f"stride_{k}", reset_less=True)
            m.d.comb += [positions.strides[k].eq(stride), getattr(loops, f"count_{k}").eq(self.counts[k])]
            with m.If(self.start):
                m.d.sync += stride.eq(given)
        return m
