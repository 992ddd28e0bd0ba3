import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.faults import FaultCode, Unit
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, BufferFreed, ContextHang, DeviceCorrupt, QueueFault, QueueFull
from sley.driver.memory.buffer import Rights

Check = Callable[[], None]
Upload = Callable[[bytes], tuple[int, int]]


def test_packets_run_in_order_over_many_rounds_of_the_ring(context: Context, settle: Check) -> None:
    source = random.Random(2)
    queue, size = context.queues[0], 96
    place = context.heap.allocate(2 * size)
    expected = bytearray(2 * size)
    context.space.write(place, expected)
    for _ in range(40):
        offset, length, value = source.randrange(60), source.randrange(37), source.randrange(256)
        if source.random() < 0.5:
            queue.fill(place + offset, value, length)
            expected[offset : offset + length] = bytes([value]) * length
        else:
            queue.copy(place + offset, place + size, length)
            expected[size : size + length] = expected[offset : offset + length]
    queue.fence().wait()
    assert context.space.read(place, 2 * size) == bytes(expected)
    settle()


def test_a_batch_rings_one_doorbell(driver: Driver, context: Context) -> None:
    lines: list[str] = []
    driver.registers.log = lines.append
    queue = context.queues[0]
    with queue.batch():
        queue.nop()
        queue.nop()
        fence = queue.fence()
        assert not lines
    assert [line for line in lines if "DOORBELL" in line] == ["write DOORBELL0.WRITE_INDEX index=3"]
    fence.wait()
    assert fence.time >= queue.doorbell_time


def test_a_long_batch_rings_before_it_waits_for_a_slot(context: Context) -> None:
    queue = context.queues[0]
    with queue.batch():
        for _ in range(3 * queue.length):
            queue.nop()
    queue.fence().wait()


def test_full_queue_raises_at_once_if_told_so(context: Context, usable: Check) -> None:
    blocked, free = context.queues
    semaphore = context.heap.allocate(8)
    context.space.write(semaphore, bytes(8))
    blocked.full_timeout = 0
    blocked.wait(semaphore, 1)
    for _ in range(blocked.length - 1):
        blocked.nop()
    with pytest.raises(QueueFull, match=r"all 4 slots .* after 0 cycles"):
        blocked.nop()
    blocked.full_timeout = 600
    with pytest.raises(QueueFull, match="after 600 cycles"):
        blocked.nop()
    free.signal(semaphore, 1)
    blocked.full_timeout = None
    blocked.nop()
    blocked.fence().wait()
    usable()


def test_queues_order_each_other_by_semaphores(context: Context) -> None:
    first, second = context.queues
    semaphore, place = context.heap.allocate(8), context.heap.allocate(64)
    context.space.write(semaphore, bytes(8))
    first.wait(semaphore, 5)
    first.fill(place, 1, 64)
    fence = first.fence()
    second.fill(place, 2, 64)
    second.signal(semaphore, 4)
    second.fence().wait()
    assert not fence.done
    second.signal(semaphore, 5)
    fence.wait()
    assert context.space.read(place, 64) == bytes([1]) * 64


def test_unknown_packet_stops_only_its_queue(context: Context, usable: Check) -> None:
    queue, other = context.queues
    before = queue.fence()
    queue.raw(bytes([0xEE]) + bytes(63))
    lost = queue.fence()
    kept = other.fence()
    with pytest.raises(QueueFault, match=r"opcode of a packet is not defined \(0xee\)") as caught:
        lost.wait()
    fault = caught.value
    assert (fault.queue, fault.code, fault.unit) == (0, FaultCode.BAD_PACKET, Unit.COMMAND)
    before.wait()
    kept.wait()
    usable()
    with pytest.raises(QueueFault):
        lost.wait()


def test_the_next_call_reports_a_fault_that_nobody_waited_for(driver: Driver, context: Context, usable: Check) -> None:
    queue, other = context.queues
    queue.raw(bytes(64))
    driver.transport.advance(2_000)
    other.fence().wait()
    if queue.pending:  # its interrupt came after the other queue's
        driver.service(poll=True)
    with pytest.raises(QueueFault):
        queue.nop()
    usable()


