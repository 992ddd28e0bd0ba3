"""The parameters of a chip, the presets, and every size that follows from them."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sley.abi.errors import SleyError
from sley.abi.functions.own import OwnFunction, own_functions
from sley.abi.functions.table import Function
from sley.abi.types import CHAIN_TYPES, OPERAND_TYPES, TYPES, ElementType

ABI_MAJOR = 5
ABI_MINOR = 2
BURST_BOUNDARY = 4096
"""AXI4 (IHI 0022, A3.4.1): no burst crosses a multiple of so many bytes."""


MAX_CHAINS = 15
"""Chains that a VECTOR can name; index 0 stands for the steps that its flags spell."""

NAME_LENGTH = 64
_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{NAME_LENGTH - 1}}}")


class ConfigError(SleyError, ValueError):
    """A parameter, or a combination of parameters, that no chip can have."""


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True)
class ChipConfig:
    """Parameters of one chip; one line each, checked on construction.

    Everything software needs is readable from the capability registers, together with ``hash``.
    """

    name: str = "nano"
    """1 to 64 of A-Z, a-z, 0-9, ``_``, ``.``, ``-``, beginning with none of the last two: safe in comments of Verilog,
    in names of files and in XML. It changes no hash."""
    array: int = 4
    """N: rows and columns of the systolic array."""
    operand_types: tuple[ElementType, ...] = (ElementType.INT8,)
    """Element types that the array multiplies, a set; names such as ``"bf16"`` are taken, too. A lane of the scratchpad
    is as wide as the widest: 8 bits (one int8), or 16 (one bf16 or two consecutive int8)."""
    vector_lanes: int = 4
    """fp32 lanes of the vector unit; a row takes ``array / vector_lanes`` cycles there."""
    vector_chains: int = 0
    """Chains of operations that the vector unit holds, 0 to 15. Without them it does what the flags of VECTOR spell."""
    vector_functions: tuple[Function | OwnFunction, ...] = ()
    """Functions of fp32 that chains can have, a set; names such as ``"exp2"`` are taken, too, and those of installed
    functions of one's own."""
    cores_x: int = 1
    """Columns of cores in the mesh."""
    cores_y: int = 1
    """Rows of cores in the mesh."""
    scratchpad_rows: int = 512
    """Rows of N operand lanes in each core's scratchpad."""
    scratchpad_banks: int = 4
    """Banks of the scratchpad; each is a contiguous range of rows with one read and one write port."""
    accumulator_rows: int = 128
    """Rows of N 32-bit sums in each core's accumulators."""
    accumulator_banks: int = 2
    """Banks of the accumulators; each is a contiguous range of rows with one read and one write port."""
    gather: bool = False
    """LOAD gathers runs, and STORE scatters them, by a list of offsets in the accumulators."""
    program_words: int = 256
    """Instruction words that fit into a core's program memory."""
    unit_queue: int = 8
    """Instructions that wait in front of each unit of a core."""
    queues: int = 2
    """Hardware queues of the command processor."""
    contexts: int = 4
    """Address spaces that the chip knows at once."""
    tlb_entries: int = 6
    """Translations of addresses that each node holds: the command processor, and each core."""
    addr_bits: int = 32
    """Width of a memory address in bits."""
    max_burst: int = 16
    """Longest burst on the memory bus, in beats."""

    def __post_init__(self) -> None:
        def bounded(name: str, low: int, high: int, power: bool = False) -> None:
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int)
                or not low <= value <= high
                or (power and not _is_power_of_two(value))
            ):
                what = "a power of two" if power else "an integer"
                raise ConfigError(f"{name} is {value!r}; it must be {what} in {low}..{high}")

        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"name is {self.name!r}; a name has 1 to {NAME_LENGTH} letters of ASCII, digits, and _ . -, the first "
                "one a letter, a digit or _: it is written into Verilog and into names of files"
            )
        object.__setattr__(self, "operand_types", _operand_types(self.operand_types))
        bounded("array", 4, 64, power=True)
        bounded("vector_lanes", 1, self.array, power=True)
        bounded("vector_chains", 0, MAX_CHAINS)
        if self.vector_chains and self.vector_lanes != self.array:
            raise ConfigError(
                f"vector_chains is {self.vector_chains} with vector_lanes = {self.vector_lanes}; chains need a lane "
                f"for each of the {self.array} columns"
            )
        object.__setattr__(self, "vector_functions", _functions(self.vector_functions))
        if self.vector_functions and not self.vector_chains:
            raise ConfigError(
                f"vector_functions has {self.vector_functions[0].name.lower()} with vector_chains = 0; functions are "
                "stages of chains: give at least one"
            )
        bounded("cores_x", 1, 8)
        bounded("cores_y", 1, 8)
        bounded("scratchpad_banks", 1, 16, power=True)
        bounded("scratchpad_rows", 4 * self.array, 1 << 15, power=True)
        bounded("accumulator_banks", 1, 16, power=True)
        bounded("accumulator_rows", 2 * self.array, 1 << 15, power=True)
        bounded("program_words", 16, 4096, power=True)
        bounded("unit_queue", 2, 64, power=True)
        bounded("queues", 1, 8)
        bounded("contexts", 1, 16)
        bounded("tlb_entries", 1, 15)
        bounded("addr_bits", 20, 32)
        bounded("max_burst", 1, 256, power=True)
        if not isinstance(self.gather, bool):
            raise ConfigError(f"gather is {self.gather!r}; it must be true or false")
        for memory in ("scratchpad", "accumulator"):
            rows, banks = getattr(self, f"{memory}_rows"), getattr(self, f"{memory}_banks")
            if rows < 2 * banks:
                raise ConfigError(f"{memory}_banks is {banks}; {memory}_rows = {rows} allows at most {rows // 2}")
        if self.max_burst * self.bus_bytes > BURST_BOUNDARY:
            raise ConfigError(
                f"max_burst is {self.max_burst}; with a bus of {self.bus_bytes} bytes a burst would pass "
                f"AXI's {BURST_BOUNDARY}-byte boundary: at most {BURST_BOUNDARY // self.bus_bytes}"
            )

    def has(self, operand: ElementType) -> bool:
        """Whether the array multiplies operands of this type."""
        return operand in self.operand_types

    @property
    def lane_bits(self) -> int:
        """Width of an operand lane."""
        return max(operand.bits for operand in self.operand_types)

    def lane_elements(self, operand: ElementType = ElementType.INT8) -> int:
        """Operands of a type in a lane."""
        return self.lane_bits // operand.bits

    @property
    def row_bytes(self) -> int:
        """Bytes of a scratchpad row."""
        return self.array * self.lane_bits // 8

    @property
    def accumulator_row_bytes(self) -> int:
        """Bytes of an accumulator row."""
        return 4 * self.array

    @property
    def bus_bytes(self) -> int:
        """Bytes of a beat on the memory bus: one scratchpad row."""
        return self.row_bytes

    @property
    def beats_per_accumulator_row(self) -> int:
        """Beats on the memory bus that one accumulator row takes."""
        return self.accumulator_row_bytes // self.bus_bytes

    def fold_depth(self, operand: ElementType = ElementType.INT8) -> int:
        """Elements of K that one pass through the array reduces: those of a scratchpad row."""
        return self.array * self.lane_elements(operand)

    @property
    def row_parts(self) -> int:
        """Parts of a row that pass the lanes of the vector unit one after the other, a cycle each."""
        return self.array // self.vector_lanes

    @property
    def vector_types(self) -> tuple[ElementType, ...]:
        """Types of scratchpad rows that the vector unit reads and writes: operands of the array, and with chains also
        UINT8 and, in lanes of 16 bits, FP16."""
        others = CHAIN_TYPES if self.vector_chains else ()
        return (*self.operand_types, *(t for t in others if t.bits <= self.lane_bits))

    @property
    def row_registers(self) -> int:
        """Row registers of the vector unit: those that its flags name, and two more for chains."""
        return 4 if self.vector_chains else 2

    @property
    def cores(self) -> int:
        return self.cores_x * self.cores_y

    @property
    def peak_macs(self) -> int:
        """int8 multiply-accumulates of the whole chip in a cycle."""
        return self.array * self.fold_depth() * self.cores

    @property
    def capabilities(self) -> dict[str, int]:
        """Every parameter by name as an integer, without the preset's name; of types bit t for the one with code t."""
        sets = ("operand_types", "vector_functions")
        names = (field.name for field in dataclasses.fields(self) if field.name not in ("name", *sets))
        sizes = {name: int(getattr(self, name)) for name in names}
        return {name: sum(1 << member for member in getattr(self, name)) for name in sets} | sizes

    @classmethod
    def from_capabilities(cls, name: str, capabilities: dict[str, int]) -> "ChipConfig":
        """The configuration with these ``capabilities``. Raises ``ConfigError``."""
        mask = capabilities["operand_types"]
        unknown = mask & ~sum(1 << t for t in ElementType)
        if unknown:
            raise ConfigError(f"operand_types is {mask:#x}; no element type has code {unknown.bit_length() - 1}")
        types = tuple(t for t in ElementType if mask >> t & 1)
        functions = capabilities["vector_functions"]
        known = tuple(f for f in _known_functions().values() if functions >> f & 1)
        missing = functions & ~sum(1 << f for f in known)
        if missing:
            raise ConfigError(
                f"vector_functions is {functions:#x}; no function with code {missing.bit_length() - 1} is installed"
            )
        sizes: dict[str, Any] = {**capabilities, "name": name, "operand_types": types, "vector_functions": known}
        return cls(**sizes | {"gather": bool(capabilities["gather"])})

    @cached_property
    def hash(self) -> int:
        """32 bits over the ABI version and all parameters; two chips with one hash run the same binaries."""
        text = ";".join(f"{key}={value}" for key, value in sorted(self.capabilities.items()))
        digest = hashlib.sha256(f"sley {ABI_MAJOR}.{ABI_MINOR};{text}".encode()).digest()
        return int.from_bytes(digest[:4], "little")

    def to_json(self) -> str:
        """All parameters, the hash and the ABI they were hashed with, as text that ``from_json`` reads."""
        sets = {
            "operand_types": [TYPES[operand].name for operand in self.operand_types],
            "vector_functions": [function.name.lower() for function in self.vector_functions],
        }
        parameters = {**asdict(self), **sets}
        return json.dumps(
            {"abi": f"{ABI_MAJOR}.{ABI_MINOR}", "hash": f"{self.hash:#010x}", "parameters": parameters}, indent=2
        )

    @classmethod
    def from_json(cls, text: str) -> "ChipConfig":
        """The configuration in such a text; ``abi`` and ``hash`` may be left out of one that a person writes."""
        try:
            known = json.loads(text)
            parameters = dict(known["parameters"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"no configuration: {error!r}; it must be JSON with an object `parameters`") from None
        unknown = sorted({*parameters} - {field.name for field in dataclasses.fields(cls)})
        if "bf16" in unknown:
            raise ConfigError('the configuration is of ABI 3: "bf16": true is now "operand_types": ["int8", "bf16"]')
        if unknown:
            raise ConfigError(f"no chip has a parameter {unknown[0]!r}")
        config = cls(**parameters)
        if known.get("hash", f"{config.hash:#010x}") != f"{config.hash:#010x}":
            raise ConfigError(
                f"the configuration's hash is {known['hash']}, its parameters give {config.hash:#010x}: they were "
                f"changed, or it is one of ABI {known.get('abi')} and this is {ABI_MAJOR}.{ABI_MINOR}"
            )
        return config

    def replace(self, **changes: object) -> "ChipConfig":
        """A copy with some parameters changed, checked again."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def _operand_types(given: object) -> tuple[ElementType, ...]:
    """The set in the order of codes. Raises ``ConfigError`` for what is none, or lacks INT8."""
    names = {TYPES[t].name: t for t in OPERAND_TYPES}
    chosen: Iterable[object] = given if isinstance(given, tuple | list | set | frozenset) else (given,)
    types = [names.get(t, t) if isinstance(t, str) else t for t in chosen]
    for t in types:
        if not isinstance(t, ElementType) or t not in OPERAND_TYPES:
            shown = TYPES[t].name if isinstance(t, ElementType) else t
            raise ConfigError(f"operand_types has {shown!r}; the array multiplies {', '.join(names)}")
    if ElementType.INT8 not in types:
        raise ConfigError(f"operand_types is {given!r}; it must contain int8")
    return tuple(t for t in OPERAND_TYPES if t in types)


def _known_functions() -> dict[str, Function | OwnFunction]:
    """All functions by name, in the order of codes."""
    own = sorted(own_functions().items(), key=lambda item: item[1])
    return {**_BUILT_IN, **dict(own)}


def _functions(given: object) -> tuple[Function | OwnFunction, ...]:
    """The set in the order of codes. Raises ``ConfigError`` for what is none."""
    chosen: Iterable[object] = given if isinstance(given, tuple | list | set | frozenset) else (given,)
    named = any(isinstance(f, str) and f not in _BUILT_IN for f in chosen)
    names = _known_functions() if named else dict(_BUILT_IN)
    functions = []
    for f in chosen:
        function = names.get(f) if isinstance(f, str) else f
        if not isinstance(function, Function | OwnFunction):
            raise ConfigError(f"vector_functions has {f!r}; there are {', '.join(_known_functions())}")
        functions.append(function)
    return tuple(sorted(set(functions)))


_BUILT_IN = {function.name.lower(): function for function in Function}


_BASE = ChipConfig(
    name="base",
    array=16,
    operand_types=(ElementType.INT8, ElementType.BF16),
    vector_lanes=16,
    vector_chains=15,
    vector_functions=tuple(Function),
    scratchpad_rows=4096,
    accumulator_rows=1024,
    gather=True,
    program_words=512,
    unit_queue=32,
    queues=8,
    contexts=8,
    tlb_entries=12,
)

PRESETS: dict[str, ChipConfig] = {
    "nano": ChipConfig(),
    "edge": _BASE.replace(
        name="edge",
        array=8,
        vector_lanes=8,
        vector_chains=0,
        vector_functions=(),
        scratchpad_rows=2048,
        accumulator_rows=512,
        unit_queue=16,
    ),
    "base": _BASE,
    "quad": _BASE.replace(name="quad", cores_x=2, cores_y=2),
}


def preset(name: str) -> ChipConfig:
    """The preset of that name. Raises ``ConfigError`` that lists the presets."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f"no preset {name!r}; there are {', '.join(PRESETS)}, or a JSON file") from None


def configuration(spec: str) -> ChipConfig:
    """A chip as engines and commands take it: the name of a preset, or a JSON file like ``sley.json``.

    Raises ``ConfigError``.
    """
    if not spec.endswith(".json"):
        return preset(spec)
    try:
        return ChipConfig.from_json(Path(spec).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"the configuration {spec} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration {spec} is no text in UTF-8 ({error}); it must be JSON") from None
