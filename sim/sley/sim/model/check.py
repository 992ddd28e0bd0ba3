"""What makes a packet wrong, in the order in which the chip looks."""

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, MAX_GRID, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.sim.model.memory import FaultError


def check_packet(config: ChipConfig, packet: bytes, nested: bool) -> tuple[PacketOp, dict[str, int]]:
    """Kind and fields of a packet, of the ring or ``nested`` in a buffer. Raises ``FaultError`` with the record of
    the first thing wrong: BAD_PACKET (the first 32-bit word), BAD_FIELD (the number of the first bad 32-bit word) or
    BAD_ADDRESS (low half of the first range that ends beyond the address width)."""
    word = int.from_bytes(packet, "little")
    if packet[0] not in PACKETS:
        raise _fault(FaultCode.BAD_PACKET, word)
    op = PacketOp(packet[0])
    layout = PACKETS[op].layout
    fields = layout.unpack(word)
    reserved = word & ~layout.mask
    bad = [i for i in range(16) if reserved >> 32 * i & 0xFFFFFFFF]
    bad += [layout.fields[name].lsb // 32 for name in _bad_fields(config, op, fields)]
    bad += [0] * (nested and op is PacketOp.INDIRECT)
    if bad:
        raise _fault(FaultCode.BAD_FIELD, min(bad))
    for address, size in _ranges(op, fields):
        if address + size > 1 << config.addr_bits:
            raise _fault(FaultCode.BAD_ADDRESS, address)
    return op, fields


def _fault(code: FaultCode, address: int) -> FaultError:
    return FaultError(code, Unit.COMMAND, 0, address)


def _bad_fields(config: ChipConfig, op: PacketOp, f: dict[str, int]) -> list[str]:
    alignment: dict[str, int] = {}
    bad = []
    if op is PacketOp.LAUNCH:
        alignment = {"program": INSTRUCTION_BYTES, "args": 4}
        bad += [name for name in ("grid_x", "grid_y", "grid_z") if not 1 <= f[name] <= MAX_GRID]
        if f["gang"]:
            bad += ["grid_x"] * (f["grid_x"] != config.cores_x) + ["grid_y"] * (f["grid_y"] != config.cores_y)
        bad += ["program_words"] * (not 1 <= f["program_words"] <= config.program_words)
        bad += ["arg_words"] * (f["arg_words"] > MAX_ARGS)
        inline = f["arg_words"] if f["arg_words"] <= INLINE_ARGS else 0
        bad += ["args"] * (f["arg_words"] <= INLINE_ARGS and f["args"] != 0)
        bad += [f"arg{k}" for k in range(inline, INLINE_ARGS) if f[f"arg{k}"]]
    elif op is PacketOp.FENCE:
        alignment = {"address": FENCE_BYTES}
    elif op in (PacketOp.WAIT, PacketOp.SIGNAL):
        alignment = {"address": SEMAPHORE_BYTES}
    elif op is PacketOp.INDIRECT:
        alignment = {"address": PACKET_BYTES}
    return bad + [name for name, size in alignment.items() if f[name] % size]


def _ranges(op: PacketOp, f: dict[str, int]) -> list[tuple[int, int]]:
    if op is PacketOp.LAUNCH:
        return [(f["program"], INSTRUCTION_BYTES * f["program_words"]), (f["args"], 4 * f["arg_words"])]
    if op is PacketOp.COPY:
        return [(f["src"], f["bytes"]), (f["dst"], f["bytes"])]
    if op is PacketOp.FILL:
        return [(f["dst"], f["bytes"])]
    if op is PacketOp.FENCE:
        return [(f["address"], FENCE_BYTES)]
    if op in (PacketOp.WAIT, PacketOp.SIGNAL):
        return [(f["address"], SEMAPHORE_BYTES)]
    if op is PacketOp.INDIRECT:
        return [(f["address"], PACKET_BYTES * f["packets"])]
    return []
