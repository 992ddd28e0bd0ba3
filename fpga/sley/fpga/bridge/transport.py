"""Engine ``fpga``: a chip behind a serial line, as the driver's ``Transport``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sley.abi import install
from sley.abi.transport import memory_span, register_address
from sley.fpga.bridge.frames import DEFAULT_BAUD, WORD_BYTES, Code, Identity
from sley.fpga.bridge.link import Link, LinkError, Port

if TYPE_CHECKING:
    import serial

DEFAULT_TIMEOUT = 0.5
_POLL_SECONDS = 0.02
_WAIT_SECONDS = 0.25
"""Longest wait that is one command, so that a lost reply is noticed soon."""


class SerialPort:
    """A serial device of this machine as ``Port``. Nobody else can open it meanwhile."""

    def __init__(self, name: str, baud: int, timeout: float) -> None:
        try:
            import serial
        except ImportError:
            raise LinkError(f"engine fpga needs pyserial: {install.extra('fpga')}") from None
        self.name = name
        try:
            self._serial: serial.Serial = serial.Serial(
                name, baud, timeout=_POLL_SECONDS, write_timeout=max(1.0, 4 * timeout), exclusive=True
            )
        except (OSError, ValueError) as error:
            raise LinkError(
                f"serial port {name} cannot be opened at {baud} baud: {error}. Write fpga:/dev/ttyUSB0 or whatever "
                "the board is called; is it connected, may you use it, and does no other program?"
            ) from None
        self._serial.reset_input_buffer()

    def write(self, data: bytes) -> None:
        self._serial.write(data)

    def read(self) -> bytes:
        data: bytes = self._serial.read(max(1, self._serial.in_waiting))
        return data

    def close(self) -> None:
        self._serial.close()


class FpgaTransport:
    """A device whose host bridge is at the other end of ``port``.

    Writes are posted: they are sent in order, and an error of one is raised by a later call. A byte that is lost or
    altered on the line is noticed and sent again; if that does not help the call raises ``LinkError``, and so does
    every error of the bus. ``baud``: rate of the line, from which the time that it needs is reckoned; ``timeout``:
    seconds of silence beyond that.
    """

    def __init__(self, port: Port, baud: int = DEFAULT_BAUD, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._port = port
        self._link: Link | None = Link(port, baud, timeout)

    @property
    def identity(self) -> Identity:
        """What the bridge says of itself."""
        return self._open().identity

    @property
    def memory_bytes(self) -> int:
        return self.identity.memory_bytes

    @property
    def recoveries(self) -> int:
        """How often the line lost or altered something since it was opened, and was put in order."""
        return self._open().recoveries

    def read32(self, address: int) -> int:
        link = self._open()
        request = link.post(Code.READ_REGISTER, register_address(address), length=WORD_BYTES)
        return int.from_bytes(link.result(request), "little")

    def write32(self, address: int, value: int) -> None:
        word = (value & 0xFFFFFFFF).to_bytes(WORD_BYTES, "little")
        self._open().post(Code.WRITE_REGISTER, register_address(address), word)

    def read_memory(self, address: int, length: int) -> bytes:
        link = self._open()
        requests = [link.post(Code.READ_MEMORY, start, length=size) for start, size in self._pieces(address, length)]
        return b"".join([link.result(request) for request in requests])

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        link = self._open()
        raw = bytes(data)
        for start, size in self._pieces(address, len(raw)):
            piece = raw[start - address : start - address + size]
            if any(piece):
                link.post(Code.WRITE_MEMORY, start, piece)
            else:
                link.post(Code.CLEAR_MEMORY, start, length=size)

    def barrier(self) -> None:
        self._open().flush()

    def wait_irq(self, cycles: int) -> bool:
        return self._wait(Code.WAIT_IRQ, cycles)

    def advance(self, cycles: int) -> None:
        if cycles > 0:
            self._wait(Code.ADVANCE, cycles)

    def close(self) -> None:
        """Waits for what was posted, and releases the port. Raises ``LinkError`` if a posted write failed."""
        link, self._link = self._link, None
        try:
            if link is not None and not link.given_up:
                link.flush()
        finally:
            close = getattr(self._port, "close", None)
            if close is not None:
                close()

    def _wait(self, code: Code, cycles: int) -> bool:
        link = self._open()
        most = min(max(1, int(_WAIT_SECONDS * link.identity.clock_hz)), 1 << 31)
        left = max(1, cycles)
        while True:
            some = min(left, most)
            left -= some
            # The bridge counts up to zero.
            request = link.post(code, -some % (1 << 32), seconds=some / link.identity.clock_hz)
            link.result(request)
            if request.irq or not left:
                return request.irq

    def _pieces(self, address: int, length: int) -> list[tuple[int, int]]:
        """The range as bursts of at most a payload, which end at whole beats."""
        identity = self.identity
        memory_span(address, length, identity.memory_bytes)
        pieces = []
        end = address + length
        while address < end:
            size = min(identity.payload_bytes - address % identity.bus_bytes, end - address)
            pieces.append((address, size))
            address += size
        return pieces

    def _open(self) -> Link:
        if self._link is None:
            raise LinkError(f"{self._port.name} is closed; open the device again")
        return self._link


def open_transport(spec: str, options: dict[str, str]) -> FpgaTransport:
    """The board at the serial port ``spec``; options ``baud`` and ``timeout``."""
    unknown = [name for name in options if name not in ("baud", "timeout")]
    if unknown:
        raise LinkError(f"engine fpga has no option {unknown[0]!r}; there are baud, timeout")
    values = {"baud": float(DEFAULT_BAUD), "timeout": DEFAULT_TIMEOUT}
    for name, text in options.items():
        try:
            values[name] = float(text) if name == "timeout" else int(text)
        except ValueError:
            values[name] = -1
        if not 0 < values[name] < 1e9:
            raise LinkError(f"{name}={text}: {name} must be a positive number")
    baud, timeout = int(values["baud"]), values["timeout"]
    port = SerialPort(spec, baud, timeout)
    try:
        return FpgaTransport(port, baud, timeout)
    except LinkError:
        port.close()
        raise
