"""What the boards are made of."""

import re
from typing import Any

import pytest
from amaranth.hdl import Fragment
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.fpga.boards.known import BOARDS
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.hw.testing.parameters import rejects
from sley.runtime.cli import app

ULX3S = BOARDS["ulx3s"]
NANO = preset("nano")


def made(component: Any) -> Any:
    """So that Amaranth does not complain about what was never built."""
    Fragment.get(component, None)
    return component


def test_memory_of_a_ulx3s() -> None:
    """Its SDRAM unless on-chip RAM is asked for."""
    assert list(ULX3S.memory_kinds) == ["sdram", "on-chip"]
    for kind in (None, "sdram", "on-chip"):
        memory = made(ULX3S.memory(NANO, ULX3S.clock_hz, kind))
        assert isinstance(memory, BlockMemory if kind == "on-chip" else SdramMemory)
        assert memory.memory_bytes == ULX3S.memory_kinds[kind or "sdram"]
    assert ULX3S.memory_kinds["sdram"] == 32 << 20


def test_a_system_has_the_pins_of_its_memory() -> None:
    assert "sdram" in made(ULX3S.system()).signature.members
    assert "sdram" not in made(ULX3S.system(memory="on-chip")).signature.members


def test_what_is_refused() -> None:
    with rejects("memory is 'tape'; ulx3s has sdram, on-chip"):
        ULX3S.memory(NANO, ULX3S.clock_hz, "tape")
    with rejects(
        "clock_hz is 50000000; data of the common 32 MiB SDRAM .*: at most 41666666, .* or take on-chip memory"
    ):
        ULX3S.system(clock_hz=50_000_000)
    assert made(ULX3S.memory(NANO, 50_000_000, "on-chip")).memory_bytes == ULX3S.memory_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "tape"], "Invalid value for --memory: memory is 'tape'; ulx3s has sdram, on-chip"),
        (["--clock", "50"], "Invalid value for --clock: clock_hz is 50000000; .* take on-chip memory"),
        (["--config", "edge", "--array-blocks", "8"], "Invalid value for --array-blocks: edge has bf16, .* int8 alone"),
        (["--array-blocks", "-1"], "Invalid value for '--array-blocks'"),
        (["--seeds", "0"], "Invalid value for '--seeds'"),
    ],
)
def test_command_refuses(arguments: list[str], message: str) -> None:
    refuses("ulx3s", arguments, message)


def test_no_seeds_where_nothing_is_placed() -> None:
    refuses(
        "arty_a7", ["--seeds", "2", "--without-chip"], "Invalid value for --seeds: .* is not placed here; leave it out"
    )


def refuses(board: str, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["fpga", "build", board, *arguments])
    assert result.exit_code == 2
    assert re.search(message, re.sub(r"[^\w.;:',-]+", " ", result.output))


def test_list_of_boards() -> None:
    result = CliRunner().invoke(app, ["fpga", "boards"])
    assert "32,768 KiB of sdram memory or 256 KiB of on-chip memory" in result.output
