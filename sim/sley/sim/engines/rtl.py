"""Engine ``rtl``: the generated Verilog compiled by Verilator, with host and DRAM inside the library."""

from pathlib import Path

from sley.abi.config import configuration
from sley.abi.transport import Transport
from sley.sim.build.verilator import build_library
from sley.sim.engines.design_text import cached_verilog
from sley.sim.engines.library import LibraryTransport
from sley.sim.engines.link import linked
from sley.sim.engines.options import EngineOptions, parse_options

HARNESS = Path(__file__).with_name("harness.cpp")


class RtlTransport(LibraryTransport):
    """A device in Verilator, the judge of engine ``fast``.

    ``verilog`` is a design whose top module ``sley`` has the ports of a chip, ``bus_bytes`` the width of its memory
    bus.
    """

    def __init__(self, verilog: str, bus_bytes: int, options: EngineOptions) -> None:
        kind = options.trace.suffix[1:] if options.trace else None
        super().__init__(build_library(verilog, HARNESS, {"BUS_BYTES": bus_bytes}, kind), options)


def open_transport(spec: str, options: dict[str, str]) -> Transport:
    """The chip of a preset or a JSON file (``base`` when empty), compiled on first use."""
    config = configuration(spec or "base")
    parsed = parse_options("rtl", config, options, (".vcd", ".fst"))
    return linked(RtlTransport(cached_verilog(config), config.bus_bytes, parsed), parsed.link)