def test_reserved_bits_are_refused_by_the_device(context: Context, usable: Check) -> None:
    packet = bytearray(encode_packet(PacketOp.NOP))
    packet[40] = 1
    context.queues[1].raw(bytes(packet))
    with pytest.raises(QueueFault, match="BAD_FIELD"):
        context.queues[1].fence().wait()
    usable()


def test_a_doorbell_beyond_the_ring(driver: Driver, context: Context, usable: Check) -> None:
    driver.registers.write("DOORBELL0.WRITE_INDEX", index=7)
    with pytest.raises(QueueFault, match="BAD_DOORBELL"):
        context.queues[0].fence().wait()
    usable()


@pytest.mark.parametrize(
    ("text", "code", "unit"),
    [
        ("nop", FaultCode.ILLEGAL_INSTRUCTION, Unit.SEQUENCER),
        ("add r1, r0, #1", FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER),
        ("add r1, r0, #9999\nweights r1, #1\nend", FaultCode.LOCAL_ADDRESS, Unit.MATRIX),
        ("sync signal=3\nend", FaultCode.SEMAPHORE_LEFTOVER, Unit.SEQUENCER),
        ("set load.run_bytes, #64\nadd r2, r0, #1\nload r0, r0, r2\nend", FaultCode.BAD_PARAMETER, Unit.LOAD),
    ],
)
def test_faults_of_kernels(
    driver: Driver, context: Context, usable: Check, upload: Upload, text: str, code: FaultCode, unit: Unit
) -> None:
    data = bytes(16) if text == "nop" else words_to_bytes(assemble(text))
    assert driver.config.row_bytes < 64, "a row would hold the run"
    program, words = upload(data)
    context.queues[0].launch(program, words, [], (2, 1, 1))
    with pytest.raises(QueueFault) as caught:
        context.queues[0].fence().wait()
    assert (caught.value.code, caught.value.unit) == (code, unit)
    assert caught.value.packet.startswith("LAUNCH")
    usable()


