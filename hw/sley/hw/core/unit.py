"""What every unit of a core has in common: its commands, its fault record and its ports.

Rules (numbered so that tests and reviews can cite them):

1. A command reaches a unit only after the semaphores of its wait set were taken.
2. A unit executes commands in order. A ``SET`` command writes a parameter for the commands behind it.
3. When a command's effects are complete and visible to every other unit, the unit offers the command's signal set on
   a signal stream (also when it is empty, so that completion is one event); it has finished when that is accepted,
   and ``retired`` is high for that cycle.
4. On a fault the unit raises ``fault.valid`` for one cycle with the record and completes the command without further
   effects. It stays usable.
5. While ``abort`` is high the unit accepts and drops commands, starts nothing, completes what is on the bus, and lowers
   ``busy`` when all is quiet. Parameters return to their reset values. From its second cycle on the unit offers no
   signals; in the first it may still, as semaphores are cleared behind an abort.
6. ``busy`` is high from the acceptance of a command until its signal set is accepted.
7. ``clear`` high for one cycle (before a block starts, unit idle) sets all parameters to their reset values.
"""

# mypy: disable-error-code="valid-type"

from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature

from sley.abi.faults import CODE_BITS, PC_BITS
from sley.abi.instructions import FLAGS_BITS, SEMAPHORES


class Fault(data.Struct):
    """A fault record as it leaves a unit; meaningful while ``valid``."""

    valid: 1
    code: CODE_BITS
    pc: PC_BITS
    address: 32


class UnitCommand(data.Struct):
    """An instruction with its operand registers already read: ``a``, ``b``, ``c`` are the values of ra, rb, rc
    (or the immediate in place of the operand it replaces); ``flags`` is the field of the word. SET: ``a`` is the
    value, ``flags`` holds param (7:0) and unit (10:8)."""

    op: 8
    pc: PC_BITS
    wait: SEMAPHORES
    signal: SEMAPHORES
    a: 32
    b: 32
    c: 32
    flags: FLAGS_BITS


def unit_signature(signals: int = 1) -> Signature:
    """Ports of a unit as the unit sees them; ``signals`` signal streams."""
    return Signature(
        {
            "command": In(stream.Signature(UnitCommand)),
            "signal": Out(stream.Signature(SEMAPHORES)).array(signals),
            "fault": Out(Fault),
            "busy": Out(1),
            "retired": Out(signals),
            "abort": In(1),
            "clear": In(1),
        }
    )
