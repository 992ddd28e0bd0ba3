"""Parameters of the units: numbers, widths and reset values; SET writes them."""

from dataclasses import dataclass
from enum import IntEnum

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit


class Param(IntEnum):
    """Parameters of the units, written by SET; a block starts with their reset values.

    Numbers from ``vector.chains.CHAIN_PARAM`` on are the words of the vector unit's chains.
    """

    # Load and Store
    RUN_BYTES = 0
    CHUNKS = 1
    CHUNK_STRIDE = 2
    MEM_STRIDE = 3
    LOCAL_STRIDE = 4
    PAD_RUNS = 5
    COUNT2 = 6
    MEM_STRIDE2 = 7
    LOCAL_STRIDE2 = 8
    FILL = 9
    LIST_ROW = 10
    # Matrix
    WEIGHT_STRIDE = 16
    ACT_STRIDE = 17
    ACT_COUNT = 18
    ACT_STRIDE2 = 19
    ACT_COUNT2 = 20
    ACT_STRIDE3 = 21
    # Vector
    A_STRIDE = 32
    B_ROW = 33
    B_STRIDE = 34
    OUT_STRIDE = 35
    C_ROW = 36
    C_STRIDE = 37
    EXCHANGE = 38
    SPLAT0 = 40
    SPLAT1 = 41
    SPLAT2 = 42
    SPLAT3 = 43
    IOTA_BASE = 44
    IOTA_ROW = 45
    IOTA_LANE = 46


@dataclass(frozen=True)
class ParamInfo:
    """Width, reset value, units and meaning of a parameter; ``needs``: only chips have it for which this parameter of
    ``ChipConfig`` is not zero."""

    param: Param
    units: tuple[Unit, ...]
    width: int
    signed: bool
    reset: int
    doc: str
    needs: str = ""


_DMA = (Unit.LOAD, Unit.STORE)


def _chain(param: Param, width: int, signed: bool, reset: int, doc: str) -> ParamInfo:
    return ParamInfo(param, (Unit.VECTOR,), width, signed, reset, doc, needs="vector_chains")


PARAMS: dict[Param, ParamInfo] = {
    p.param: p
    for p in (
        ParamInfo(Param.RUN_BYTES, _DMA, 16, False, 0, "Contiguous bytes of a run in memory."),
        ParamInfo(
            Param.CHUNKS,
            (Unit.LOAD,),
            16,
            False,
            1,
            "Local rows a run fills; what the bytes do not cover is FILL.",
        ),
        ParamInfo(Param.CHUNK_STRIDE, _DMA, 16, True, 1, "Local rows from one chunk of a run to the next."),
        ParamInfo(Param.MEM_STRIDE, _DMA, 32, True, 0, "Bytes from one run to the next."),
        ParamInfo(Param.LOCAL_STRIDE, _DMA, 16, True, 1, "Local rows from one run to the next."),
        ParamInfo(
            Param.PAD_RUNS,
            (Unit.LOAD,),
            16,
            False,
            0,
            "Runs of FILL after the runs of each slab; no bus traffic.",
        ),
        ParamInfo(Param.COUNT2, _DMA, 16, False, 1, "Slabs: how often the runs repeat."),
        ParamInfo(Param.MEM_STRIDE2, _DMA, 32, True, 0, "Bytes from one slab to the next."),
        ParamInfo(Param.LOCAL_STRIDE2, _DMA, 16, True, 0, "Local rows from one slab to the next."),
        ParamInfo(
            Param.FILL,
            (Unit.LOAD,),
            32,
            False,
            0,
            "32 bits, repeated over a row: what rows hold where a run has no bytes.",
        ),
        ParamInfo(
            Param.LIST_ROW,
            _DMA,
            16,
            False,
            0,
            "First accumulator row of the list of `by_list`: bytes from ra to each run.",
            needs="gather",
        ),
        ParamInfo(
            Param.WEIGHT_STRIDE,
            (Unit.MATRIX,),
            16,
            True,
            1,
            "Scratchpad rows from one weight row to the next.",
        ),
        ParamInfo(Param.ACT_STRIDE, (Unit.MATRIX,), 16, True, 1, "Scratchpad rows between innermost steps."),
        ParamInfo(Param.ACT_COUNT, (Unit.MATRIX,), 16, False, 0, "Innermost steps; 0 for as many as there are rows."),
        ParamInfo(Param.ACT_STRIDE2, (Unit.MATRIX,), 16, True, 0, "Scratchpad rows between middle steps."),
        ParamInfo(Param.ACT_COUNT2, (Unit.MATRIX,), 16, False, 0, "Middle steps; 0 for as many as needed."),
        ParamInfo(Param.ACT_STRIDE3, (Unit.MATRIX,), 16, True, 0, "Scratchpad rows between outermost steps."),
        ParamInfo(Param.A_STRIDE, (Unit.VECTOR,), 16, True, 1, "Rows from one source row to the next."),
        ParamInfo(Param.B_ROW, (Unit.VECTOR,), 16, False, 0, "First row of the second operand."),
        ParamInfo(
            Param.B_STRIDE,
            (Unit.VECTOR,),
            16,
            True,
            1,
            "Rows from one row of the second operand to the next.",
        ),
        ParamInfo(Param.OUT_STRIDE, (Unit.VECTOR,), 16, True, 1, "Rows from one destination row to the next."),
        _chain(Param.C_ROW, 16, False, 0, "First row of the third operand."),
        _chain(Param.C_STRIDE, 16, True, 1, "Rows from one row of the third operand to the next."),
        _chain(Param.EXCHANGE, 6, False, 0, "Lane j sees lane j xor EXCHANGE of a late operand that is exchanged."),
        *(
            _chain(splat, 32, False, 0, "A value for all lanes.")
            for splat in (Param.SPLAT0, Param.SPLAT1, Param.SPLAT2, Param.SPLAT3)
        ),
        _chain(Param.IOTA_BASE, 32, True, 0, "The iota of row 0, lane 0 of an instruction."),
        _chain(Param.IOTA_ROW, 16, True, 0, "What the iota grows by from row to row."),
        _chain(Param.IOTA_LANE, 16, True, 0, "What the iota grows by from lane to lane."),
    )
}


def unit_params(unit: Unit, config: ChipConfig) -> dict[Param, ParamInfo]:
    """The parameters that a unit of a chip has."""
    return {
        p: info for p, info in PARAMS.items() if unit in info.units and (not info.needs or getattr(config, info.needs))
    }
