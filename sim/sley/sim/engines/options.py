"""Options of an engine URL (``fast:base?memory=128M&latency=40``) as values; the engine when none is named."""

from dataclasses import dataclass, fields
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.abi.sizes import parse_size
from sley.abi.transport import EngineError
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.memory.dram import DramTiming


@dataclass(frozen=True)
class EngineOptions:
    """What a simulating engine can be told."""

    memory: int = 64 << 20
    """Bytes of device memory."""
    latency: int = 32
    """DRAM: cycles from an address to its first data."""
    burst_gap: int = 1
    """DRAM: cycles that a burst to a new place costs."""
    trace: Path | None = None
    """Waveform file; its suffix chooses the format."""

    @property
    def timing(self) -> DramTiming:
        return DramTiming(self.latency, self.burst_gap)


def _integer(name: str, text: str, low: int, high: int) -> int:
    try:
        value = parse_size(text) if name == "memory" else int(text, 0)
    except ValueError:
        example = "a size like 64M" if name == "memory" else "an integer"
        raise EngineError(f"{name}={text}: {name} must be {example}") from None
    if not low <= value <= high:
        raise EngineError(f"{name}={text}: {name} must be in {low}..{high}")
    return value


def parse_options(
    engine: str, config: ChipConfig, options: dict[str, str], waveforms: tuple[str, ...] = (".vcd",)
) -> EngineOptions:
    """Options by name as ``EngineOptions``. ``waveforms``: file suffixes the engine can write."""
    valid = [field.name for field in fields(EngineOptions)]
    unknown = [name for name in options if name not in valid]
    if unknown:
        raise EngineError(f"engine {engine} has no option {unknown[0]!r}; there are {', '.join(valid)}")
    bounds = {
        "memory": (PAGE_BYTES, 1 << config.addr_bits),
        "latency": (1, 1 << 20),
        "burst_gap": (0, 1 << 20),
    }
    values = {name: _integer(name, options[name], *bounds[name]) for name in bounds if name in options}
    if values.get("memory", 0) % PAGE_BYTES:
        raise EngineError(f"memory={options['memory']}: memory must be a multiple of {PAGE_BYTES}")
    default_memory = min(EngineOptions.memory, 1 << config.addr_bits)
    trace = Path(options["trace"]) if "trace" in options else None
    if trace is not None and trace.suffix not in waveforms:
        raise EngineError(f"trace={trace}: engine {engine} writes files named *{' or *'.join(waveforms)}")
    return EngineOptions(**({"memory": default_memory} | values), trace=trace)


def default_engine() -> str:
    """``fast`` where a C compiler is, else ``pysim``."""
    return "fast" if find_c_compiler() else "pysim"
