"""Amaranth views of the contract's layouts."""

from amaranth import signed, unsigned
from amaranth.lib import data

from sley.abi.layout import Layout


def widths(layout: Layout, *names: str) -> dict[str, int]:
    """Widths of some of the fields, for a structure or a signature that has them."""
    return {name: layout.fields[name].width for name in names}


def struct(layout: Layout) -> data.FlexibleLayout:
    """The layout as Amaranth sees it: the same fields at the same bits, reserved bits between them."""
    return data.FlexibleLayout(
        layout.width,
        {
            p.name: data.Field(signed(p.width) if p.field.signed else unsigned(p.width), p.lsb)
            for p in layout.fields.values()
        },
    )
