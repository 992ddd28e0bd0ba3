"""Cases of the vector unit: what its flags spell on every chip, and what chains have on chips with chains."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import ADDER_OPS, JOIN, OPERATIONS, SHORT_OPS, BinaryOp, Reduction
from sley.bench.selftest.units.case import ACCUMULATOR, SCRATCHPAD, Bed, Case

ROWS = 11
"""More than a reduction has partial results."""
INT32, FP32 = WORD_TYPES
SHIFTS = (BinaryOp.SHL, BinaryOp.SHR, BinaryOp.SAR)


def vector_cases(config: ChipConfig) -> Iterator[Case]:
    yield from _flags(config)
    yield from _types(config)
    yield from _rows(config)
    if config.vector_chains:
        yield from _chains(config)


def _vector(bed: Bed, chain: Chain | None = None, **flags: Any) -> None:
    """Some rows from the first one on, to the middle."""
    k = bed.k
    space = SCRATCHPAD if flags.get("out", INT32) not in WORD_TYPES else ACCUMULATOR
    rows = min(ROWS, *(half - 1 for half in bed.half.values()))
    k.set(Unit.VECTOR, b_row=1)
    if chain is not None:
        k.set(Unit.VECTOR, splat0=0x3F800000, splat1=-3, splat2=0x3E800000, splat3=5)
        k.set(Unit.VECTOR, c_row=1, exchange=1, iota_base=-4, iota_row=2, iota_lane=-1)
        flags["chain"] = k.chain(chain)
    with k.scratch("from to") as (first, target):
        k.mov(first, 0)
        k.mov(target, bed.half[space])
        bed.step(k.vector, first, target, rows, **flags)


def _set_rows(bed: Bed) -> None:
    """Row registers from rows of the accumulators."""
    with bed.k.scratch("row") as (row,):
        for register in (VectorRow.BIAS, VectorRow.SCALE):
            bed.k.mov(row, 2 + register)
            bed.step(bed.k.vrow, register, row)


def _with_rows(bed: Bed, chain: Chain | None = None, **flags: Any) -> None:
    _set_rows(bed)
    _vector(bed, chain, **flags)


def _flags(config: ChipConfig) -> Iterator[Case]:
    """The short operations, and each step by itself and all together."""
    for dtype in WORD_TYPES:
        kind = dtype.info.name
        for op in SHORT_OPS:
            yield Case("vector", f"{kind} {op.name.lower()}", partial(_vector, b_op=op, dtype=dtype, out=dtype))
        steps: dict[str, dict[str, Any]] = {
            "bias": {"bias": True, "out": dtype},
            "scale": {"scale": True, "out": FP32},
            "relu": {"relu": True, "out": dtype},
            "all steps": {"b_op": BinaryOp.ADD, "bias": True, "scale": True, "relu": True, "out": FP32},
        }
        for name, flags in steps.items():
            yield Case("vector", f"{kind} {name}", partial(_with_rows, dtype=dtype, **flags))


def _types(config: ChipConfig) -> Iterator[Case]:
    """Conversions: what is read from the scratchpad, what is written."""

    def halves(kind: ElementType) -> range:
        return range(config.lane_elements() if kind.bits == 8 else 1)

    for source in config.vector_types:
        for half in halves(source):
            for dtype in WORD_TYPES if source.bits == 8 else (FP32,):
                flags: dict[str, Any] = {"a_space": SCRATCHPAD, "a_type": source, "a_half": half, "out": dtype}
                name = f"from {source.info.name} {half} to {dtype.info.name}"
                yield Case("vector", name, partial(_vector, dtype=dtype, **flags))
    for out in (*config.vector_types, *WORD_TYPES):
        for dtype in WORD_TYPES:
            for half in halves(out):
                name = f"from {dtype.info.name} to {out.info.name} {half}"
                yield Case("vector", name, partial(_vector, dtype=dtype, out=out, out_half=half))


def _rows(config: ChipConfig) -> Iterator[Case]:
    def strides(bed: Bed) -> None:
        bed.k.set(Unit.VECTOR, a_stride=0, b_stride=-1, out_stride=1)
        with bed.k.scratch("from to") as (first, target):
            bed.k.mov(first, 3)
            bed.k.mov(target, bed.half[ACCUMULATOR])
            bed.k.set(Unit.VECTOR, b_row=bed.half[ACCUMULATOR] - 1)
            bed.step(bed.k.vector, first, target, 3, b_op=BinaryOp.ADD)

    def splat(bed: Bed) -> None:
        bed.step(bed.k.vrow, VectorRow.BIAS, 0x01020304, splat=True)
        _vector(bed, bias=True)

    yield Case("vector", "strides of rows", strides)
    yield Case("vector", "row register of one value", splat)


def _chains(config: ChipConfig) -> Iterator[Case]:
    def case(name: str, chain: Chain, **flags: Any) -> Case:
        return Case("chain", name, partial(_with_rows, chain=chain, **{"dtype": FP32, "out": FP32, **flags}))

    for dtype in WORD_TYPES:
        kind, typed = dtype.info.name, {"dtype": dtype, "out": dtype}
        splat = Operand.SPLAT0 if dtype is FP32 else Operand.SPLAT3
        for op in OPERATIONS:
            yield case(f"{kind} {op.name.lower()}", Chain(op, Operand.B), **typed)
            other = Operand.SPLAT3 if op in SHIFTS else splat
            yield case(f"{kind} {op.name.lower()} of a splat", Chain(op, other), **typed)
            if op in ADDER_OPS:
                second = Chain(binary2=op, binary2_operand=Operand.LATE0, late0=Late.B)
                yield case(f"{kind} second {op.name.lower()}", second, **typed)
        yield case(f"{kind} stage add", Chain(add=splat), **typed)
        yield case(f"{kind} stage relu", Chain(relu=True), **typed)
        for condition in Condition:
            yield case(
                f"{kind} where {condition.name.lower()}", Chain(keep=condition, other=splat, late0=Late.B), **typed
            )
        for reduction in Reduction:
            if reduction is not Reduction.NONE:
                yield _reduction(kind, reduction, dtype)
    yield case("int32 product", Chain(multiply=Operand.SPLAT1, integer_product=True), dtype=INT32, out=INT32)
    for operand in (Operand.X, Operand.LATE0, Operand.SPLAT2, Operand.ROW1):
        name = operand.name.lower()
        yield case(f"fp32 product with {name}", Chain(multiply=operand, late0=Late.B))
        yield case(f"fp32 second product with {name}", Chain(multiply2=operand, late0=Late.B))
    for lanes in Lanes:
        late = Late.A if lanes is not Lanes.BROADCAST else Late.B
        yield case(f"lanes {lanes.name.lower()}", Chain(multiply=Operand.LATE0, late0=late, late0_lanes=lanes))
    for source in config.vector_types:
        yield case(f"C of {source.info.name}", Chain(multiply2=Operand.LATE1, late1=Late.C, c_type=source))
    for function in config.vector_functions:
        yield case(f"function {function.name.lower()}", Chain(function=function))


def _reduction(kind: str, reduction: Reduction, dtype: ElementType) -> Case:
    """Rows into a row register, a fold, and the register beside rows that are written."""

    def body(bed: Bed) -> None:
        register = VectorRow.ROW2
        _vector(bed, Chain(reduce=reduction, register=register, silent=True), dtype=dtype, out=dtype)
        if reduction in JOIN:
            bed.step(bed.k.vfold, register, reduction, dtype=dtype)
        _vector(bed, Chain(BinaryOp.SECOND, Operand.ROW2), dtype=dtype, out=dtype)

    return Case("chain", f"{kind} {reduction.name.lower()} over rows", body)
