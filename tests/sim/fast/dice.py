"""Random numbers that prefer the values where simulators go wrong."""

import random

from amaranth.hdl import Const, Shape, signed, unsigned


class Dice:
    """A seed's random choices, widths, shapes and numbers."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.chance = lambda probability: self.random.random() < probability
        self.choice = self.random.choice
        self.between = self.random.randint

    def width(self, low: int = 0, high: int = 200) -> int:
        """A width: mostly small, else around the sizes of machine words."""
        sizes = ((60, range(1, 9)), (7, (0, 1)), (19, (7, 8, 9, 15, 16, 17, 31, 32, 33)), (7, (63, 64, 65)))
        sizes += ((3, (127, 128, 129, 200)), (4, range(201)))
        chosen = self.choice(self.random.choices([s for _, s in sizes], [weight for weight, _ in sizes])[0])
        return min(max(chosen, low), high)

    def shape(self, low: int = 0, high: int = 200) -> Shape:
        width = self.width(low, high)
        return signed(width) if width and self.chance(0.25) else unsigned(width)

    def bits(self, width: int) -> int:
        """A number of this many bits."""
        return random_bits(self.random, width)

    def number(self, shape: Shape) -> int:
        """A number of this shape."""
        return Const(self.bits(shape.width), shape).value


def random_bits(source: random.Random, width: int) -> int:
    """Uniform bits, or an extreme: zeros, ones, one bit, a small number or all but one bit."""
    ones = (1 << width) - 1
    kind = source.random()
    if kind < 0.5 or not width:
        return source.getrandbits(width)
    if kind < 0.62:
        return 0
    if kind < 0.74:
        return ones
    if kind < 0.84:
        return 1 << source.randrange(width)
    if kind < 0.92:
        return source.randrange(4) & ones
    return ones ^ (1 << source.randrange(width))
