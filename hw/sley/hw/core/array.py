"""The systolic array: weight-stationary processing elements with two sets of weights."""

from typing import Any

from amaranth import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig

ROW_LATENCY = 1
"""Cycles a partial sum takes from one array row to the next: one integer add. A bf16 path, whose fp32 add takes
several cycles, raises it; skews and ``array_latency`` follow."""

SUM_BITS = 32


def lanes(config: ChipConfig) -> data.ArrayLayout:
    """A row of operand lanes: one lane for each array row (activations) or each array column (weights)."""
    return data.ArrayLayout(config.lane_bits, config.array)


def sums(config: ChipConfig) -> data.ArrayLayout:
    """A row of sums, one for each array column."""
    return data.ArrayLayout(signed(SUM_BITS), config.array)


def element_latency(config: ChipConfig) -> int:
    """Cycles through one processing element: operand, product, for several elements in a lane their sum, and sum."""
    return 3 if config.lane_elements == 1 else 4


def array_latency(config: ChipConfig) -> int:
    """Cycles from the one in which a row of activations enters to the one in which its sums leave."""
    return (config.array - 1) * ROW_LATENCY + (config.array - 1) + element_latency(config)


class SystolicArray(wiring.Component):
    """N x N processing elements: ``sums[n] = sum over r of activations[r] . weights[r][n]``.

    Lane r of the activations enters array row r and moves east, one column a cycle; partial sums move south, one row
    in ROW_LATENCY cycles. A lane holds ``lane_elements`` int8; lanes multiply as a dot product. Skew and de-skew are
    inside: a row of activations enters at once and a row of sums leaves at once. Nothing ever stalls, and a cycle
    without a row only makes sums that nobody looks at.

    Each element has an active and a spare weight register. Weight words, one for each array row, come in from the
    north and travel south one row a cycle. A word marked ``weights_first`` is taken by the first row it meets; that row
    marks the word behind it in turn, so word j of a tile ends in row j whatever the gaps between words. ``swap``
    enters with a row of activations, travels with it, and makes the spare weights active for it and all rows after it.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    activations : In(lanes(config)), swap : In(1)
        A row and its mark. ``swap`` must be low in cycles without a row.
    weights : In(lanes(config)), weights_valid : In(1), weights_first : In(1)
        Lane n of word j is the weight of array row j, column n; N words a tile.
    sums : Out(sums(config))
        Of the row that entered ``array_latency(config)`` cycles earlier.

    Rules
    -----
    A row with ``swap`` may enter from the cycle after the last word of its tile on; words of the next tile may
    enter from the very cycle of that row on. So a tile of weights costs the array nothing when N cycles or more lie
    between two swaps. A tile cut short does no harm: the next ``weights_first`` starts over.

    Cost: per element ``lane_elements`` multipliers and adders, and registers for four lanes, a product for each
    element and one or two sums; for the skews, N^2 lanes and N^2 / 2 sums. Data registers have no reset.
    Source of the method: H. T. Kung, "Why systolic architectures?", IEEE Computer 15(1), 1982.
    """

    activations: data.View
    swap: Signal
    weights: data.View
    weights_valid: Signal
    weights_first: Signal
    sums: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "activations": In(lanes(config)),
                "swap": In(1),
                "weights": In(lanes(config)),
                "weights_valid": In(1),
                "weights_first": In(1),
                "sums": Out(sums(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, lane_bits, elements = self._config.array, self._config.lane_bits, self._config.lane_elements
        # |product| <= 2^14, so fold_depth = 2^k of them need 15 + k bits and, for +2^(14 + k) itself, the sign.
        sum_bits = 16 + (self._config.fold_depth - 1).bit_length()

        def delayed(value: Any, cycles: int, name: str) -> Any:
            for i in range(cycles):
                stage = Signal.like(value, name=f"{name}_{i}", reset_less=True)
                m.d.sync += stage.eq(value)
                value = stage
            return value

        def register(value: Any, name: str) -> Signal:
            stage = Signal.like(value, name=name, reset_less=True)
            m.d.sync += stage.eq(value)
            return stage

        transit: list[Any] = [delayed(self.weights[c], c, f"weight_skew{c}") for c in range(n)]
        partial: list[Any] = [None] * n
        valid: Any = self.weights_valid
        first: Any = self.weights_first
        swap_west: Any = self.swap
        for r in range(n):
            # Control of the load in this row, as column 0 sees it; the columns to the east follow cycle by cycle.
            take = Signal(name=f"take{r}")
            m.d.comb += take.eq(valid & first)
            valid_next = Signal(name=f"valid{r}")
            first_next = Signal(name=f"first{r}")
            m.d.sync += [
                valid_next.eq(valid & ~first),
                first_next.eq(take | (first_next & ~valid_next)),
            ]
            valid, first = valid_next, first_next

            activation: Any = delayed(self.activations[r], r * ROW_LATENCY, f"activation_skew{r}")
            swap: Any = swap_west
            swap_west = delayed(swap_west, ROW_LATENCY, f"swap_skew{r}")
            for c in range(n):
                pe = f"_{r}_{c}"
                spare = Signal(lane_bits, name="spare" + pe, reset_less=True)
                weight = Signal(lane_bits, name="weight" + pe, reset_less=True)
                with m.If(take):
                    m.d.sync += spare.eq(transit[c])
                with m.If(swap):
                    m.d.sync += weight.eq(spare)
                activation = register(activation, "activation" + pe)
                transit[c] = register(transit[c], "transit" + pe)
                if c < n - 1:
                    take = register(take, "take" + pe)
                    swap = register(swap, "swap" + pe)

                products = []
                for e in range(elements):
                    product = Signal(signed(16), name=f"product{e}{pe}", reset_less=True)
                    m.d.sync += product.eq(
                        activation[8 * e : 8 * e + 8].as_signed() * weight[8 * e : 8 * e + 8].as_signed()
                    )
                    products.append(product)
                dot = products[0] if elements == 1 else register(products[0] + products[1], "dot" + pe)
                total = Signal(signed(sum_bits), name="sum" + pe, reset_less=True)
                m.d.sync += total.eq(dot if r == 0 else dot + partial[c])
                partial[c] = total
        for c in range(n):
            m.d.comb += self.sums[c].eq(delayed(partial[c], n - 1 - c, f"sum_skew{c}"))
        return m
