"""All cases of a chip, and what each leaves on a device and on the golden model."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.bench.selftest.checks import Check
from sley.bench.selftest.units.case import Case, contents, place, run
from sley.bench.selftest.units.products import product_cases
from sley.bench.selftest.units.sequencing import sequencer_cases
from sley.bench.selftest.units.transfers import transfer_cases
from sley.bench.selftest.units.vectors import vector_cases
from sley.driver import Driver
from sley.runtime import Buffer, Device
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.model import ModelTransport

MODEL_BYTES = 4 << 20


def unit_cases(config: ChipConfig) -> Iterator[Case]:
    """Every unit with every operation that the chip has."""
    for cases in (sequencer_cases, transfer_cases, product_cases, vector_cases):
        yield from cases(config)


class Golden:
    """The golden model of a chip, compiled where a C compiler is. A context manager."""

    def __init__(self, config: ChipConfig) -> None:
        self.device = Device(Driver(ModelTransport(config, MODEL_BYTES, bool(find_c_compiler()))))
        self._source = self.device.array(contents(config))

    def __enter__(self) -> "Golden":
        return self

    def __exit__(self, *exc: object) -> None:
        self.device.close()

    def expected(self, case: Case) -> NDArray[np.uint8]:
        """What the case leaves, [cores, bytes]."""
        return run(self.device, case, self._source)


def check_case(device: Device, source: Buffer, golden: Golden, case: Case, check: Check) -> None:
    """Runs a case, and enters each 32-bit word that is not as on the golden model."""
    expected, found = golden.expected(case), run(device, case, source)
    check.about = f"{expected.size:,} bytes against the golden model"
    words = [values.view("<u4") for values in (expected, found)]
    for core, word in np.argwhere(words[0] != words[1]):
        wanted, got = (int(values[core, word]) for values in words)
        where = f"{case.unit} {case.name}, core {core}, {place(device.config, 4 * int(word))}"
        check.differs(where, f"{wanted:#010x}", f"{got:#010x}")
