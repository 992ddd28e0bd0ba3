"""SystemRDL 2.0 text of a register map; PeakRDL turns it into IP-XACT, HTML and more."""

from sley.abi.registers import WORD_BYTES, Access, Register, RegisterBlock, RegisterMap

_ACCESS = {
    Access.CONST: "sw = r; hw = na;",
    Access.RO: "sw = r; hw = w;",
    Access.RW: "sw = rw; hw = r;",
    Access.W1C: "sw = rw; onwrite = woclr; hw = rw;",
    Access.WO: "sw = w; hw = r;",
}


def _text(sentence: str) -> str:
    return '"' + sentence.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _register(register: Register) -> list[str]:
    layout = register.layout
    lines = ["reg {", f"    desc = {_text(register.doc)};", f"    regwidth = {8 * WORD_BYTES};"]
    for name, placed in layout.fields.items():
        reset = f" = {placed.width}'h{placed.field.reset:x}" if register.access is not Access.RO else ""
        properties = f"desc = {_text(placed.field.doc)}; {_ACCESS[register.access]}"
        lines.append(f"    field {{ {properties} }} {name}[{placed.msb}:{placed.lsb}]{reset};")
    return [*lines, f"}} {register.name} @ {register.offset:#x};"]


def _block(block: RegisterBlock) -> list[str]:
    lines = ["regfile {", f"    desc = {_text(block.doc)};"]
    for register in block.registers:
        lines += ["    " + line for line in _register(register)]
    array = f"[{block.count}]" if block.count > 1 else ""
    stride = f" += {block.stride:#x}" if block.count > 1 else ""
    return [*lines, f"}} {block.name}{array} @ {block.base:#x}{stride};"]


def systemrdl(registers: RegisterMap) -> str:
    """The register map as one ``addrmap`` named ``sley``."""
    lines = ["addrmap sley {", f"    desc = {_text('Registers of a Sley neural processing unit.')};"]
    lines += ["    default regwidth = 32;", "    default accesswidth = 32;"]
    for block in registers.blocks:
        lines += ["    " + line for line in _block(block)]
    return "\n".join([*lines, "};", ""])
