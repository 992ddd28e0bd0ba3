"""A second context hunts in the cores for what the first one left there ("LeftoverLocals" for every place there is)."""

from collections.abc import Iterator

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import ARG_REGISTER, REGISTERS
from sley.abi.pages import PAGE_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import QueueFault
from sley.driver.memory.buffer import ALL_RIGHTS
from sley.driver.memory.space import Mapping
from sley.driver.queue.queue import Queue

SECRET = 0x53
"""Every byte that is planted: no zero, no register's number, no count."""
ENGINES = ["model:nano", "model:edge", "fast:nano", pytest.param("fast:edge", marks=pytest.mark.slow)]


@pytest.fixture(params=ENGINES)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver.open(f"{request.param}?memory=32M") as driver:
        yield driver


class Client:
    """A context with a queue, a page for programs, and memory for what a core holds."""

    def __init__(self, driver: Driver) -> None:
        config = driver.config
        self.context: Context = driver.context()
        self.queue: Queue = self.context.queue()
        self.scratchpad = config.scratchpad_rows * config.row_bytes
        self.accumulator = config.accumulator_rows * config.accumulator_row_bytes
        self.code = self._map(PAGE_BYTES)
        self.data = self._map(self.scratchpad + self.accumulator + PAGE_BYTES)

    def _map(self, length: int) -> Mapping:
        buffer = self.context.allocate(length)
        mapping = self.context.map(buffer, ALL_RIGHTS)
        buffer.release()
        return mapping

    def run(self, text: str) -> None:
        code = words_to_bytes(assemble(text))
        self.context.space.write(self.code.address, code)
        self.queue.launch(self.code.address, len(code) // 16, [], (1, 1, 1))
        self.queue.fence().wait(100_000)

    def contents(self) -> np.ndarray:
        return np.frombuffer(self.context.space.read(self.data.address, self.data.length), np.uint8)


def moves(op: str, address: int, size: int, row_bytes: int, space: str) -> str:
    """All rows of a memory, in runs of 1 KiB."""
    run = 1024
    return f"""
    set {op}.run_bytes, #{run}
    set {op}.mem_stride, #{run}
    set {op}.local_stride, #{run // row_bytes}
    {"set load.chunks, #" + str(run // row_bytes) if op == "load" else ""}
    add r1, r0, #{address}
    add r2, r0, #{size // run}
    {op} r1, r0, r2 space={space} signal=0
    sync wait=0
    """


def both(op: str, client: Client, config: ChipConfig) -> str:
    scratchpad = moves(op, client.data.address, client.scratchpad, config.row_bytes, "scratchpad")
    start = client.data.address + client.scratchpad
    return scratchpad + moves(op, start, client.accumulator, config.accumulator_row_bytes, "accumulator")


def plant(client: Client, config: ChipConfig) -> str:
    """Fills both memories, the weights of the array, the row registers and the scalar registers."""
    word = int.from_bytes(bytes([SECRET] * 4), "little")
    fills = "\n".join(f"add r{k}, r0, #{word}" for k in range(ARG_REGISTER, REGISTERS))
    return f"""
    {both("load", client, config)}
    add r2, r0, #{config.array}
    weights r0, r2 signal=0
    matmul r0, r0, r2 signal=1
    weights r0, r2 signal=0
    sync wait=0
    sync wait=0
    sync wait=1
    vrow #{word} row=bias splat=1 signal=0
    vrow #{word} row=scale splat=1 signal=0
    sync wait=0
    sync wait=0
    {fills}
    """


def show_memories(client: Client, config: ChipConfig) -> str:
    return both("store", client, config)


def show_row(client: Client, config: ChipConfig) -> str:
    """Stores accumulator row 0."""
    return f"""
    set store.run_bytes, #{config.accumulator_row_bytes}
    add r1, r0, #{client.data.address}
    add r2, r0, #1
    store r1, r0, r2 space=accumulator signal=0
    sync wait=0
    """


def show_weights(client: Client, config: ChipConfig) -> str:
    """What the array makes of ones when nobody has loaded weights."""
    ones = client.data.end - PAGE_BYTES
    return f"""
    add r1, r0, #{ones}
    add r2, r0, #1
    set load.run_bytes, #{config.row_bytes}
    load r1, r0, r2 signal=0
    sync wait=0
    matmul r0, r0, r2 signal=0
    sync wait=0
    {show_row(client, config)}
    """


def show_row_registers(client: Client, config: ChipConfig) -> str:
    """(1 + bias) scaled: zero if the scale is, and the bias alone in the row behind it."""
    return f"""
    add r2, r0, #1
    vector r0, r0, r2 a_space=accumulator dtype=int32 bias=1 out=int32 signal=0
    vector r0, r2, r2 a_space=accumulator dtype=int32 bias=1 scale=1 out=fp32 signal=0
    sync wait=0
    sync wait=0
    set store.run_bytes, #{2 * config.accumulator_row_bytes}
    add r1, r0, #{client.data.address}
    store r1, r0, r2 space=accumulator signal=0
    sync wait=0
    """


def show_registers(client: Client, config: ChipConfig) -> str:
    """The scalar registers that nobody set, each in a row of its own."""
    first = ARG_REGISTER
    moves = "\n".join(
        f"""
        vrow r{k} row=bias splat=1 signal=0
        sync wait=0
        add r1, r0, #{k}
        vector r0, r1, r2 a_space=accumulator dtype=int32 bias=1 out=int32 signal=0
        sync wait=0
        """
        for k in range(first, REGISTERS)
    )
    rows = REGISTERS - first
    return f"""
    add r2, r0, #1
    {moves}
    set store.run_bytes, #{rows * config.accumulator_row_bytes}
    add r1, r0, #{client.data.address}
    add r3, r0, #{first}
    store r1, r3, r2 space=accumulator signal=0
    sync wait=0
    """


HUNTS = [show_memories, show_weights, show_row_registers, show_registers]


def prepare(driver: Driver) -> Client:
    owner = Client(driver)
    owner.context.space.write(owner.data.address, bytes([SECRET]) * owner.data.length)
    return owner


def hunt(client: Client, config: ChipConfig, show: object) -> np.ndarray:
    """What the client's memory holds after its hunt; before, all but a page of ones were zeros."""
    client.context.space.write(client.data.address, bytes(client.data.length - PAGE_BYTES) + b"\1" * PAGE_BYTES)
    client.run(show(client, config) + "end")  # type: ignore[operator]
    return client.contents()[:-PAGE_BYTES]


@pytest.mark.parametrize("show", HUNTS)
def test_nothing_is_left(driver: Driver, show: object) -> None:
    config = driver.config
    owner, thief = prepare(driver), Client(driver)
    owner.run(plant(owner, config) + "end")
    assert (hunt(owner, config, show) != 0).any() or show is show_registers, "the secret was planted where we look"
    owner.context.space.write(owner.data.address, bytes([SECRET]) * owner.data.length)
    owner.run(plant(owner, config) + "end")
    assert not hunt(thief, config, show).any()


@pytest.mark.parametrize("show", HUNTS)
def test_nothing_is_left_after_a_fault(driver: Driver, show: object) -> None:
    """The owner's block stops in the middle; nothing of it is cleared by its own end."""
    config = driver.config
    owner, thief = prepare(driver), Client(driver)
    with pytest.raises(QueueFault) as raised:
        owner.run(plant(owner, config) + f"add r1, r0, #{config.scratchpad_rows}\nmatmul r1, r0, r1\nend")
    assert raised.value.code is FaultCode.LOCAL_ADDRESS
    assert not hunt(thief, config, show).any()


@pytest.mark.parametrize("show", [show_memories, show_weights])
def test_nothing_is_left_in_a_context_that_is_used_again(driver: Driver, show: object) -> None:
    """The thief gets the number, the queue and the memory of an owner that has left."""
    config = driver.config
    owner = prepare(driver)
    number = owner.context.number
    owner.run(plant(owner, config) + "end")
    owner.context.close()
    thief = Client(driver)
    assert thief.context.number == number
    assert not thief.contents().any(), "memory is zeroed before another client gets it"
    assert not hunt(thief, config, show).any()
