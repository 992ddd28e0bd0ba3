"""Work for a pair of the gateware and the chip of twins."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from program_writer import Writer
from unit_kernels import RandomKernel

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import INSTRUCTION_BYTES, Space
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextReset, QueueFault
from sley.driver.memory.buffer import Rights
from sley.runtime import Device, KernelBuilder, Program
from sley.runtime.errors import KernelError
from sley.sim.engines import fast, model
from sley.sim.testing.paired_transport import PairedTransport
from sley.sim.testing.product import random_product

SMALL = {"memory": "2M"}
DATA = 4096
"""Bytes that random programs work on."""
WATCHDOG = 1_500
MOVES = """
    add r11, r0, #1
    set load.run_bytes, #{bytes}
    set load.chunks, #{chunks}
    load r8, r0, r11 signal=0
    set store.run_bytes, #{bytes}
    store r9, r0, r11 wait=0 signal=1
    sync wait=1
    end
"""


def opened(chip: str, **options: str) -> PairedTransport:
    wanted = SMALL | options
    return PairedTransport(
        fast.open_transport(chip, dict(wanted)), model.open_transport(chip, wanted | {"cycles": "on"})
    )


def placed(context: Context, words: Sequence[int]) -> tuple[int, int]:
    """Address and length in instructions of a program, which begins anywhere in a beat of the bus."""
    code = bytes(INSTRUCTION_BYTES * (len(words) % 4)) + words_to_bytes(words)
    buffer = context.allocate(len(code))
    mapping = context.map(buffer, Rights.EXECUTE)
    buffer.release()
    context.space.write(mapping.address, code)
    return mapping.address + INSTRUCTION_BYTES * (len(words) % 4), len(words)


def products(device: Device, check: Callable[..., None], count: int, seed: int = 3) -> None:
    """Random products, without those for which the chip is too small."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        m, n, k = (int(size) for size in np.exp(rng.uniform(0, np.log(30), 3)))
        case = random_product(device.config, rng, (m, n, k))
        with suppress(KernelError):
            check(device, case, rng if number % 3 == 0 else None)
        device.driver.counters()


def moves(driver: Driver, count: int, seed: int = 4) -> None:
    """Blocks that move odd numbers of bytes to and from odd places, and packets around them, on up to two queues."""
    rng = np.random.default_rng(seed)
    config = driver.config
    context = driver.context()
    queues = [context.queue() for _ in range(min(2, config.queues))]
    size = 4096
    place = context.heap.allocate(3 * size)
    context.space.write(place, rng.integers(0, 256, 3 * size, np.uint8).tobytes())
    longest = min(300, config.scratchpad_rows * config.row_bytes)
    for _ in range(count):
        length = int(rng.integers(1, longest))
        text = MOVES.format(bytes=length, chunks=-(-length // config.row_bytes))
        address, words = placed(context, assemble(text))
        queue, other = (queues[int(k) % len(queues)] for k in rng.permutation(2))
        source, target = (place + int(offset) for offset in (rng.integers(0, 1000), size + rng.integers(0, 1000)))
        queue.launch(address, words, [source, target], (int(rng.integers(1, 4)), 1, 1))
        other.copy(place + int(rng.integers(0, 99)), place + 2 * size, length)
        other.fill(place + 2 * size + length, 5, length)
        other.signal(place + 2 * size + 1024 + 8 * int(rng.integers(0, 64)), int(rng.integers(0, 1 << 62)))
        for fence in (other.fence(), queue.fence()):
            fence.wait()
        context.space.read(place, 3 * size)
        driver.counters()
    context.close()


def programs(driver: Driver, count: int, seed: int) -> int:
    """Random programs, many of which fail, in a context for every three of them; how many contexts had one that failed.

    Nothing that they leave in memory is read: they wait for nobody, so that is not defined.
    """
    config, rng, failed = driver.config, random.Random(seed), 0
    writers = [
        lambda k: Writer(config, k, lists=False).program(),
        lambda k: assemble(RandomKernel(config, k).text + "\nend"),
    ]
    idle = driver.context() if config.contexts > 1 else None  # so that numbers of contexts differ
    for number in range(count):
        driver.coalesce(rng.randint(1, 3), rng.randint(1, 500))
        with driver.context() as context:
            queues = [context.queue(rng.randrange(4), watchdog=WATCHDOG << k) for k in range(min(2, config.queues))]
            place = context.heap.allocate(DATA)
            for _ in range(3):
                words = rng.choice(writers)(100 * seed + number)[: config.program_words]
                arguments = [place, place + DATA // 2, *(rng.randrange(99) for _ in range(rng.randrange(9)))]
                grid = rng.randint(1, 2 * config.cores), 1, 1
                rng.choice(queues).launch(*placed(context, words), arguments, grid)
            fences = [queue.fence() for queue in queues]
            try:
                for fence in fences:
                    fence.wait()
            except (QueueFault, ContextReset):
                failed += 1
                with suppress(QueueFault, ContextReset):
                    context.reset()
        driver.counters()
    if idle is not None:
        idle.close()
    return failed


def resets(driver: Driver, count: int, seed: int) -> None:
    """Resets of the device while blocks, copies and fences are on their way."""
    rng = random.Random(seed)
    for number in range(count):
        with driver.context() as context:
            queue = context.queue()
            place = context.heap.allocate(DATA)
            address, words = placed(context, assemble(RandomKernel(driver.config, number).text + "\nend"))
            queue.launch(address, words, [place, place + DATA // 2], (4, 1, 1))
            queue.copy(place, place + DATA // 2, DATA // 2)
            queue.fence()
            driver.transport.advance(rng.randint(1, 1500))
            driver.reset()
        driver.counters()


def by_list(config: ChipConfig, runs: int, size: int) -> Program:
    """Gathers runs by a list, and scatters them by it."""
    k = KernelBuilder("by_list", config)
    table, out, words = k.arg("table"), k.arg("out"), k.arg("words")
    listed, loaded, done = (k.semaphore(name) for name in ("listed", "loaded", "done"))
    chunks, list_row = -(-size // config.row_bytes), k.reg("list_row", 1)
    k.set(Unit.LOAD, run_bytes=config.accumulator_row_bytes, mem_stride=config.accumulator_row_bytes)
    k.load(words, list_row, -(-runs // config.array), space=Space.ACCUMULATOR, signal=listed)
    k.set(Unit.LOAD, list_row=list_row, chunks=chunks, run_bytes=size, local_stride=chunks)
    k.load(table, 0, runs, by_list=True, wait=listed, signal=loaded)
    k.set(Unit.STORE, list_row=list_row, run_bytes=size, local_stride=chunks)
    k.store(out, 0, runs, by_list=True, wait=loaded, signal=done)
    k.sync(wait=done)
    k.end()
    return k.build()


def lists(device: Device, count: int, seed: int) -> None:
    """Rows of a table, by random lists, some of them twice in one list."""
    config, rng = device.config, np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(1, 3 * config.row_bytes + 1))
        chunks = -(-size // config.row_bytes)
        runs = int(
            rng.integers(1, min(20, config.scratchpad_rows // chunks, (config.accumulator_rows - 1) * config.array))
        )
        table = rng.integers(0, 256, (runs + 3, size), np.uint8)
        order = rng.integers(0, runs + 3, runs).astype(np.int32)
        out = device.zeros(table.shape, np.uint8)
        device.stream.launch(by_list(config, runs, size), [device.array(table), out, device.array(order * size)])
        expected = np.zeros_like(table)
        expected[order] = table[order]
        np.testing.assert_array_equal(out.numpy(), expected)
        device.driver.counters()
