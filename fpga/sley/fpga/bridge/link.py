"""The host's end of the serial line: commands in, replies out, whatever happens to the bytes in between."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from sley.abi.transport import TransportError
from sley.fpga.bridge.frames import (
    FLAG,
    HEADER,
    IDENTITY_BYTES,
    IRQ,
    MAGIC,
    SEQUENCES,
    VERSION,
    Code,
    FrameDecoder,
    Identity,
    Status,
    encode_frame,
)

RECOVERIES = 16
"""Times that the link is put in order without a command being answered in between, before it is given up."""
MOST_UNANSWERED = 64
"""Commands in flight; less than half of the sequence numbers, so that old and new are told apart."""
MOST_REPLY_BYTES = 4096
"""Data that outstanding replies may have: what the line discipline of Linux keeps for a program that is late."""

_WRITES = (Code.WRITE_MEMORY, Code.WRITE_REGISTER, Code.CLEAR_MEMORY)
_REFUSED = (Status.BAD_FRAME, Status.OUT_OF_SEQUENCE)
_TEXT = {
    Status.BUS_ERROR: "was answered with a bus error: nothing is at that address",
    Status.BUS_TIMEOUT: "got no answer from the bus, which is not asked again: reset the board",
    Status.BAD_COMMAND: "is not known to the bridge: build the bitstream from this version of Sley",
}


class LinkError(TransportError):
    """The board cannot be reached, or refused an access. Says where, and what to do about it."""


class Port(Protocol):
    """A serial line, or what stands for one."""

    name: str

    def write(self, data: bytes) -> None:
        """Sends all of it. Raises ``OSError`` if that is not possible."""
        ...

    def read(self) -> bytes:
        """What has arrived. Waits a short time for something if there is nothing."""
        ...


@dataclass
class Request:
    """A command in flight, and what came of it."""

    code: Code
    address: int
    length: int
    data: bytes
    seconds: float
    sequence: int = 0
    line_bytes: int = 0
    reply: bytes = b""
    irq: bool = False
    done: bool = False
    error: str = ""
    repeated: bool = False
    """It was executed before it was sent the last time."""

    def frame(self, sequence: int) -> bytes:
        self.sequence = sequence
        frame = encode_frame(HEADER.pack(self.code, sequence, self.length, self.address) + self.data)
        self.line_bytes = len(frame)
        return frame

    @property
    def reply_bytes(self) -> int:
        return 0 if self.code in _WRITES else self.length

    def __str__(self) -> str:
        return f"{self.code.name} at {self.address:#x}"


class Link:
    """Carries out commands, in order, over ``port``.

    ``timeout``: seconds of silence, beyond what the line needs, after which a reply counts as lost. A command or reply
    that is lost or damaged is asked for again; what was executed is not executed again, but for reads of memory. If
    that does not help, ``LinkError`` is raised, by every later call too. Attributes: ``identity``: what is at the other
    end; ``given_up``: why, if that is so; ``recoveries``: how often the link had to be put in order so far.
    """

    def __init__(self, port: Port, baud: int, timeout: float) -> None:
        self._port = port
        self._byte_seconds = 10 / baud
        self._timeout = timeout
        self._decoder = FrameDecoder()
        self._unanswered: deque[Request] = deque()
        self._fault = self.given_up = ""
        self._recoveries = self.recoveries = 0
        self.identity = self._identify(0)
        self._next = self.identity.expected
        self._failures = self.identity.failures

    def post(self, code: Code, address: int, data: bytes = b"", length: int = 0, seconds: float = 0.0) -> Request:
        """Sends a command and does not wait for its end, if there is room for it. ``length`` is what a read asks for,
        ``seconds`` what the command itself takes."""
        request = Request(code, address, len(data) or length, data, seconds)
        self._check()
        frame = request.frame(self._next)
        while self._unanswered and not self._has_room(request):
            self._receive()
            frame = request.frame(self._next)  # which may be another one after a loss
        self._check()
        self._next = (self._next + 1) % SEQUENCES
        self._unanswered.append(request)
        self._write(frame)
        return request

    def result(self, request: Request) -> bytes:
        """Waits for a command; the data of its reply. Raises ``LinkError`` if it, or a write before it, failed."""
        while not request.done:
            self._check()
            self._receive()
        self._check()
        if request.error:
            raise LinkError(request.error)
        return request.reply

    def flush(self) -> None:
        """Waits for all commands. Raises ``LinkError`` if one of them failed."""
        while self._unanswered:
            self._receive()
        self._check()

    def _check(self) -> None:
        if self.given_up:
            raise LinkError(f"{self.given_up}. The link was given up: open the device again")
        if self._fault:
            fault, self._fault = self._fault, ""
            raise LinkError(fault)

    def _give_up(self, why: str) -> LinkError:
        """What is in flight is lost, and nobody knows how much of it was done."""
        self.given_up = f"{self._port.name}{why}"
        self._unanswered.clear()
        return LinkError(self.given_up)

    def _has_room(self, request: Request) -> bool:
        waiting = self._unanswered
        return (
            len(waiting) < MOST_UNANSWERED
            and sum(r.line_bytes - 1 for r in waiting) + request.line_bytes - 1 <= self.identity.buffer_bytes
            and sum(r.reply_bytes for r in waiting) + request.reply_bytes <= MOST_REPLY_BYTES
        )

    def _write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except OSError as error:
            raise self._give_up(f" takes no more bytes: {error}; is the board still connected?") from error

    def _patience(self) -> float:
        """Seconds in which something must arrive."""
        line = sum(r.line_bytes + r.reply_bytes for r in self._unanswered) * self._byte_seconds
        return self._timeout + line + max((r.seconds for r in self._unanswered), default=0.0)

    def _receive(self) -> None:
        """Takes what arrives, until a command is answered or the link had to be put in order."""
        deadline = time.monotonic() + self._patience()
        while time.monotonic() < deadline:
            data = self._read()
            if data:
                deadline = time.monotonic() + self._patience()
            in_order = True
            answered = False
            for body in self._decoder.feed(data):
                if body is None or body[-1] & ~IRQ in _REFUSED:
                    in_order = False
                elif in_order:
                    answered = self._take(body) or answered
            if not in_order:
                break
            if answered and self._retire():
                return
        self._recover()

    def _read(self) -> bytes:
        try:
            return self._port.read()
        except OSError as error:
            raise self._give_up(f" cannot be read: {error}; is the board still connected?") from error

    def _take(self, body: bytes) -> bool:
        """A reply; whether it is one to a command in flight."""
        if len(body) < 2:
            return False
        request = next((r for r in self._unanswered if r.sequence == body[0] and not r.done), None)
        if request is None:
            return False
        status, data = Status(body[-1] & ~IRQ), body[1:-1]
        if status == Status.OK and len(data) != request.reply_bytes:
            return False
        request.done = True
        request.reply, request.irq = data, bool(body[-1] & IRQ)
        if status != Status.OK:
            self._failed(request, _TEXT[status])
            if status in (Status.BUS_ERROR, Status.BUS_TIMEOUT) and not request.repeated:
                self._failures = (self._failures + 1) % 256
        return True

    def _failed(self, request: Request, why: str) -> None:
        """Keeps the error for who waits for the request; of a write, the first one for whoever waits next."""
        request.error = f"{self._port.name}: {request} {why}"
        if request.code in _WRITES:
            self._fault = self._fault or request.error

    def _retire(self) -> bool:
        """Forgets commands that are over, up to the first that is not; whether there was one."""
        some = False
        while self._unanswered and self._unanswered[0].done:
            self._unanswered.popleft()
            self._recoveries = 0
            some = True
        return some

    def _identify(self, following: int) -> Identity:
        """Asks who is there, until there is an answer; takes replies that come before it."""
        seen = False
        for attempt in range(RECOVERIES):
            sequence = (following + SEQUENCES // 2 + attempt) % SEQUENCES
            command = encode_frame(HEADER.pack(Code.IDENTIFY, sequence, IDENTITY_BYTES, 0))
            self._write(bytes([FLAG]) + command)
            deadline = time.monotonic() + self._patience()
            while time.monotonic() < deadline:
                data = self._read()
                seen = seen or bool(data)
                for body in self._decoder.feed(data):
                    if body is not None and len(body) == IDENTITY_BYTES + 2 and body[0] == sequence:
                        return self._identity(body[1:-1])
                    if body is not None and body[-1] & ~IRQ not in _REFUSED:
                        self._take(body)
        heard = "what it says is not understood" if seen else "nothing was heard"
        raise self._give_up(
            f": no Sley host bridge answered {RECOVERIES} times, {heard}. Check that the bitstream is loaded, that "
            "this is the board's port, and that the rate is the bitstream's (option baud)"
        )

    def _identity(self, data: bytes) -> Identity:
        identity = Identity.unpack(data)
        if identity.magic != MAGIC:
            raise LinkError(f"{self._port.name}: what answers says {identity.magic!r}, not {MAGIC!r}: no Sley bridge")
        if identity.version != VERSION:
            raise LinkError(
                f"{self._port.name}: the bridge speaks version {identity.version} of the protocol and this host "
                f"{VERSION}; use bitstream and software of one version"
            )
        return identity

    def _recover(self) -> None:
        """After a loss: finds out how far the bridge has come, and sends again what it has not seen."""
        self._recoveries += 1
        self.recoveries += 1
        if self._recoveries > RECOVERIES:
            raise self._give_up(
                f": {self._unanswered[0]} was not answered after {RECOVERIES} tries; the line loses bytes: use a lower "
                "rate or a better cable"
            )
        known = self._identify(self._next)
        self._retire()
        oldest = self._unanswered[0].sequence if self._unanswered else self._next
        executed = (known.expected - oldest) % SEQUENCES
        if executed > (self._next - oldest) % SEQUENCES:
            raise self._give_up(
                f": the bridge expects command {known.expected}, not one of {oldest} to {self._next}; was the board "
                "reset, or is another program using it?"
            )
        failed = known.failures != self._failures
        self._failures = known.failures
        again: list[Request] = []
        anew: list[Request] = []
        for place, request in enumerate(self._unanswered):
            if request.done:
                continue
            if place >= executed:
                again.append(request)
            elif request.code == Code.READ_MEMORY:
                anew.append(request)
            elif request.code in _WRITES:
                request.done = True
                if failed:
                    self._failed(request, "or a command soon after it was answered with a bus error")
            elif place == executed - 1:
                request.repeated = True  # it is the last one: the bridge has its reply
                again.append(request)
            else:
                raise self._give_up(f": the reply to {request} is lost, and others were sent since")
        self._retire()
        self._unanswered = deque([*again, *anew])
        for request in again:
            self._write(request.frame(request.sequence))
        self._next = (known.expected + sum(not request.repeated for request in again)) % SEQUENCES
        for request in anew:
            self._write(request.frame(self._next))
            self._next = (self._next + 1) % SEQUENCES
