"""The contract as C: constants, masks and fields of one chip, for the compiled model."""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

from sley.abi.command import ErrorAddress, QueueEvent
from sley.abi.config import ChipConfig
from sley.abi.counters import (
    AMOUNT_GROUPS,
    COUNTERS,
    GROUP_COUNTERS,
    UNIT_GROUPS,
    Bus,
    CounterGroup,
    LoadCycle,
    MatrixCycle,
    ReadCycle,
    Rows,
    SequencerCycle,
    StoreCycle,
    Traffic,
    VectorCycle,
    WriteCycle,
)
from sley.abi.faults import FaultCode, QueueState, Unit, UnitState
from sley.abi.functions import table
from sley.abi.functions.own import FIRST_CODE
from sley.abi.functions.table import Function, coefficients
from sley.abi.instructions import (
    ARG_REGISTER,
    BLOCK_REGISTER,
    FLAGS_LSB,
    FORMATS,
    INSTRUCTION_BYTES,
    INTERLEAVE_CHUNKS,
    LOOP_DEPTH,
    MAX_ARGS,
    REGISTERS,
    SEMAPHORE_MAX,
    SEMAPHORES,
    TRANSPOSE_CHUNKS,
    WORD,
    Op,
    Share,
    Space,
    used_bits,
)
from sley.abi.layout import Layout
from sley.abi.network import (
    COORDINATE_BITS,
    LAUNCH_FIELDS,
    LAUNCH_SIZES,
    WALK_ANSWER,
    AccessError,
    DoneWord,
    LaunchWord,
    RequestKind,
    Tag,
)
from sley.abi.packets import (
    FENCE_BYTES,
    INLINE_ARGS,
    MAX_GRID,
    PACKET_BYTES,
    PACKETS,
    SEMAPHORE_BYTES,
    PacketOp,
)
from sley.abi.pages import ENTRY_BYTES, PAGE_BITS, PAGE_ENTRY, TABLE_BITS, AddressMode, Permission
from sley.abi.parameters import PARAMS, Param, unit_params
from sley.abi.registers import PATIENCE, PRIORITY_BITS
from sley.abi.scalar import BRANCH_OPS
from sley.abi.timing import (
    BF16_ROW,
    CHUNK_BEATS,
    COPY_BUFFER_BEATS,
    COPY_READER_BURSTS,
    CROWDED_REQUESTS,
    FP32_ADD,
    FP32_FROM_INT32,
    FP32_MAXIMUM,
    FP32_MULTIPLY,
    FP32_TO_BF16,
    FP32_TO_INT32,
    INVALIDATE_CYCLES,
    JOINED_BEATS,
    MAX_CHUNKS,
    PORT_READS,
    PORT_WRITES,
    READER_BEATS,
    READER_RUNS,
    RETRY_CYCLES,
    SLICE_CHUNKS,
    SRAM_READ,
    TRANSPOSER_SMALL,
    WRITER_BURSTS,
    WRITER_RUNS,
    hazard_cycles,
    read_latency,
    write_latency,
)
from sley.abi.types import OPERAND_TYPES, WORD_TYPES, ElementType
from sley.abi.vector.chains import (
    CHAIN_PARAM,
    CHAIN_WORDS,
    FRONT,
    OPERANDS,
    STAGE_OPERANDS,
    TAIL,
    WORDS,
    WORDS_KEPT,
    Condition,
    Lanes,
    Late,
    Operand,
)
from sley.abi.vector.operations import (
    ADDER_OPS,
    FLOAT_ADD,
    IDENTITY,
    INTEGER_ADD,
    JOIN,
    LOGIC_OPS,
    PARTIALS,
    SHORT_OPS,
    BinaryOp,
    Reduction,
)
from sley.sim.model.compiled.bank import bank
from sley.sim.model.sanitize.kinds import Finding, Sanitizer

_IMMEDIATE = {None: "IMM_NONE", "ra": "IMM_A", "rb": "IMM_B", "rc": "IMM_C"}
_ENUMS: dict[str, type[IntEnum]] = {
    "OP": Op,
    "FAULT": FaultCode,
    "STATE": QueueState,
    "UNIT": Unit,
    "SHOWN": UnitState,
    "SHARE": Share,
    "SPACE": Space,
    "PARAM": Param,
    "TYPE": ElementType,
    "BINARY": BinaryOp,
    "REDUCE": Reduction,
    "OPERAND": Operand,
    "KEEP": Condition,
    "LATE": Late,
    "LANES": Lanes,
    "FUNCTION": Function,
    "MODE": AddressMode,
    "NEED": Permission,
    "KIND": RequestKind,
    "TAG": Tag,
    "ERROR": AccessError,
    "LAUNCH": LaunchWord,
    "DONE": DoneWord,
    "PACKET": PacketOp,
    "EVENT": QueueEvent,
    "ADDRESS": ErrorAddress,
    "GROUP": CounterGroup,
    "MATRIX": MatrixCycle,
    "VECTOR": VectorCycle,
    "SEQUENCER_CYCLE": SequencerCycle,
    "LOAD_CYCLE": LoadCycle,
    "STORE_CYCLE": StoreCycle,
    "READ": ReadCycle,
    "WRITE": WriteCycle,
    "BUS": Bus,
    "TRAFFIC": Traffic,
    "ROWS": Rows,
    "SANITIZE": Sanitizer,
    "FOUND": Finding,
}


