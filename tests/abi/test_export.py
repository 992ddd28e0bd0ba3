"""Generated files are current, and an independent SystemRDL compiler reads the same map as we do."""

from pathlib import Path

import pytest
from systemrdl import RDLCompiler
from systemrdl.node import FieldNode, RegNode

from sley.abi.config import PRESETS, preset
from sley.abi.export.__main__ import generated_files
from sley.abi.export.systemrdl import systemrdl
from sley.abi.registers import Access, RegisterMap

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(generated_files()))
def test_checked_in_files_are_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == generated_files()[name], "run python -m sley.abi.export docs/reference"


@pytest.mark.parametrize("name", PRESETS)
def test_systemrdl_compiler_agrees(name: str, tmp_path: Path) -> None:
    registers = RegisterMap(preset(name))
    source = tmp_path / "sley.rdl"
    source.write_text(systemrdl(registers))
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    root = compiler.elaborate()
    nodes = {n.absolute_address: n for n in root.descendants(unroll=True) if isinstance(n, RegNode)}
    assert set(nodes) == set(registers.by_address)
    for address, placed in registers.by_address.items():
        fields = {f.inst_name: f for f in nodes[address].children() if isinstance(f, FieldNode)}
        assert set(fields) == set(placed.layout.fields)
        for field_name, field in placed.layout.fields.items():
            node = fields[field_name]
            assert (node.low, node.high, node.width) == (field.lsb, field.msb, field.width)
            if placed.register.access is not Access.RO:
                assert node.get_property("reset") == field.field.reset
            assert node.is_sw_writable == (placed.register.access in (Access.RW, Access.W1C, Access.WO))
            assert node.is_sw_readable == (placed.register.access is not Access.WO)
