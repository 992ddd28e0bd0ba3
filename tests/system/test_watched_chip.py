"""The watch itself: tests that rely on its silence rely on its noise."""

from collections.abc import Iterator

import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.faults import FaultCode
from sley.abi.packets import PacketOp, encode_packet
from sley.abi.pages import PAGE_BITS, PAGE_BYTES, PAGE_ENTRY, table_index
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import QueueFault
from sley.driver.memory.buffer import ALL_RIGHTS
from sley.sim.engines.options import default_engine
from sley.sim.testing.watched_transport import WatchedTransport

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


@pytest.fixture
def chip() -> Iterator[WatchedTransport]:
    transport = WatchedTransport()
    yield transport
    transport.close()


@pytest.fixture
def context(chip: WatchedTransport) -> Context:
    context = Driver(chip).context()
    context.heap.chunk = 4 * PAGE_BYTES
    context.queue()
    return context


def page(context: Context, address: int) -> int:
    return context.space.physical(address, 1) >> PAGE_BITS


def test_everything_but_ones_own_can_be_forbidden(chip: WatchedTransport, context: Context) -> None:
    place = context.heap.allocate(256)
    tables = {context.driver.registers.value("CONTEXT0.ROOT", "page")}
    upper = chip.read_memory(min(tables) << PAGE_BITS, 4)
    tables.add(PAGE_ENTRY.unpack(int.from_bytes(upper, "little"))["page"])
    own = {page(context, at) for m in context.space.mappings for at in range(m.address, m.end, PAGE_BYTES)}
    chip.forbid(set(range(chip.pages)) - own - tables)
    context.queues[0].fill(place, 0x5A, 256)
    context.queues[0].fence().wait()
    assert context.space.read(place, 256) == b"\x5a" * 256


@pytest.mark.parametrize("access", ["read", "write", "walk", "program", "load", "store"])
def test_the_watch_sees(chip: WatchedTransport, context: Context, access: str) -> None:
    """Each kind of access, to its first byte and to its last one."""
    queue = context.queues[0]
    mine = context.heap.allocate(64)
    mapping = context.map(context.allocate(2 * PAGE_BYTES), ALL_RIGHTS)
    other = mapping.address + PAGE_BYTES
    move = f"set {access}.run_bytes, #4\nadd r9, r0, #1\n{access} r8, r0, r9 signal=0\nsync wait=0\nend"
    code = words_to_bytes(assemble("end" if access not in ("load", "store") else move))
    context.space.write(mapping.address, code)
    context.space.write(other, code)
    target = page(context, other)
    if access == "walk":
        upper, _ = table_index(other)
        root = context.driver.registers.value("CONTEXT0.ROOT", "page")
        entry = chip.read_memory((root << PAGE_BITS) + 4 * upper, 4)
        target = PAGE_ENTRY.unpack(int.from_bytes(entry, "little"))["page"]
        context.space.invalidate()
    chip.forbid([target])
    if access in ("read", "walk"):
        queue.copy(other + PAGE_BYTES - 1, mine, 1)
    elif access == "write":
        queue.copy(mine, other + PAGE_BYTES - 1, 1)
    elif access == "program":
        queue.launch(other, 1, [], (1, 1, 1))
    else:
        queue.launch(mapping.address, len(code) // 16, [other + PAGE_BYTES - 4], (1, 1, 1))
    direction = "write" if access in ("write", "store") else "read"
    with pytest.raises(AssertionError, match=f"{direction} of {target:#07x}"):
        queue.fence().wait()


def test_the_watch_sees_what_is_behind_memory(chip: WatchedTransport, context: Context) -> None:
    """A page table made by hand leads there."""
    driver, queue = context.driver, context.queues[0]
    root = driver.registers.value("CONTEXT0.ROOT", "page") << PAGE_BITS
    entry = PAGE_ENTRY.pack(valid=1, read=1, page=0x40000)
    chip.write_memory(root + 4 * 1023, entry.to_bytes(4, "little"))
    context.space.invalidate()
    packet = encode_packet(PacketOp.COPY, src=1023 << 22, dst=context.heap.allocate(64), bytes=4)
    chip.forbid([], beyond=False)
    queue.raw(packet)
    with pytest.raises(QueueFault) as caught:
        queue.fence().wait()
    assert caught.value.code is FaultCode.BUS_ERROR
    chip.forbid([])
    queue.raw(packet)
    with pytest.raises(AssertionError, match="read of 0x40000000"):
        queue.fence().wait()