@lru_cache(maxsize=16)
def header(config: ChipConfig) -> str:
    """The text of ``abi.h`` for a chip, made once for all devices that are opened."""
    lines = ["// Made from sley.abi by sley.sim.model.compiled.header.", "#pragma once", "#include <stdint.h>"]
    for name, value in (_sizes(config) | _matrix_cycles(config) | _numbers(config)).items():
        lines.append(f"#define {name} {value}")
    for prefix, enum in _ENUMS.items():
        lines.append(f"enum {{ {', '.join(f'{prefix}_{member.name} = {int(member)}' for member in enum)} }};")
    lines += [*_fields(), *_formats(config), *_params(config), *_coefficients(), *bank(config)]
    return "\n".join(lines) + "\n"


def _mask(codes: Iterable[int]) -> str:
    return f"{sum({1 << int(code) for code in codes}):#x}u"


def _sizes(config: ChipConfig) -> dict[str, object]:
    return {
        "N": config.array,
        "ELEMENTS": config.lane_elements(),
        "HAS_BF16": int(config.has(ElementType.BF16)),
        "HAS_LISTS": int(config.gather),
        "ROW_BYTES": config.row_bytes,
        "ACCUMULATOR_ROW_BYTES": config.accumulator_row_bytes,
        "SCRATCHPAD_ROWS": config.scratchpad_rows,
        "ACCUMULATOR_ROWS": config.accumulator_rows,
        "SCRATCHPAD_BANKS": config.scratchpad_banks,
        "ACCUMULATOR_BANKS": config.accumulator_banks,
        "BUS_BYTES": config.bus_bytes,
        "LANE_BITS": config.bus_bytes.bit_length() - 1,
        "MAX_BURST": config.max_burst,
        "BURST_BITS": config.max_burst.bit_length() - 1,
        "CORES": config.cores,
        "CORES_X": config.cores_x,
        "CORES_Y": config.cores_y,
        "TLB_ENTRIES": config.tlb_entries,
        "PROGRAM_WORDS": config.program_words,
        "QUEUES": config.queues,
        "PACKET_SHIFT": PACKET_BYTES.bit_length() - 1,
        "PACKET_WORDS": 8 * PACKET_BYTES // 32,
        "RETRY_CYCLES": RETRY_CYCLES,
        "CHUNK_BEATS": min(config.max_burst, CHUNK_BEATS),
        "COPY_BUFFER_BEATS": COPY_BUFFER_BEATS,
        "MAX_CHUNKS": MAX_CHUNKS,
        "SLICE_CHUNKS": SLICE_CHUNKS,
        "PACKET_LANES": min(config.bus_bytes, PACKET_BYTES) // 4,
        "UNIT_QUEUE": config.unit_queue,
        "CONTEXTS": config.contexts,
        "CHAINS": config.vector_chains,
        "ROW_PARTS": config.row_parts,
        "ROW_REGISTERS": config.row_registers,
        "ADDRESS_LIMIT": f"{1 << config.addr_bits}ull",
        "OPERAND_TYPES": _mask(config.operand_types),
        "VECTOR_TYPES": _mask(config.vector_types),
        "FUNCTIONS": _mask((0, *(1 + function for function in config.vector_functions))),
    }


def _matrix_cycles(config: ChipConfig) -> dict[str, object]:
    """Latencies of the matrix unit, for each type of operands."""
    return {
        f"{latency.__name__.upper()}_{operand.name}": latency(config, operand)
        for latency in (read_latency, write_latency, hazard_cycles)
        for operand in OPERAND_TYPES
    }


