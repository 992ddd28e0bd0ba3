"""The whole of it: driver, runtime and demo through a serial line to a simulated board, memory and all."""

import io
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, Out
from rich.console import Console
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.abi.transport import EngineError
from sley.abi.transport import EngineError as SimulationError
from sley.driver.device import Driver
from sley.examples.digits import run as digits
from sley.fpga.boards.simulated import BAUD
from sley.fpga.bridge import link
from sley.fpga.bridge.transport import FpgaTransport
from sley.hw.rtlil import component_rtlil
from sley.runtime import blas
from sley.runtime.cli import app
from sley.runtime.device.device import Device
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.design import DEFAULT, boards, open_board
from sley.sim.board.host_uart import HostedDesign
from sley.sim.board.port import BoardPort
from sley.sim.board.terminal import Terminal
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.testing.faulty_line import FaultyLine

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")]

CLOCKS = 4
MEMORY_BYTES = 1 << 18


@pytest.fixture
def board(request: pytest.FixtureRequest) -> Iterator[SimulatedBoard]:
    """On-chip memory unless the parameter says which board; the chip is the board's."""
    opened = open_board(None, CLOCKS, MEMORY_BYTES, getattr(request, "param", DEFAULT))
    yield opened
    opened.close()


@pytest.fixture
def terminal(board: SimulatedBoard) -> Iterator[str]:
    """The name of a serial port at which a board is."""
    joined = Terminal(board)
    stop = threading.Event()
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            while not stop.is_set():
                joined.serve_once()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    yield joined.name
    stop.set()
    thread.join()
    joined.close()
    assert not failures


def multiply(device: Device) -> None:
    random = np.random.default_rng(7)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((9, 13), (13, 6)))
    c = blas.gemm(device.array(a), device.array(b)).numpy()
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


BOARDS = pytest.mark.parametrize("board", ["system", "ulx3s", "ulx3s_25f"], indirect=True)


@BOARDS
def test_driver_and_runtime(terminal: str, request: pytest.FixtureRequest) -> None:
    chip = boards()[request.node.callspec.params["board"]].load().config
    with Device.open(f"fpga:{terminal}?timeout=2") as device:
        assert device.config.capabilities == chip.capabilities
        assert device.driver.transport.memory_bytes == MEMORY_BYTES
        multiply(device)
        device.driver.reset()
        multiply(device)
        before = device.driver.time
        device.driver.transport.advance(10_000)
        assert device.driver.time - before >= 10_000
    with Device.open(f"fpga:{terminal}") as device:  # another host at the same board
        multiply(device)


@BOARDS
def test_demo(terminal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both networks on one image equal the golden model in every bit; ``run_demo`` raises otherwise."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits, "EPOCHS", {"MLP": 1, "CNN": 1})
    text = io.StringIO()
    results = digits.run_demo(f"fpga:{terminal}", 1, Console(file=text, width=120))
    assert [result.images for result in results] == [1, 1]
    assert all(result.cycles > 1000 for result in results)
    assert "equal the golden model in every bit" in text.getvalue()


@pytest.mark.parametrize("seed", range(3))
def test_driver_on_a_line_with_faults(board: SimulatedBoard, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doorbells ring once, interrupts are cleared once, and products are exact."""
    clock = SimpleNamespace(monotonic=lambda: board.cycles / (CLOCKS * BAUD))
    monkeypatch.setattr(link, "time", clock)
    line = FaultyLine(BoardPort(board), 0.0, seed)
    transport = FpgaTransport(line, BAUD)
    line.rate = 0.001
    with Device(Driver(transport)) as device:
        for _ in range(3):
            multiply(device)
        line.rate = 0.0
        assert device.driver.statistics.device_resets == 0
    assert sum(line.faults.values()) > 5


class Faulty(Component):
    """A board that is at fault from the start."""

    uart_rx: In(1, init=1)
    uart_tx: Out(1, init=1)
    fault: Out(3, init=5)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.uart_tx.eq(1)
        m.d.sync += self.fault.eq(5)
        return m


def test_a_board_that_is_at_fault() -> None:
    board = SimulatedBoard(component_rtlil(HostedDesign(Faulty(), CLOCKS), "board"))
    with pytest.raises(SimulationError, match="works outside its rules: fault is 0x5"):
        board.run(bytearray(), 100)
    board.close()


@pytest.mark.parametrize("board", ["ulx3s"], indirect=True)
def test_errors_name_port_and_option(terminal: str) -> None:
    with pytest.raises(EngineError, match="serial port /dev/absent cannot be opened"):
        Driver.open("fpga:/dev/absent")
    with pytest.raises(EngineError, match="engine fpga has no option 'speed'; there are baud, timeout"):
        Driver.open(f"fpga:{terminal}?speed=1")
    for option in ("baud=0", "baud=fast", "timeout=-1"):
        with pytest.raises(EngineError, match=f"{option}: .* must be a positive number"):
            Driver.open(f"fpga:{terminal}?{option}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command(number: signal.Signals) -> None:
    """``sley fpga simulate`` says where the board is, runs until it is told to stop, and ends well."""
    arguments = ["fpga", "simulate", "nano", "--memory", "256K"]
    with subprocess.Popen(
        [sys.executable, "-m", "sley.runtime.cli", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"is at (\S+);", process.stdout.readline())
        assert found is not None
        with Driver.open(f"fpga:{found[1]}") as driver:
            assert driver.config == preset("nano")
        process.send_signal(number)
        assert "cycles" in process.stdout.read()
        assert process.wait(30) == 0


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["nano", "ulx3s"])
def test_from_reset_to_the_answer_by_the_commands(name: str) -> None:
    """``sley fpga simulate`` in one shell, ``sley demo`` in another."""
    pytest.importorskip("sklearn")
    command = [sys.executable, "-m", "sley.runtime.cli"]
    with subprocess.Popen([*command, "fpga", "simulate", name], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"is at (\S+);", process.stdout.readline())
        assert found is not None
        done = subprocess.run(
            [*command, "demo", "--device", f"fpga:{found[1]}", "-n", "5"], capture_output=True, text=True, check=False
        )
        process.terminate()
    assert done.returncode == 0, done.stderr
    assert "All results of all 5 layers equal the golden model in every bit." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nano", "--memory", "100K"], "memory_bytes is 102400; it must be a power of two"),
        (["absent"], "no board 'absent'; there are .*system"),
        (["nano", "--memory", "much"], "'much' is no size"),
    ],
)
def test_command_refuses(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["fpga", "simulate", *arguments])
    assert result.exit_code in (1, 2)
    assert re.search(message, " ".join(result.output.split()))
