"""Results of reductions along rows are converted as they are written.

Before: a ``reduce`` or a ``fold`` along axis 1 whose result nobody uses but a chain that converts it to bf16. After: it
is bf16; its last instruction converts it, and the chain is gone.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.tile.ir import Function, Op, uses


def narrow_results(function: Function) -> None:
    """Runs the pass, in place."""
    users = uses(function.body)
    for block in function.body.blocks():
        for op in list(block.ops):
            if op.name not in ("reduce", "fold") or op.attributes["axis"] == 0:
                continue
            chain, *others = users.get(op.result, [op])
            if chain in block.ops and not others and _converts(chain):
                op.attributes["narrow"] = True
                op.results = chain.results
                block.ops.remove(chain)


def _converts(op: Op) -> bool:
    return (
        op.name == "chain"
        and op.attributes["stages"] == Chain()
        and op.attributes["computed"] is ElementType.FP32
        and op.attributes["dtype"] is ElementType.BF16
        and op.attributes["shape"][1] == 1
    )
