"""Commands of the vector unit, and a model that executes them."""

from dataclasses import dataclass, field

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op, Space, VectorRow, encode
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden.vector import vector_op

SPECIAL = [
    *(0, 1, 0x80000000, 0x007FFFFF, 0x00800000, 0x3F000000, 0x3F800000, 0xBFC00000, 0x4EFFFFFF, 0x4F000000),
    *(0xCF000000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF),
]


def flags(op: Op, **fields: int) -> int:
    return encode(op, **fields) >> FLAGS_LSB


def command(op: Op, flags: int, *, a: int = 0, b: int = 0, c: int = 0, pc: int = 0, signal: int = 0) -> dict:
    mask = 0xFFFFFFFF
    return {"op": op, "pc": pc, "signal": signal, "a": a & mask, "b": b & mask, "c": c & mask, "flags": flags}


def vector(a: int, b: int, c: int, pc: int = 0, signal: int = 0, **fields: int) -> dict:
    """By default ``out`` is the word that the steps leave."""
    is_fp32 = fields.get("scale") or fields.get("dtype") == ElementType.FP32
    fields.setdefault("out", ElementType.FP32 if is_fp32 else ElementType.INT32)
    return command(Op.VECTOR, flags(Op.VECTOR, **fields), a=a, b=b, c=c, pc=pc, signal=signal)


def vrow(a: int, row: VectorRow, *, splat: bool = False, pc: int = 0, signal: int = 0) -> dict:
    return command(Op.VROW, flags(Op.VROW, row=row, splat=splat), a=a, pc=pc, signal=signal)


def set_param(param: int, value: int, *, pc: int = 0, signal: int = 0) -> dict:
    return command(Op.SET, int(param) | Unit.VECTOR << 8, a=value, pc=pc, signal=signal)


def is_legal(config: ChipConfig, f: dict[str, int]) -> bool:
    words, operands = ("INT32", "FP32"), ("INT8", "BF16") if config.has(ElementType.BF16) else ("INT8",)
    for name, known in (("dtype", words), ("out", words + operands), ("a_type", operands), ("b_type", operands)):
        if f[name] not in [ElementType[t] for t in known]:
            return False
    if not config.has(ElementType.BF16):
        return f["b_op"] < 3 and not any(f[name] for name in ("a_half", "b_half", "out_half"))
    is_int32 = f["dtype"] == ElementType.INT32
    a_is_wrong = f["a_type"] and (f["a_space"] or f["a_half"] or is_int32)
    b_is_wrong = f["b_type"] and (f["b_space"] or f["b_half"] or is_int32)
    return not (a_is_wrong or b_is_wrong or f["b_op"] == 3 or (f["out"] == ElementType.BF16 and f["out_half"]))


def output_space(f: dict[str, int]) -> Space:
    return Space.SCRATCHPAD if f["out"] in (ElementType.INT8, ElementType.BF16) else Space.ACCUMULATOR


