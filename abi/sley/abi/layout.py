"""Bit layouts: the one way this package describes registers, packets and instruction words."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from sley.abi.errors import SleyError


class LayoutError(SleyError, ValueError):
    """A value does not fit its field, or a layout contradicts itself."""


@dataclass(frozen=True)
class Field:
    """One named run of bits.

    ``lsb`` of ``None`` puts the field right above the previous one. ``reset`` is the value after reset.
    ``signed`` fields hold two's complement values.
    """

    name: str
    width: int
    doc: str
    lsb: int | None = None
    reset: int = 0
    enum: type[IntEnum] | None = None
    signed: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        if self.signed:
            return -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        return 0, (1 << self.width) - 1

    def encode(self, value: int) -> int:
        """The field's bits for ``value``, not yet shifted. Raises ``LayoutError`` when it does not fit."""
        low, high = self.bounds
        if not low <= value <= high:
            raise LayoutError(f"field {self.name!r} is {self.width} bits wide: {value} is outside {low}..{high}")
        return int(value) & ((1 << self.width) - 1)

    def decode(self, bits: int) -> int:
        """The value of the field's ``bits`` (already shifted down)."""
        bits &= (1 << self.width) - 1
        return bits - (1 << self.width) if self.signed and bits >> (self.width - 1) else bits


@dataclass(frozen=True)
class PlacedField:
    """A field with its position inside a layout."""

    field: Field
    lsb: int

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def width(self) -> int:
        return self.field.width

    @property
    def msb(self) -> int:
        return self.lsb + self.field.width - 1

    @property
    def mask(self) -> int:
        return ((1 << self.field.width) - 1) << self.lsb


class Layout:
    """A word of ``width`` bits cut into fields; bits that no field covers are reserved and must be zero.

    Parameters
    ----------
    name: name of the layout, as documentation and exports show it.
    width: width of the word in bits.
    fields: fields from the least significant bit upwards.
    """

    def __init__(self, name: str, width: int, fields: tuple[Field, ...]):
        self.name = name
        self.width = width
        placed: list[PlacedField] = []
        next_lsb = 0
        for field in fields:
            lsb = next_lsb if field.lsb is None else field.lsb
            if lsb < next_lsb:
                raise LayoutError(f"{name}.{field.name} at bit {lsb} overlaps the field below it")
            next_lsb = lsb + field.width
            placed.append(PlacedField(field, lsb))
        if next_lsb > width:
            raise LayoutError(f"{name} needs {next_lsb} bits and has {width}")
        self.fields: Mapping[str, PlacedField] = {p.name: p for p in placed}
        if len(self.fields) != len(placed):
            raise LayoutError(f"{name} has two fields of one name")

    @property
    def mask(self) -> int:
        """Ones at every bit that belongs to a field."""
        return sum(p.mask for p in self.fields.values())

    @property
    def reset(self) -> int:
        """The word after reset."""
        return self.pack(**{p.name: p.field.reset for p in self.fields.values()})

    def pack(self, **values: int) -> int:
        """The word with the given fields, all others zero. Raises ``LayoutError`` on a bad name or value."""
        word = 0
        for name, value in values.items():
            if name not in self.fields:
                raise LayoutError(f"{self.name} has no field {name!r}; it has {', '.join(self.fields)}")
            placed = self.fields[name]
            word |= placed.field.encode(value) << placed.lsb
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Every field's value in ``word``; reserved bits are ignored."""
        return {p.name: p.field.decode(word >> p.lsb) for p in self.fields.values()}
