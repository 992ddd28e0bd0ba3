# amaranth: UnusedElaboratable=no
"""The systolic array: weight-stationary processing elements with two sets of weights."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Member, Out

from sley.abi.config import ChipConfig
from sley.abi.timing import BF16_ENTRY, BF16_ROW, INT8_ROW, OLD_SUM_ENTRY
from sley.abi.types import WORD_BITS, ElementType
from sley.hw.core.matrix.delay import MemoryDelay, pointer_bits
from sley.hw.core.matrix.element import ProcessingElement, bf16_fields, bf16_kind
from sley.hw.core.matrix.multiplier.assignment import Multiplier, multipliers
from sley.hw.core.matrix.multiplier.pair import PairMultiplier
from sley.hw.core.matrix.rows import lanes, sums
from sley.hw.core.matrix.weight_delay import WeightDelay, word_cycles
from sley.hw.elaboration.shared import shared
from sley.hw.fp.add_product import pack_total, unpack_total


class SystolicArray(wiring.Component):
    """N x N processing elements: ``sums[n] = sum over r of activations[r] . weights[r][n]``.

    Lane r of the activations enters array row r and moves east, one column a cycle; partial sums move south, one row
    in INT8_ROW cycles, or in BF16_ROW. A lane holds ``lane_elements`` int8, which multiply as a dot product,
    or one bf16. Skew and de-skew are inside: a row of activations enters at once and a row of sums leaves at once.
    Nothing ever stalls, and a cycle without a row only makes sums that nobody looks at.

    Each element has an active and a spare weight register. Weight words travel south one row a cycle, each with the
    number of the array row that keeps it as its spare weights. ``swap`` enters one cycle before a row of activations,
    travels ahead of it, and makes the spare weights active for it and all rows after it.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    activations : In(lanes(config)), swap : In(1)
        A row, and the mark of the row that enters in the next cycle. ``swap`` must be low if none does.
    weights : In(lanes(config)), weights_valid : In(1), weights_row : In(range(N)), weights_rest : In(1)
        Lane n is the weight of the array row and column n; words of a tile are for rows 0, 1, 2, ... up to N - 1, or
        up to one with ``weights_rest``, which is for all array rows from there on.
    sums : Out(sums(config))
        Of the row that entered ``array_latency`` cycles earlier.
    bf16 : In(1)
        With bf16 alone: what activations and sums are. It may change when no row is inside, one cycle before a row
        enters or earlier.
    run : In(1)
        With bf16 alone: high from the cycle of a row of bf16 until its sums have left.
    weights_bf16 : In(1)
        With bf16 alone: the word takes the path through ``WeightDelay``, which needs N words a tile, none with
        ``weights_rest``.
    old : In(sums(config))
        With bf16 alone: what the sums of bf16 start from, ``bf16_old_latency() - OLD_SUM_ENTRY`` cycles after the row
        has entered.

    Rules
    -----
    1. A row with a ``swap`` may enter from the cycle after the last word of its tile on.
    2. Words of the next tile may enter from the very cycle of that row on.
    3. Words without ``weights_bf16``, and a row of int8 with ``swap``, may enter ``settle_cycles`` after a word with
       ``weights_bf16`` or a ``swap`` of bf16.

    So a tile of weights costs the array nothing when as many cycles as it has words lie between two swaps.

    Latency
    -------
    ``array_latency`` cycles from a row to its sums.

    Throughput
    ----------
    A row a cycle.

    Cost
    ---- Besides the elements N^2 / 2 lanes and N^2 / 2 sums of registers for the skews; for bf16 delays in memory, N
    lanes of up to 7 N words and N sums of up to N words, and ``WeightDelay``. Data registers have no reset.

    Source
    ------
    H. T. Kung, "Why systolic architectures?", IEEE Computer 15(1), 1982.
    """

    activations: data.View
    swap: Signal
    weights: data.View
    weights_valid: Signal
    weights_row: Signal
    weights_rest: Signal
    sums: data.View
    bf16: Signal
    run: Signal
    weights_bf16: Signal
    old: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        members: dict[str, Member] = {
            "activations": In(lanes(config)),
            "swap": In(1),
            "weights": In(lanes(config)),
            "weights_valid": In(1),
            "weights_row": In(range(config.array)),
            "weights_rest": In(1),
            "sums": Out(sums(config)),
        }
        if config.has(ElementType.BF16):
            members |= {"bf16": In(1), "run": In(1), "weights_bf16": In(1), "old": In(sums(config))}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, bf16 = self._config.array, self._config.has(ElementType.BF16)
        kinds = multipliers(self._config, platform)
        made: list[ProcessingElement] = [ProcessingElement(self._config, kind) for kind in kinds]
        elements = [made[r * n : (r + 1) * n] for r in range(n)]
        mode = Signal(reset_less=True)
        if bf16:
            m.d.sync += mode.eq(self.bf16)
        delayed_bf16, old = self._delays(m) if bf16 else ([], [])
        fields = [bf16_fields(lane, bf16_kind(lane)) for lane in delayed_bf16]
        early, words, takes = self._words(m)
        swaps = self._swaps(m)
        for r, row in enumerate(elements):
            activation = delayed(m, self.activations[r], r * INT8_ROW, f"activation_skew{r}")
            if bf16:
                activation = Mux(mode, delayed_bf16[r], activation)
            for c, element in enumerate(row):
                m.submodules[f"element_{r}_{c}"] = shared(element, "sley_element", platform)
                west, north = row[c - 1], elements[r - 1][c]
                m.d.comb += [
                    element.activation_i.eq(west.activation_o if c else activation),
                    element.swap_i.eq(west.swap_o if c else swaps[r]),
                    element.take_i.eq(west.take_o if c else takes[r]),
                    element.weight_i.eq(north.weight_o if r else words[c]),
                    element.sum_i.eq(north.sum_o if r else 0),
                ]
                if bf16:
                    m.d.comb += [
                        element.bf16.eq(mode),
                        element.kind_i.eq(north.kind_o if r else bf16_kind(words[c])),
                        element.fields_i.eq(west.fields_o if c else fields[r]),
                        element.total_i.eq(north.total_o if r else unpack_total(old[c])),
                    ]
                if c % 2 and kinds[r * n + c] is Multiplier.PAIR:
                    m.submodules[f"pair_{r}_{c - 1}"] = pair = PairMultiplier()
                    # What the east element takes in the next cycle is still an array row above it.
                    above = elements[r - 1][c].weight_i if r else early[c]
                    m.d.comb += [
                        pair.a.eq(west.activation_i),
                        pair.west.eq(west.coming),
                        pair.east.eq(Mux(west.take_i, above, element.coming)),
                        pair.load.eq(west.swap_i),
                        west.product.eq(pair.west_o),
                        element.product.eq(pair.east_o),
                    ]
        for c, element in enumerate(elements[-1]):
            result = Signal(WORD_BITS, name=f"result{c}")
            m.d.comb += result.eq(element.sum_o)
            if bf16:
                with m.If(self.bf16):
                    m.d.comb += result.eq(pack_total(element.total_o))
            m.d.comb += self.sums[c].eq(delayed(m, result, n - 1 - c, f"sum_skew{c}"))
        return m

    def _swaps(self, m: Module) -> list[Value]:
        """The mark for each array row, one cycle before the activation."""
        n = self._config.array
        if not self._config.has(ElementType.BF16):
            # Where nothing is reset, an initial value of their own keeps these registers apart from those of the
            # elements, which synthesis would share all along the diagonals. Swaps before the first weights do no harm.
            return marks(m, self.swap, 0, INT8_ROW, n, "swap", init=-1)
        int8 = marks(m, self.swap & ~self.bf16, 0, INT8_ROW, n, "swap_int8")
        bf16 = marks(m, self.swap & self.bf16, BF16_ENTRY, BF16_ROW, n, "swap_bf16")
        return [a | b for a, b in zip(int8, bf16, strict=True)]

    def _delays(self, m: Module) -> tuple[list[Value], list[Value]]:
        """Activations of bf16 and old sums, skewed."""
        n = self._config.array
        cycles = [BF16_ENTRY + r * BF16_ROW for r in range(n)]
        pointer = Signal(pointer_bits(cycles[-1]), reset_less=True)
        with m.If(self.run):
            m.d.sync += pointer.eq(pointer + 1)
        activations, old = [], []
        for k in range(n):
            m.submodules[f"activation_delay{k}"] = delay = MemoryDelay(self._config.lane_bits, cycles[k], cycles[-1])
            m.submodules[f"old_delay{k}"] = old_delay = MemoryDelay(WORD_BITS, OLD_SUM_ENTRY + k, OLD_SUM_ENTRY + n - 1)
            for component, value in ((delay, self.activations[k]), (old_delay, self.old[k])):
                m.d.comb += [component.i.eq(value), component.pointer.eq(pointer), component.run.eq(self.run)]
            activations.append(delay.o)
            old.append(old_delay.o)
        return activations, old

    def _words(self, m: Module) -> tuple[list[Value], list[Value], list[Value]]:
        """Words as the array columns but the first will see them in the next cycle, as they see them, and for each
        array row whether it keeps the one that is there."""
        n = self._config.array
        word, valid, row, rest = Signal.like(self.weights), Signal(), Signal.like(self.weights_row), Signal()
        m.d.comb += [
            word.eq(self.weights),
            valid.eq(self.weights_valid),
            row.eq(self.weights_row),
            rest.eq(self.weights_rest),
        ]
        if self._config.has(ElementType.BF16):
            m.submodules.weight_delay = delay = WeightDelay(self._config)
            m.d.comb += [
                delay.i.eq(self.weights),
                delay.i_valid.eq(self.weights_valid),
                delay.i_bf16.eq(self.weights_bf16),
                delay.i_row.eq(self.weights_row),
                delay.swaps.eq(Cat(marks(m, self.swap, 1, BF16_ROW - 1, n, "swap_word"))),
            ]
            with m.If(delay.o_valid | self.weights_bf16):
                m.d.comb += [word.eq(delay.o), valid.eq(delay.o_valid), row.eq(delay.o_row), rest.eq(0)]
        early = [delayed(m, word[c], max(c - 1, 0), f"weight_skew{c}") for c in range(n)]
        words = [delayed(m, early[c], min(c, 1), f"weight{c}") for c in range(n)]
        takes: list[Value] = [valid & (row == 0)]
        for r in range(1, n):
            # Each array row knows from a register whether to keep the word that arrives.
            take = Signal(name=f"word_take{r}")
            m.d.sync += take.eq((valid & (row == r)) | (takes[-1] & rest))
            takes.append(take)
            valid, above = Signal(name=f"word_valid{r}"), valid
            m.d.sync += valid.eq(above)
            row, rest = delayed(m, row, 1, f"word_row{r}"), delayed(m, rest, 1, f"word_rest{r}")
        return early, words, takes


def marks(m: Module, mark: Value, first: int, step: int, count: int, name: str, init: int = 0) -> list[Value]:
    """``mark`` of ``first`` cycles ago, of ``step`` cycles before that, and so on; before the first one ``init``."""
    line = Signal(first + step * (count - 1), name=name, init=init)
    travelled = Cat(mark, line)
    m.d.sync += line.eq(travelled)
    return [travelled[first + step * k] for k in range(count)]


def delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """``value`` of so many cycles ago, by registers."""
    for i in range(cycles):
        stage = Signal.like(value, name=f"{name}_{i}", reset_less=True)
        m.d.sync += stage.eq(value)
        value = stage
    return value


def settle_cycles(config: ChipConfig) -> int:
    """See the third rule of ``SystolicArray``: the last word has left the delay, and is on its way."""
    return word_cycles(config) + 2
