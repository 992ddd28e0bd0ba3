"""The instructions of the units: load, store, matrix and vector, and the parameters that hold for them."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FORMATS, Op, Share, Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.abi.vector.chains import CHAIN_WORDS, Chain, chain_parameter
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.assembler.instructions import Instructions
from sley.runtime.assembler.operands import ZERO, Register, Semaphores, Value, wrapped
from sley.runtime.assembler.semaphores import mask
from sley.runtime.errors import KernelError


class Units(Instructions):
    """Unit instructions: each waits for semaphores, works on so many runs or rows, and signals semaphores.

    Runs and rows may be given as a number; other operands are registers, or 0. ``step`` is added to the first operand
    afterwards.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        super().__init__(name, config)
        self._chains: dict[Chain, int] = {}

    def set(self, unit: Unit, **params: Value) -> None:
        """Writes parameters of a unit by name, for example ``set(Unit.LOAD, run_bytes=64, mem_stride=pitch)``."""
        for name, value in params.items():
            try:
                param = Param[name.upper()]
            except KeyError:
                raise KernelError(
                    f"{self.name}: no parameter {name!r}; there are {', '.join(Param.__members__)}"
                ) from None
            operand = {"ra": value.number} if isinstance(value, Register) else {"use_imm": 1, "imm": wrapped(value)}
            self._emit(Op.SET, unit=unit, param=param, **operand)

    def load(
        self,
        address: Register,
        row: Value,
        runs: Value,
        *,
        space: Space = Space.SCRATCHPAD,
        interleave: bool = False,
        transpose: bool = False,
        share: Share = Share.NONE,
        by_list: bool = False,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Reads ``runs`` runs from memory to local rows; then address += step. If they ``share`` a load, all cores of
        the gang's row or column make the same loads in the same order. ``by_list``: run r is at address plus number r
        of the list, bytes, in the accumulator rows from LIST_ROW on, N in each."""
        flags = {"space": space, "interleave": int(interleave), "transpose": int(transpose), "share": share}
        flags["by_list"] = self._by_list(by_list)
        self._unit(Op.LOAD, address, row, runs, step, wait, signal, **flags)

    def store(
        self,
        address: Register,
        row: Value,
        runs: Value,
        *,
        space: Space = Space.SCRATCHPAD,
        by_list: bool = False,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Writes ``runs`` runs from local rows to memory; then address += step. ``by_list``: as in ``load``."""
        self._unit(Op.STORE, address, row, runs, step, wait, signal, space=space, by_list=self._by_list(by_list))

    def _by_list(self, by_list: bool) -> int:
        if by_list and not self.config.gather:
            raise KernelError(
                f"{self.name}: by_list needs lists; the chip {self.config.name} has none: its gather is off"
            )
        return int(by_list)

    def weights(
        self,
        row: Value,
        rows: Value,
        *,
        dtype: ElementType = ElementType.INT8,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Loads the spare weights from ``rows`` scratchpad rows starting at ``row``; then row += step."""
        self._unit(Op.WEIGHTS, row, None, rows, step, wait, signal, dtype=dtype)

    def matmul(
        self,
        source: Value,
        destination: Value,
        rows: Value,
        *,
        accumulate: bool = False,
        dtype: ElementType = ElementType.INT8,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Streams ``rows`` scratchpad rows through the array to accumulator rows; then source += step."""
        self._unit(Op.MATMUL, source, destination, rows, step, wait, signal, accumulate=int(accumulate), dtype=dtype)

    def vector(
        self,
        source: Value,
        destination: Value,
        rows: Value,
        *,
        a_space: Space = Space.ACCUMULATOR,
        a_half: int = 0,
        a_type: ElementType = ElementType.INT8,
        b_op: BinaryOp = BinaryOp.NONE,
        b_space: Space = Space.ACCUMULATOR,
        b_half: int = 0,
        b_type: ElementType = ElementType.INT8,
        dtype: ElementType = ElementType.INT32,
        bias: bool = False,
        scale: bool = False,
        relu: bool = False,
        out: ElementType | None = None,
        out_half: int = 0,
        chain: int = 0,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Element-wise work on ``rows`` rows; then source += step. The flags are those of the instruction; ``out``
        is by default the word that the steps leave: FP32 if ``dtype`` is or it is scaled, else INT32. ``chain``: what
        ``self.chain`` gave; it says what to do in place of ``b_op``, ``bias``, ``scale`` and ``relu``."""
        if out is None:
            out = ElementType.FP32 if scale else dtype
        # A field that the operation does not look at must still be zero where it says so: B without an operation.
        b = {"b_space": b_space, "b_half": b_half, "b_type": b_type} if b_op or chain else {}
        a = {"a_space": a_space, "a_half": a_half, "a_type": a_type}
        flags: dict[str, int] = {**a, "b_op": b_op, "dtype": dtype, **b}
        steps = {"bias": int(bias), "scale": int(scale), "relu": int(relu), "out": out, "out_half": out_half}
        if chain:
            if b_op or bias or scale or relu:
                raise KernelError(f"{self.name}: a VECTOR with a chain has no b_op, bias, scale or relu of its own")
            steps["chain"] = chain
            own = list(self._chains)[chain - 1 : chain]  # not of those that SET wrote
            problem = own[0].type_problem(dtype, out) if own else None
            if problem:
                raise KernelError(f"{self.name}: {problem}")
        self._unit(Op.VECTOR, source, destination, rows, step, wait, signal, **flags, **steps)

    @property
    def chains(self) -> tuple[Chain, ...]:
        """All chains named so far, by their index from 1 on."""
        return tuple(self._chains)

    def chain(self, chain: Chain) -> int:
        """The index of a chain for ``vector``; writes it into the table here if it is new. Raises ``KernelError`` for
        one that the chip does not have, or one too many."""
        limit = self.config.vector_chains
        if not limit:
            raise KernelError(f"{self.name}: the chip {self.config.name} has no chains: its vector_chains is 0")
        problem = chain.problem()
        if problem:
            raise KernelError(f"{self.name}: {problem}")
        if chain.function is not None and chain.function not in self.config.vector_functions:
            raise KernelError(
                f"{self.name}: the chip {self.config.name} has no {chain.function.name.lower()}; its vector_functions "
                f"are {', '.join(f.name.lower() for f in self.config.vector_functions) or 'none'}"
            )
        if chain in self._chains:
            return self._chains[chain]
        if len(self._chains) == limit:
            raise KernelError(f"{self.name}: {limit + 1} chains; the chip {self.config.name} holds {limit}")
        index = self._chains[chain] = len(self._chains) + 1
        self._write_chain(index, chain, [0] * CHAIN_WORDS)
        return index

    def exchange_chain(self, index: int, chain: Chain) -> None:
        """Writes a chain over the one with this index, which ``chain`` gave; that means the old one until here."""
        self._chains = {(chain if number == index else known): number for known, number in self._chains.items()}
        self._write_chain(index, chain, None)

    def _write_chain(self, index: int, chain: Chain, held: list[int] | None) -> None:
        """Writes the words of a chain that are not ``held`` already."""
        for word, value in enumerate(chain.words()):
            if held is None or value != held[word]:
                self._emit(Op.SET, unit=Unit.VECTOR, param=chain_parameter(index, word), use_imm=1, imm=value)

    def vfold(
        self,
        row: VectorRow,
        reduce: Reduction,
        *,
        dtype: ElementType = ElementType.FP32,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Joins the partial results of a reduction in a row register, which then holds the result."""
        self._unit(Op.VFOLD, None, None, None, ZERO, wait, signal, row=row, reduce=reduce, dtype=dtype)

    def vrow(
        self,
        row: VectorRow,
        source: Value,
        *,
        splat: bool = False,
        step: Register = ZERO,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """Fills a row register from accumulator row ``source``, or with the value ``source`` in all lanes."""
        flags: dict[str, int] = {"row": row, "splat": int(splat)}
        if isinstance(source, int):
            flags.update(use_imm=1, imm=source)
            source = ZERO
        self._unit(Op.VROW, source, None, None, step, wait, signal, **flags)

    def _unit(
        self,
        op: Op,
        ra: Value | None,
        rb: Value | None,
        rc: Value | None,
        step: Register,
        wait: Semaphores,
        signal: Semaphores,
        **flags: int,
    ) -> None:
        if isinstance(rc, int):
            flags.update(use_imm=1, imm=rc)
            rc = None
        operands = {
            name: self._register(value, name).number
            for name, value in (("ra", ra), ("rb", rb), ("rc", rc))
            if value is not None
        }
        if "rd" in FORMATS[op].fields:
            operands["rd"] = step.number
        self._emit(op, **operands, wait=mask(wait), signal=mask(signal), **flags)
