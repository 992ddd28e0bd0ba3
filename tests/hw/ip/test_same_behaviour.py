"""The exported Verilog, compiled by Verilator, ends all kinds of work in the same cycle as engine ``fast``."""

import re
from typing import Any

import pytest
from session import run_session

from sley.abi.config import ChipConfig, preset
from sley.hw.ip.export import ip_files
from sley.sim.build.toolchain import find_compiler, find_verilator
from sley.sim.engines.design_text import cached_rtlil, cached_verilog
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.options import EngineOptions, default_engine
from sley.sim.engines.rtl import RtlTransport
from sley.sim.memory.dram import DramTiming
from sley.sim.testing.queues import Host, Traffic

MEMORY = 1 << 20
pytestmark = [
    pytest.mark.skipif(default_engine() != "fast", reason="no C compiler"),
    pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator"),
    pytest.mark.slow,
]


def one_text(config: ChipConfig) -> str:
    """All exported modules, below a top with its ports written as engine ``rtl`` reads them."""
    files = ip_files(config, cached_verilog(config))
    text = "\n".join(body for path, body in files.items() if path.startswith("rtl/"))
    header = files["rtl/sley.v"].partition("\n);")[0]
    ports = re.findall(r"^    (input|output) wire (\[\d+:0\] )?(\w+)", header, re.MULTILINE)
    names = ", ".join(name for _, _, name in ports)
    declarations = "".join(f"  {direction} {width}{name};\n" for direction, width, name in ports)
    connections = ", ".join(f".{name}({name})" for _, _, name in ports)
    top = f"\nmodule sley({names});\n{declarations}  sley_chip chip({connections});\nendmodule\n"
    return text.replace("\nmodule sley (", "\nmodule sley_chip (") + top


@pytest.fixture(scope="module", params=["nano", "edge"])
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return preset(request.param)


@pytest.fixture(scope="module")
def verilog(config: ChipConfig) -> str:
    return one_text(config)


def both(config: ChipConfig, verilog: str, **options: Any) -> list[Any]:
    settings = EngineOptions(MEMORY, DramTiming(**options))
    return [
        RtlTransport(verilog, config.bus_bytes, settings),
        FastTransport(cached_rtlil(config), config.bus_bytes, settings),
    ]


@pytest.mark.parametrize("latency", [1, 32])
def test_products(config: ChipConfig, verilog: str, latency: int) -> None:
    shapes = [[1, 1, 1], [5, 3, 7], [13, 9, 11], [33, 20, 41], [8, 64, 8]]
    exported, fast = (run_session(transport, shapes) for transport in both(config, verilog, latency=latency))
    assert exported == fast


@pytest.mark.parametrize("seed", range(4))
def test_queues_with_faults(config: ChipConfig, verilog: str, seed: int) -> None:
    """Launches, copies, fences, semaphores, faults: memory, error records and the time at the end."""
    results = []
    for transport in both(config, verilog):
        host = Host(transport, config)
        traffic = Traffic(config, seed, 100)
        host.settle(traffic.start(host))
        records = [host.record(work.queue) for work in traffic.works]
        results.append((transport.cycles, records, traffic.memory(host)))
        transport.close()
    assert results[0] == results[1]
