"""Registers by name: the driver's view of the register map."""

from collections.abc import Callable

from sley.abi.registers import PlacedRegister, RegisterMap
from sley.abi.transport import Transport
from sley.driver.errors import BadRequest


class Registers:
    """Reads and writes registers of ``map`` by their full names, for example ``QUEUE0.STATE``.

    ``log``, when set, is called with one line for every access: ``write QUEUE0.SIZE log2=6``.
    """

    def __init__(self, transport: Transport, map: RegisterMap, log: Callable[[str], None] | None = None) -> None:
        self.transport = transport
        self.map = map
        self.log = log

    def __getitem__(self, name: str) -> PlacedRegister:
        try:
            return self.map[name]
        except KeyError:
            raise BadRequest(f"no register {name!r}; there are {', '.join(self.map.registers)}") from None

    def read(self, name: str) -> dict[str, int]:
        """Every field of a register."""
        placed = self[name]
        fields = placed.layout.unpack(self.transport.read32(placed.address))
        if self.log:
            self.log(f"read  {name} -> {_show(fields)}")
        return fields

    def value(self, name: str, field: str | None = None) -> int:
        """One field of a register; the only one if ``field`` is not given."""
        fields = self.read(name)
        if field is None:
            (value,) = fields.values()
            return value
        return fields[field]

    def wide(self, name: str) -> int:
        """The 64-bit value of a pair of registers ``name_LO`` and ``name_HI``."""
        low = self.value(f"{name}_LO")
        return self.value(f"{name}_HI") << 32 | low

    def write(self, name: str, **fields: int) -> None:
        """Writes a register; fields that are not given become zero. Raises ``LayoutError`` on a bad field or value."""
        placed = self[name]
        if self.log:
            self.log(f"write {name} {_show(fields)}")
        self.transport.write32(placed.address, placed.layout.pack(**fields))


def _show(fields: dict[str, int]) -> str:
    return " ".join(f"{key}={value:#x}" if value > 9 else f"{key}={value}" for key, value in fields.items())
