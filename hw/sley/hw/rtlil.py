"""RTLIL of a chip: the text that the fast engine compiles, the same on every run."""

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
    return "\n".join(Emission(platform or EmissionPlatform(), _convert, beside).texts(component, name).values())


def chip_rtlil(config: ChipConfig, beside: bool = False) -> str:
    """RTLIL of the chip with that configuration; the top module is ``sley``. ``beside``: see ``Emission``."""
    from sley.hw.chip import Chip

    return component_rtlil(Chip(config), platform=RtlilPlatform(), beside=beside)


def _convert(name: str, fragment: Fragment, ports: Ports) -> str:
    from amaranth.back import rtlil

    text: str = rtlil.convert(fragment, name=name, ports=ports)
    return text
