"""A network of the zoo on a device: agreement, cycles, the share of its bound, memory."""

from __future__ import annotations

import time

from sley.examples.zoo.results import Launch, Result
from sley.examples.zoo.subject import Subject, agreement
from sley.runtime import Device
from sley.runtime.frameworks.constants import fold
from sley.runtime.networks.compilation import CompiledNetwork, compile_network
from sley.runtime.networks.graph import Node
from sley.runtime.nn.matrices import PRECISIONS


def measure(
    device: Device, name: str, subject: Subject, precision: str, weights: str, engine: str, launches: bool = False
) -> Result:
    """Compiles a network, runs it once, and compares what it gives if the engine has values. ``launches``: besides,
    the cycles of each launch, in a second run.

    Raises what ``compile_network`` raises.
    """
    begin = time.perf_counter()
    shapes = {key: value.shape for key, value in subject.inputs.items()}
    compiled = compile_network(subject.network, device, fold, shapes, precision=precision)
    seconds = time.perf_counter() - begin
    compiled.write(**subject.inputs)
    with compiled.stream.counted() as count:
        compiled.launch()
    error, classes = (None, "") if "values=off" in engine else agreement(compiled.read(), subject)
    parts = len(PRECISIONS[precision])
    macs = sum(place.macs for place in compiled.places)
    return Result(
        name,
        precision,
        weights,
        engine,
        count.measured or 0,
        -(-macs * parts // (device.config.array**2 * device.config.cores)),
        f"{macs / 1e6:,.1f} M multiply-accumulates, {parts} bf16 products each" if macs else "",
        len(compiled.graph),
        round(seconds, 1),
        compiled.memory.weights,
        compiled.memory.intermediates,
        compiled.memory.planned,
        error,
        classes,
        subject.reference if error is not None else "",
        "",
        _costs(compiled) if launches else (),
    )


def _costs(compiled: CompiledNetwork) -> tuple[Launch, ...]:
    """In the order of the graph."""
    cycles, found, first = compiled.graph.cycles(), [], 0
    for place in compiled.places:
        numbers = range(first, first + place.launches)
        longest = max(numbers, key=cycles.__getitem__)
        for number in numbers:
            program = compiled.graph.launches[number].program.name
            found.append(Launch(_named(place.node), program, cycles[number], place.macs if number == longest else 0))
        first += place.launches
    return tuple(found)


def _named(node: Node) -> str:
    return f"{node.operator} {node.name or node.outputs[0]}"
