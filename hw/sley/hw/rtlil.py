"""RTLIL of a chip: the text that the fast engine compiles, the same on every run."""

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.hw.elaboration.emission import TOP, Emission, Ports
from sley.hw.elaboration.rtlil_platform import RtlilPlatform


def component_rtlil(component: wiring.Component, name: str = TOP, beside: bool = False) -> str:
    """RTLIL of any component with one clock domain, whose clock and reset are the ports ``clk`` and ``rst``.

    The first module is the component; those that it shares (see ``sley.hw.elaboration.shared``) follow, then its
    memories. ``beside``: see ``Emission``.
    """
    return "\n".join(Emission(RtlilPlatform(), _convert, beside).texts(component, name).values())


def chip_rtlil(config: ChipConfig, beside: bool = False) -> str:
    """RTLIL of the chip with that configuration; the top module is ``sley``. ``beside``: see ``Emission``."""
    from sley.hw.chip import Chip

    return component_rtlil(Chip(config), beside=beside)


def _convert(name: str, fragment: Fragment, ports: Ports) -> str:
    from amaranth.back import rtlil

    text: str = rtlil.convert(fragment, name=name, ports=ports)
    return text
