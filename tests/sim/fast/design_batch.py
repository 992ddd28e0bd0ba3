"""Designs made from their texts, side by side in one top module."""

from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from design_language import LANGUAGE

DOMAINS = {
    "sync": {},
    "neg": {"clk_edge": "neg"},
    "arst": {"async_reset": True},
    "narst": {"async_reset": True, "clk_edge": "neg"},
    "free": {"reset_less": True},
}
"""The clock domains of a batch, all of whose clocks and resets are inputs: name to options of ``ClockDomain``."""

ASYNC_RESET = {"arst", "narst", "local"}


class Design:
    """A design made from its text, below a module of its own."""

    def __init__(self, name: str, source: str, domains: dict[str, ClockDomain]) -> None:
        self.name, self.source, self.module = name, source, Module()
        scope = dict(LANGUAGE)
        exec(compile(source, f"<{name}>", "exec"), scope)
        inputs, outputs, memories = scope["design"](self.module, domains)
        self.inputs = {f"{name}_{signal.name}": signal for signal in inputs}
        self.outputs = {f"{name}_o{index}": self._output(signal) for index, signal in enumerate(outputs)}
        self.memories = {f"top.{name}.{path}": memory.data for path, memory in memories.items()}

    def _output(self, signal: Signal) -> Signal:
        """A port that shows a signal. (The signal itself would be an input if nothing drives it.)"""
        port = Signal(len(signal), name="out")
        self.module.d.comb += port.eq(signal)
        return port


class Batch(Elaboratable):
    """Several designs, given as name to text, side by side."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.domains = {name: ClockDomain(name, **options) for name, options in DOMAINS.items()}
        self.designs = [Design(name, source, self.domains) for name, source in sources.items()]
        self.clocks = {domain.clk.name: domain.clk for domain in self.domains.values()}
        self.resets = {domain.rst.name: domain.rst for domain in self.domains.values() if domain.rst is not None}
        self.inputs = {name: signal for design in self.designs for name, signal in design.inputs.items()}
        self.outputs = {name: signal for design in self.designs for name, signal in design.outputs.items()}
        self.memories = {path: data for design in self.designs for path, data in design.memories.items()}

    @property
    def ports(self) -> dict[str, Signal]:
        return {**self.clocks, **self.resets, **self.inputs, **self.outputs}

    def design_of(self, name: str) -> str:
        """The design that an output, or a row of a memory, belongs to."""
        return name.removeprefix("top.").split("_" if "_" in name else ".")[0]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domains.values()
        for design in self.designs:
            m.submodules[design.name] = design.module
        return m
