"""What the IR offers to passes: the way back."""

from sley.runtime.tile.ir import Block, Function, Op, Value, saved
from sley.runtime.tile.text import parse, printed

TEXT = """sley.tile 1
kernel doubled(%x: fp32[16, 16; 16, 1], %y: fp32[16, 16; 16, 1]) grid 2, 1, 1 {
  for() {count=2, lower=0, step=8} (%row: index) {
    %0: index = const() {value=0}
    %1: fp32[8, 16] = load(%x, %row, %0) {axes=(0, 1), fill=0.0, shape=(8, 16)}
    %2: fp32[8, 16] = binary(%1, %1) {kind='add'}
    store(%y, %row, %0, %2) {axes=(0, 1)}
    yield()
  }
}
"""


def spoil(function: Function) -> None:
    """Changes all that a function is made of, in place and by what is new."""
    loop = function.body.ops[0]
    assert loop.body is not None
    load, sums = loop.body.ops[1:3]
    loop.body.ops.insert(0, Op("const", [], {"value": 1}, [Value(loop.body.parameters[0].type)]))
    loop.body.parameters[0] = Value(loop.body.parameters[0].type, "other")
    load.attributes["fill"] = 1.0
    sums.operands.pop()
    sums.name, sums.results = "unary", [Value(sums.result.type)]
    load.results.append(load.result)
    loop.attributes |= {"count": 1}
    loop.body = Block(loop.body.parameters, loop.body.ops[:2])
    function.body, function.grid = Block([], [loop]), (1, 1, 1)


def test_back_again_and_again() -> None:
    function = parse(TEXT)
    text, back = printed(function), saved(function)
    for _ in range(2):
        spoil(function)
        assert printed(function) != text
        back()
        assert printed(function) == text
