"""What ``abi.timing`` says of a warm launch, measured on the whole chip."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

from sley.abi.timing import DOORBELL_TO_INSTRUCTION, LAUNCH_PERIOD
from sley.bench.chip.launch import ENGINE, first_steps, period
from sley.runtime import Device
from sley.sim.build.toolchain import find_c_compiler

pytestmark = pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")


def test_a_warm_launch() -> None:
    with Device.open(ENGINE) as device:
        assert [first_steps(device, 16, 16, 16, dtype)[0] for dtype in (np.int8, bfloat16)] == [
            DOORBELL_TO_INSTRUCTION
        ] * 2
        assert period(device) == LAUNCH_PERIOD
