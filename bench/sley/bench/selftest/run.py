"""All of a self-test, in the order in which a later part needs the earlier ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.transport import Transport
from sley.bench.selftest import commands, link, memory, timing
from sley.bench.selftest.checks import Checks
from sley.bench.selftest.report import Report
from sley.bench.selftest.units.case import contents
from sley.bench.selftest.units.cases import Golden, check_case, unit_cases
from sley.driver import Driver
from sley.driver.hardware.probe import probe
from sley.runtime import Device
from sley.sim.build.toolchain import find_c_compiler

MARCH_SECONDS = 30.0
COMMANDS = {
    "interrupts": commands.interrupts,
    "interrupts joined": commands.coalescing,
    "faults": commands.faults,
    "copies and fills": commands.copies,
    "recorded packets": commands.recorded,
    "queues in order": commands.queues,
}


def selftest(
    transport: Transport,
    url: str,
    march_seconds: float = MARCH_SECONDS,
    notify: Callable[[str], None] = lambda name: None,
    advance: Callable[[float], None] = lambda share: None,
) -> Report:
    """Tests the device behind ``transport``, which is closed afterwards. What its memory held is lost.

    Parameters
    ----------
    march_seconds
        How long the march over memory may take; two windows of it are done in any case.
    notify, advance
        Called with the name of each check as it begins, and with the share of the march that is done.
    """
    checks = Checks(notify)
    board = _board(transport)
    config = _chip(transport, checks)
    with checks.check("memory", "lines of the address") as check:
        memory.address_lines(transport, check)
    with checks.check("memory", "march") as check:
        memory.march(transport, check, march_seconds, advance)
    for name, test in (("latency", link.latency), ("throughput", link.throughput), ("lengths", link.random_lengths)):
        with checks.check("link", name) as check:
            test(transport, check)
    if config is None or checks.failed("memory"):
        why = "no chip answered" if config is None else "memory is at fault, and every program needs it"
        checks.leave_out("units", "every operation", why)
    else:
        _programs(transport, config, checks)
    with checks.check("link", "losses") as check:
        link.losses(transport, check)
    report = Report(url, board, config, transport.memory_bytes, checks.all)
    transport.close()
    return report


def _board(transport: Transport) -> dict[str, Any]:
    identity = getattr(transport, "identity", None)
    return {name: str(value) for name, value in asdict(identity).items()} if identity is not None else {}


def _chip(transport: Transport, checks: Checks) -> ChipConfig | None:
    with checks.check("chip", "capabilities") as check:
        config = probe(transport)
        check.about = f"{config.name}, hash {config.hash:#010x}"
        return config
    return None


def _programs(transport: Transport, config: ChipConfig, checks: Checks) -> None:
    """What needs a driver: commands, units, timing."""
    driver = Driver(transport)
    with checks.check("commands", "reset") as check:
        driver.reset()
        check.about = "the whole device, from the driver"
    with _opened(driver) as device:
        for name, command in COMMANDS.items():
            with checks.check("commands", name) as check:
                command(device, check)
    with Golden(config) as golden:
        for _, cases in groupby(unit_cases(config), lambda case: case.unit):
            with _opened(driver) as device:
                source = device.array(contents(config))
                for case in cases:
                    with checks.check(case.unit, case.name) as check:
                        check_case(device, source, golden, case, check)
    with _opened(driver) as device:
        _timing(device, checks)


@contextmanager
def _opened(driver: Driver) -> Iterator[Device]:
    """A device whose programs and arrays are given back, so that all of a chip's fit into little memory. The driver
    stays open."""
    device = Device(driver)
    try:
        yield device
    finally:
        device.context.close()


def _timing(device: Device, checks: Checks) -> None:
    names = timing.works(device.config)
    before = device.driver.counters()
    device.driver.transport.advance(100)
    why = ""
    if not find_c_compiler():
        why = "the exact model needs a C compiler on the host: install one"
    elif not (device.driver.counters() - before).has_cycles:
        why = "this engine counts no cycles"
    if why:
        checks.leave_out("timing", "counters", why)
        return
    with checks.check("timing", "amounts and classes") as check:
        timing.amounts(device, check)
    for name, work in names.items():
        with checks.check("timing", name) as check:
            timing.timing(device, check, name, work)
