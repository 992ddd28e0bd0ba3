"""The first fault of a LOAD or STORE with many: the gateware and the golden model name the same one."""

import random
from collections import Counter

import pytest

from sley.abi.asm import assemble
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.pages import PAGE_BYTES
from sley.driver.errors import QueueFault
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.sim.engines.options import default_engine

MEMORY = 1 << 20
CASES = 250
LIST_WORDS = 64
"""Of the list; it is in a page of its own, and loaded to the last rows of the accumulators."""
MAPPED = 1 << 16
"""Bytes that are mapped in front of the edge where moves go wrong."""

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


def list_of_offsets(rng: random.Random) -> bytes:
    """Most of them small, some to another edge."""
    far = [MAPPED // 2, MEMORY, -MEMORY, 1 << 31]
    words = [rng.choice([rng.randint(-100, 100), rng.randint(0, 9)] * 9 + far) for _ in range(LIST_WORDS)]
    return b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)


def random_move(rng: random.Random, config: ChipConfig, end: int, words: int) -> str:
    """Runs at the edges of memory and of the address width, rows at the edges of a local memory. ``words``: where the
    list is."""
    unit = rng.choice(["load", "load", "load", "store"])
    space = rng.choice(["scratchpad", "accumulator"])
    flags = ""
    if unit == "load" and rng.random() < 0.5:
        interleave, transpose = rng.choice([(0, 1), (1, 0), (1, 1)])
        space = "scratchpad" if rng.random() < 0.9 else space
        flags = f"interleave={interleave} transpose={transpose}"
    lines = []
    if not config.gather and rng.random() < 0.05:
        flags += " by_list=1"
    if config.gather and rng.random() < 0.3:
        # A list is not written while it is used.
        flags += " by_list=1"
        space = "scratchpad" if unit == "load" else space
        lines = [
            f"set load.run_bytes, #{4 * LIST_WORDS}",
            f"set load.chunks, #{LIST_WORDS // config.array}",
            f"add r1, r0, #{words}",
            f"add r2, r0, #{config.accumulator_rows - LIST_WORDS // config.array}",
            "load r1, r2, #1 space=accumulator signal=0",
            "sync wait=0",
            *(
                f"set {name}.list_row, #{config.accumulator_rows - rng.choice([8, 8, 6, 2])}"
                for name in ("load", "store")
            ),
        ]
    rows, row_bytes = (
        (config.scratchpad_rows, config.row_bytes)
        if space == "scratchpad"
        else (config.accumulator_rows, config.accumulator_row_bytes)
    )
    chunks = rng.randint(1, 5)
    size = rng.randint(1, chunks * row_bytes) if rng.random() < 0.95 else chunks * row_bytes + 1

    def near(edge: int, reach: int) -> int:
        return (edge + rng.randint(-reach, reach)) & 0xFFFFFFFF

    def step(reach: int) -> int:
        return rng.choice([0, 1, rng.randint(-reach, reach)])

    # A slab, or a run, may be far from the one before, at another edge.
    if unit == "load":
        address = near(rng.choice([0, end, end - MAPPED // 2, 1 << 32]), 6 * size)
        far = rng.choice([step(2 * size), MEMORY, -MEMORY, -2 * MEMORY])
        stride = rng.choice([size, step(3 * size), far])
    else:
        address = end - rng.choice([0, MAPPED // 2]) - rng.randint(1, 6 * size)
        far = rng.choice([-size, MEMORY, -MEMORY, -2 * MEMORY])
        stride = rng.choice([size, rng.randint(-2 * size, size), far])
    row = near(rng.choice([0, rows, rows // 2]), 12)
    params = {
        "run_bytes": size,
        "mem_stride": stride,
        "mem_stride2": far,
        "local_stride": step(9),
        "local_stride2": rng.choice([step(40), rows // 2]),
        "chunk_stride": step(9),
        "count2": rng.choice([1, 1, 2, 3]),
    }
    if unit == "load":
        params |= {"chunks": chunks, "pad_runs": rng.choice([0, 0, 3]), "fill": rng.getrandbits(32)}
    lines += [f"set {unit}.{name}, #{value}" for name, value in params.items()]
    lines += [f"add r{n}, r0, #{value - (value >> 31 << 32)}" for n, value in ((1, address), (2, row))]
    lines += [f"add r3, r0, #{rng.choice([1, 2, 5, 20, 40])}", f"{unit} r1, r2, r3 space={space} {flags}", "end"]
    return "\n".join(lines)


def outcome(device: Device, text: str) -> tuple[int, ...]:
    """Code, unit, instruction and address of the fault, or nothing."""
    device.stream.launch(Program("move", tuple(assemble(text))))
    try:
        device.synchronize()
    except QueueFault as fault:
        return fault.code, fault.unit, fault.pc, fault.address
    return ()


@needs_compiler
@pytest.mark.parametrize("chip", ["nano", "base"])
def test_first_fault(chip: str) -> None:
    rng = random.Random(chip)
    seen: Counter[int] = Counter()
    url = f"{chip}?memory={MEMORY}"
    with (
        Device.open(f"fast:{url}", hang_cycles=20_000) as fast,
        Device.open(f"model:{url}", hang_cycles=20_000) as model,
    ):
        contexts = [device.context for device in (fast, model)]
        offsets = list_of_offsets(rng)
        (words,) = {context.map(context.allocate(PAGE_BYTES)).address for context in contexts}
        for context in contexts:
            context.space.write(words, offsets)
        (end,) = {context.map(context.allocate(MAPPED)).end for context in contexts}
        for _ in range(CASES):
            text = random_move(rng, fast.config, end, words)
            found = outcome(fast, text)
            assert found == outcome(model, text), text
            seen[found[0] if found else FaultCode.NONE] += 1
    expected = {FaultCode.NONE, FaultCode.BAD_PARAMETER, FaultCode.BAD_ADDRESS, FaultCode.PAGE_FAULT}
    assert {*expected, FaultCode.LOCAL_ADDRESS, FaultCode.ILLEGAL_INSTRUCTION} <= seen.keys(), seen
