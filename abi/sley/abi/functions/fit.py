"""Makes ``coefficients.json``: ``python -m sley.abi.functions.fit``. Decimal arithmetic alone, so that every machine
makes the same file."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, getcontext, localcontext
from functools import partial

from sley.abi.functions.table import (
    C0,
    C1,
    C2,
    C3,
    COARSE_BITS,
    COEFFICIENTS,
    FAR,
    FINE_BITS,
    INNER_BITS,
    OFFSET_BITS,
    PLACE_BITS,
    Format,
    Function,
    Q,
    R,
    Segment,
    segment_value,
)

DIGITS = 60
Real = Callable[[Decimal], Decimal]
STEP = Decimal(2) ** -PLACE_BITS
C0_STEP = Decimal(2) ** -C0.fraction
HALF = Decimal("0.5")
HALF_Q, HALF_R = HALF / (1 << Q.fraction), HALF / (1 << R.fraction)


@dataclass(frozen=True)
class Piece:
    """Segments of one region and what they approximate: the value at a place u, counted in units.

    ``exponent``: None takes the one by which the least value of a segment is from one half to 1. ``ahead``: how far, in
    steps of u, operands are above the place that stands for them. ``short``: no bits of an operand are below the upper
    ones of t.
    """

    value: Real
    first: int
    count: int
    fine: bool = False
    subtract: bool = False
    mirror: bool = False
    relative: Real | None = None
    exponent: int | None = None
    ahead: Decimal = Decimal(0)
    short: bool = False


def ln2() -> Decimal:
    return Decimal(2).ln()


def log2(x: Decimal) -> Decimal:
    return x.ln() / ln2()


def tanh(x: Decimal) -> Decimal:
    return 1 - 2 / ((2 * x).exp() + 1)


def pi() -> Decimal:
    """Machin's formula."""

    def arctan_of_inverse(n: int) -> Decimal:
        total, term, k = Decimal(0), Decimal(1) / n, 1
        while abs(term) > Decimal(10) ** -(getcontext().prec + 2):
            total += term / k
            term, k = -term / (n * n), k + 2
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


def normal_cdf(x: Decimal, root: Decimal) -> Decimal:
    """Its series, all of whose terms have one sign; ``root`` is that of 2 pi."""
    total = term = x
    k = 3
    while abs(term) > Decimal(10) ** -DIGITS:
        term = term * x * x / k
        total += term
        k += 2
    return HALF + total * (-x * x / 2).exp() / root


def pieces(function: Function) -> Iterator[Piece]:
    """All segments of a function, in the order of the table."""
    one = Decimal(1)
    if function == Function.EXP2:
        yield Piece(lambda u: (u * ln2()).exp(), 0, 32, exponent=0, ahead=HALF)
    elif function == Function.RECIPROCAL:
        yield Piece(lambda u: 1 / (1 + u), 0, 32, subtract=True, exponent=0)
    elif function == Function.RSQRT:
        for octave in (1, 2):
            yield Piece(partial(inverse_root, octave), 0, 32, subtract=True, exponent=0)
    elif function == Function.SQRT:
        for octave in (1, 2):
            yield Piece(partial(root, octave), 0, 32, exponent=0)
    elif function == Function.LOG2:
        yield Piece(lambda u: log2(1 + u), 0, 32, fine=True, relative=lambda u: slope(u, 1), exponent=1, short=True)
        yield Piece(lambda u: log2(1 + u), 32, 96, fine=True)
        yield Piece(
            lambda u: -log2(1 - u / 2), 0, 32, fine=True, relative=lambda u: slope(u, -2), exponent=0, short=True
        )
        yield Piece(lambda u: -log2(1 - u / 2), 32, 96, fine=True)
        for k in range(FAR):  # a little less, so that p stays below 2
            yield Piece(partial(far_log2, k), 0, 32, exponent=k)
    elif function == Function.TANH:
        yield Piece(tanh, 0, 32, fine=True, mirror=True, relative=lambda u: tanh(u) / u if u else one, exponent=0)
        yield Piece(tanh, 32, 96, fine=True, subtract=True, mirror=True)
        yield Piece(tanh, 32, 9 * 32, subtract=True, mirror=True)
    elif function == Function.SIGMOID:
        yield Piece(lambda u: 1 / (1 + (-4 * u).exp()), 0, 8, subtract=True, mirror=True, ahead=HALF)
        yield Piece(lambda u: 1 / (1 + (-4 * u).exp()), 8, 5 * 32 - 8, subtract=True, mirror=True)
        yield Piece(lambda u: 1 / (1 + (4 * u).exp()), 0, 8, mirror=True, ahead=HALF / 2)
        yield Piece(lambda u: 1 / (1 + (4 * u).exp()), 8, 8 * 32 - 8, mirror=True)
    elif function in (Function.FLOOR, Function.ROUND):  # the rounded significand
        yield Piece(lambda u: one, 0, 32, relative=lambda u: one, exponent=1)
    elif function == Function.NORMAL_CDF:
        base = (2 * pi()).sqrt()
        yield Piece(lambda u: normal_cdf(u, base), 0, 8, subtract=True, mirror=True, ahead=HALF)
        yield Piece(lambda u: normal_cdf(u, base), 8, 6 * 32 - 8, subtract=True, mirror=True)
        yield Piece(lambda u: normal_cdf(-u, base), 0, 8, mirror=True, ahead=HALF)
        yield Piece(lambda u: normal_cdf(-u, base), 8, 8 * 32 - 8, mirror=True)


