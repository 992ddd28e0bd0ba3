"""Element types as the gateware decodes them: codes of ``sley.abi.types`` in fields of instructions."""

from collections.abc import Collection
from itertools import combinations

from amaranth import Cat, Const, Value

from sley.abi.config import ChipConfig
from sley.abi.types import TYPE_BITS, ElementType


def output_types(config: ChipConfig) -> tuple[ElementType, ...]:
    """What the vector unit writes: words to the accumulators, less to the scratchpad."""
    return (ElementType.INT32, ElementType.FP32, *config.vector_types)


def is_one_of(code: Value, types: Collection[ElementType]) -> Value:
    """Whether a field holds one of the types; any code may be there."""
    return code.matches(*types)


def has_bits(code: Value, bits: int, among: Collection[ElementType]) -> Value:
    """Whether a field, known to hold one of the types ``among``, holds one of so many bits: 1:0 of a code say it."""
    those = [t for t in among if t.bits == bits]
    if len(those) < 2 or len(those) == len(among):
        return is_type(code, those[0], among) if len(those) == 1 else Const(len(those) > 0, 1)
    return code[:2] == (those[0] & 3)


def is_type(code: Value, element: ElementType, among: Collection[ElementType]) -> Value:
    """Whether a field, known to hold one of the types ``among``, holds ``element``.

    Compares as few bits as tell them apart, so that a chip pays for the types that it has.
    """
    if element not in among:
        return Const(0, 1)
    others = [t for t in among if t is not element]
    for count in range(TYPE_BITS + 1):
        for bits in combinations(range(TYPE_BITS), count):
            if all(any((t ^ element) >> k & 1 for k in bits) for t in others):
                expected = sum((element >> k & 1) << place for place, k in enumerate(bits))
                return Cat(code[k] for k in bits) == expected
    raise AssertionError("two element types have one code")
