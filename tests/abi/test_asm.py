"""The assembler and the disassembler are inverses, and bad text gets an error that names its line."""

import random

import pytest

from sley.abi.asm import AsmError, assemble, bytes_to_words, disassemble, words_to_bytes
from sley.abi.instructions import FORMATS, Op, encode
from sley.abi.parameters import PARAMS, Param


def random_instruction(rng: random.Random, op: Op, length: int) -> int:
    form = FORMATS[op]
    fields = {}
    for name, placed in form.layout.fields.items():
        field = placed.field
        if name == "op":
            continue
        low, high = (
            (-(1 << (field.width - 1)), (1 << (field.width - 1)) - 1) if field.signed else (0, (1 << field.width) - 1)
        )
        fields[name] = rng.choice([low, high, rng.randint(low, high)])
    if "target" in fields:
        fields["target"] = rng.randrange(length)
    if op is Op.SET:
        fields["param"] = rng.choice(list(Param))
        fields["unit"] = rng.choice(PARAMS[Param(fields["param"])].units)
    if form.immediate_replaces is not None:
        if fields["use_imm"]:
            fields[form.immediate_replaces] = 0
        else:
            fields["imm"] = 0
    return encode(op, **fields)


@pytest.mark.parametrize("seed", range(50))
def test_round_trip(seed: int) -> None:
    rng = random.Random(seed)
    length = rng.choice([1, 7, 40])
    words = [random_instruction(rng, rng.choice(list(Op)), length) for _ in range(length)]
    assert assemble(disassemble(words)) == words
    assert bytes_to_words(words_to_bytes(words)) == words


def test_every_operation_round_trips() -> None:
    rng = random.Random(1)
    words = [random_instruction(rng, op, len(Op)) for op in Op for _ in range(20)]
    assert assemble(disassemble(words)) == words


def test_labels_and_immediates() -> None:
    words = assemble(
        "start: loop #3, last\n add r1, r0, #0xffffffff ; minus one\nlast: sync signal=0,15\n beq r0, r0, start\n end"
    )
    assert words == [
        encode(Op.LOOP, use_imm=1, imm=3, target=2),
        encode(Op.ADD, rd=1, use_imm=1, imm=-1),
        encode(Op.SYNC, signal=0x8001),
        encode(Op.BEQ, target=0),
        encode(Op.END),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("end\nfrob r1", "line 2: no instruction 'frob'"),
        ("add r1, r2", "takes 3 operands"),
        ("add r1, #1, r2", "cannot take an immediate for ra"),
        ("add r1, r32, r2", "'r32' is no register"),
        ("add r1, r2, #0x100000000", "does not fit into 32 bits"),
        ("sync wait=16", "semaphore 16 is outside"),
        ("set load.act_stride, #1", "unit load has no parameter"),
        ("beq r1, r2, nowhere", "is no label or index"),
        ("load r1, r2, r3 accumulate=1", "has no 'accumulate'"),
        ("a: a: end", "defined twice"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(AsmError, match=message):
        assemble(text)


def test_garbage_is_shown_not_hidden() -> None:
    assert "is no instruction" in disassemble([0])
