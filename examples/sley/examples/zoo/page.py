"""The page of the zoo, of results that are kept."""

from __future__ import annotations

from collections.abc import Mapping

from sley.abi import preset
from sley.examples.zoo.registry import MODELS
from sley.examples.zoo.results import Result

HEAD = """# Zoo

Public networks on one chip `base`, as `sley zoo` lists, runs and measures them, and as `sley zoo page` prints this
page. A network is one graph: one doorbell, and nothing but its input and output passes between host and device.

```{.sh .long}
sley zoo list
sley zoo run squeezenet --precision high --weights random
sley zoo report resnet50 --launches 20
```

`run` computes values and compares them with a float reference; `report` counts cycles without values, which is
faster, and lists the longest launches. A package that a model needs is named by the error if it is missing; it is
never imported.
"""
NOTES = """
*Bound*: the multiply-accumulates of the network's definition, at 256 of bfloat16 a cycle; a product of float32 is 1
of bfloat16 at precision medium, 3 at high, 6 at highest. *Bus*: the part of the cycles in which weights, each once,
fill the bus; dense layers of one input are bound by that. Of `smollm2` it is the bytes of a token over the memory
bus. *Difference*: the largest one from the reference, by the largest value of the output. *Package* weights of the
classifiers are stand-ins, one number for each array, with outputs beside them, which are the same for all classes:
they show that a graph is whole, not how exact it is; *random* ones are drawn, and onnx's reference implementation
says what they give before the last softmax. *Intermediates*: bytes of arrays between operators, each at a place of
its own, and [planned](../theory/networks.md#memory). Seconds are of the host, on two shared cores.
"""
COSTS = (
    "model",
    "precision",
    "cycles",
    "of the bound",
    "bus",
    "launches",
    "weights",
    "intermediates",
    "planned",
    "compiled in",
)


def zoo_page(results: Mapping[str, Result]) -> str:
    """The page."""
    lines = [HEAD, "## Models", "", "| model | | weights from | precisions |", "|---|---|---|---|"]
    for model in MODELS.values():
        lines.append(f"| `{model.name}` | {model.about} | {model.source} | {', '.join(model.precisions)} |")
    order = {name: number for number, name in enumerate(MODELS)}
    ordered = sorted(results.values(), key=lambda one: (order.get(one.model, len(order)), one.bound, one.weights))
    lines += [
        "",
        "## Agreement",
        "",
        "| model | precision | weights | difference | reference | classes |",
        "|---|---|---|---|---|---|",
        *(_agreement(one) for one in ordered if one.error is not None),
        "",
        "## Cycles and memory",
        "",
        f"| {' | '.join(COSTS)} |",
        "|---" * len(COSTS) + "|",
        *_costs(ordered),
        NOTES,
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _agreement(one: Result) -> str:
    return f"| `{one.model}` | {one.precision} | {one.weights} | {one.error:.1e} | {one.reference} | {one.classes} |"


def _costs(results: list[Result]) -> list[str]:
    """One row for a model and a precision: cycles do not depend on weights."""
    rows: dict[tuple[str, str], str] = {}
    for one in results:
        if one.cycles:
            memory = map(_size, (one.weights_bytes, one.before, one.after))
            cells = [f"`{one.model}`", one.precision, f"{one.cycles:,}", f"{one.share:.1%}", _bus(one)]
            cells += [f"{one.launches:,}", *memory, f"{one.compile_seconds:.0f} s"]
            rows.setdefault((one.model, one.precision), f"| {' | '.join(cells)} |")
    return list(rows.values())


def _bus(one: Result) -> str:
    """The share of its cycles in which the bus has to carry weights."""
    return f"{one.weights_bytes / preset('base').bus_bytes / one.cycles:.0%}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "-"
