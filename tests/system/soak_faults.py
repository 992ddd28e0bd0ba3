"""What goes wrong in a soak: faults with the error records that they must leave, resets, memory that goes."""

from collections.abc import Callable

from soak_client import ABYSS, Line
from soak_mirror import Expected
from soak_session import Session
from soak_work import fill

from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PacketOp, encode_packet
from sley.abi.pages import PAGE_BYTES
from sley.driver.errors import QueueFault
from sley.sim.testing.watched_transport import SMALL

NOWHERE = 0x3000_0000
"""An address that nobody has anything at."""


def fault(session: Session, line: Line) -> None:
    kind = session.dice.choice([_bad_packet, _bad_memory, _bad_memory, _bad_program])
    name, call, expected = kind(session, line)
    session.enter(line, name, call, expected=expected)


def _bad_packet(session: Session, line: Line) -> tuple[str, Callable[[], object], Expected]:
    dice = session.dice
    mine = line.client.data.address
    op, word, bit = dice.randrange(9, 256), dice.getrandbits(24), dice.randrange(32, 512)
    packet, expected = dice.choice(
        [
            (
                (op | word << 8).to_bytes(4, "little") + bytes(60),
                Expected(FaultCode.BAD_PACKET, address=op | word << 8),
            ),
            ((1 | 1 << bit).to_bytes(64, "little"), Expected(FaultCode.BAD_FIELD, address=bit // 32)),
            (
                encode_packet(PacketOp.FENCE, address=mine + 8, sequence=1),
                Expected(FaultCode.BAD_FIELD, address=2),
            ),
            (
                encode_packet(PacketOp.FILL, dst=(1 << 32) - 8, bytes=9),
                Expected(FaultCode.BAD_ADDRESS, address=(1 << 32) - 8),
            ),
            (
                encode_packet(PacketOp.LAUNCH, program=mine, program_words=1, grid_x=0, grid_y=1, grid_z=1),
                Expected(FaultCode.BAD_FIELD, address=2),
            ),
        ]
    )
    return "bad packet", lambda: line.queue.raw(packet), expected


def _bad_memory(session: Session, line: Line) -> tuple[str, Callable[[], object], Expected]:
    """Memory that is not there, does not allow it, or ends: reached by packets and by programs."""
    client, dice = line.client, session.dice
    offset, mine = 16 * dice.randrange(200), client.data.address
    code, places = dice.choice(
        [
            (FaultCode.PAGE_FAULT, {"read": NOWHERE, "write": NOWHERE, "execute": NOWHERE}),
            (
                FaultCode.PERMISSION,
                {"read": client.code.address, "write": client.constants.address, "execute": mine},
            ),
            (FaultCode.BUS_ERROR, {"read": ABYSS, "write": ABYSS, "execute": ABYSS}),
        ]
    )
    read, write, execute = (places[kind] + offset for kind in ("read", "write", "execute"))

    def launch(program: int, words: int, *args: int) -> bytes:
        values = {f"arg{k}": value for k, value in enumerate(args)}
        grid = {"grid_x": 1, "grid_y": 1, "grid_z": 1}
        return encode_packet(
            PacketOp.LAUNCH, program=program, program_words=words, arg_words=len(args), **grid, **values
        )

    load, store = client.programs["load"], client.programs["store"]
    packet, expected = dice.choice(
        [
            (encode_packet(PacketOp.FILL, dst=write, bytes=40), Expected(code, address=write)),
            (encode_packet(PacketOp.COPY, src=read, dst=mine, bytes=40), Expected(code, address=read)),
            (encode_packet(PacketOp.COPY, src=mine, dst=write, bytes=40), Expected(code, address=write)),
            (encode_packet(PacketOp.WAIT, address=read, value=0), Expected(code, address=read)),
            (encode_packet(PacketOp.SIGNAL, address=write, value=0), Expected(code, address=write)),
            (encode_packet(PacketOp.FENCE, address=write, sequence=1), Expected(code, address=write)),
            (launch(execute, 3), Expected(code, Unit.SEQUENCER, address=execute)),
            (launch(load[0], load[1], read), Expected(code, Unit.LOAD, 2, address=read)),
            (launch(store[0], store[1], write), Expected(code, Unit.STORE, 2, address=write)),
        ]
    )
    return f"bad memory {code.name}", lambda: line.queue.raw(packet), expected


def _bad_program(session: Session, line: Line) -> tuple[str, Callable[[], object], Expected]:
    block = session.dice.randrange(6)
    word = int.from_bytes(bytes([0x77] * 4), "little")
    name, args, grid, expected = session.dice.choice(
        [
            ("illegal", [], 1, Expected(FaultCode.ILLEGAL_INSTRUCTION, Unit.SEQUENCER, 1, 0, word)),
            ("long run", [0], 1, Expected(FaultCode.BAD_PARAMETER, Unit.LOAD, 2, 0, 8)),
            ("five loops", [], 1, Expected(FaultCode.LOOP_OVERFLOW, Unit.SEQUENCER, 4, 0, 6)),
            ("out of a loop", [], 1, Expected(FaultCode.BRANCH_OUT_OF_LOOP, Unit.SEQUENCER, 2, 0, 5)),
            ("no end", [], 1, Expected(FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, 2, 0, 2)),
            ("leftover", [], 1, Expected(FaultCode.SEMAPHORE_LEFTOVER, Unit.SEQUENCER, 2, 0, 1 << 3 | 1 << 7)),
            ("local", [], 1, Expected(FaultCode.LOCAL_ADDRESS, Unit.MATRIX, 2, 0, SMALL.scratchpad_rows)),
            ("hang", [], 1, Expected(FaultCode.WATCHDOG, Unit.SEQUENCER, 1, 0, None)),
            ("spin", [], 1, Expected(FaultCode.WATCHDOG, Unit.SEQUENCER, 0, 0, None)),
            (
                "late fault",
                [block, 0, NOWHERE],
                6,
                Expected(FaultCode.PAGE_FAULT, Unit.LOAD, 3, block, NOWHERE),
            ),
        ]
    )
    program, words, tag = line.client.programs[name]
    return f"program {name}", lambda: line.queue.launch(program, words, args, (grid, 1, 1), tag), expected


def bad_doorbell(session: Session, line: Line) -> None:
    """Takes effect between two packets, whichever those are."""
    queue = line.queue
    session.driver.service(poll=True)
    if queue.state is QueueState.ERROR:
        return
    index = 2 * queue.length + session.dice.randrange((1 << 16) - 2 * queue.length)
    heard = len(line.client.errors)
    line.doorbell = index
    session.driver.registers.write(f"DOORBELL{queue.index}.WRITE_INDEX", index=index)

    def stopped() -> bool:
        new = line.client.errors[heard:]
        return any(isinstance(error, QueueFault) and error.queue == queue.index for error in new)

    assert session.driver.wait(stopped, timeout=50_000, step=500)
    line.doorbell = None


def reset(session: Session, line: Line) -> None:
    client = line.client
    if session.dice.random() < 0.5:  # with work that never ends by itself
        session.enter(line, "wait for ever", lambda: line.queue.wait(client.never, 1))
        if line.queue.pending < line.queue.length:
            fill(session, line)
    session.driver.transport.advance(session.dice.randrange(1, 3_000))
    resets = session.driver.statistics.device_resets
    client.context.reset()
    assert session.driver.statistics.device_resets == resets
    for other in client.lines:
        session.settle(other)
        assert not other.journal
        assert not other.queue.pending


def reset_device(session: Session, line: Line) -> None:
    session.driver.reset()
    for other in session.lines:
        session.settle(other)
        assert not other.journal


def remap(session: Session, line: Line) -> None:
    """Maps memory, uses it, unmaps it: what was there is a fault from then on."""
    context, queue = line.client.context, line.queue
    session.drain(line.client)
    buffer = context.allocate(PAGE_BYTES * session.dice.randrange(1, 4))
    mark = line.client.number + 1
    assert set(buffer.read(0, buffer.length)) <= {0, mark}, "memory is zeroed before another client gets it"
    mapping = context.map(buffer)
    buffer.release()
    address = mapping.end - 64
    session.enter(line, "fill a new page", lambda: queue.fill(address, mark, 64))
    session.drain(line.client)
    assert context.space.read(address, 64) == bytes([mark]) * 64
    context.unmap(mapping)
    assert not context.deferred
    packet = encode_packet(PacketOp.FILL, dst=address, bytes=64)
    gone = Expected(FaultCode.PAGE_FAULT, address=address)
    session.enter(line, "fill an old page", lambda: queue.raw(packet), expected=gone)
