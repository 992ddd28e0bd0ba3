"""The session of ``session.py`` on exported Verilog; what it measured goes into the file that SLEY_SESSION names."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.task import bridge
from session import run_session

from sley.sim.cocotb.transport import CycleTransport


@cocotb.test()
async def session(dut):
    request = json.loads(os.environ["SLEY_SESSION"])
    transport = CycleTransport(dut)
    await transport.reset()
    result = await bridge(run_session)(transport, request["shapes"])
    Path(request["result"]).write_text(json.dumps(result))
