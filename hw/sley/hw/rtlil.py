"""RTLIL of a chip: the text that the fast engine compiles, the same on every run."""

from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.hw.elaboration.emission import TOP, emitted_modules


def component_rtlil(component: wiring.Component, name: str = TOP) -> str:
    """RTLIL of any component with one clock domain, whose clock and reset are the ports ``clk`` and ``rst``.

    The first module is the component; those that it shares (see ``sley.hw.elaboration.shared``) follow.
    """
    from amaranth.back import rtlil

    return "\n".join(
        rtlil.convert(module, name=name, platform=platform, ports=ports)
        for name, module, ports, platform in emitted_modules(component, name)
    )


def chip_rtlil(config: ChipConfig) -> str:
    """RTLIL of the chip with that configuration; the top module is ``sley``."""
    from sley.hw.chip import Chip

    return component_rtlil(Chip(config))
