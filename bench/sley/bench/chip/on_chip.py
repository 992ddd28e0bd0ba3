"""The array without memory: products whose operands are in the scratchpad, on ``base`` with larger local memories.

The bound is folds x max(rows, N), and one fill and drain: the first N rows of weights, and the way of a row to the
accumulators. A product is run once and twice in a program; the difference is what the second took, back to back with
the first; what the first took is measured against a program without products. Fails when a promise is missed.
"""

from rich.console import Console
from rich.table import Table

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.timing import write_latency
from sley.abi.types import OPERAND_TYPES, ElementType
from sley.driver import Driver
from sley.runtime import Device, KernelBuilder, Program
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.options import parse_options

CONFIG = PRESETS["base"].replace(name="base_large", scratchpad_rows=1 << 15, accumulator_rows=1 << 14)
SHAPES = [(128, 128, 128), (64, 256, 128), (16, 512, 256), (100, 300, 200), (256, 256, 256), (512, 512, 512)]
PROMISED_RATIO = 1.001
PROMISED_PEAK = {(512, 512, 512): 0.995}


def program(config: ChipConfig, size: tuple[int, int, int], dtype: ElementType, times: int) -> Program:
    """All folds of K of one column tile after the other, or for bf16 all column tiles of a fold."""
    m, n, k = size
    columns, folds = -(-n // config.array), -(-k // config.fold_depth(dtype))
    b = KernelBuilder(f"on_chip_{times}", config)
    b.free(*b.block, *b.grid)
    rows, step, a_step = b.reg("rows", m), b.reg("step", config.array), b.reg("a_step", m)
    a_at, b_at, acc = b.reg("a"), b.reg("b"), b.reg("acc")
    for _ in range(times):
        b.mov(a_at, 0)
        b.mov(b_at, config.scratchpad_rows // 2)
        for accumulate, count in ((False, 1), (True, folds - 1)):
            with b.loop(count):
                b.mov(acc, 0)
                with b.loop(columns):
                    b.weights(b_at, config.array, dtype=dtype, step=step)
                    b.matmul(a_at, acc, rows, accumulate=accumulate, dtype=dtype)
                    b.add(acc, acc, m)
                b.add(a_at, a_at, a_step)
    b.end()
    return b.build()


def cycles(device: Device, code: Program) -> int:
    """Doorbell to fence, with the program in place."""
    for _ in range(2):
        with device.stream.timed() as timing:
            device.stream.launch(code)
    return timing.cycles


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("M x N x K", "type", "cycles", "bound", "/ bound", "next one", "of peak MACs", title=CONFIG.name)
    missed = []
    options = parse_options("fast", CONFIG, {"memory": str(1 << 20)}, ())
    with Device(Driver(FastTransport(cached_rtlil(CONFIG), CONFIG.bus_bytes, options))) as device:
        for dtype in OPERAND_TYPES:
            for size in SHAPES:
                m, n, k = size
                none, one, two = (cycles(device, program(CONFIG, size, dtype, times)) for times in range(3))
                folds = -(-n // CONFIG.array) * -(-k // CONFIG.fold_depth(dtype))
                fill_and_drain = CONFIG.array + write_latency(CONFIG, dtype)
                bound = folds * max(m, CONFIG.array) + fill_and_drain
                share = m * n * k / ((two - one) * CONFIG.array * CONFIG.fold_depth(dtype))
                name = " x ".join(map(str, size))
                table.add_row(
                    name,
                    dtype.name.lower(),
                    f"{one - none:,}",
                    f"{bound:,}",
                    f"{(one - none) / bound:.4f}",
                    f"{two - one:,}",
                    f"{share:.2%}",
                )
                if m * n * k >= 1 << 21 and one - none > PROMISED_RATIO * bound:
                    missed.append(f"{name} {dtype.name}: {(one - none) / bound:.4f} of the bound")
                if share < PROMISED_PEAK.get(size, 0):
                    missed.append(f"{name} {dtype.name}: {share:.2%} of peak")
    Console().print(table)
    return missed