def _numbers(config: ChipConfig) -> dict[str, object]:
    numbers: dict[str, object] = {
        "REGISTERS": REGISTERS,
        "SEMAPHORES": SEMAPHORES,
        "SEMAPHORE_MAX": SEMAPHORE_MAX,
        "LOOP_DEPTH": LOOP_DEPTH,
        "FLAGS_LSB": FLAGS_LSB,
        "INSTRUCTION_BYTES": INSTRUCTION_BYTES,
        "PC_MASK": f"{(1 << config.program_words.bit_length()) - 1:#x}u",
        "ARG_REGISTER": ARG_REGISTER,
        "BLOCK_REGISTER": BLOCK_REGISTER,
        "INLINE_ARGS": INLINE_ARGS,
        "MAX_ARGS": MAX_ARGS,
        "MAX_GRID": MAX_GRID,
        "FENCE_BYTES": FENCE_BYTES,
        "SEMAPHORE_BYTES": SEMAPHORE_BYTES,
        "INTERLEAVE_CHUNKS": INTERLEAVE_CHUNKS,
        "TRANSPOSE_CHUNKS": TRANSPOSE_CHUNKS,
        "SRAM_READ": SRAM_READ,
        "INTEGER_ADD": INTEGER_ADD,
        "FLOAT_ADD": FLOAT_ADD,
        "FP32_ADD": FP32_ADD,
        "FP32_FROM_INT32": FP32_FROM_INT32,
        "FP32_MAXIMUM": FP32_MAXIMUM,
        "FP32_MULTIPLY": FP32_MULTIPLY,
        "FP32_TO_BF16": FP32_TO_BF16,
        "FP32_TO_INT32": FP32_TO_INT32,
        "TRANSPOSER_SMALL": TRANSPOSER_SMALL,
        "PAGE_BITS": PAGE_BITS,
        "TABLE_BITS": TABLE_BITS,
        "ENTRY_BYTES": ENTRY_BYTES,
        "COORDINATE_BITS": COORDINATE_BITS,
        "LAUNCH_WORDS": len(LaunchWord),
        "PRIORITY_BITS": PRIORITY_BITS,
        "PATIENCE": PATIENCE,
        "PAGE_ENTRY_MASK": f"{PAGE_ENTRY.mask:#x}u",
        "CHAIN_PARAM": CHAIN_PARAM,
        "CHAIN_WORDS": CHAIN_WORDS,
        "WORDS_KEPT": WORDS_KEPT,
        "PARTIALS": PARTIALS,
        "GROUP_COUNTERS": GROUP_COUNTERS,
        "AMOUNT_GROUPS": len(AMOUNT_GROUPS),
        "OWN_FUNCTION": FIRST_CODE,
        "BF16_ROW": BF16_ROW,
        "JOINED_BEATS": JOINED_BEATS,
        "READER_RUNS": READER_RUNS,
        "READER_BEATS": READER_BEATS,
        "COPY_READER_BURSTS": COPY_READER_BURSTS,
        "INVALIDATE_CYCLES": INVALIDATE_CYCLES,
        "CROWDED_REQUESTS": CROWDED_REQUESTS,
        "WRITER_BURSTS": WRITER_BURSTS,
        "WRITER_RUNS": WRITER_RUNS,
        "PORT_READS": PORT_READS,
        "PORT_WRITES": PORT_WRITES,
        "WORD_TYPES": _mask(WORD_TYPES),
        "HALF_TYPES": _mask(t for t in ElementType if t.bits == 16),
        "BYTE_TYPES": _mask(t for t in ElementType if t.bits == 8),
        "FLOAT_TYPES": _mask(t for t in ElementType if t.is_float),
        "BINARY_OPS": _mask(BinaryOp),
        "SHORT_OPS": _mask(SHORT_OPS),
        "ADDER_OPS": _mask(ADDER_OPS),
        "LOGIC_OPS": _mask(LOGIC_OPS),
        "CONDITIONS": _mask(Condition),
        "LATES": _mask(Late),
        "LANE_ORDERS": _mask(Lanes),
        "REDUCTIONS": _mask(Reduction),
        "FOLDS": _mask(JOIN),
    }
    numbers |= {f"ALLOWED_{stage.upper()}": _mask(allowed) for stage, allowed in STAGE_OPERANDS.items()}
    for (reduction, kind), value in IDENTITY.items():
        numbers[f"IDENTITY_{reduction.name}_{kind.name}"] = f"{value:#x}u"
    numbers |= {f"JOIN_{reduction.name}": f"BINARY_{op.name}" for reduction, op in JOIN.items()}
    names = ("PLACE_BITS", "OFFSET_BITS", "INNER_BITS", "FINE_BITS", "COARSE_BITS", "W_LOW", "Q_LOW")
    numbers |= {name: getattr(table, name) for name in names}
    return numbers | {"P_BITS": table.P.bits}