def test_requests_are_checked_before_the_device_sees_them(context: Context, usable: Check, settle: Check) -> None:
    queue, space = context.queues[0], context.space
    place = space.map(context.allocate(4096)).address
    code = space.map(context.allocate(4096), Rights.EXECUTE).address
    freed = space.map(context.allocate(64))
    space.unmap(freed)

    def launch(grid: Any = (1, 1, 1), **options: Any) -> Callable[[], int]:
        return lambda: queue.launch(code, 1, [], grid, **options)

    bad: list[tuple[type[Exception], str, object]] = [
        (BadRequest, "0 instructions; .* 1 to", lambda: queue.launch(code, 0, [], (1, 1, 1))),
        (BadRequest, "at most 24", lambda: queue.launch(code, 1, [0] * 25, (1, 1, 1))),
        (BadRequest, "no multiple of 16", lambda: queue.launch(code + 8, 1, [], (1, 1, 1))),
        (BadRequest, r"grid is \(1, 0, 1\)", lambda: queue.launch(code, 1, [], (1, 0, 1))),
        (BadRequest, r"grid is \(65536, 1, 1\); every side must be in 1..65535", launch(grid=(65536, 1, 1))),
        (BadRequest, r"grid is \(1, 1, 65536\)", launch(grid=(1, 1, 65536))),
        (BadRequest, "product below 2.32", launch(grid=(65535, 65535, 2))),
        (BadRequest, "grid of a gang", launch(grid=(2, 1, 1), gang=True)),
        (BadRequest, r"grid_x is 2.5; it must be an integer", launch(grid=(2.5, 1, 1))),
        (BadRequest, "tag is 4294967296; it must be in 0..4294967295", launch(tag=1 << 32)),
        (BadRequest, "this chip's cores hold 1 to", lambda: queue.launch(code, 1 << 16, [], (1, 1, 1))),
        (BadRequest, "argument 1 is -2147483649", lambda: queue.launch(code, 1, [0, -(1 << 31) - 1], (1, 1, 1))),
        (BadRequest, "value is -1; it must be in 0..18446744073709551615", lambda: queue.signal(place, -1)),
        (BadRequest, "value is 18446744073709551616", lambda: queue.wait(place, 1 << 64)),
        (BadRequest, "packets is 65536", lambda: queue.indirect(place, 65536)),
        (BadRequest, "no multiple of 64", lambda: queue.indirect(place + 16, 1)),
        (BadRequest, "value is 256", lambda: queue.fill(place, 256, 0)),
        (BadRequest, "argument 0 is 4294967296", lambda: queue.launch(code, 1, [1 << 32], (1, 1, 1))),
        (BufferFreed, "program", lambda: queue.launch(freed.address, 1, [], (1, 1, 1))),
        (BadRequest, "pass the end of", lambda: queue.launch(code + 4080, 2, [], (1, 1, 1))),
        (BadRequest, "program: .* not mapped with the right to execute", lambda: queue.launch(place, 1, [], (1, 1, 1))),
        (BadRequest, "right to write", lambda: queue.fill(code, 0, 1)),
        (BadRequest, "right to read", lambda: queue.copy(code, place, 8)),
        (BadRequest, "right to read", lambda: queue.wait(code, 8)),
        (BadRequest, "end past the address space", lambda: queue.fill(place, 0, 1 << 40)),
        (BadRequest, "value is 256; it must be in 0..255", lambda: queue.fill(place, 256, 1)),
        (BufferFreed, "source of copy", lambda: queue.copy(freed.address, place, 8)),
        (BadRequest, "overlap", lambda: queue.copy(place, place + 4, 8)),
        (BadRequest, "no multiple of 16", lambda: queue.fence(place + 8)),
        (BadRequest, "no multiple of 8", lambda: queue.signal(place + 4, 1)),
        (BadRequest, "64 bytes, not 3", lambda: queue.raw(b"abc")),
    ]
    for kind, message, call in bad:
        with pytest.raises(kind, match=message):
            call()  # type: ignore[operator]
    settle()
    usable()


def test_recordings_are_checked_when_they_are_made(context: Context, usable: Check, upload: Upload) -> None:
    queue = context.queues[0]
    code, words = upload(words_to_bytes(assemble("end")))
    with queue.record() as outer:
        queue.nop()
    with queue.record() as recording:
        with pytest.raises(BadRequest, match=r"every side must be in 1..65535"):
            queue.launch(code, words, [], (1, 65536, 1))
        with pytest.raises(BadRequest, match="tag is"):
            queue.launch(code, words, [], (1, 1, 1), tag=1 << 32)
        with pytest.raises(BadRequest, match="another recording cannot be recorded"):
            queue.submit(outer)
        with pytest.raises(BadRequest, match="cannot be recorded: a recording holds no other"):
            queue.indirect(context.status.address, 0)
        queue.launch(code, words, [7], (1, 1, 1))
    with pytest.raises(BadRequest, match="argument 0 is 4294967296; it must fit into 32 bits"):
        recording.patch(0, [1 << 32])
    recording.patch(0, [(1 << 32) - 1])
    assert len(recording) == 1
    queue.submit(recording)
    queue.submit(outer)
    usable()


def test_long_copies_become_packets_that_show_progress(driver: Driver, context: Context) -> None:
    piece = driver.hang_cycles // 8 * driver.config.bus_bytes
    source = context.heap.allocate(3 * piece)
    target = context.heap.allocate(3 * piece)
    data = random.Random(3).randbytes(3 * piece - 5)
    context.space.write(source, data)
    context.queues[0].copy(source, target, len(data))
    context.queues[0].fence().wait()
    assert context.space.read(target, len(data)) == data


