"""Affine address generator: nested loops of (count, stride) walked with one addition a step."""

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


def ends_beyond(position: Value, less: Value, addr_bits: int) -> Value:
    """Whether ``less`` + 1 bytes from an address on do not end within ``addr_bits`` bits. ``less`` has 16 bits, so of a
    carry into the bits above, all that matters is whether it goes through to the end."""
    bits = len(less)
    carry = (position[:bits] + less)[bits]
    return position[addr_bits:].any() | (position[bits:addr_bits].all() & carry)


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

    Latency
    -------
    One cycle.

    Throughput
    ----------
    One turn a cycle.

    Cost
    ----
    For each dimension a counter and an equality.
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
            given: Signal = getattr(self, f"count_{k}")
            mask: Signal | None = getattr(self, f"mask_{k}", None)
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

    Exactness: a start of each loop is kept with as many bits as the largest limit needs. It is a position that the
    walk has visited, so it is inside as long as nobody steps on from an ``outside`` position, and the step from it
    cannot wrap. A limit of 2**32 makes every position valid, modulo 2**32.

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

    Latency
    -------
    One cycle.

    Throughput
    ----------
    One position a cycle.

    Cost
    ----
    One adder, and registers for the starts of the outer loops.
    """

    start: Signal
    base: Signal
    space: Signal
    strides: list[Signal]
    last: Signal
    step: Signal
    position: Signal
    outside: Signal

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
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = (max(self.limits) - 1).bit_length()
        position = Signal(POSITION_BITS, reset_less=True)
        space = Signal.like(self.space, reset_less=True)
        # The innermost loop steps from where it is; each outer one from where its current index began.
        outer = [Signal(width, name=f"begin_{k}", reset_less=True) for k in range(1, self.dims)]
        begin = [position[:width], *outer]
        m.d.comb += self.position.eq(position)

        # The innermost loop that is not at its last index advances; one adder serves them all, no wider than the sum.
        reach = Signal(signed(min(POSITION_BITS, max(width + 1, len(self.strides[0])) + 1)))
        by = Signal.like(reach)
        onward = Signal(POSITION_BITS)
        m.d.comb += [
            by.eq(self._of_advancing(list(self.strides))),
            reach.eq(self._of_advancing(begin) + by),
            onward.eq(reach),
        ]
        with m.If(self.step):
            m.d.sync += position.eq(onward)
        with m.If(self.start):
            m.d.sync += [position.eq(self.base), space.eq(self.space)]

        # From inside, what leads outside is a step as long as the space, whose upper bits are not all its sign, or one
        # that changes the bit above the space. Outside is what is beyond the largest space, or beyond its own.
        largest, *smaller = sorted({(limit - 1).bit_length() for limit in self.limits}, reverse=True)
        beyond, beyond_own = Signal(reset_less=True), Signal(reset_less=True)
        m.d.comb += self.outside.eq(beyond | beyond_own)
        if largest < POSITION_BITS:
            with m.If(self.step):
                m.d.sync += beyond.eq(reach[largest] | (by[largest:-1] ^ by[largest + 1 :]).any())
            with m.If(self.start):
                m.d.sync += beyond.eq(self.base[largest:].any())
        if smaller:
            stepped, started = [], []
            for bits in smaller:
                own_limit = Cat(limit == 1 << bits for limit in self.limits)
                far = (by[bits:largest] ^ by[bits + 1 : largest + 1]).any()
                stepped.append((reach[bits] | far) & own_limit.bit_select(space, 1))
                started.append(self.base[bits:largest].any() & own_limit.bit_select(self.space, 1))
            with m.If(self.step):
                m.d.sync += beyond_own.eq(Cat(stepped).any())
            with m.If(self.start):
                m.d.sync += beyond_own.eq(Cat(started).any())
        for k, start in enumerate(outer, 1):
            with m.If(self.start | (self.step & self.last[:k].all())):
                m.d.sync += start.eq(Mux(self.start, self.base, onward))
        return m

    def _of_advancing(self, values: list[Value]) -> Value:
        """The value of the loop that advances, by pairs of loops, so that few multiplexers are in a row."""
        if len(values) == 1:
            return values[0]
        k = self.dims - len(values)
        inner = Mux(self.last[k], values[1], values[0])
        return inner if len(values) == 2 else Mux(self.last[k : k + 2].all(), self._of_advancing(values[2:]), inner)


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

    Latency
    -------
    One cycle.

    Throughput
    ----------
    One position a cycle.

    Cost
    ----
    ``Loops`` and ``Positions``, and registers for the strides.
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
