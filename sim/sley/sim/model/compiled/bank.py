"""The registers of a chip as C, for the twin of the register bank: what each is, and the ports of the bank.

A register is a number: ``REGISTER_CHIP_IRQ_STATUS``, ``REGISTER_QUEUE_CONTROL(1)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sley.abi.command import READ_STROBES, SHARED
from sley.abi.config import ChipConfig
from sley.abi.registers import Access, Register, RegisterBlock, RegisterMap


@dataclass(frozen=True)
class _Numbered:
    """A register, the number of its first copy, and how many registers are between copies."""

    block: RegisterBlock
    register: Register
    first: int
    step: int

    @property
    def full(self) -> str:
        return f"{self.block.name}.{self.register.name}"

    @property
    def is_array(self) -> bool:
        return self.block.count > 1 or self.block.name != "CHIP"

    @property
    def is_shared(self) -> bool:
        return self.full in SHARED

    def paths(self) -> list[tuple[int, str]]:
        """Number and path of each port of the bank that has it."""
        block, name = self.block.name.lower(), self.register.name.lower()
        if self.is_shared:
            return [(self.first, f"{block}_shared.{name}")]
        copies = [f"{block}[{k}]" for k in range(self.block.count)] if self.is_array else [block]
        return [(self.first + k * self.step, f"{copy}.{name}") for k, copy in enumerate(copies)]


def _numbered(config: ChipConfig) -> Iterator[_Numbered]:
    first = 0
    for block in RegisterMap(config).blocks:
        for place, register in enumerate(block.registers):
            yield _Numbered(block, register, first + place, len(block.registers))
        first += block.count * len(block.registers)


def bank(config: ChipConfig) -> list[str]:
    """Numbers, facts and ports."""
    registers = list(_numbered(config))
    count = sum(n.block.count for n in registers)
    lines = [f"#define REGISTER_COUNT {count}"]
    for n in registers:
        where = f"(k) ({n.first} + (k) * {n.step})" if n.is_array else f" {n.first}"
        lines.append(f"#define REGISTER_{n.block.name}_{n.register.name}{where}")
    kinds = ", ".join(f"ACCESS_{access.name}" for access in Access)
    lines.append(f"enum {{ {kinds} }};")
    lines += [
        "typedef struct RegisterInfo { uint8_t access, shared; uint32_t mask, reset, first; } RegisterInfo;",
        "static const RegisterInfo register_infos[] = {",
    ]
    for n in registers:
        layout = n.register.layout
        facts = f"ACCESS_{n.register.access.name}, {int(n.is_shared)}, {layout.mask:#x}u, {layout.reset:#x}u, {n.first}"
        lines += [f"    [{n.first + k * n.step}] = {{{facts}}}," for k in range(n.block.count)]
    lines += ["};", *_blocks(registers), *_ports(registers)]
    strobes = [str(n.first) for n in registers if n.full in READ_STROBES]
    kept = [str(n.first) for n in registers if n.is_shared and n.register.access is Access.RW]
    bits = [str(n.first) for n in registers if n.register.access is Access.W1C]
    for name, numbers in (("strobe", strobes), ("kept", kept), ("pending", bits)):
        lines.append(f"static const uint16_t {name}_registers[] = {{{', '.join(numbers)}}};")
    return lines


def _blocks(registers: list[_Numbered]) -> list[str]:
    rows, places = [], []
    for n in registers:
        if n.register is n.block.registers[0]:
            b = n.block
            rows.append(f"    {{{n.first}, {n.step}, {b.base}, {b.stride or 4 * n.step}, {b.count}}},")
            places += [f"#define BANK_{b.name}_BASE {b.base}", f"#define BANK_{b.name}_STRIDE {b.stride or 4 * n.step}"]
    record = "typedef struct RegisterBlock { uint32_t first, registers, base, stride, count; } RegisterBlock;"
    return [*places, record, "static const RegisterBlock register_blocks[] = {", *rows, "};"]


def _ports(registers: list[_Numbered]) -> list[str]:
    """``BANK_INPUTS(IN)`` and ``BANK_OUTPUTS(OUT)``, with arrays of all registers: `given`, `values`, `written`,
    `strobes`, and `shown` of shared ones, of the copy that software reads."""
    inputs, outputs = [], []
    for n in registers:
        for number, path in n.paths():
            match n.register.access:
                case Access.RO:
                    inputs.append(f'IN(given[{number}], "{path}")')
                case Access.W1C:
                    inputs.append(f'IN(given[{number}], "{path}_set")')
                    outputs.append(f'OUT(values[{number}], "{path}")')
                case Access.RW if n.is_shared:
                    outputs.append(f'OUT(seen[{number}], "{path}") OUT(shown[{number}], "{path}_read")')
                case Access.RW:
                    outputs.append(f'OUT(values[{number}], "{path}")')
                case Access.WO:
                    value = "seen" if n.is_shared else "values"
                    outputs.append(f'OUT({value}[{number}], "{path}") OUT(written[{number}], "{path}_written")')
            if n.full in READ_STROBES:
                outputs.append(f'OUT(strobes[{number}], "~{path}_read")')
    return [f"#define BANK_INPUTS(IN) {' '.join(inputs)}", f"#define BANK_OUTPUTS(OUT) {' '.join(outputs)}"]
