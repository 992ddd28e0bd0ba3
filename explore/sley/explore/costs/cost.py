"""What a workload costs on a chip: exact cycles, bytes, counters, energy and area."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.abi.config import ChipConfig, configuration
from sley.abi.counters import COUNTERS, CounterGroup, ReadCycle, WriteCycle
from sley.driver import BadRequest, Counters, Driver
from sley.explore.area.model import Area, area_of
from sley.explore.costs.version import version
from sley.explore.costs.workload import Workload, workload_of
from sley.runtime import Device
from sley.runtime.energy.estimate import Energy, estimate
from sley.runtime.kernels.gemm.tuned import tuned_file
from sley.sim.build.cache import cached, digest
from sley.sim.engines.link import linked
from sley.sim.engines.options import DRAM, LINK, parse_options
from sley.sim.engines.timed import TimedTransport, check_exact

MEMORY_BYTES = 1 << 30
"""Of the device, or as much as the chip addresses."""
TIMING = (*DRAM, *LINK)
"""Parameters of memory and of the host link, as in an engine URL."""


@dataclass(frozen=True)
class Cost:
    """What a run took, from doorbell to fence.

    Attributes
    ----------
    config: the chip. cycles: exact. counters: of the run, and of a few cycles around it.
    """

    config: ChipConfig
    cycles: int
    counters: Counters

    @property
    def bytes(self) -> int:
        """That crossed the memory bus, whole beats."""
        chip = self.counters.chip
        beats = chip[CounterGroup.READ][ReadCycle.BEAT] + chip[CounterGroup.WRITE][WriteCycle.BEAT]
        return beats * self.config.bus_bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all arrays, those with padding included."""
        return sum(self.counters.macs(core) for core in range(self.config.cores))

    @property
    def energy(self) -> Energy:
        """By the default table and operating point; ``sley.runtime.energy.estimate`` has others."""
        return estimate(self.counters, self.config)

    @property
    def area(self) -> Area:
        """Of the chip on an ECP5, by the fitted model."""
        return area_of(self.config)


def cost(
    network: Any,
    config: ChipConfig | str,
    *,
    schedule: Mapping[str, Any] | None = None,
    timing: Mapping[str, int] | None = None,
) -> Cost:
    """The cost of a workload on a chip. Costs of what has a digest are kept in the cache, and found there again.

    Parameters
    ----------
    network: a file ``.onnx`` or ``.sley``, a ``ModelProto``, a ``Network``, a name of ``sley zoo list``, or a function
        of a device, and of its schedule, that returns a function which submits the work.
    config: the chip, its preset's name or its JSON file.
    schedule: of a network, ``precision`` of products of float32: "highest", "high" or "medium", as in ``nn.matmul``;
        of a function, its other arguments by name.
    timing: of memory and the host link, as in an engine URL: ``{"latency": 64, "bandwidth": 8}``.

    Raises ``ConfigError``, ``BadRequest``, ``EngineError``, and what compiling the network raises.
    """
    chip = configuration(config) if isinstance(config, str) else config
    return cost_of(workload_of(network), chip, schedule or {}, timing or {})


def cost_of(workload: Workload, config: ChipConfig, schedule: Mapping[str, Any], timing: Mapping[str, int]) -> Cost:
    """As ``cost``, of a workload."""
    for name in schedule:
        if name not in workload.parameters:
            names = ", ".join(workload.parameters) or "none"
            raise BadRequest(f"{workload.name} has no parameter {name!r}; it has {names}")
    if workload.digest is None:
        return _run(workload, config, schedule, timing)
    key = key_of(workload, config, schedule, timing)

    def run(output: Path, _: Path) -> None:
        output.write_text(json.dumps(plain(_run(workload, config, schedule, timing))))

    return of_plain(config, json.loads(cached("costs", f"{key}.json", run).read_text()))


def key_of(workload: Workload, config: ChipConfig, schedule: Mapping[str, Any], timing: Mapping[str, int]) -> str:
    """A digest of all that a cost depends on: workload, chip, tunings, options, and this version of Sley."""
    tunings = tuned_file(config)
    parts = (json.dumps(dict(part), sort_keys=True) for part in (config.capabilities, schedule, timing))
    return digest(
        workload.digest or "", *parts, version(), tunings.read_text() if tunings.exists() else "", f"{MEMORY_BYTES}"
    )


def measured(device: Device, workload: Workload, schedule: Mapping[str, Any]) -> Cost:
    """The cost on a device with cycles, whichever it is; on ``fast`` the same as on the exact model."""
    submit = workload.prepare(device, **schedule)
    with device.stream.counted() as count:
        submit()
    return Cost(device.config, count.cycles, count.counters)


def _run(workload: Workload, config: ChipConfig, schedule: Mapping[str, Any], timing: Mapping[str, int]) -> Cost:
    """On the exact model, time alone."""
    check_exact(config)
    memory = {"memory": str(min(MEMORY_BYTES, 1 << config.addr_bits))}
    options = parse_options("model", config, memory | {name: str(value) for name, value in timing.items()})
    transport = linked(TimedTransport(config, options, values=False), options.link)
    try:
        driver = Driver(transport)
    except BaseException:
        transport.close()
        raise
    with driver:
        found = measured(Device(driver), workload, schedule)
    return of_plain(config, plain(found))  # of the chip by its own name, which a device does not know


def plain(found: Cost) -> dict[str, Any]:
    """As numbers by name, for JSON."""
    return {
        "cycles": found.cycles,
        "cores": [_named(core) for core in found.counters.cores],
        "chip": _named(found.counters.chip),
    }


def of_plain(config: ChipConfig, found: Mapping[str, Any]) -> Cost:
    """The cost that ``plain`` made so."""
    cores = tuple(_values(core) for core in found["cores"])
    return Cost(config, found["cycles"], Counters(config, cores, _values(found["chip"])))


def _named(groups: Mapping[Any, Mapping[Any, int]]) -> dict[str, dict[str, int]]:
    return {group.name: {counter.name: value for counter, value in values.items()} for group, values in groups.items()}


def _values(groups: Mapping[str, Mapping[str, int]]) -> dict[CounterGroup, dict[Any, int]]:
    return {
        CounterGroup[group]: {COUNTERS[CounterGroup[group]][name]: value for name, value in values.items()}
        for group, values in groups.items()
    }