def root(octave: int, u: Decimal) -> Decimal:
    return (octave * (1 + u)).sqrt()


def inverse_root(octave: int, u: Decimal) -> Decimal:
    return 1 / root(octave, u)


def far_log2(k: int, u: Decimal) -> Decimal:
    return log2(1 + u) - 3 * u * C0_STEP * (1 << k)


def slope(u: Decimal, scale: int) -> Decimal:
    """Half of log2(1 + u / scale) by its argument."""
    d = u / scale
    return (log2(1 + d) / d if d else 1 / ln2()) / 2


def segments(piece: Piece) -> Iterator[Segment]:
    width = Decimal(2) ** -(FINE_BITS if piece.fine else COARSE_BITS)
    zoom = Decimal(2) ** (FINE_BITS - COARSE_BITS if piece.fine else 0)
    inner_step = Decimal(2) ** (OFFSET_BITS - INNER_BITS) * STEP / zoom * (not piece.short)
    for number in range(piece.first, piece.first + piece.count):
        start = number * width + piece.ahead * STEP

        def place(t: Decimal, start: Decimal = start) -> Decimal:
            return start + (width - STEP - t if piece.mirror else t)

        if piece.relative is not None:
            yield (0, *relative_segment(piece.relative, place, width, zoom, inner_step), piece.exponent or 0)
            continue
        edges = (piece.value(place(Decimal(0))), piece.value(place(width)))
        exponent = largest_exponent(min(edges)) if piece.exponent is None else piece.exponent
        scale = Decimal(2) ** -exponent * (-1 if piece.subtract else 1)

        def scaled(t: Decimal, scale: Decimal = scale, place: Real = place) -> Decimal:
            return scale * piece.value(place(t))

        c0, c1, c2, c3 = limited(scaled, width)
        # Everything is rounded down on the way, on average by half of a last place.
        whole_0 = integer(c0, C0, Decimal("-1.5") if piece.subtract else HALF) % (1 << C0.bits)
        whole_1 = integer(c1 + c2 * inner_step / 2 + HALF_Q, C1)
        yield whole_0, whole_1, integer(c2 / zoom + HALF_R, C2), integer(c3 / zoom**2, C3), exponent


def relative_segment(
    factor: Real, place: Real, width: Decimal, zoom: Decimal, inner_step: Decimal
) -> tuple[int, int, int]:
    """q alone, whose errors the argument does not make smaller: the best of the integers near the polynomial's."""
    c1, c2, c3 = interpolate(lambda t: factor(place(t)), width, 3)
    middle = (integer(c1, C1), integer(c2 / zoom, C2), integer(c3 / zoom**2, C3))
    points = [width * k / 16 for k in range(17)]
    values = [factor(place(t)) for t in points]
    best, least = middle, Decimal(1)
    for whole_3, add_2 in itertools.product(range(middle[2] - 1, middle[2] + 2), range(-6, 7)):
        rest_2 = c2 + (c3 - Decimal(whole_3) / (1 << C3.fraction) * zoom**2) * width
        whole_2 = integer(rest_2 / zoom + HALF_R, C2) + add_2
        upper = (Decimal(whole_2) / (1 << C2.fraction) - HALF_R, Decimal(whole_3) / (1 << C3.fraction))
        rests = [value - t * zoom * (upper[0] + t * zoom * upper[1]) for value, t in zip(values, points, strict=True)]
        whole_1 = integer((max(rests) + min(rests)) / 2 + c2 * inner_step / 2 + HALF_Q, C1)
        stored = Decimal(whole_1) / (1 << C1.fraction) - HALF_Q - c2 * inner_step / 2
        error = max(abs(rest - stored) for rest in rests)
        if error < least:
            best, least = (whole_1, whole_2, whole_3), error
    return best


