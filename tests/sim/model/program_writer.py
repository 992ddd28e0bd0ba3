"""Random programs for any chip: most instructions are legal, and about half of the programs fail somewhere."""

import random

from chain_commands import chain_flags, random_chain

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FORMATS, Op, encode
from sley.abi.parameters import Param, unit_params
from sley.abi.vector.chains import CHAIN_PARAM, WORDS_KEPT


class Writer:
    """Writes random programs for a chip.

    ``lists``: whether transfers go by lists, whose words here are whatever the accumulators hold.
    """

    def __init__(self, config: ChipConfig, seed: int, lists: bool = True) -> None:
        self.config, self.rng, self.lists = config, random.Random(seed), lists

    def program(self) -> list[int]:
        words: list[int] = []
        for register in range(10, 16):
            words.append(encode(Op.ADD, rd=register, use_imm=1, imm=self.rng.choice([0, 1, 3, 5, 17, 40, 100])))
        for _ in range(self.rng.randrange(4, 24)):
            words += self.instruction(len(words))
        return [*words, encode(Op.END)]

    def instruction(self, pc: int) -> list[int]:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return [self.set()]
        if kind < 0.5:
            return self.scalar(pc)
        if self.config.vector_chains and kind < 0.6:
            return self.chained()
        op = rng.choice([Op.LOAD, Op.LOAD, Op.STORE, Op.WEIGHTS, Op.MATMUL, Op.VECTOR, Op.VROW])
        return [encode(op, **self.fields(op))]

    def fields(self, op: Op) -> dict[str, int]:
        rng, fields = self.rng, {}
        for name in FORMATS[op].flags:
            field = FORMATS[op].layout.fields[name].field
            codes = [code for code in field.enum or range(1 << field.width) if code < 1 << field.width]
            usual = FORMATS[op].defaults.get(name, 0)
            fields[name] = int(rng.choice(codes)) if rng.random() < 0.1 else usual
        for name, registers in (
            ("ra", range(10, 16)),
            ("rb", range(10, 16)),
            ("rc", range(10, 14)),
            ("rd", [0, 0, 0, 11]),
        ):
            if name in FORMATS[op].fields:
                fields[name] = rng.choice(list(registers))
        if op in (Op.LOAD, Op.STORE):
            fields["ra"] = 8
        if not self.lists and "by_list" in fields:
            fields["by_list"] = 0
        if FORMATS[op].immediate_replaces and rng.random() < 0.5:
            fields |= {
                "use_imm": 1,
                "imm": rng.choice([0, 1, 2, 3, 4]) if rng.random() < 0.97 else rng.randrange(-2, 70_000),
            }
        if op is Op.SYNC or rng.random() < 0.02:
            fields["signal"] = 1 << rng.randrange(16)
        return fields

    def set(self) -> int:
        rng = self.rng
        unit = rng.choice([Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR])
        if rng.random() < 0.03:
            return encode(Op.SET, param=rng.randrange(256), unit=rng.randrange(1, 5), use_imm=1, imm=rng.randrange(100))
        param, info = rng.choice(list(unit_params(unit, self.config).items()))
        value = rng.choice([0, 1, 2, 3, 5]) if param is not Param.CHUNKS else rng.choice([1, 2, 3, 8])
        if param is Param.RUN_BYTES:
            value = rng.choice([0, 1, 3, 4, self.config.row_bytes, self.config.row_bytes + 1])
        if info.signed and rng.random() < 0.1:
            value = -rng.choice([1, 2, 4])
        if info.width == 32 and unit is Unit.VECTOR:
            value = rng.randrange(-(1 << 31), 1 << 31)
        return encode(Op.SET, param=param, unit=unit, use_imm=1, imm=value)

    def scalar(self, pc: int) -> list[int]:
        rng = self.rng
        ops = [Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX, Op.AND, Op.OR, Op.SHL, Op.SHR, Op.SAR, Op.SHR]
        if rng.random() < 0.2:
            return [
                encode(Op.LOOP, use_imm=1, imm=rng.randrange(4), target=pc + 1),
                encode(Op.ADD, rd=20, ra=20, rb=11),
            ]
        if rng.random() < 0.2:
            branch = rng.choice([Op.BEQ, Op.BNE, Op.BLT, Op.BGE])
            return [encode(branch, ra=rng.randrange(16), rb=rng.randrange(16), target=pc + 1 + rng.randrange(2))]
        imm = {"use_imm": 1, "imm": rng.randrange(-40, 90)} if rng.random() < 0.5 else {"rb": rng.randrange(24)}
        return [encode(rng.choice(ops), rd=rng.randrange(10, 24), ra=rng.randrange(24), **imm)]

    def chained(self) -> list[int]:
        rng, index = self.rng, self.rng.randrange(1, self.config.vector_chains + 1)
        chain = random_chain(self.config, rng)
        flags = chain_flags(self.config, rng, chain)
        words = list(chain.words())
        if rng.random() < 0.1:
            words[rng.randrange(3)] ^= 1 << rng.randrange(32)
        sets = [
            encode(
                Op.SET,
                param=CHAIN_PARAM + WORDS_KEPT * index + k,
                unit=Unit.VECTOR,
                use_imm=1,
                imm=word - (word >> 31 << 32),
            )
            for k, word in enumerate(words)
        ]
        registers = {
            "ra": rng.randrange(10, 15),
            "rb": rng.randrange(10, 15),
            "use_imm": 1,
            "imm": rng.choice([1, 3, 9, 20]),
        }
        return [*sets, encode(Op.VECTOR, chain=index, **registers, **flags)]
