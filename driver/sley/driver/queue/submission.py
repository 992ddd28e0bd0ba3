"""Packets as methods: each is checked, encoded, and put into the ring or into a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, SEMAPHORE_BYTES, PacketOp
from sley.driver.errors import BadRequest
from sley.driver.memory.buffer import Rights
from sley.driver.queue.client import AsyncWaiter, Client
from sley.driver.queue.packets import argument_words, check_fields, encode
from sley.driver.queue.recording import Recording
from sley.driver.queue.ring import Ring


class Submission(Ring):
    """A ring that takes packets by the methods named like them; each call rings the doorbell, or one does for a
    ``batch``.

    Several threads may submit; a packet goes in as a whole. Parameters: see ``Ring``.
    """

    def __init__(self, context: Client, waiter: AsyncWaiter, index: int, log2_length: int, readback: int) -> None:
        super().__init__(context, waiter, index, log2_length, readback)
        self._recording: Recording | None = None

    def _ready(self, count: int = 1) -> bool:
        """Whether there is room for so many packets; raises what went wrong before."""
        self.context.check()
        self.raise_failure()
        return self._has_room(count)

    def _submit(self, op: PacketOp, **fields: int) -> int:
        return self._enqueue(encode(self.hardware.config, op, **fields))

    def _enqueue(self, *packets: bytes) -> int:
        """Puts packets into the ring one behind the other; the position of the last."""
        if self._recording is not None:
            return [self._recording.add(packet) for packet in packets][-1]
        while True:
            with self.hardware.lock:
                if self._ready(len(packets)):
                    for packet in packets:
                        self._put(packet)
                    return self.head - 1
            self._make_room(len(packets))

    def raw(self, packet: bytes) -> int:
        """Submits 64 bytes as they are, without any check. For tests and debugging."""
        if len(packet) != PACKET_BYTES:
            raise BadRequest(f"a packet has {PACKET_BYTES} bytes, not {len(packet)}")
        return self._enqueue(packet)

    def nop(self) -> int:
        return self._submit(PacketOp.NOP)

    # Launches

    def launch(
        self,
        program: int,
        program_words: int,
        args: Sequence[int],
        grid: tuple[int, int, int],
        tag: int = 0,
        gang: bool = False,
    ) -> int:
        """Runs a grid of blocks of the program at ``program``; ``args`` are 32-bit words. In a ``gang`` blocks fill the
        chip: block (x, y, z) runs on the core in column x and row y, together with all others of this z.

        A ``tag`` from ``Driver.program_tag`` promises that the program never changes: a core that still holds it does
        not fetch it again.
        """
        words = argument_words(args)
        x, y, z = grid
        fields = {"program_words": program_words, "program": program, "tag": tag, "arg_words": len(args)}
        fields |= {"grid_x": x, "grid_y": y, "grid_z": z, "gang": int(gang)}
        check_fields(self.hardware.config, PacketOp.LAUNCH, fields)
        self.space.check(program, program_words * INSTRUCTION_BYTES, Rights.EXECUTE, "program")
        if self._recording is not None:
            return self._recording.add_launch(fields, words)
        if len(words) <= INLINE_ARGS:
            fields |= {f"arg{k}": word for k, word in enumerate(words)}
            return self._submit(PacketOp.LAUNCH, **fields)
        return self._launch_with_arguments(fields, b"".join(word.to_bytes(4, "little") for word in words))

    def _launch_with_arguments(self, fields: dict[str, int], data: bytes) -> int:
        """A launch with more arguments than fit into its packet: they go beside its slot of the ring."""
        while True:
            with self.hardware.lock:
                if self._ready():
                    fields["args"] = self._arguments
                    packet = encode(self.hardware.config, PacketOp.LAUNCH, **fields)
                    self.space.write(fields["args"], data)
                    self._put(packet)
                    return self.head - 1
            self._make_room(1)

    # Memory

    def copy(self, src: int, dst: int, length: int) -> None:
        """Copies bytes within device memory; long copies become several packets, so that progress stays visible."""
        self.space.check(src, length, Rights.READ, "source of copy")
        self.space.check(dst, length, Rights.WRITE, "destination of copy")
        if src < dst + length and dst < src + length and length:
            raise BadRequest(f"copy of {length} bytes from {src:#x} to {dst:#x}: the ranges overlap")
        for offset, size in self._pieces(length):
            self._submit(PacketOp.COPY, bytes=size, src=src + offset, dst=dst + offset)

    def fill(self, dst: int, value: int, length: int) -> None:
        """Sets bytes of device memory."""
        self.space.check(dst, length, Rights.WRITE, "destination of fill")
        check_fields(self.hardware.config, PacketOp.FILL, {"value": value})
        for offset, size in self._pieces(length):
            self._submit(PacketOp.FILL, value=value, bytes=size, dst=dst + offset)

    def _pieces(self, length: int) -> Iterator[tuple[int, int]]:
        hardware = self.hardware
        piece = max(PACKET_BYTES, hardware.hang_cycles // 8 * hardware.config.bus_bytes) & -PACKET_BYTES
        for offset in range(0, length, piece):
            yield offset, min(piece, length - offset)

    # Order

    def wait(self, address: int, value: int) -> int:
        """Holds the queue until the 64-bit word at ``address`` is at least ``value``."""
        check_fields(self.hardware.config, PacketOp.WAIT, {"address": address, "value": value})
        self.space.check(address, SEMAPHORE_BYTES, Rights.READ, "semaphore")
        return self._submit(PacketOp.WAIT, address=address, value=value)

    def signal(self, address: int, value: int) -> int:
        """Writes a 64-bit word when everything before has finished."""
        check_fields(self.hardware.config, PacketOp.SIGNAL, {"address": address, "value": value})
        self.space.check(address, SEMAPHORE_BYTES, Rights.WRITE, "semaphore")
        return self._submit(PacketOp.SIGNAL, address=address, value=value)

    def indirect(self, address: int, packets: int) -> int:
        """Executes packets that are elsewhere in memory."""
        if self._recording is not None:
            raise BadRequest("packets that are elsewhere cannot be recorded: a recording holds no other recording")
        check_fields(self.hardware.config, PacketOp.INDIRECT, {"packets": packets, "address": address})
        self.space.check(address, packets * PACKET_BYTES, Rights.READ, "packets")
        return self._submit(PacketOp.INDIRECT, packets=packets, address=address)
