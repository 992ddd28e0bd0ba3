import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from sley.abi.config import ABI_MAJOR, ABI_MINOR, PRESETS
from sley.runtime import cli
from sley.runtime.cli import app

TEXT = "add r8, r8, #1\nend\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def commands(group: Any, name: str = "") -> Iterator[str]:
    """All commands and groups of commands, those of groups too."""
    yield name
    for part, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {part}")


COMMANDS = list(commands(typer.main.get_group(app)))


def test_commands_of_all_portions_are_there() -> None:
    names = {"demo", "info", "asm", "disasm", "tune", "verilog", "ip", "bench gemm", "fpga build", "cache show"}
    assert names <= {name.strip() for name in COMMANDS}


def test_info_names_the_operand_types() -> None:
    output = run("info", "base").output
    assert re.search(r"operand_types\s*│\s*int8, bf16", output)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    result = run(*command.split(), "--help")
    assert (result.exit_code, f"Usage: sley{command}" in result.output) == (0, True)


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.output == f"sley {version('sley')}, ABI {ABI_MAJOR}.{ABI_MINOR}\n"


def test_commands_and_groups_join(monkeypatch: pytest.MonkeyPatch) -> None:
    group = typer.Typer()

    @group.command()
    def inner() -> None:
        raise OSError("something to do about it")

    group.command("other")(lambda: None)

    def missing() -> None:
        raise ImportError("no hardware here")

    points = {"outer": lambda: group, "single": lambda: lambda: typer.echo("hello"), "gone": missing}
    found = [SimpleNamespace(name=name, load=load) for name, load in points.items()]
    monkeypatch.setattr(cli, "entry_points", lambda group: found if group == "sley.commands" else [])
    target = typer.Typer(cls=cli._Group)
    cli._join(target, "sley.commands")
    invoke = CliRunner().invoke
    assert invoke(target, ["outer", "other"]).exit_code == 0
    assert invoke(target, ["single"]).output == "hello\n"
    result = invoke(target, ["outer", "inner"])
    assert (result.exit_code, result.stderr) == (1, "error: something to do about it\n")
    assert invoke(target, ["gone"]).exit_code == 2


@pytest.mark.parametrize("name", PRESETS)
def test_info_of_presets(name: str) -> None:
    result = run("info", name)
    assert result.exit_code == 0
    assert f"{PRESETS[name].hash:#010x}" in result.output
    assert "DOORBELL1" in result.output


def test_info_of_a_device() -> None:
    result = run("info", "model:edge?memory=2M")
    assert result.exit_code == 0
    assert "2,097,152" in result.output


def test_asm_and_disasm(tmp_path: Path) -> None:
    source, binary = tmp_path / "a.s", tmp_path / "a.bin"
    source.write_text(TEXT)
    assert run("asm", str(source), "-o", str(binary)).exit_code == 0
    assert len(binary.read_bytes()) == 32
    assert run("disasm", str(binary)).output.split() == TEXT.split()
    words = run("asm", str(source)).output.split()
    assert b"".join(int(word, 16).to_bytes(16, "little") for word in words) == binary.read_bytes()
    assert CliRunner().invoke(app, ["asm", "-"], input=TEXT).output.split() == words


def test_bench_gemm() -> None:
    result = run("bench", "gemm", "-e", "model:edge?memory=1M", "-m", "20", "-n", "9", "-k", "30", "--result", "int8")
    assert result.exit_code == 0
    assert "lower bound" in result.output
    assert "done by the arrays" in result.output
    assert "ROW_INT8" not in result.output  # the model has no cycles


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("info", "huge"), 2, "no preset 'huge'; there are nano"),
        (("frobnicate",), 2, "No such command"),
        (("bench", "gemm", "-m", "0"), 2, "Invalid value"),
        (("bench", "gemm", "-e", "warp:base"), 1, "error: no engine 'warp'"),
        (("bench", "gemm", "--engine", "warp:base"), 1, "error: no engine 'warp'"),
        (("bench", "gemm", "--device", "warp:base"), 1, "error: no engine 'warp'"),
        (("bench", "suite", "--device", "warp:base"), 1, "error: no engine 'warp'"),
        (("demo", "--device", "warp:base"), 1, "error: no engine 'warp'"),
        (("bench", "sim", "huge"), 2, "no preset 'huge'"),
        (("bench", "array", "huge"), 2, "no preset 'huge'"),
        (("demo", "-e", "model:base?memory=lots"), 1, "error: memory=lots is no size"),
        (("info", "model:base?latency=3"), 1, "engine model has no option 'latency'; there are memory, values"),
        (("info", "model:base?memory=1"), 1, "memory must be in 4096.."),
        (("bench", "sim", "nano", "--size", "131072"), 1, "K is 131072; above 131071"),
        (("bench", "sim", "nano", "--csv", "/nowhere/x"), 1, "there is no folder /nowhere"),
        (("bench", "array", "nano", "--csv", "/nowhere/x"), 1, "there is no folder /nowhere"),
        (("fpga", "report", "--only", "chip nano", "--page", "/nowhere/x"), 1, "there is no folder /nowhere"),
        (("fpga", "build", "ulx3s", "--clock", "0"), 2, "a clock of 0 MHz"),
        (("fpga", "build", "ulx3s", "--clock", "nan"), 2, "a clock of nan MHz"),
        (("fpga", "simulate", "nano", "--memory", "0"), 2, "without memory"),
        (("fpga", "simulate", "nano", "--config", "base"), 2, "nano is a preset already"),
        (("asm", "/nowhere/at/all.s"), 1, "error: "),
    ],
)
def test_errors_have_no_traceback(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.output + result.stderr
    assert "Traceback" not in result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("arguments", [("demo", "--help"), ("info", "model:nano?values=numpy"), ("fpga", "boards")])
def test_a_reader_that_has_seen_enough(arguments: tuple[str, ...]) -> None:
    """As in ``sley fpga boards | head -1``: no word of the pipe, which the reader has closed."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "sley.runtime.cli", *arguments]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert ended.stderr == ""


def test_a_cache_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("SLEY_CACHE", str(file))
    for command in (("cache", "show"), ("cache", "clear"), ("bench", "gemm", "-e", "model:nano?memory=1M", "-m", "4")):
        result = run(*command)
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        assert f"SLEY_CACHE={file} is a file; name a folder" in result.stderr
    assert file.read_text() == "mine"


@pytest.mark.parametrize("command", [("info",), ("verilog", "--config"), ("fpga", "build", "ulx3s", "--config")])
def test_a_configuration_that_is_no_text(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chip.json").write_bytes(b"\xff\xfe\0")
    result = run(*command, "chip.json")
    assert result.exit_code == 2
    assert "chip.json is no text" in result.output


def test_memory_that_the_host_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 4.00 GiB")

    monkeypatch.setattr("sley.driver.Driver.open", full)
    result = run("info", "model:base")
    assert (result.exit_code, result.stderr) == (1, "error: Unable to allocate 4.00 GiB\n")


def test_bad_sources(tmp_path: Path) -> None:
    source = tmp_path / "bad.s"
    source.write_text("frobnicate r1\n")
    result = run("asm", str(source))
    assert result.exit_code == 1
    assert "line 1" in result.stderr
    source.write_bytes(b"\xff\xfe end")
    result = run("asm", str(source))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {source} is no text in UTF-8 ('utf-8' codec can't decode byte 0xff")
    source.write_bytes(b"abc")
    assert run("disasm", str(source)).exit_code == 2
