"""A warm launch: cycles from the doorbell to its first instruction and first MAC, and from launch to launch.

Looks at signals of the chip on the engine ``fast``; cycles do not depend on the machine that simulates. Fails when one
is above what the project promises.
"""

from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import DTypeLike
from rich.console import Console
from rich.table import Table

from sley.abi.instructions import Op, encode
from sley.abi.timing import DOORBELL_TO_INSTRUCTION
from sley.runtime import Device, Program
from sley.runtime.nn.gemm import gemm

ENGINE = "fast:base?memory=16M"
TIME = "sley.command.time"
RUNNING = "sley.core0.sequencer.execute.state"
MAC = "sley.core0.matrix.rows"
LIMIT = 2000

ROUND_TRIP = 48
"""Cycles from a run accepted by a memory reader to its first beat: 16, and 32 in the DRAM."""

LEAST = 3 * ROUND_TRIP + 32
PROMISED_MAC: dict[tuple[int, int, int, DTypeLike], int] = {
    (16, 16, 16, np.int8): LEAST,
    (16, 16, 32, np.int8): 194,  # twice as many rows of B for the same array, a cycle each
    (16, 16, 16, bfloat16): LEAST,
    (1, 16, 16, bfloat16): LEAST,
}
PROMISED_PERIOD = 64
LAUNCHES = 32


def until(device: Device, name: str) -> int:
    """Time of the next cycle in which this signal is not zero."""
    transport: Any = device.driver.transport
    for _ in range(LIMIT):
        if transport.peek(name):
            return int(transport.peek(TIME))
        transport.advance(1)
    raise TimeoutError(f"{name} stays zero for {LIMIT} cycles")


def first_steps(device: Device, m: int, n: int, k: int, dtype: DTypeLike) -> tuple[int, int]:
    """Cycles from the doorbell to the first instruction and to the first row that enters the array."""
    a, b = device.array(np.ones((m, k), dtype)), device.array(np.ones((k, n), dtype))
    out = gemm(a, b)
    device.synchronize()
    with device.stream.batch():
        gemm(a, b, out=out)
    running, mac = until(device, RUNNING), until(device, MAC)
    bell = device.stream.queue.doorbell_time
    device.synchronize()
    return running - bell, mac - bell


def period(device: Device) -> float:
    """Cycles per launch of a program that does nothing."""
    empty = Program("empty", (encode(Op.END),))
    device.stream.launch(empty)
    times = []
    for launches in (1, 1 + LAUNCHES):
        with device.stream.timed() as timing:
            for _ in range(launches):
                device.stream.launch(empty)
        times.append(timing.cycles)
    return (times[1] - times[0]) / LAUNCHES


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("what", "cycles", "promised", title=f"{ENGINE}, 3 round trips + 32 = {LEAST} cycles")
    missed = []

    def row(what: str, cycles: float, promised: int) -> None:
        table.add_row(what, f"{cycles:g}", str(promised))
        if cycles > promised:
            missed.append(f"{what}: {cycles:g} cycles, promised {promised}")

    with Device.open(ENGINE) as device:
        for (m, n, k, dtype), promised in PROMISED_MAC.items():
            running, mac = first_steps(device, m, n, k, dtype)
            name = f"{m} x {n} x {k} {np.dtype(dtype).name}"
            row(f"doorbell to first instruction, {name}", running, DOORBELL_TO_INSTRUCTION)
            row(f"doorbell to first MAC, {name}", mac, promised)
        row("empty launch to empty launch", period(device), PROMISED_PERIOD)
    Console().print(table)
    return missed
