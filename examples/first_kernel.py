"""A kernel of one's own: int8 addition that saturates. Usage: first_kernel.py [engine URL]"""

import sys

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.runtime import Argument, Device, KernelBuilder, Program


def saturating_add(config: ChipConfig) -> Program:
    """out = a + b; every block adds ``rows`` rows of N bytes, at most a quarter of the scratchpad's rows."""
    n = config.array
    k = KernelBuilder("saturating_add", config)
    a, b, out, rows = k.arg("a"), k.arg("b"), k.arg("out"), k.arg("rows")
    loaded, added = k.semaphore("loaded"), k.semaphore("added")

    with k.scratch("offset") as (offset,):  # this block's part of the arrays
        k.mul(offset, k.block[0], rows)
        k.mul(offset, offset, n)
        for pointer in (a, b, out):
            k.add(pointer, pointer, offset)

    b_row = k.reg("b_row", config.scratchpad_rows // 4)
    sum_row = k.reg("sum_row", config.scratchpad_rows // 2)
    k.set(Unit.LOAD, run_bytes=n, mem_stride=n)
    k.set(Unit.VECTOR, b_row=b_row)
    k.set(Unit.STORE, run_bytes=n, mem_stride=n)

    k.load(a, 0, rows)
    k.load(b, b_row, rows, signal=loaded)
    k.vector(
        0,
        sum_row,
        rows,
        a_space=Space.SCRATCHPAD,
        b_space=Space.SCRATCHPAD,
        b_op=BinaryOp.ADD,
        out=ElementType.INT8,
        wait=loaded,
        signal=added,
    )
    k.store(out, sum_row, rows, wait=added)
    k.end()
    return k.build()


def main(url: str = "fast:base") -> None:
    blocks, rows = 6, 10
    with Device.open(url) as device:
        program = saturating_add(device.config)
        print(program)
        random = np.random.default_rng(0)
        shape = (blocks * rows, device.config.array)
        x, y = (random.integers(-128, 128, shape, np.int8) for _ in range(2))
        out = device.empty(shape, np.int8)
        args: dict[str, Argument] = {"a": device.array(x), "b": device.array(y), "out": out, "rows": rows}
        with device.stream.timed() as timing:
            device.stream.launch(program, args, grid=(blocks,))
        expected = np.clip(x.astype(int) + y, -128, 127)
        assert np.array_equal(out.numpy(), expected)
        print(f"{x.size} sums, all right, in {timing.cycles} cycles on {device.config.cores} core(s)")


if __name__ == "__main__":
    main(*sys.argv[1:2])