def _fields() -> list[str]:
    """``OP_FIELD(word)`` for each field of an operation, and ``CHAIN_FIELD(words)`` for those of chains."""
    lines = ["typedef unsigned __int128 Word;"]

    def define(prefix: str, layout: Layout, source: str) -> None:
        for name, placed in layout.fields.items():
            value = f"((uint32_t)({source} >> {placed.lsb}) & {(1 << placed.width) - 1:#x}u)"
            lines.append(f"#define {prefix}_{name.upper()}(w) {value}")

    define("WORD", WORD, "(w)")
    for op, form in FORMATS.items():
        own = [name for name in form.layout.fields if name in (*form.flags, "target")]
        for name in own:
            placed = form.layout.fields[name]
            mask = (1 << placed.width) - 1
            lines.append(f"#define {op.name}_{name.upper()}(w) ((uint32_t)((w) >> {placed.lsb}) & {mask:#x}u)")
            lines.append(f"#define {op.name}_{name.upper()}_AT {placed.lsb}")
    for number, layout in enumerate((FRONT, TAIL, OPERANDS)):
        define("CHAIN", layout, f"(w)[{number}]")
    define("ENTRY", PAGE_ENTRY, "(w)")
    define("ANSWER", WALK_ANSWER, "(w)")
    define("SIZES", LAUNCH_SIZES, "(w)")
    lines += _packets()
    lines.append(f"static const uint8_t launch_sources[] = {{{', '.join(_launch_sources())}}};")
    for prefix, layout in (("ENTRY", PAGE_ENTRY), ("ANSWER", WALK_ANSWER), ("SIZES", LAUNCH_SIZES)):
        lines += [f"#define {prefix}_{name.upper()}_AT {placed.lsb}" for name, placed in layout.fields.items()]
    lasts = ", ".join(str(int(max(COUNTERS[group]))) for group in UNIT_GROUPS)
    lines.append(f"static const uint8_t last_classes[] = {{{lasts}}};")
    lines.append(f"static const uint32_t chain_masks[] = {{{', '.join(f'{word.mask:#x}u' for word in WORDS)}}};")
    return lines


def _packets() -> list[str]:
    """``PACKET_OP_FIELD(words)`` for each field of a packet, of a long one its low word; ``PACKET_OP_FIELD_AT``: the
    word in which it begins; the masks of the words of each kind."""
    lines = []
    for op, form in PACKETS.items():
        for name, placed in form.layout.fields.items():
            macro, (word, shift) = f"PACKET_{op.name}_{name.upper()}", divmod(placed.lsb, 32)
            mask = (1 << min(placed.width, 32)) - 1
            lines += [f"#define {macro}(w) ((w)[{word}] >> {shift} & {mask:#x}u)", f"#define {macro}_AT {word}"]
    words = 8 * PACKET_BYTES // 32
    lines.append(f"static const uint32_t packet_masks[][{words}] = {{")
    for op, form in PACKETS.items():
        masks = (f"{form.layout.mask >> 32 * word & 0xFFFF_FFFF:#x}u" for word in range(words))
        lines.append(f"    [{int(op)}] = {{{', '.join(masks)}}},")
    return [*lines, "};"]


def _launch_sources() -> list[str]:
    """By the word of a launch message: the word of the packet that it is, if it is one."""
    fields = PACKETS[PacketOp.LAUNCH].layout.fields
    return [f"[{word}] = {fields[name].lsb // 32}" for word, name in LAUNCH_FIELDS.items()]


def _formats(config: ChipConfig) -> list[str]:
    """What the sequencer knows of each operation."""
    lines = [
        "enum { IMM_NONE, IMM_A, IMM_B, IMM_C };",
        "typedef struct Format { uint8_t known, unit, immediate, branch; uint64_t low, high; } Format;",
        "static const Format formats[256] = {",
    ]
    for op, form in FORMATS.items():
        mask = used_bits(op, config)
        low, high = mask & (1 << 64) - 1, mask >> 64
        facts = f"1, {int(form.unit)}, {_IMMEDIATE[form.immediate_replaces]}, {int(op in BRANCH_OPS)}"
        lines.append(f"    [{int(op)}] = {{{facts}, {low:#x}ull, {high:#x}ull}},")
    return [*lines, "};"]


def _params(config: ChipConfig) -> list[str]:
    """The parameters: the units that have each on this chip as a mask, width, sign and reset value."""
    lines = [
        "typedef struct ParamInfo { uint8_t units, width, is_signed; int64_t reset; } ParamInfo;",
        f"#define PARAMS {max(PARAMS) + 1}",
        "static const ParamInfo param_infos[PARAMS] = {",
    ]
    for param, info in PARAMS.items():
        units = sum(1 << unit for unit in info.units if param in unit_params(unit, config))
        lines.append(f"    [{int(param)}] = {{{units}, {info.width}, {int(info.signed)}, {info.reset}}},")
    return [*lines, "};"]


def _coefficients() -> list[str]:
    """The segments of the functions, as 64-bit integers."""
    lines = []
    for function, segments in coefficients().items():
        rows = ",".join("{" + ",".join(map(str, segment)) + "}" for segment in segments)
        lines.append(f"static const int64_t segments_{function.name}[][5] = {{{rows}}};")
    names = ", ".join(f"[FUNCTION_{f.name}] = segments_{f.name}" for f in coefficients())
    lines.append(f"static const int64_t (*const segments[])[5] = {{{names}}};")
    return lines
