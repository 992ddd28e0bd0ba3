"""What scalar code leaves behind: next values, outputs, resets, events and writes."""

from collections.abc import Callable

from sley.sim.fast.emit.layout import Place
from sley.sim.fast.emit.scalars import Scalars
from sley.sim.fast.optimise.machine_types import c_type
from sley.sim.fast.read.netlist import WORD, Register


def _next(scalars: Scalars, value: int) -> None:
    function = scalars.function
    register = function.design.net.registers[function.elements.parameter[value]]
    if register.clock < 0 or register.next == register.value:
        return
    place = function.design.places[register.value]
    if function.elements.group_of[value] in function.design.schedule.in_place:
        _overwrite(scalars, register, place)
        return
    unit = function.commit_unit()
    target = str(place).replace("s->r", "s->n", 1)
    expression = scalars.operand(register.next)
    name = function.difference((register.value,), unit)
    function.lines.append(f"{target} = {expression}; {name} |= {target} ^ {place};")
    if place.index < 0:
        unit.scalars.append(place)
    else:
        unit.lines.append(f"{place} = {target};")


def _overwrite(scalars: Scalars, register: Register, place: Place) -> None:
    """The contents change when the whole fragment has read what it needs."""
    function = scalars.function
    name = function.name("x")
    expression = scalars.operand(register.next)
    difference = function.difference((register.value,))
    function.lines.append(f"const {place.type} {name} = {expression}; {difference} |= {name} ^ {place};")
    function.tail.append(f"{place} = {name};")


def _output(scalars: Scalars, value: int) -> None:
    function = scalars.function
    number = function.elements.parameter[value]
    port = function.design.net.outputs[number]
    text = scalars.operand(port.value)
    if port.width <= WORD:
        function.lines.append(f"s->o{number} = {text};")
    else:
        function.lines.append(f"memcpy(s->o{number}, {text}, sizeof s->o{number});")


def _reset(scalars: Scalars, value: int) -> None:
    function = scalars.function
    number = function.elements.parameter[value]
    function.lines.append(f"s->rs{number} = {scalars.operand(function.elements.operands[value][0])};")


def _event(scalars: Scalars, value: int) -> None:
    function = scalars.function
    number = function.elements.parameter[value]
    event = function.design.net.events[number]
    enable = scalars.operand(event.enable)
    condition = {"print": enable, "cover": f"{enable} && {{}}"}.get(event.kind, f"{enable} && !{{}}")
    if event.test >= 0:
        condition = condition.format(scalars.operand(event.test))
    for index, argument in enumerate(event.arguments):
        function.lines.append(f"s->ea{number}[{index}] = {scalars.operand(argument)};")
    function.lines.append(f"s->e{number} = {condition};")
    if event.clock < 0:
        function.lines.append(f"s->unclocked |= s->e{number};")


def _write(scalars: Scalars, value: int) -> None:
    function = scalars.function
    elements, net = function.elements, function.design.net
    write = net.writes[elements.parameter[value]]
    if write.clock < 0:
        return
    address, data, enable = (scalars.operand(operand) for operand in elements.operands[value])
    kind, bitwise = c_type(elements.width[value]), net.width[write.enable] > 1
    memory = net.segments[write.segment].memory
    depth = net.memories[memory].depth
    if elements.group_of[value] in function.design.schedule.in_place:
        strip, row, position = function.design.strips[write.segment]
        name, difference = function.name("w"), function.memory_difference(memory)
        function.lines.append(f"const u64 {name}_at = {address}, {name}_new = {data}, {name}_on = {enable};")
        new = f"({name}_new & {name}_on) | (*p & ~{name}_on)" if bitwise else f"{name}_new"
        function.tail += [
            f"if ({name}_on && {name}_at < {depth}u) {{",
            f"  {kind}* const p = s->{strip.name} + {name}_at * {row} + {position};",
            f"  const {kind} v = {new};",
            f"  {difference} |= v ^ *p; *p = v;",
            "}",
        ]
        return
    unit = function.write_unit(elements.parameter[value], 1)
    number = unit.number
    function.lines.append(f"s->wa{number} = {address}; s->wd{number}[0] = {data};")
    function.lines.append(f"s->we{number}[0] = {enable}; {unit.pending(f's->we{number}[0]')}")
    unit.copy([function.design.strips[write.segment]], 1, kind, depth, bitwise)


SINKS: dict[str, Callable[[Scalars, int], None]] = {
    "next": _next,
    "output": _output,
    "reset": _reset,
    "event": _event,
    "write": _write,
}
"""For each operator of a sink what writes its statements."""
