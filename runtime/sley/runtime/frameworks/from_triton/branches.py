"""Branches: by what is known when the kernel is launched; by loaded elements if both sides only compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.frameworks.from_triton.control import ends_of
from sley.runtime.frameworks.from_triton.conversion import BRANCHES, Conversion, Unrolled, lowers, narrow
from sley.runtime.frameworks.from_triton.forms import Form, least, merged, most
from sley.runtime.frameworks.from_triton.programs import Split
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation, TritonFunction
from sley.runtime.frameworks.from_triton.values import Condition, Data, Known
from sley.runtime.tile.trace import where

STORES = ("tt.store", "tt.descriptor_store")


def convert_function(conversion: Conversion, function: TritonFunction) -> None:
    """Converts a kernel, along its branches up to where it returns."""
    region, left = function.body, dict(function.blocks)
    while True:
        conversion.region(region)
        end = region.operations[-1]
        if end.name not in BRANCHES:
            return
        conversion.operation = end
        number = 0 if end.name == "cf.br" or _taken(conversion, end) else 1
        label, handed = end.attributes["targets"][number], end.attributes["handed"][number]
        if label not in left:
            raise refuse(end, "a loop whose rounds are not known when the kernel is launched")
        region = left.pop(label)
        conversion.values.update(zip(region.arguments, [conversion.known(value) for value in handed], strict=True))


@lowers("scf.if", note="of what is known when the kernel is launched; both sides, if they only compute")
def lower_if(conversion: Conversion, operation: Operation) -> list[Known]:
    known = conversion.known(operation.operands[0])
    if isinstance(known, Data):
        return _both(conversion, operation, known)
    chosen = 0 if _taken(conversion, operation) else 1
    if chosen == len(operation.regions):
        return []
    region = operation.regions[chosen]
    conversion.region(region)
    return [conversion.known(value) for value in ends_of(region)]


def _both(conversion: Conversion, operation: Operation, condition: Data) -> list[Known]:
    """A branch by loaded elements that only computes: both sides, and a choice between their results."""
    if any(inner.name in STORES for region in operation.regions for inner in region.walk()):
        raise refuse(
            operation, "the condition is computed from loaded elements, and a side stores: use tl.where, and store that"
        )
    sides = []
    with conversion.guarding():
        for region in operation.regions:
            conversion.region(region)
            sides.append([conversion.known(value) for value in ends_of(region)])
    flag = conversion.tile(condition, operation.operands[0].type)
    made: list[Known] = []
    for value, *known in zip(operation.results, *sides, strict=True):
        if value.type.kind != "value":
            raise refuse(operation, "a choice between pointers that is not known when the kernel is launched")
        x, y = (conversion.data(one, value.type) for one in known)
        x, y = (one.turned(x.column or y.column) for one in (x, y))
        tile = where(flag, *(conversion.tile(one, value.type) for one in (x, y))).to(narrow(value.type))
        made.append(Data(tile, value.type, x.column, merged(merged(x.valid, y.valid), condition.valid)))
    return made


def _taken(conversion: Conversion, operation: Operation) -> bool:
    """Whether a condition holds, for all programs. Raises ``Split`` if it does for some, ``Unrolled``."""
    known = conversion.known(operation.operands[0])
    if isinstance(known, Form) and known.data is None:
        known = Condition((known.times(-1),))
    if not isinstance(known, Condition):
        raise refuse(
            operation, "the condition is computed from loaded elements; use tl.where, which computes both sides"
        )
    holds: Any = np.asarray(True)
    for test in known.tests:
        if least(test.low()) >= 0:
            holds = np.asarray(False)
            break
        if most(test.high()) < 0:
            continue
        if not test.scalar:
            raise Unrolled(test.loops[0][0])
        holds = np.logical_and(holds, np.less(test.base, 0))
    if holds.any() and not holds.all():
        raise Split(holds.astype(np.int64))
    return bool(holds.all())
