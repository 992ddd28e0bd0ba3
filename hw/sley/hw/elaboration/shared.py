"""Components that are emitted as modules of their own and instanced."""

from amaranth.hdl import ClockSignal, Elaboratable, Instance, ResetInserter, ResetSignal, Value
from amaranth.lib import wiring


class EmissionPlatform:
    """The platform of an emission to Verilog or RTLIL; collects the modules that are instanced.

    ``pending``: module names and components that still need a module of their own. ``written``: texts of modules that
    need no conversion, by name. ``splits``: whether ``split`` makes modules.
    """

    splits = False

    def __init__(self) -> None:
        self.pending: list[tuple[str, wiring.Component]] = []
        self.written: dict[str, str] = {}
        self._known: set[str] = set()

    def share(self, name: str, component: wiring.Component) -> None:
        """Asks for a module ``name`` that behaves like ``component``; the first one asked for is taken."""
        if name not in self._known:
            self._known.add(name)
            self.pending.append((name, component))


def flat_ports(component: wiring.Component) -> dict[str, tuple[Value, wiring.Flow]]:
    """Ports of a component by name: the path of every member joined with one underscore (``s_axil_awaddr``)."""
    return {
        "_".join(str(part) for part in path): (Value.cast(value), member.flow)
        for path, member, value in component.signature.flatten(component)
    }


def shared(component: wiring.Component, name: str, platform: object, reset: Value | None = None) -> Elaboratable:
    """``component``, to be added as a submodule: itself in simulation, an instance of module ``name`` in Verilog.

    All components of one ``name`` must be the same but for what their ports are connected to. ``reset`` resets the
    component's control state besides the domain's own reset. Elaborating and emitting a chip takes time for each
    module: this makes it independent of the number of lanes and cores.
    """
    if not isinstance(platform, EmissionPlatform):
        return component if reset is None else ResetInserter(reset)(component)
    platform.share(name, component)
    resets = ResetSignal() if reset is None else ResetSignal() | reset
    connections: dict[str, Value] = {"i_clk": ClockSignal(), "i_rst": resets}
    for port, (value, flow) in flat_ports(component).items():
        connections[f"{'i' if flow == wiring.In else 'o'}_{port}"] = value
    return Instance(name, **connections)


def split(component: wiring.Component, name: str, platform: object, reset: Value | None = None) -> Elaboratable:
    """``component``, to be added as a submodule: shared like another one, but only in RTLIL.

    A large part that a design has once: as a module of its own it is converted beside the rest.
    """
    if isinstance(platform, EmissionPlatform) and not platform.splits:
        return component if reset is None else ResetInserter(reset)(component)
    return shared(component, name, platform, reset)
