"""The stages of a lane behind relu: condition, function, second multiplication, second operation."""

from collections.abc import Collection, Iterator
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.functions.own import OwnFunction
from sley.abi.functions.table import Function as FunctionCode
from sley.abi.vector.operations import INTEGER_ADD
from sley.hw.core.vector.control import CONTROL, inverted, is_code
from sley.hw.fp.binary import Binary
from sley.hw.fp.float32 import Float32
from sley.hw.fp.function import Function
from sley.hw.fp.multiply import Multiply

SELECT_LATENCY = 1
COMMON = "function"
"""The component that has all functions of Sley."""
AnyFunction = FunctionCode | OwnFunction


def function_cycles(function: AnyFunction) -> int:
    """What a function takes."""
    cycles: int = (function.load_gateware() if isinstance(function, OwnFunction) else Function).LATENCY
    return cycles


def function_latency(control: data.View, functions: Collection[AnyFunction]) -> dict[int, Value]:
    """From the register of the condition to the input of the second multiplication."""
    latencies: dict[int, Value] = {0: ~control.function.any()}
    for function in functions:
        cycles = function_cycles(function)
        latencies[cycles] = latencies.get(cycles, Const(0, 1)) | (control.function == 1 + function)
    return latencies


def multiply2_latency(control: data.View) -> dict[int, Value]:
    """From the input of the second multiplication to that of the second operation."""
    return {0: ~control.multiply2, Multiply.LATENCY: control.multiply2}


def binary2_latency(control: data.View) -> dict[int, Value]:
    """From the input of the second operation to its result."""
    last = control.last
    return {
        INTEGER_ADD: ~last.maximum & ~last.sum,
        Binary.MAXIMUM_LATENCY: last.maximum,
        Binary.SUM_LATENCY: last.sum,
    }


class LaneTail(wiring.Component):
    """x where a condition holds and another value elsewhere; a function; times a value; op a value.

    Parameters
    ----------
    functions : Collection[AnyFunction]
        Those of the chip; there may be none.

    Members
    -------
    control : In(CONTROL)
        Constant while operands are in flight.
    i : In(32)
        x behind relu.
    iota_negative : In(1)
        The iota of this row and lane is negative, in the cycle of ``i``.
    late0, late1 : In(32)
        Late operands, in the cycle in which their stage takes them.
    other, multiply2, binary2 : In(32)
        Uniform operands of the stages.
    partial : In(32)
        The partial result that x is joined with, in place of another second operand of the last stage.
    fold, second : In(1)
        In place of x ``partial`` is joined: what it was when ``second`` was high, with what it is in the next cycle.
    x : Out(32)
        x in front of the last stage.
    o : Out(32)
        x behind it. Neither is to be looked at without ``control.tail``.

    Latency
    -------
    SELECT_LATENCY and what ``function_latency``, ``multiply2_latency`` and ``binary2_latency`` say.

    Throughput
    ----------
    One element per cycle.

    Cost
    ----
    ``Function``, ``Multiply``, ``Binary``, three words of multiplexers, 32 flip-flops.
    """

    control: data.View
    i: Signal
    iota_negative: Signal
    late0: Signal
    late1: Signal
    other: Signal
    multiply2: Signal
    binary2: Signal
    partial: Signal
    fold: Signal
    second: Signal
    x: Signal
    o: Signal

    def __init__(self, functions: Collection[AnyFunction]) -> None:
        self._functions = functions
        words = ("i", "late0", "late1", "other", "multiply2", "binary2", "partial")
        super().__init__(
            {"control": In(CONTROL), "iota_negative": In(1), "fold": In(1), "second": In(1), "x": Out(32), "o": Out(32)}
            | {name: In(32) for name in words}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = self.control

        def late(stage: int) -> Value:
            """The late operand of a stage; 0 if it has none."""
            pairs = zip((self.late0, self.late1), control.late_use, strict=True)
            words = [word & use[stage].replicate(32) for word, use in pairs]
            return words[0] | words[1]

        # condition
        selected = Signal(32, reset_less=True)
        goes = (control.keep_iota & ~self.iota_negative) | (control.keep_late & ~self.late0.any())
        m.d.sync += selected.eq(Mux(goes, self.other | self.late1 & control.late_use[1][1].replicate(32), self.i))

        # function
        x: Value = selected & (~control.function.any()).replicate(32)
        for name, component, uses in self._function_components():
            m.submodules[name] = component
            m.d.comb += [component.use.eq(uses), component.i.eq(selected)]
            if name == COMMON:
                m.d.comb += component.code.eq(control.function - 1)
            x |= component.o

        # multiplication
        m.submodules.multiply = multiply = Multiply()
        m.d.comb += [
            multiply.use.eq(control.multiply2),
            multiply.a.eq(x),
            multiply.a_nan.eq(Float32(x).is_nan()),
            multiply.b.eq(Mux(control.multiply2_self, x, self.multiply2 | late(2))),
        ]
        m.d.comb += self.x.eq(multiply.o | Mux(control.multiply2, 0, x))

        # operation
        first = Signal(32, reset_less=True)
        with m.If(self.second):
            m.d.sync += first.eq(self.partial)
        m.submodules.binary = binary = Binary()
        last = control.last
        m.d.comb += [
            binary.a.eq(inverted(Mux(self.fold, first, self.x), last.x)),
            binary.b.eq(inverted(self.binary2 | late(3) | self.partial, last.y)),
            binary.maximum.eq(last.maximum),
            binary.minimum.eq(last.minimum),
            binary.float.eq(last.float),
            binary.carry.eq(last.carry),
            self.o.eq(binary.integer | binary.larger | binary.sum),
        ]
        return m

    def _function_components(self) -> Iterator[tuple[str, Any, Value]]:
        """Name, component and condition: one for all functions of Sley, and one for each other."""
        code = self.control.function
        common = [function for function in self._functions if isinstance(function, FunctionCode)]
        if common:
            yield COMMON, Function(common), is_code(code, (1 + function for function in common))
        for function in self._functions:
            if isinstance(function, OwnFunction):
                yield function.name.lower(), function.load_gateware()(), code == 1 + function
