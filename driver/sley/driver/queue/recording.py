"""Packets kept to be executed again and again, by one INDIRECT packet each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PacketOp, encode_packet
from sley.driver.errors import BadRequest
from sley.driver.queue.client import Client
from sley.driver.queue.packets import ARGS_BYTES, argument_words
from sley.driver.queue.ring import Ring

MAX_PACKETS = (1 << 16) - 1


@dataclass
class _Copy:
    """The packets in memory, as they were at some ``version``, and the last packet of each queue that executes them.
    ``entering``: how many such packets are on their way into a queue."""

    address: int
    version: int
    users: dict[Ring, int] = field(default_factory=dict)
    entering: int = 0

    @property
    def free(self) -> bool:
        return not self.entering and all(queue.finished(position) for queue, position in self.users.items())


class Recording:
    """What was submitted to a queue inside of ``Queue.record``. It may be submitted to any queue of the context.

    Arguments of launches may be changed at any time: a submission executes what the recording is when it is made.
    """

    def __init__(self, context: Client) -> None:
        self.context = context
        self._packets: list[bytes | dict[str, int]] = []
        self._args: dict[int, bytes] = {}
        self._copies: list[_Copy] = []
        self._version = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._packets)

    def __repr__(self) -> str:
        return f"Recording({len(self)} packets{', closed' if self.closed else ''})"

    def add(self, packet: bytes) -> int:
        """Appends a packet as it is; its index."""
        self._check_room()
        self._packets.append(packet)
        return len(self._packets) - 1

    def add_launch(self, fields: dict[str, int], args: Sequence[int]) -> int:
        """Appends a LAUNCH, whose arguments may be changed; its index."""
        self._check_room()
        self._packets.append(fields)
        self._args[len(self._packets) - 1] = b"".join(word.to_bytes(4, "little") for word in args)
        return len(self._packets) - 1

    def _check_room(self) -> None:
        if self.closed:
            raise BadRequest("the recording has ended; make another one")
        if len(self._packets) == MAX_PACKETS:
            raise BadRequest(f"a recording holds at most {MAX_PACKETS} packets")

    def patch(self, index: int, args: Sequence[int]) -> None:
        """Other arguments, 32-bit words, for the LAUNCH with this index; submissions before keep theirs."""
        if index not in self._args:
            raise BadRequest(f"packet {index} of the recording is no LAUNCH")
        data = b"".join(word.to_bytes(4, "little") for word in argument_words(args))
        if len(data) != len(self._args[index]):
            raise BadRequest(f"the launch has {len(self._args[index]) // 4} arguments; given were {len(args)}")
        self._args[index] = data
        self._version += 1

    def part(self, index: int) -> Recording:
        """A recording of one packet, as it is now."""
        found = Recording(self.context)
        packet = self._packets[index]
        found._packets.append(packet)
        if index in self._args:
            found._args[0] = self._args[index]
        return found

    def _bytes(self, address: int) -> bytes:
        """Packets, then the arguments that do not fit into them, for a place in memory."""
        place = address + len(self._packets) * PACKET_BYTES
        packets: list[bytes] = []
        outside: list[bytes] = []
        for index, packet in enumerate(self._packets):
            if isinstance(packet, bytes):
                packets.append(packet)
                continue
            data = self._args[index]
            words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
            if len(words) <= INLINE_ARGS:
                more = {f"arg{k}": word for k, word in enumerate(words)}
            else:
                more = {"args": place + len(outside) * ARGS_BYTES}
                outside.append(data.ljust(ARGS_BYTES, b"\0"))
            packets.append(encode_packet(PacketOp.LAUNCH, **packet, **more))
        return b"".join([*packets, *outside])

    def place(self) -> _Copy:
        """The packets in memory as they are now; the caller says who executes them."""
        current = next((copy for copy in self._copies if copy.version == self._version), None)
        if current is not None:
            return current
        copy = next((copy for copy in self._copies if copy.free), None)
        if copy is None:
            outside = sum(len(data) > 4 * INLINE_ARGS for data in self._args.values())
            size = len(self._packets) * PACKET_BYTES + outside * ARGS_BYTES
            copy = _Copy(self.context.heap.allocate(size), -1)
            self._copies.append(copy)
        copy.version = self._version
        self.context.space.write(copy.address, self._bytes(copy.address))
        return copy

    def close(self) -> None:
        """Gives the memory back when it is not in use any more."""
        self.closed = True
        copies, self._copies = self._copies, []

        def free() -> None:
            for copy in copies:
                self.context.heap.free(copy.address)

        if copies:
            self.context.when_done(free)
