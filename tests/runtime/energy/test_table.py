"""Tables of published energies: what is read, and what is refused."""

from pathlib import Path

import pytest

from sley.driver import BadRequest
from sley.runtime.energy.table import COLUMNS, PUBLISHED, Table, published

NEEDED = ("int8 MAC", "bf16 MAC", "fp32 add", "fp32 multiply", "int32 add")


def table_of(folder: Path, *rows: str) -> Table:
    file = folder / "own.csv"
    file.write_text("\n".join([",".join(COLUMNS), *(f"{row},own,measured" for row in rows)]) + "\n")
    return Table.read(file, "own")


@pytest.mark.parametrize("node", ["45nm", "7nm"])
def test_whole_tables_have_what_an_estimate_needs(node: str) -> None:
    table = published(node)
    for name in NEEDED:
        assert 0 < table.operation(name).low <= table.operation(name).high
    assert table.dram().low > 10 * table.sram(1 << 15, 1).high
    assert table.hop().source
    assert all(row.source for row in table.rows.values())


def test_an_item_is_made_of_others() -> None:
    table = published("45nm")
    assert table.operation("int8 MAC").middle == pytest.approx(0.2 + 0.1)
    assert table.operation("bf16 MAC").middle == pytest.approx(1.1 + 0.9)
    assert "Horowitz" in table.operation("bf16 MAC").source
    assert published("AccelForge").operation("int8 MAC").middle == 0.084


def test_ranges() -> None:
    dram = published("45nm").dram()
    assert (dram.low, dram.high) == (1300 / 8, 2600 / 8)
    assert dram.middle == 1950 / 8


def test_memories_between_sizes() -> None:
    table = published("45nm")
    assert table.sram(8 << 10, 8).middle == pytest.approx(10)
    assert table.sram(32 << 10, 8).middle == pytest.approx(20)
    assert table.sram(16 << 10, 8).middle == pytest.approx(200**0.5)  # half way on a logarithmic scale
    assert table.sram(1 << 20, 32).middle == pytest.approx(400)
    assert table.sram(2 << 10, 8).middle == pytest.approx(5)  # continued below
    assert table.sram(4 << 20, 8).middle > 150  # and above


def test_units(tmp_path: Path) -> None:
    accelforge, zigzag = published("AccelForge"), published("ZigZag")
    assert accelforge.sram(4 << 20, 8).middle == pytest.approx(64 * 0.249)
    assert accelforge.sram(4 << 20, 8, write=True).middle == pytest.approx(64 * 0.293)
    assert accelforge.dram().middle == pytest.approx(8 * 7.03)
    assert zigzag.sram(1 << 10, 256).middle == pytest.approx(416)  # one size alone: that of all
    assert zigzag.dram().middle == pytest.approx(700 / 8)
    own = table_of(tmp_path, "SRAM 8 KB 32-bit access,3,pJ,own", "DRAM 64-bit access,80,pJ,own", "supply,1.1,V,own")
    assert own.sram(8 << 10, 8).middle == pytest.approx(6)
    assert own.supply == 1.1


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    own = table_of(tmp_path, "int8 multiply,0.2,pJ,own")
    with pytest.raises(BadRequest, match="own has no 'int8 MAC', nor int8 multiply and int32 add"):
        own.operation("int8 MAC")
    with pytest.raises(BadRequest, match="own has no SRAM"):
        own.sram(1024, 8)
    with pytest.raises(BadRequest, match="no node '3nm'; it has 45nm"):
        Table.read(node="3nm")
    with pytest.raises(BadRequest, match="cannot be read"):
        Table.read(tmp_path / "none.csv")


@pytest.mark.parametrize("value", ["", "much", "-1", "0", "3-2", "1-2-3", "nan", "inf"])
def test_bad_numbers(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadRequest, match="int8 MAC"):
        table_of(tmp_path, f"int8 MAC,{value},pJ,own")


def test_other_units(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="'int8 MAC' of own is in 'fJ'; units are pJ"):
        table_of(tmp_path, "int8 MAC,1,fJ,own")


def test_other_columns(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("item,value\nint8 MAC,1\n")
    with pytest.raises(BadRequest, match="has the columns"):
        Table.read(file)


def test_every_row_has_a_source() -> None:
    for row in PUBLISHED.read_text().splitlines()[1:]:
        assert row.rsplit(",", 1)[1] in ("checked", "memory", "derived")
