"""Devices: the FPGA of a board, and what there is of each resource."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sley.fpga.devices.family import FAMILIES, OWN_RESET, Family, Resources
from sley.fpga.errors import FlowError


@dataclass(frozen=True)
class Device:
    """An FPGA. ``capacity`` is counted as in ``Family.cells``; ``die`` is the device that has its blocks at the same
    places, if that is another one. ``resets``: see ``synthesise``; more where a chip takes nearly all places."""

    name: str
    family: Family
    capacity: Resources
    die: str = ""
    resets: int = OWN_RESET

    @property
    def places(self) -> str:
        """The device by whose name the places of its blocks are known."""
        return self.die or self.name

    def usage(self, used: Resources) -> str:
        """What a design takes of it, in words."""
        return ", ".join(self._shares(used, lambda taken, available: True))

    def fits(self, used: Resources) -> bool:
        """Whether there is enough of everything."""
        return not self._shares(used, lambda taken, available: taken > available)

    def check(self, used: Resources) -> None:
        """Raises ``FlowError`` that names what there is too little of."""
        short = self._shares(used, lambda taken, available: taken > available)
        if short:
            raise FlowError(
                f"the design does not fit: it takes {', '.join(short)} of {self.name}; take a smaller --config, "
                "a board with a larger FPGA (sley fpga boards), or --without-chip, which leaves bridge and memory"
            )

    def _shares(self, used: Resources, named: Callable[[int, int], bool]) -> list[str]:
        pairs = ((name, getattr(used, field), getattr(self.capacity, field)) for field, name in _NAMES.items())
        return [f"{taken:,} of {available:,} {name}" for name, taken, available in pairs if named(taken, available)]


_NAMES = {"lut": "LUTs", "ff": "flip-flops", "dsp": "DSP blocks", "bram": "block RAMs"}

DEVICES = {
    "LFE5U-25F": Device("ecp5-25f", FAMILIES["ecp5"], Resources(24_288, 24_288, 28, 56), resets=64),
    "LFE5U-45F": Device("ecp5-45f", FAMILIES["ecp5"], Resources(43_848, 43_848, 72, 108)),
    "LFE5U-85F": Device("ecp5-85f", FAMILIES["ecp5"], Resources(83_640, 83_640, 156, 208)),
    "LFE5UM5G-85F": Device("ecp5-5g-85f", FAMILIES["ecp5"], Resources(83_640, 83_640, 156, 208), die="ecp5-85f"),
    "iCE40UP5K": Device("ice40up5k", FAMILIES["ice40"], Resources(5_280, 5_280, 8, 30)),
    "GW2A-LV18PG256C8/I7": Device("gw2a-18", FAMILIES["gowin"], Resources(20_736, 15_552, 96, 46)),
    "xc7a35ti": Device("xc7a35t", FAMILIES["xc7"], Resources(20_800, 41_600, 90, 100)),
    "xc7a100ti": Device("xc7a100t", FAMILIES["xc7"], Resources(63_400, 126_800, 240, 270)),
    "xcku040": Device("xcku040", FAMILIES["xcu"], Resources(242_400, 484_800, 1_920, 1_200)),
}
"""By the name that an Amaranth platform has for it. Sources: the families' data sheets (Lattice FPGA-DS-02012 and
FPGA-DS-02008, Gowin DS102, AMD DS180 and DS890)."""


def device_of(platform: Any) -> Device:
    """The device of an Amaranth platform. Raises ``KeyError`` for one that is not in the table above."""
    return DEVICES[platform.part if hasattr(platform, "parse_part") else platform.device]


def annotate_platform(platform: Any, family: Family, dsp_blocks: int | None, array_blocks: int | None = None) -> None:
    """Gives a platform what gateware asks it about multipliers: Amaranth's do not have it, or not all of them.

    ``dsp_blocks``: how many there are; ``array_blocks``: how many of them arrays of int8 may take, None for their
    usual share.
    """
    platform.dsp_family = family.name
    platform.dsp_blocks = dsp_blocks
    platform.array_blocks = array_blocks
