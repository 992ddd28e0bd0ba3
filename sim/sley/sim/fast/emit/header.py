"""The header ``design.h`` of a compiled design."""

from sley.sim.fast.emit.design import Design
from sley.sim.fast.optimise.machine_types import c_type, words
from sley.sim.fast.read.netlist import WORD


def header(design: Design) -> str:
    """The structure of the state and what hosts of a design call."""
    net = design.net
    lines = ['#include "vectors.h"', "", "typedef struct S {", *design.layout.text, "} S;", ""]
    lines += [f"void f{index}(S* s);" for index in range(design.fragment_count)]
    lines += [
        *("void init(S* s);", "void mark_all(S* s);", "void settle(S* s);", "void commit(S* s, u64 clocks);"),
        "void poke(S* s, u32 input, const u64* value);",
        *(
            "typedef int (*Hook)(void* user, u32 event);",
            "int fire(const S* s, u64 clocks, Hook hook, void* user);",
        ),
        f"enum {{ UNCLOCKED = {len(net.clocks)} }};",
        "",
    ]
    for number, port in enumerate(design.net.inputs):
        lines += _setter(design, number, port.name, port.width)
        lines.append(f"#define OUT_{port.name} i{number}  // what drives a pin that the design does not")
    for number, port in enumerate(design.net.outputs):
        lines.append(f"#define OUT_{port.name} o{number}")
    return "\n".join(lines) + "\n"


def _setter(design: Design, number: int, name: str, width: int) -> list[str]:
    marks = " ".join(design.mark(design.readers.get(design.net.inputs[number].value, ())))
    if width <= WORD:
        kind = c_type(width)
        return [
            f"static inline void set_{name}(S* s, {kind} value) {{",
            f"  if (s->i{number} != value) {{ s->i{number} = value; {marks} }}",
            "}",
            f"static inline void load_{name}(S* s, const void* bytes) {{",
            f"  {kind} value;",
            "  memcpy(&value, bytes, sizeof value);",
            f"  set_{name}(s, value);",
            "}",
        ]
    size = words(width) * 8
    return [
        f"static inline void set_{name}(S* s, const void* value) {{",
        f"  if (memcmp(s->i{number}, value, {size})) {{ memcpy(s->i{number}, value, {size}); {marks} }}",
        "}",
        f"static inline void load_{name}(S* s, const void* bytes) {{ set_{name}(s, bytes); }}",
    ]
