"""RTLIL of a chip: the text that the fast engine compiles, the same on every run."""

from functools import partial

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.hw.elaboration.emission import TOP, Emission, Ports
from sley.hw.elaboration.rtlil_platform import RtlilPlatform
from sley.hw.elaboration.shared import EmissionPlatform


def component_rtlil(
    component: wiring.Component, name: str = TOP, platform: EmissionPlatform | None = None, beside: bool = False
) -> str:
    """RTLIL of any component with one clock domain, whose clock and reset are the ports ``clk`` and ``rst``.

    The first module is the component; those that it shares (see ``sley.hw.elaboration.shared``) follow, then
    what the platform wrote. ``platform``: a plain ``EmissionPlatform`` unless told another. ``beside``: see
    ``Emission``.
    """
    return _text(Emission(platform or EmissionPlatform(), _convert, beside), component, name)


def chip_rtlil(config: ChipConfig, beside: bool = False) -> str:
    """RTLIL of the chip with that configuration; the top module is ``sley``. ``beside``: see ``Emission``."""
    from sley.hw.chip import Chip

    return system_rtlil(Chip(config), beside)


def system_rtlil(component: wiring.Component, beside: bool = False) -> str:
    """RTLIL of a chip, or of a component that has one inside; the top module is ``sley``. ``beside``: see ``Emission``.

    It does not say which line of which file a cell comes from: that would be a third of the text, and another text
    wherever Sley is installed.
    """
    return _text(Emission(RtlilPlatform(), partial(_convert, emit_src=False), beside), component, TOP)


def _text(emission: Emission, component: wiring.Component, name: str) -> str:
    return "\n".join(emission.texts(component, name).values())


def _convert(name: str, fragment: Fragment, ports: Ports, emit_src: bool = True) -> str:
    from amaranth.back import rtlil

    text: str = rtlil.convert(fragment, name=name, ports=ports, emit_src=emit_src)
    return text
