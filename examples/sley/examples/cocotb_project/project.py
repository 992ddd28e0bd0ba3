"""The files of ``sley cocotb new``: a project for a block of the user's own beside Sley."""

from pathlib import Path

from sley.abi.config import ChipConfig
from sley.examples.cocotb_project.system_text import system_text
from sley.fpga.memory.arbiter import AxiArbiter
from sley.hw.ip.export import ip_files
from sley.hw.ip.readable import readable_modules
from sley.hw.verilog import component_verilog
from sley.sim.engines.design_text import cached_verilog

TEMPLATE = Path(__file__).parent / "template"
ARBITER = "sley_axi_arbiter"


def project_files(config: ChipConfig) -> dict[str, str]:
    """Contents by path."""
    chip = ip_files(config, cached_verilog(config))
    modules = readable_modules(component_verilog(AxiArbiter(config), ARBITER), ())
    return {
        **{
            path.relative_to(TEMPLATE).as_posix().removesuffix(".txt"): path.read_text()
            for path in sorted(TEMPLATE.rglob("*.txt"))
        },
        "rtl/system.v": system_text(config),
        **{f"interconnect/{name}.v": text for name, text in modules.items()},
        **{f"sley/{name}": text for name, text in chip.items() if not name.startswith("cocotb/")},
    }