@dataclass
class Model:
    """The unit's architectural state, and what its commands do to it."""

    config: ChipConfig
    scratchpad: np.ndarray
    accumulators: np.ndarray
    params: dict[Param, int] = field(default_factory=dict)
    rows: dict[int, np.ndarray] = field(default_factory=dict)
    faults: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clear()

    @classmethod
    def random(cls, config: ChipConfig, rng: np.random.Generator) -> "Model":
        words = rng.integers(0, 1 << 32, (config.accumulator_rows, config.array), np.uint64).astype(np.uint32)
        kind = rng.integers(0, 5, words.shape)
        words = np.where(kind == 1, rng.choice(np.array(SPECIAL, np.uint32), words.shape), words)
        words = np.where(kind == 2, rng.integers(-300, 300, words.shape).astype(np.int32).view(np.uint32), words)
        small = rng.integers(-600, 600, words.shape).astype(np.float32) / 4
        words = np.where(kind == 3, small.view(np.uint32), words)
        words = np.where(kind == 4, words & np.uint32(0xFFFF0000) | np.uint32(0x8000), words)  # between two bf16
        scratchpad = rng.integers(-128, 128, (config.scratchpad_rows, config.row_bytes)).astype(np.int8)
        if config.has(ElementType.BF16):
            lanes = scratchpad.view(np.uint16)
            kind = rng.integers(0, 3, lanes.shape)
            lanes[:] = np.where(kind == 1, rng.choice(np.array(SPECIAL, np.uint32) >> 16, lanes.shape), lanes)
            small = rng.integers(-300, 300, lanes.shape).astype(np.float32) / 4
            lanes[:] = np.where(kind == 2, small.view(np.uint32) >> 16, lanes)
        return cls(config, scratchpad, words)

    def clear(self) -> None:
        self.params = {Param.A_STRIDE: 1, Param.B_ROW: 0, Param.B_STRIDE: 1, Param.OUT_STRIDE: 1}
        self.rows = {r: np.zeros(self.config.array, np.uint32) for r in VectorRow}

    def execute(self, command: dict) -> None:
        fault = {
            Op.SET: self._set,
            Op.VROW: self._vrow,
            Op.VECTOR: self._vector,
        }[command["op"]](command)
        if fault:
            code, address = fault
            self.faults.append((code, command["pc"], address & 0xFFFFFFFF))

    def _set(self, command: dict) -> tuple[int, int] | None:
        param = command["flags"] & 0xFF
        signed = command["a"] - (command["a"] >> 31 << 32)
        low, high = (0, 0xFFFF) if param == Param.B_ROW else (-0x8000, 0x7FFF)
        if param not in self.params or not low <= signed <= high:
            return FaultCode.BAD_PARAMETER, param
        self.params[Param(param)] = signed
        return None

    def _vrow(self, command: dict) -> tuple[int, int] | None:
        row, splat = command["flags"] & 3, command["flags"] >> 2 & 1
        if row >= self.config.row_registers:
            return FaultCode.ILLEGAL_INSTRUCTION, 0
        if splat:
            self.rows[row] = np.full(self.config.array, command["a"], np.uint32)
        elif command["a"] >= self.config.accumulator_rows:
            return FaultCode.LOCAL_ADDRESS, command["a"]
        else:
            self.rows[row] = self.accumulators[command["a"]].copy()
        return None

    def _vector(self, command: dict) -> tuple[int, int] | None:
        f = FORMATS[Op.VECTOR].layout.unpack(command["flags"] << FLAGS_LSB)
        if command["c"] > 0xFFFF:
            return FaultCode.BAD_PARAMETER, command["c"]
        if not is_legal(self.config, f):
            return FaultCode.ILLEGAL_INSTRUCTION, 0
        a, b, out = command["a"], self.params[Param.B_ROW], command["b"]
        out_space = output_space(f)
        for _ in range(command["c"]):
            for row, space, used in (
                (a, f["a_space"], True),
                (b, f["b_space"], f["b_op"] != BinaryOp.NONE),
                (out, out_space, True),
            ):
                if used and not 0 <= row < self._limit(space):
                    return FaultCode.LOCAL_ADDRESS, row
            result = vector_op(
                self._read(a, f["a_space"], f["a_half"], f["a_type"]),
                self._read(b, f["b_space"], f["b_half"], f["b_type"]) if f["b_op"] else None,
                b_op=f["b_op"],
                dtype=f["dtype"],
                bias=self.rows[VectorRow.BIAS] if f["bias"] else None,
                scale=self.rows[VectorRow.SCALE] if f["scale"] else None,
                relu=bool(f["relu"]),
                out=f["out"],
            )[0]
            if out_space == Space.ACCUMULATOR:
                self.accumulators[out] = result
            elif f["out"] == ElementType.BF16:
                self.scratchpad[out] = result.view(np.int8)
            else:
                n = self.config.array
                self.scratchpad[out, f["out_half"] * n : (f["out_half"] + 1) * n] = result
            a += self.params[Param.A_STRIDE]
            b += self.params[Param.B_STRIDE]
            out += self.params[Param.OUT_STRIDE]
        return None

    def _limit(self, space: int) -> int:
        return self.config.accumulator_rows if space == Space.ACCUMULATOR else self.config.scratchpad_rows

    def _read(self, row: int, space: int, half: int, kind: int) -> np.ndarray:
        if space == Space.ACCUMULATOR:
            return self.accumulators[None, row]
        if kind == ElementType.BF16:
            return self.scratchpad[None, row].view(np.uint16)
        n = self.config.array
        return self.scratchpad[None, row, half * n : (half + 1) * n]
