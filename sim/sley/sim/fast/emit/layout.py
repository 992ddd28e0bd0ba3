"""The state of a compiled design as one C structure: names, types and byte offsets of everything in it."""

from dataclasses import dataclass, field

from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, SIZES


@dataclass(frozen=True, slots=True)
class Place:
    """A variable of the state, one element of an array in it or, without a name, whole bytes of one."""

    name: str
    index: int
    type: str
    offset: int

    def __str__(self) -> str:
        if not self.name:
            return f"(*({self.type}*)((u8*)s + {self.offset}))"
        return f"s->{self.name}" if self.index < 0 else f"s->{self.name}[{self.index}]"

    @property
    def end(self) -> int:
        return self.offset + SIZES[self.type]


@dataclass
class StateLayout:
    """Collects variables; offsets are those that every C compiler gives them."""

    text: list[str] = field(default_factory=list)
    size: int = 0
    variables: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Type, number of elements (0: no array), offset, by name."""
    _aligned: bool = False

    def align(self) -> int:
        """The next variable starts a cache line; returns its offset."""
        self.size = -(-self.size // ALIGN_ARRAYS) * ALIGN_ARRAYS
        self._aligned = True
        return self.size

    def add_elements(self, name: str, kind: str, count: int) -> str:
        """An array of so many elements with room for the spare lanes of loops over them (``loops.py``)."""
        lanes = ALIGN_ARRAYS // SIZES[kind]
        return self.add(name, kind, count + min(lanes, count) - 1)

    def add(self, name: str, kind: str, count: int = 0) -> str:
        size = SIZES[kind]
        aligned = self._aligned or count * size >= ALIGN_ARRAYS
        self._aligned = False
        step = ALIGN_ARRAYS if aligned else size
        self.size = -(-self.size // step) * step
        self.variables[name] = (kind, count, self.size)
        attribute = f" __attribute__((aligned({ALIGN_ARRAYS})))" if aligned else ""
        self.text.append(f"  {kind} {name}{f'[{count}]' if count else ''}{attribute};")
        self.size += size * max(count, 1)
        return name

    def place(self, name: str, index: int = -1) -> Place:
        kind, _, offset = self.variables[name]
        return Place(name, index, kind, offset + max(index, 0) * SIZES[kind])

    @property
    def total(self) -> int:
        """Bytes of the structure."""
        return -(-self.size // ALIGN_ARRAYS) * ALIGN_ARRAYS
