"""Options of an engine URL (``fast:base?memory=128M&latency=40``) as values; the engine when none is named."""

from dataclasses import dataclass, field, fields
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.abi.sizes import parse_size
from sley.abi.transport import EngineError
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.link import MAX_CYCLES, HostLink
from sley.sim.memory.dram import BOUNDS, DramTiming

DRAM = [parameter.name for parameter in fields(DramTiming) if parameter.name != "depth"]
LINK = {"link_latency": (0, MAX_CYCLES), "link_bytes": (0, MAX_CYCLES)}
VALID = ("memory", *DRAM, *LINK, "trace")


@dataclass(frozen=True)
class EngineOptions:
    """What a simulating engine can be told."""

    memory: int = 64 << 20
    """Bytes of device memory."""
    dram: DramTiming = field(default_factory=DramTiming)
    link: HostLink = field(default_factory=HostLink)
    trace: Path | None = None
    """Waveform file; its suffix chooses the format."""


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
    unknown = [name for name in options if name not in VALID]
    if unknown:
        raise EngineError(f"engine {engine} has no option {unknown[0]!r}; there are {', '.join(VALID)}")
    bounds = {"memory": (PAGE_BYTES, 1 << config.addr_bits)} | {name: BOUNDS[name] for name in DRAM} | LINK
    values = {name: _integer(name, options[name], *bounds[name]) for name in bounds if name in options}
    memory = values.get("memory", min(EngineOptions.memory, 1 << config.addr_bits))
    if memory % PAGE_BYTES:
        raise EngineError(f"memory={options['memory']}: memory must be a multiple of {PAGE_BYTES}")
    trace = Path(options["trace"]) if "trace" in options else None
    if trace is not None and trace.suffix not in waveforms:
        raise EngineError(f"trace={trace}: engine {engine} writes files named *{' or *'.join(waveforms)}")
    try:
        dram = DramTiming(**{name: values[name] for name in DRAM if name in values})
    except ValueError as error:
        raise EngineError(f"{error}; give other values for the memory of engine {engine}") from None
    link = HostLink(values.get("link_latency", 0), values.get("link_bytes", 0))
    return EngineOptions(memory, dram, link, trace)


def default_engine() -> str:
    """``fast`` where a C compiler is, else ``pysim``."""
    return "fast" if find_c_compiler() else "pysim"
