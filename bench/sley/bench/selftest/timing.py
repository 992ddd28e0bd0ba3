"""Timing: counters of programs against the exact model.

How long memory takes is the board's affair, so what depends on it is left out. A loop of the matrix and the vector unit
on rows in the core touches no memory, and its program is in the core: what it counts in one more round must be what the
exact model counts, to the cycle. Amounts, such as rows and beats, must be equal as they are.
"""

from collections.abc import Callable
from contextlib import closing

from sley.abi.config import ChipConfig
from sley.abi.counters import CHIP_GROUPS, COUNTERS, UNIT_GROUPS, CounterGroup, Traffic, is_classes
from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.bench.selftest.checks import Check
from sley.driver import Counters, Driver
from sley.runtime import Device, KernelBuilder, Program
from sley.sim.engines.options import EngineOptions
from sley.sim.engines.timed import TimedTransport

ROUNDS = (4, 24)
"""Of the loop; what the second run counts more is that of 20 rounds."""
MODEL_BYTES = 4 << 20
IDLE = ("IDLE", "FETCH", "LAUNCH", "END", "REPORT")
"""Classes of what happens before and behind the loop."""

Work = Callable[[KernelBuilder], None]


def _matrix(dtype: ElementType) -> Work:
    def work(k: KernelBuilder) -> None:
        n = k.config.array
        done = k.semaphore("done")
        k.weights(k.reg("w", 0), n, dtype=dtype)
        k.matmul(k.reg("from", n), k.reg("to", 0), n + 3, dtype=dtype, accumulate=True, signal=done)
        k.sync(wait=done)

    return work


def _vector(k: KernelBuilder) -> None:
    done = k.semaphore("done")
    first = k.reg("from", 0)
    k.vector(first, k.reg("to", 4), 4, signal=done)
    k.sync(wait=done)


def works(config: ChipConfig) -> dict[str, Work]:
    """What is timed, by name."""
    products = {f"matrix {dtype.info.name}": _matrix(dtype) for dtype in config.operand_types}
    return {**products, "vector": _vector}


def _program(name: str, config: ChipConfig, work: Work) -> Program:
    k = KernelBuilder(name, config)
    rounds = k.arg("rounds")
    with k.loop(rounds):
        work(k)
        k.mov(k.reg("nothing"), 0)
    k.end()
    return k.build()


def counted(device: Device, program: Program, rounds: int) -> Counters:
    """Counters of a run; the program has run before, so that the core holds it."""
    device.stream.launch(program, [rounds])
    device.stream.synchronize()
    with device.stream.counted() as count:
        device.stream.launch(program, [rounds])
    return count.counters


def timing(device: Device, check: Check, name: str, work: Work) -> None:
    """Counters of 20 more rounds, on the device and on the exact model."""
    config = device.config
    program = _program(name.replace(" ", "_"), config, work)
    found = [counted(device, program, rounds) for rounds in ROUNDS]
    model = Device(Driver(TimedTransport(config, EngineOptions(MODEL_BYTES))))
    with closing(model):
        expected = [counted(model, program, rounds) for rounds in ROUNDS]
    total = 0
    for group in UNIT_GROUPS:
        for counter in COUNTERS[group]:
            if counter.name in IDLE or group in (CounterGroup.LOAD, CounterGroup.STORE):
                continue
            more = [runs[1].cores[0][group][counter] - runs[0].cores[0][group][counter] for runs in (found, expected)]
            check.expect(f"{name}: {group.name} {counter.name} of {ROUNDS[1] - ROUNDS[0]} rounds", more[1], more[0])
            total += more[1] if group is CounterGroup.SEQUENCER else 0
    check.about = f"{total:,} cycles of {ROUNDS[1] - ROUNDS[0]} rounds, class by class"


def amounts(device: Device, check: Check) -> None:
    """A program that loads and stores: rows, beats and bytes as the model counts them; each class of cycles once."""
    config = device.config
    k = KernelBuilder("amounts", config)
    source, target = k.arg("source"), k.arg("target")
    loaded, done, size = k.semaphore("loaded"), k.semaphore("done"), config.row_bytes
    for unit in (Unit.LOAD, Unit.STORE):
        k.set(unit, run_bytes=size - 1, mem_stride=size)
    k.load(source, 0, 9, signal=loaded)
    k.store(target, 0, 5, wait=loaded, signal=done)
    k.sync(wait=done)
    k.end()
    program = k.build()
    runs = []
    model = Device(Driver(TimedTransport(config, EngineOptions(MODEL_BYTES))))
    with closing(model):
        for opened in (device, model):
            arrays = [opened.full(16 * size, 1, "uint8") for _ in range(2)]
            opened.stream.launch(program, arrays)  # the core has been scrubbed, and holds the program
            with opened.stream.counted() as count:
                opened.stream.launch(program, arrays)
            runs.append(count.counters)
    found, expected = runs
    for counter in Traffic:
        if counter.exact:
            values = [counters.cores[0][CounterGroup.TRAFFIC][counter] for counters in (expected, found)]
            check.expect(f"{counter.name} of a load and a store", *values)
    for group in (*UNIT_GROUPS, *CHIP_GROUPS):
        if is_classes(group):
            classes = (found.chip if group in CHIP_GROUPS else found.cores[0])[group]
            check.expect(f"sum of the classes of {group.name}", found.cycles, sum(classes.values()))
    check.about = f"{found.cycles:,} cycles counted, {expected.cycles:,} with the model's memory"
