"""Affine address generator: nested loops of (count, stride) walked with one addition a step."""

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

POSITION_BITS = 32


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

    Exactness: a start of each loop is kept with as many bits as the largest limit needs. It is a position that the
    walk has visited, so it is inside as long as nobody steps on from an ``outside`` position, and the step from it
    cannot wrap. A limit of 2**32 makes every position valid, modulo 2**32.

    Latency one cycle, one position a cycle. Cost: one adder, and registers for strides, counts, down-counters and
    the starts of the outer loops.
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
        if dims < 1:
            raise ValueError(f"dims is {dims}; a walk has at least 1 dimension")
        for limit in limits:
            if limit < 2 or limit & (limit - 1) or limit > 1 << POSITION_BITS:
                raise ValueError(f"limits holds {limit}; it must be a power of two in 2..2**{POSITION_BITS}")
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
        kept = (max(self.limits) - 1).bit_length()
        position = Signal(POSITION_BITS, reset_less=True)
        space = Signal.like(self.space, reset_less=True)
        stride = [Signal.like(s, name=f"stride_{k}", reset_less=True) for k, s in enumerate(self.strides)]
        count = [Signal.like(c, name=f"count_{k}", reset_less=True) for k, c in enumerate(self.counts)]
        left = [Signal.like(c, name=f"left_{k}", reset_less=True) for k, c in enumerate(self.counts)]
        # left is 1, count is 1, and outside, as registers: whoever steps by them need not wait for a comparison.
        outside = Signal(reset_less=True)
        last, single = Signal(self.dims, reset_less=True), Signal(self.dims, reset_less=True)
        # The innermost loop steps from where it is; each outer one from where its current index began.
        outer = [Signal(kept, name=f"begin_{k}", reset_less=True) for k in range(1, self.dims)]
        begin = [position[:kept], *outer]

        m.d.comb += [
            self.position.eq(position),
            self.outside.eq(outside),
            self.last.eq(last),
            self.end.eq(self.last.all()),
        ]

        # The innermost loop that is not at its last index advances; one adder serves them all.
        origin, by = begin[-1], stride[-1]
        for k in reversed(range(self.dims - 1)):
            origin, by = Mux(self.last[k], origin, begin[k]), Mux(self.last[k], by, stride[k])
        onward = Signal(POSITION_BITS)
        m.d.comb += onward.eq(origin + by)

        with m.If(self.step):
            m.d.sync += [position.eq(onward), outside.eq(self._is_outside(onward, space))]
            for k in range(self.dims):
                inner_last = self.last[:k].all()
                with m.If(inner_last):
                    m.d.sync += [
                        left[k].eq(Mux(self.last[k], count[k], left[k] - 1)),
                        last[k].eq(Mux(self.last[k], single[k], left[k] == 2)),
                    ]
                if k:
                    with m.If(inner_last):
                        m.d.sync += begin[k].eq(onward)
        with m.If(self.start):
            m.d.sync += [position.eq(self.base), space.eq(self.space)]
            m.d.sync += outside.eq(self._is_outside(self.base, self.space))
            m.d.sync += [o.eq(self.base) for o in outer]
            m.d.sync += [x.eq(y) for x, y in zip(stride, self.strides, strict=True)]
            m.d.sync += [x.eq(y) for x, y in zip(count, self.counts, strict=True)]
            m.d.sync += [x.eq(y) for x, y in zip(left, self.counts, strict=True)]
            single_count = Cat(n == 1 for n in self.counts)
            m.d.sync += [last.eq(single_count), single.eq(single_count)]
        return m

    def _is_outside(self, position: Value, space: Value) -> Value:
        beyond = [position[(limit - 1).bit_length() :].any() for limit in self.limits]
        return Cat(beyond).bit_select(space, 1) if len(beyond) > 1 else beyond[0]
