"""The registers that hold a unit's parameters."""

from amaranth import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op
from sley.abi.parameters import ParamInfo, unit_params


def flag_bits(op: Op, name: str) -> slice:
    """Where a flag of an operation is in ``UnitCommand.flags``."""
    field = FORMATS[op].layout.fields[name]
    return slice(field.lsb - FLAGS_LSB, field.lsb - FLAGS_LSB + field.width)


def params_layout(unit: Unit, config: ChipConfig) -> data.StructLayout:
    """Every parameter of the unit by its lower-case name, signed where it is."""
    return data.StructLayout(
        {
            p.name.lower(): signed(info.width) if info.signed else unsigned(info.width)
            for p, info in unit_params(unit, config).items()
        }
    )


def _fits(info: ParamInfo, value: Value) -> Value:
    """Whether what the parameter's width drops of a 32-bit value is zero, or copies of the sign."""
    dropped = value[info.width - 1 :] if info.signed else value[info.width :]
    return (~dropped.any() | dropped.all()) if info.signed else ~dropped.any()


def bad_set(unit: Unit, config: ChipConfig, param: Value, value: Value) -> Value:
    """Whether a SET is a fault: the unit has no such parameter, or the value does not fit its width."""
    return ~Cat((param == p) & _fits(info, value) for p, info in unit_params(unit, config).items()).any()


class UnitParams(wiring.Component):
    """A unit's parameters, written by its SET commands.

    Parameters
    ----------
    unit : Unit
        The unit. It must have parameters.
    config : ChipConfig
        The chip.

    Members
    -------
    set : In(1)
        Write ``value`` to parameter ``param``, unless ``bad``.
    param : In(8), value : In(32)
        From the command: its ``flags[:8]`` and its ``a``.
    clear : In(1)
        All parameters take their reset values; wins over ``set``. Units connect ``clear | abort``.
    bad : Out(1)
        ``bad_set`` of ``param`` and ``value``, combinational, whether or not ``set`` is high.
    values : Out(params_layout(unit, config))
        Registered: new values are visible in the cycle after ``set`` or ``clear``.

    Raises
    ------
    ValueError
        If the unit has no parameters.

    Latency
    -------
    One cycle.

    Cost
    ----
    One register bit per parameter bit. The registers are not reset: ``clear`` does it.
    """

    set: Signal
    param: Signal
    value: Signal
    clear: Signal
    bad: Signal
    values: data.View

    def __init__(self, unit: Unit, config: ChipConfig) -> None:
        self._unit, self._config = unit, config
        if not unit_params(unit, config):
            raise ValueError(f"unit is {unit!r}, which has no parameters in sley.abi.parameters.PARAMS")
        fields = FORMATS[Op.SET].layout.fields
        super().__init__(
            {
                "set": In(1),
                "param": In(fields["param"].width),
                "value": In(fields["imm"].width),
                "clear": In(1),
                "bad": Out(1),
                "values": Out(params_layout(unit, config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.bad.eq(bad_set(self._unit, self._config, self.param, self.value))
        for param, info in unit_params(self._unit, self._config).items():
            name = param.name.lower()
            register = Signal(self.values[name].shape(), init=info.reset, name=name, reset_less=True)
            m.d.comb += self.values[name].eq(register)
            with m.If(self.set & (self.param == param) & _fits(info, self.value)):
                m.d.sync += register.eq(self.value)
            with m.If(self.clear):
                m.d.sync += register.eq(info.reset)
        return m