def limited(value: Real, width: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    """The cubic, or, where its upper coefficients do not fit, the best that they allow."""
    found = interpolate(value, width, 4)
    for power, form in ((3, C3), (2, C2), (1, C1)):
        largest = Decimal((1 << form.bits - form.signed) - 256) / (1 << form.fraction)
        # r and q grow from c2 and c1 on, and must fit as well.
        largest -= sum((abs(c) * width**k for k, c in enumerate(found[power + 1 :], 1)), Decimal(0))
        if abs(found[power]) > largest:
            part = [largest.copy_sign(found[power]), *found[power + 1 :]]

            def remainder(t: Decimal, part: list[Decimal] = part, power: int = power) -> Decimal:
                return value(t) - sum((c * t ** (power + k) for k, c in enumerate(part)), Decimal(0))

            found = [*interpolate(remainder, width, power), *part]
    c0, c1, c2, c3 = found
    return c0, c1, c2, c3


def interpolate(value: Real, width: Decimal, count: int) -> list[Decimal]:
    """Coefficients, lowest first, of the polynomial through ``count`` points: both ends, so that neighbours meet, and
    those of Chebyshev between them."""
    if count == 1:
        return [value(Decimal(0))]
    inner = {2: [], 3: [Decimal(0)], 4: [Decimal("-0.41421356237"), Decimal("0.41421356237")]}[count]
    nodes = [(1 + x) / 2 * width for x in (Decimal(-1), *inner, Decimal(1))]
    table = [value(node) for node in nodes]
    for order in range(1, count):
        for k in range(count - 1, order - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (nodes[k] - nodes[k - order])
    result = [Decimal(0)] * count
    for node, difference in zip(reversed(nodes), reversed(table), strict=True):
        shifted = [Decimal(0), *result[:-1]]
        result = [high - node * low for high, low in zip(shifted, result, strict=True)]
        result[0] += difference
    return result


def largest_exponent(value: Decimal) -> int:
    """By which the least value of a segment is at least one half, with some room for errors."""
    return int(log2(value * (1 - Decimal(2) ** -20)).to_integral_value(ROUND_FLOOR)) + 1


def integer(value: Decimal, form: Format, extra: Decimal = Decimal(0)) -> int:
    return int((value * (1 << form.fraction) + extra).to_integral_value(ROUND_HALF_EVEN))


def fitted(function: Function) -> list[Segment]:
    """The segments of a function, computed anew."""
    with localcontext() as context:
        context.prec = DIGITS
        found: list[Segment] = []
        before: Piece | None = None
        for piece in pieces(function):
            for number, segment in enumerate(segments(piece), piece.first):
                if number and before and before.mirror and before.relative is None and before.fine == piece.fine:
                    segment = joined(piece, found[-1], segment)
                found.append(segment)
                before = piece
        return found


def joined(piece: Piece, before: Segment, segment: Segment) -> Segment:
    """The segment moved by a few last places, if it does not go on from the one before in the function's direction.

    Mirrored segments alone need it, where a function is all but constant. ``before`` ends at s = 0."""
    bits = PLACE_BITS - (FINE_BITS if piece.fine else COARSE_BITS)
    invert = -1 if piece.subtract else 0
    end = segment_value(*before[:4], 0, 0, invert=invert)
    start = segment_value(*segment[:4], (1 << INNER_BITS) - 1, (1 << bits) - 1, invert=invert)
    shift = before[4] - segment[4]
    wanted = end << shift if shift >= 0 else -(-end >> -shift) if piece.subtract else end >> -shift
    rises = piece.subtract  # with x the mirrored sums grow, their negatives fall
    if (start >= wanted) if rises else (start <= wanted):
        return segment
    c0 = segment[0] + (wanted - start) * (-1 if piece.subtract else 1)
    return (c0 % (1 << C0.bits), *segment[1:])


def text() -> str:
    """The file."""
    rows = {function.name: fitted(function) for function in Function}
    parts = [
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for name, rows in rows.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    COEFFICIENTS.write_text(text())
