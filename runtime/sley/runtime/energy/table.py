"""Published energies of operations and accesses: a table for each technology, with the source of every number."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sley.driver import BadRequest

PUBLISHED = Path(__file__).parent / "published.csv"
"""The numbers that come with Sley."""
COLUMNS = ["item", "value", "unit", "node", "source", "status"]
MADE_OF = {"int8 MAC": ("int8 multiply", "int32 add"), "bf16 MAC": ("bf16 multiply", "fp32 add")}
"""What stands for an item that a table has not."""
WORD_BITS = 64
"""Of the access that energies of memories are kept for."""
UNITS = {"pJ": 1, "pJ/bit": WORD_BITS, "pJ/B/hop": 1, "pJ/MAC": 1, "pJ/FMA": 1, "V": 1}
"""Units of values, and what a value is multiplied by; of memories it becomes picojoules of 64 bits."""
_SRAM = re.compile(r"SRAM (\d+) (KB|MB) (?:(\d+)-bit access|(read|write))")
_SIZES = {"KB": 1 << 10, "MB": 1 << 20}


@dataclass(frozen=True)
class Quantity:
    """Picojoules (volts of a supply) between two bounds, which are equal where one number was published."""

    low: float
    high: float
    source: str

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def times(self, factor: float) -> Quantity:
        return Quantity(self.low * factor, self.high * factor, self.source)

    def plus(self, other: Quantity) -> Quantity:
        source = self.source if self.source == other.source else f"{self.source}; {other.source}"
        return Quantity(self.low + other.low, self.high + other.high, source)


@dataclass(frozen=True)
class Table:
    """Energies of one technology.

    Attributes
    ----------
    name: of the technology, the column ``node``. rows: picojoules of each item; of DRAM per 64 bits, of the network per
    byte and hop. reads, writes: picojoules of 64 bits of an SRAM, by its bytes. supply: volts they were published for.
    """

    name: str
    rows: Mapping[str, Quantity]
    reads: Mapping[int, Quantity]
    writes: Mapping[int, Quantity]
    supply: float

    @classmethod
    def read(cls, path: str | Path = PUBLISHED, node: str = "45nm") -> Table:
        """The rows of a node, of a CSV file with the columns of ``published.csv``. Items that no estimate needs may be
        there. Raises ``BadRequest`` for a file that is none, and for a node that it does not have."""
        rows, reads, writes = {}, {}, {}
        nodes = set()
        for row in _records(Path(path)):
            nodes.add(row["node"])
            if row["node"] != node:
                continue
            found = _SRAM.fullmatch(row["item"])
            value = _quantity(path, row)
            if found is None:
                rows[row["item"]] = value
                continue
            size, unit, bits, direction = found.groups()
            place = int(size) * _SIZES[unit]
            word = value.times(WORD_BITS / int(bits)) if bits else value
            if direction != "write":
                reads[place] = word
            if direction != "read":
                writes[place] = word
        if node not in nodes:
            raise BadRequest(f"{path} has no node {node!r}; it has {', '.join(sorted(nodes))}")
        supply = rows.get("supply")
        return cls(node, rows, reads, writes, supply.middle if supply else 1.0)

    @classmethod
    def named(cls, text: str) -> Table:
        """As commands take it: a node of ``published.csv``, or ``FILE:NODE``. Raises ``BadRequest``."""
        file, colon, node = text.rpartition(":")
        return cls.read(file, node) if colon else cls.read(node=node)

    def operation(self, name: str) -> Quantity:
        """Picojoules of an operation. Raises ``BadRequest`` for one that is not in the table."""
        if name in self.rows:
            return self.rows[name]
        parts = MADE_OF.get(name, ())
        if not parts or any(part not in self.rows for part in parts):
            instead = f", nor {' and '.join(parts)}" if parts else ""
            raise BadRequest(f"the table {self.name} has no {name!r}{instead}: add a row, or take another table")
        first, second = (self.rows[part] for part in parts)
        return first.plus(second)

    def sram(self, bank_bytes: int, access_bytes: int, write: bool = False) -> Quantity:
        """Picojoules of an access of so many bytes to a bank of an SRAM: on the straight line between the two sizes
        published next to it, both on logarithmic scales, continued at both ends."""
        known = sorted((self.writes if write else self.reads).items())
        if not known:
            raise BadRequest(f"the table {self.name} has no SRAM: add a row such as 'SRAM 32 KB 64-bit access'")
        words = 8 * access_bytes / WORD_BITS
        if len(known) == 1:
            return known[0][1].times(words)
        above = next((k for k, (size, _) in enumerate(known) if size >= bank_bytes), len(known) - 1)
        (small, low), (large, high) = known[max(above, 1) - 1], known[max(above, 1)]
        share = math.log(bank_bytes / small) / math.log(large / small)
        source = low.source if low.source == high.source else f"{low.source}; {high.source}"
        return Quantity(_between(low.low, high.low, share), _between(low.high, high.high, share), source).times(words)

    def dram(self) -> Quantity:
        """Picojoules of a byte to or from DRAM."""
        name = "DRAM 64-bit access" if "DRAM 64-bit access" in self.rows else "DRAM"
        return self.operation(name).times(8 / WORD_BITS)

    def hop(self) -> Quantity:
        """Picojoules of a byte from a router of the network to the next."""
        return self.operation("NoC hop")


def _between(low: float, high: float, share: float) -> float:
    return math.exp(math.log(low) * (1 - share) + math.log(high) * share)


def _records(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            records = list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the energies in {path} cannot be read: {error}") from None
    if reader.fieldnames != COLUMNS:
        raise BadRequest(f"{path} has the columns {reader.fieldnames}; energies have {', '.join(COLUMNS)}")
    return records


def _quantity(path: str | Path, row: Mapping[str, str]) -> Quantity:
    """A row's number, or two with a dash between; of memories given per bit, those of 64 bits."""
    what = f"{path}: {row['item']!r} of {row['node']}"
    if row["unit"] not in UNITS:
        raise BadRequest(f"{what} is in {row['unit']!r}; units are {', '.join(UNITS)}")
    factor = UNITS[row["unit"]]
    try:
        ends = [float(end) * factor for end in row["value"].split("-")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or not all(0 < end < math.inf for end in ends) or ends[0] > ends[-1]:
        raise BadRequest(f"{what} is {row['value']!r}; give a number above zero, or low-high")
    return Quantity(ends[0], ends[-1], row["source"])


@lru_cache
def published(node: str) -> Table:
    """A table that comes with Sley: ``45nm`` and ``7nm`` have all that an estimate needs."""
    return Table.read(node=node)


DEFAULT = published("45nm")
