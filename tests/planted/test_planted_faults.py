"""Faults planted in the gateware and in the simulators: the default tests of the right folder find each of them."""

from collections import Counter
from collections.abc import Callable

import pytest
from faults import PORTIONS, Fault, first_failure, read_faults

FAULTS = [fault for portion in PORTIONS for fault in read_faults(portion)]


def names(faults: list[Fault]) -> list[str]:
    """Path of the file, and its number among those in it."""
    seen: Counter[str] = Counter()
    found = []
    for fault in faults:
        seen[fault.file] += 1
        found.append(f"{fault.file.rpartition('.')[0]}-{seen[fault.file]}")
    return found


EACH = pytest.mark.parametrize("fault", FAULTS, ids=names(FAULTS))


@EACH
def test_it_can_be_planted(fault: Fault) -> None:
    assert fault.old != fault.new
    planted = fault.planted
    if fault.file.endswith(".py"):
        compile(planted, fault.file, "exec")
    assert all(path.exists() for path in fault.paths())


@EACH
@pytest.mark.campaign
def test_it_is_found(fault: Fault, record_property: Callable[[str, object], None]) -> None:
    found = first_failure(fault)
    outcome = "caught" if found else "equivalent" if fault.equivalent else "survived"
    record_property("planted", [fault.tests.split()[-1], outcome])
    assert outcome != "survived", f"{fault.tests} passes although {fault.what}"
    assert not (found and fault.equivalent), f"{found} fails, so this is not so: {fault.equivalent}"
    print(f"{fault.what}: {found or outcome}")