def test_a_read_index_that_cannot_be_is_noticed(driver: Driver, context: Context, usable: Check, settle: Check) -> None:
    queue = context.queues[0]
    queue.fence().wait()
    settle()
    address = driver.registers.value("QUEUE0.READBACK")
    queue.nop()
    context.space.write(address, (99).to_bytes(4, "little"))
    for index in (8, 99, 1 << 31, 3, 7):  # beyond the ring, or beyond what was submitted
        context.space.write(address, index.to_bytes(4, "little"))
        with pytest.raises(
            DeviceCorrupt, match=f"read index {index}; it must be below 8 and not pass the write index 2"
        ):
            _ = queue.pending
    driver.reset()
    usable()


@pytest.mark.parametrize("more", [0, 4, 5, 22])
def test_arguments_live_as_long_as_their_packet(context: Context, upload: Upload, more: int) -> None:
    """More launches than the ring has slots, each with arguments of its own, in the packet or beside it; the first wait
    together."""
    text = """
        set    store.run_bytes, #4
        vrow   r9 row=bias splat=1
        set    load.run_bytes, #0
        add    r10, r0, #1
        load   r0, r0, r10 space=accumulator signal=0
        vector r0, r0, r10 bias=1 out=int32 wait=0 signal=1
        store  r8, r0, r10 space=accumulator wait=1
        end
    """
    data = words_to_bytes(assemble(text))
    (program, length), count = upload(data), 3 * context.queues[0].length
    place = context.heap.allocate(4 * count)
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    context.queues[0].wait(gate, 1)
    for i in range(count):
        context.queues[0].launch(program, length, [place + 4 * i, 1000 + i, *[7] * more], (1, 1, 1))
        if i == 2:
            context.signal(gate, 1)
    context.queues[0].fence().wait()
    words = context.space.read(place, 4 * count)
    assert [int.from_bytes(words[4 * i : 4 * i + 4], "little") for i in range(count)] == [
        1000 + i for i in range(count)
    ]


def test_tags_of_programs(driver: Driver, context: Context, usable: Check, upload: Upload) -> None:
    """No tag is given twice. Another program at an address has another tag and is fetched; so is any program after
    a reset."""
    tags = [driver.program_tag() for _ in range(3)]
    assert len({0, *tags}) == 4
    good, bad = (words_to_bytes(assemble(text)) for text in ("sync\nend", "sync\nsync"))
    program, _ = upload(good)

    def run(tag: int, code: bytes) -> None:
        context.space.write(program, code)
        context.queues[0].launch(program, 2, [], (1, 1, 1), tag)
        context.queues[0].fence().wait()

    for _ in range(2):
        run(tags[0], good)
        with pytest.raises(QueueFault, match="PC_OUT_OF_RANGE"):
            run(tags[1], bad)
    run(tags[2], good)
    driver.reset()
    with pytest.raises(QueueFault, match="PC_OUT_OF_RANGE"):
        run(tags[2], bad)
    usable()


def test_work_in_a_reset_device_is_lost_and_says_so(driver: Driver, context: Context, usable: Check) -> None:
    semaphore = context.heap.allocate(PACKET_BYTES)
    context.space.write(semaphore, bytes(8))
    context.queues[0].wait(semaphore, 1)
    fence = context.queues[0].fence()
    driver.reset()
    with pytest.raises(Exception, match="reset before this work had finished"):
        fence.wait()
    usable()


def test_a_queue_that_never_moves_is_a_hang(context: Context, usable: Check) -> None:
    semaphore = context.heap.allocate(8)
    context.space.write(semaphore, bytes(8))
    context.queues[1].wait(semaphore, 1)
    lost = context.queues[1].fence()
    with pytest.raises(ContextHang, match=r"queue 1 BLOCKED at WAIT") as caught:
        lost.wait()
    text = str(caught.value.dump)
    assert "QUEUE1.STATE" in text
    assert "FENCE interrupt=0x1" in text
    with pytest.raises(ContextHang):
        lost.wait()
    usable()
