"""Engines that run the chip or any other design, and the golden model.

A name is imported from where it is defined when it is first used, so that ``sley.sim.errors`` alone needs no Amaranth.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.sim.cocotb.runner import BenchError, run_bench
    from sley.sim.cocotb.transport import CycleTransport
    from sley.sim.engines.options import EngineOptions
    from sley.sim.engines.posted import PostedWrites
    from sley.sim.errors import BuildError, FastError, SanitizerError
    from sley.sim.fast.run.simulation import Simulation
    from sley.sim.memory.dram import DramTiming
else:
    _HOMES = {
        "BenchError": "sley.sim.cocotb.runner",
        "BuildError": "sley.sim.errors",
        "CycleTransport": "sley.sim.cocotb.transport",
        "DramTiming": "sley.sim.memory.dram",
        "EngineOptions": "sley.sim.engines.options",
        "FastError": "sley.sim.errors",
        "PostedWrites": "sley.sim.engines.posted",
        "SanitizerError": "sley.sim.errors",
        "Simulation": "sley.sim.fast.run.simulation",
        "run_bench": "sley.sim.cocotb.runner",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "BenchError",
    "BuildError",
    "CycleTransport",
    "DramTiming",
    "EngineOptions",
    "FastError",
    "PostedWrites",
    "SanitizerError",
    "Simulation",
    "run_bench",
]
