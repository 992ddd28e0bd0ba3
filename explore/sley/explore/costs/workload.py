"""What runs on a design: a network, or a function of a device."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Protocol

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.frameworks.constants import fold
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.file import digest_of, load_network
from sley.runtime.networks.graph import Network

GROUP = "sley.networks"
"""Entry points: functions that return networks by name, as ``Known``."""
Known = Mapping[str, Callable[[], "NetworkWorkload"]]
Submit = Callable[[], None]
Study = Callable[..., Submit]
"""A function of a device that prepares arrays, and returns a function that submits the work that counts. Its other
arguments are parameters of its schedule."""
PRECISIONS = ("medium", "high", "highest")
"""Of products of float32, for networks."""


class Workload(Protocol):
    """Attributes: ``name``: for people. ``digest``: of all that decides what it does; None if nobody knows.
    ``parameters``: names of what its schedule may say."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str | None: ...

    @property
    def parameters(self) -> tuple[str, ...]: ...

    def prepare(self, device: Device, **schedule: Any) -> Submit:
        """Makes programs and arrays; what is returned submits the work that counts. ``schedule``: values of some of
        ``parameters``."""
        ...


@dataclass(frozen=True)
class NetworkWorkload:
    """A network, compiled for each design. ``shapes``: of inputs whose type leaves sides open."""

    name: str
    network: Network = field(repr=False)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    parameters: ClassVar = ("precision",)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(f"{digest_of(self.network)}{sorted(self.shapes.items())}".encode()).hexdigest()

    def prepare(self, device: Device, **schedule: Any) -> Submit:
        precision = schedule.get("precision", "highest")
        if precision not in PRECISIONS:
            raise BadRequest(f"precision {precision!r}; there are {', '.join(PRECISIONS)}")
        return compile_network(self.network, device, fold, self.shapes, precision=precision).launch


@dataclass(frozen=True)
class FunctionWorkload:
    """A function as it is, of which nobody knows what it closes over."""

    name: str
    function: Study
    digest: None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        return _arguments(self.function)

    def prepare(self, device: Device, **schedule: Any) -> Submit:
        return self.function(device, **schedule)


@dataclass(frozen=True)
class SourceWorkload:
    """A function of a file of Python, which is run where the function is needed, on other machines too. ``digest``: of
    the file's text, so what the file imports is not in it."""

    name: str
    source: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name}\0{self.source}".encode()).hexdigest()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return _arguments(self._function())

    def prepare(self, device: Device, **schedule: Any) -> Submit:
        return self._function()(device, **schedule)

    def _function(self) -> Study:
        """With its lines where kernels of tiles look for theirs."""
        names: dict[str, Any] = {"__name__": "studies"}
        place = f"<studies: {self.digest}>"
        linecache.cache[place] = (len(self.source), None, self.source.splitlines(keepends=True), place)
        exec(compile(self.source, place, "exec"), names)
        function: Study = names[self.name]
        return function


def _arguments(function: Study) -> tuple[str, ...]:
    """All but the device."""
    return tuple(signature(function).parameters)[1:]


def known_workloads() -> dict[str, Callable[[], NetworkWorkload]]:
    """Networks that installed portions name."""
    found: dict[str, Callable[[], NetworkWorkload]] = {}
    for point in entry_points(group=GROUP):
        found |= point.load()()
    return found


def workload_of(network: Any, folder: Path = Path()) -> Workload:
    """A workload of whatever is one: a file ``.onnx`` or ``.sley``, relative to ``folder``; a ``ModelProto`` of onnx; a
    ``Network``; a name that an installed portion knows; a function of a device. Raises ``BadRequest``."""
    if isinstance(network, NetworkWorkload | FunctionWorkload | SourceWorkload):
        return network
    if isinstance(network, Network):
        return NetworkWorkload(network.name, network)
    if isinstance(network, str | Path) and str(network).endswith((".onnx", ".sley")):
        return _of_file(folder / network)
    if isinstance(network, str):
        known = known_workloads()
        if network not in known:
            raise BadRequest(
                f"no network {network!r}; give a file .onnx or .sley, or one of {', '.join(sorted(known))}"
            )
        return known[network]()
    if callable(network):
        return FunctionWorkload(getattr(network, "__name__", "function"), network)
    return _of_model(network, getattr(getattr(network, "graph", None), "name", "") or "model")


def _of_file(path: Path) -> NetworkWorkload:
    if not path.is_file():
        raise BadRequest(f"there is no file {path}")
    if path.suffix == ".sley":
        return NetworkWorkload(path.stem, load_network(path))
    return _of_model(path, path.stem)


def _of_model(model: Any, name: str) -> NetworkWorkload:
    if not isinstance(model, Path) and type(model).__name__ != "ModelProto":
        raise BadRequest(
            f"{type(model).__name__} is no network; give a file, a ModelProto, a Network, a name, or a function of a "
            "device"
        )
    try:
        from sley.runtime.frameworks.from_onnx.importer import read_model
    except ImportError as error:
        raise BadRequest(f"{name} needs onnx, which is not installed ({error}): {extra('onnx')}") from None
    return NetworkWorkload(name, read_model(model))
