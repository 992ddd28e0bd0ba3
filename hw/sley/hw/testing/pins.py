"""Inputs of a block that one part of a bench drives together."""

from typing import Any

from amaranth.hdl import Cat, Const, ShapeCastable, Signal, Value


class Pins:
    """Sets inputs all at once, and only when one of them changes.

        pins = Pins(port.ready, port.data)
        pins.set(ctx, 1, 0x55)

    Each ``ctx.set()`` lets the whole block settle, which is most of the time of a bench that sets one after another.

    Parameters: signals and views that nobody else drives. Values: whatever ``ctx.set()`` takes for them.
    """

    def __init__(self, *inputs: Any) -> None:
        self._inputs = [(one, len(Value.cast(one))) for one in inputs]
        self._all = Cat(Value.cast(one) for one in inputs)
        self._driven: int | None = None

    def set(self, ctx: Any, *values: Any) -> None:
        bits, place = 0, 0
        for (one, width), value in zip(self._inputs, values, strict=True):
            plain = isinstance(value, int) and isinstance(one, Signal)  # most of them, and quick
            bits |= (value & (1 << width) - 1 if plain else bits_of(one, value)) << place
            place += width
        if bits != self._driven:
            ctx.set(self._all, bits)
            self._driven = bits


def bits_of(port: Any, value: Any) -> int:
    """The bits that stand for a value: what ``ctx.set()`` would make of it."""
    shape = port.shape()
    constant = shape.const(value) if isinstance(shape, ShapeCastable) else value
    bits: int = Const.cast(constant).value & (1 << len(Value.cast(port))) - 1
    return bits


def value_of(port: Any, bits: int) -> Any:
    """The value that the bits stand for: what ``ctx.get()`` would make of them."""
    shape = port.shape()
    return shape.from_bits(bits) if isinstance(shape, ShapeCastable) else bits
