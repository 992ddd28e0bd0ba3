"""A batch of random designs on the fast engine and on Amaranth's own simulator (pysim), with the same stimulus."""

import contextlib
import gc
import io
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat
from amaranth.sim import Simulator
from design_batch import ASYNC_RESET, DOMAINS, Batch
from dice import random_bits
from shrink import shrink

from sley.sim.fast.run.simulation import Simulation

STEPS = 20
"""Steps of a run: inputs change, then clocks tick, and the outputs are compared after both."""

RESET_PROBABILITY = 0.1
CHANGE_PROBABILITY = 0.7
TICK_PROBABILITY = 0.7


@dataclass(frozen=True)
class Step:
    """New values of inputs, and then the clocks that tick at once."""

    inputs: dict[str, int]
    clocks: tuple[str, ...]


Snapshot = tuple[str, dict[str, int | str]]
"""When it was taken, and the value of each output then, or what was printed. The last one has the rows of memories."""

PRINTED = re.compile(rf"^.*@(\w+) ({'|'.join(DOMAINS.keys() - ASYNC_RESET)}) .*$", re.MULTILINE)
"""What a design prints at an edge of its clock. (pysim prints more often than that where the reset is asynchronous, or
where there is no clock.)"""


def stimulus(batch: Batch, seed: int, steps: int = STEPS) -> list[Step]:
    """What the inputs of a batch see. It is the same for an input of this name in any batch."""
    clock_source = random.Random(f"{seed} clocks")
    sources = {name: random.Random(f"{seed} {name}") for name in (*batch.resets, *batch.inputs)}
    result = []
    for _ in range(steps):
        inputs = {name: int(sources[name].random() < RESET_PROBABILITY) for name in batch.resets}
        for name, signal in batch.inputs.items():
            value, changes = random_bits(sources[name], len(signal)), sources[name].random() < CHANGE_PROBABILITY
            if changes:
                inputs[name] = value
        clocks = [name for name in batch.clocks if clock_source.random() < TICK_PROBABILITY]
        result.append(Step(inputs, tuple(clocks or batch.clocks)))
    return result


def printed(output: io.StringIO) -> dict[str, str]:
    """The lines printed since the last call, by design, in order of the alphabet: edges in one instant have none."""
    lines: dict[str, list[str]] = {}
    for match in PRINTED.finditer(output.getvalue()):
        lines.setdefault(f"{match[1]}_print", []).append(match[0])
    output.seek(0)
    output.truncate()
    return {name: "\n".join(sorted(found)) for name, found in lines.items()}


def on_pysim(batch: Batch, steps: list[Step], engine: Any = "pysim") -> list[Snapshot]:
    """The run on pysim, or another engine of Amaranth's simulator. Clocks are plain inputs there, so that those of a
    step rise in one instant."""
    snapshots: list[Snapshot] = []
    ports, output = batch.ports, io.StringIO()

    async def bench(ctx: Any) -> None:
        def take(when: str) -> None:
            values = {name: ctx.get(signal) for name, signal in batch.outputs.items()}
            snapshots.append((when, values | printed(output)))

        def drive(values: dict[str, int]) -> None:
            packed, width = 0, 0
            for name, value in values.items():
                packed |= value << width
                width += len(ports[name])
            ctx.set(Cat(ports[name] for name in values), packed)

        take("at the start")
        for index, step in enumerate(steps):
            drive(step.inputs)
            take(f"after the inputs of step {index}")
            drive(dict.fromkeys(step.clocks, 1))
            ctx.get(ports[step.clocks[0]])  # some engines settle only when somebody looks
            drive(dict.fromkeys(step.clocks, 0))
            take(f"after the tick of step {index}")
        rows = {}
        for path, data in batch.memories.items():
            for row in range(data.depth):
                rows[f"{path}[{row}]"] = ctx.get(data[row]) & ((1 << len(data[row])) - 1)
        snapshots.append(("at the end", rows))

    simulator = Simulator(batch, engine=engine)
    simulator.add_testbench(bench)
    with contextlib.redirect_stdout(output):
        simulator.run()
    return snapshots


def on_engine(batch: Batch, steps: list[Step], simulation: Simulation) -> Iterator[Snapshot]:
    """The run on the fast engine."""
    output = io.StringIO()
    simulation.on_print = output.write

    def take(when: str) -> Snapshot:
        return when, {name: simulation.peek(name) for name in batch.outputs} | printed(output)

    yield take("at the start")
    for index, step in enumerate(steps):
        for name, value in step.inputs.items():
            simulation.poke(name, value)
        yield take(f"after the inputs of step {index}")
        simulation.tick(*step.clocks)
        yield take(f"after the tick of step {index}")
    rows = {}
    for path, data in batch.memories.items():
        for row in range(data.depth):
            rows[f"{path}[{row}]"] = simulation.peek_memory(path, row)
    yield "at the end", rows


def differences(sources: dict[str, str], seed: int) -> dict[str, str]:
    """What is wrong first with each design of a batch that the engine gets wrong; ``""`` stands for the whole batch.

    Raises only if Amaranth rejects a design.
    """
    batch = Batch(sources)
    text = rtlil.convert(batch, ports={name: (signal, None) for name, signal in batch.ports.items()})
    steps = stimulus(batch, seed)
    expected = on_pysim(batch, steps)
    try:
        got = list(on_engine(batch, steps, Simulation(text)))
    except Exception as error:
        return {"": f"{type(error).__name__}: {error}"}
    found: dict[str, str] = {}
    for (when, wanted), (_, values) in zip(expected, got, strict=True):
        if wanted == values:
            continue
        for name in {**wanted, **values}:
            if wanted.get(name) != values.get(name):
                message = f"{when} {name} is {show(values.get(name))}, expected {show(wanted.get(name))}"
                found.setdefault(batch.design_of(name), message)
    return found


def show(value: int | str | None) -> str:
    return f"{value:#x}" if isinstance(value, int) else repr(value)


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Elaboration makes so many objects that looking for cycles among them takes a third of its time. They are all
    young in the end; to look at whatever a run of tests has in memory takes longer."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(0)


def reproducer(sources: dict[str, str], seed: int, seconds: float) -> str:
    """The fewest and smallest designs found, in about so many seconds, that still fail, as a report."""

    def fails(trial: dict[str, str]) -> bool:
        try:
            with without_garbage_collection():
                return bool(differences(trial, seed))
        except Exception:  # Amaranth rejects what a step of shrinking made
            return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = _fewest(list(sources), lambda names: fails({name: sources[name] for name in names}))
        smallest = {name: sources[name] for name in names}
        for name in names:

            def still_fails(text: str, name: str = name) -> bool:
                return fails(smallest | {name: text})

            smallest[name] = shrink(smallest[name], still_fails, seconds / len(names))
        wrong = differences(smallest, seed)
        gc.collect()
    report = [f"stimulus of seed {seed}", *(f"{name or 'engine'}: {message}" for name, message in wrong.items())]
    report += [f"# {name}\n{text}" for name, text in smallest.items()]
    return "\n".join(report)


def _fewest(names: list[str], fail: Any) -> list[str]:
    """The names without those that are not needed for a failure."""
    for name in names:
        if fail([name]):
            return [name]
    size = len(names) // 2
    while size:
        start = 0
        while start < len(names):
            rest = names[:start] + names[start + size :]
            if rest and fail(rest):
                names = rest
            else:
                start += size
        size //= 2
    return names
