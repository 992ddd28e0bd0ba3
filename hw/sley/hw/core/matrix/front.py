"""The front of the matrix unit: in-order commands become jobs of two engines."""

from functools import reduce
from operator import or_

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op
from sley.abi.parameters import PARAMS
from sley.abi.types import TYPE_BITS, ElementType
from sley.hw.core.matrix.activations import ROWS_BITS, matmul_job
from sley.hw.core.matrix.weights import ORDER_BITS, weights_job
from sley.hw.core.params import UnitParams, bad_set, flag_bits
from sley.hw.core.types import is_one_of, is_type
from sley.hw.core.unit import Fault, UnitCommand

VALUE_BITS = max(info.width for info in PARAMS.values() if Unit.MATRIX in info.units)


class MatrixFront(wiring.Component):
    """Checks commands, writes parameters, and hands WEIGHTS and MATMUL to their engines.

    A MATMUL that has rows takes the weights loaded since the MATMUL before it, if there are any; each job carries the
    counts by which the engines wait for one another. Faults that show before execution are raised here, after all
    that could still fault before them: the command waits until both engines are idle, and becomes a void job.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of UnitCommand)
        Ops other than SET, WEIGHTS and MATMUL must not come.
    weights : Out(stream of weights_job(config)), matmuls : Out(stream of matmul_job(config))
        Jobs of the two engines.
    engines_idle : In(1)
        Both engines are idle.
    set_done : Out(stream of 0 bits)
        A SET is complete.
    fault : Out(Fault)
        As of ``unit_signature``.
    clear : In(1)
        Parameters return to their reset values.
    idle : Out(1)
        No command is here, and no ``set_done`` is on offer.

    Latency
    -------
    One cycle from ``i`` to a job. A SET is in force for the command behind it, though its parameter is written a cycle
    after it was accepted.

    Throughput
    ----------
    One command a cycle.

    Cost
    ----
    One command and the parameters.
    """

    i: stream.Interface
    weights: stream.Interface
    matmuls: stream.Interface
    engines_idle: Signal
    set_done: stream.Interface
    fault: data.View
    clear: Signal
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(UnitCommand)),
                "weights": Out(stream.Signature(weights_job(config))),
                "matmuls": Out(stream.Signature(matmul_job(config))),
                "engines_idle": In(1),
                "set_done": Out(stream.Signature(0)),
                "fault": Out(Fault),
                "clear": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        array, rows = self._config.array, self._config.accumulator_rows
        dest_bits = (rows - 1).bit_length()
        m.submodules.params = params = UnitParams(Unit.MATRIX, self._config)

        # A command is decoded and checked on its way in, so that what becomes of it depends on registers alone.
        incoming = self.i.payload
        param = flag_bits(Op.SET, "param")
        is_weights = incoming.op == Op.WEIGHTS
        is_matmul = incoming.op == Op.MATMUL
        none = incoming.c == 0
        types = self._config.operand_types
        dtype = Signal(TYPE_BITS)
        illegal = ~is_one_of(dtype, types)
        begins_outside = incoming.b[dest_bits:].any()
        incoming_end, exceeds = rows_end(incoming.b[:dest_bits], incoming.c[: dest_bits + 1])
        wrong_load = none | (incoming.c > array)
        too_many = incoming.c[ROWS_BITS:].any()
        wrong_rows = incoming.c[dest_bits + 1 :].any() | (begins_outside & ~none)
        wrong_param = bad_set(Unit.MATRIX, self._config, incoming.flags[param], incoming.a)
        with m.If(is_weights):
            m.d.comb += dtype.eq(incoming.flags[flag_bits(Op.WEIGHTS, "dtype")])
        with m.If(is_matmul):
            m.d.comb += dtype.eq(incoming.flags[flag_bits(Op.MATMUL, "dtype")])

        # What is here: one of three, or nothing.
        weights = Signal()
        matmul = Signal()
        set_param = Signal()
        bad = Signal()  # a WEIGHTS or a MATMUL that faults
        ends_outside = Signal()  # a MATMUL whose last row is outside, if its first is not, which is found out last
        bad_param = Signal()  # a SET that does
        command = Signal(UnitCommand, reset_less=True)
        bf16 = Signal(reset_less=True)
        bad_type = Signal(reset_less=True)
        void = Signal(reset_less=True)  # a MATMUL that has no rows, or is ``bad``
        bad_parameter = Signal(reset_less=True)  # rc
        bad_row = Signal(reset_less=True)  # it begins outside
        end = Signal(range(rows + 1), reset_less=True)  # accumulator row behind a MATMUL's last
        full = weights | matmul | set_param
        done = Signal()
        no_space = (weights & ~self.weights.ready) | (matmul & ~self.matmuls.ready) | (set_param & self.set_done.valid)
        settled = Signal()  # both engines are idle, and nothing was handed to them in the cycle before
        m.d.sync += settled.eq(self.engines_idle & ~done)
        go = ~(bad | ends_outside) | settled
        go_param = ~bad_param | settled
        m.d.comb += [
            self.i.ready.eq(go & go_param & ~no_space),  # so it is while nothing is here
            done.eq(full & self.i.ready),
            self.weights.valid.eq(weights & go),
            self.matmuls.valid.eq(matmul & go),
            self.idle.eq(~full & ~self.set_done.valid),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                weights.eq(self.i.valid & is_weights),
                matmul.eq(self.i.valid & is_matmul),
                set_param.eq(self.i.valid & ~is_weights & ~is_matmul),
                bad.eq(self.i.valid & ((is_weights & wrong_load) | (is_matmul & (too_many | wrong_rows)) | illegal)),
                ends_outside.eq(self.i.valid & is_matmul & exceeds),
                bad_param.eq(self.i.valid & ~is_weights & ~is_matmul & wrong_param),
                command.eq(incoming),
                bf16.eq(is_type(dtype, ElementType.BF16, types)),
                bad_type.eq(illegal),
                void.eq(none | too_many | wrong_rows | illegal),
                bad_parameter.eq((is_weights & wrong_load) | (is_matmul & too_many)),
                bad_row.eq(begins_outside),
                end.eq(incoming_end),
            ]

        m.d.comb += [
            params.clear.eq(self.clear),
            params.param.eq(command.flags[param]),
            params.value.eq(command.a[: VALUE_BITS + 1].as_signed()),  # the bits above are all alike in a good one
            params.set.eq(set_param & ~bad_param),
        ]
        with m.If(self.set_done.ready):
            m.d.sync += self.set_done.valid.eq(0)
        with m.If(done & set_param):
            m.d.sync += self.set_done.valid.eq(1)

        # What a fault shows: rc, rb, the row behind the last one, a parameter's number, or nothing.
        local = ~(bad_parameter | bad_type | bad_param)
        sources = [
            (command.c, bad_parameter),
            (command.b, local & bad_row),
            (Const(rows, 32), local & ~bad_row),
            (command.flags[param], bad_param),
        ]
        other = Mux(local, FaultCode.LOCAL_ADDRESS, FaultCode.ILLEGAL_INSTRUCTION)
        m.d.comb += [
            self.fault.valid.eq(done & (bad | ends_outside | bad_param)),
            self.fault.code.eq(Mux(bad_parameter | bad_param, FaultCode.BAD_PARAMETER, other)),
            self.fault.pc.eq(command.pc),
            self.fault.address.eq(reduce(or_, [x & select.replicate(len(x)) for x, select in sources])),
        ]

        self._jobs(m, command, params.values, done & ~bad & weights, done & ~void & ~ends_outside & matmul, end)
        m.d.comb += [
            self.weights.payload.bf16.eq(bf16),
            self.weights.payload.void.eq(bad),
            self.matmuls.payload.bf16.eq(bf16),
            self.matmuls.payload.accumulate.eq(command.flags[flag_bits(Op.MATMUL, "accumulate")]),
            self.matmuls.payload.void.eq(void | ends_outside),
        ]
        return m

    def _jobs(
        self, m: Module, command: data.View, values: data.View, load: Value, stream_rows: Value, end: Value
    ) -> None:
        """What the jobs hold besides their flags; ``load`` and ``stream_rows``: one that is not void is handed out."""
        weights, matmul = self.weights.payload, self.matmuls.payload
        loads = Signal(ORDER_BITS)
        swaps = Signal(ORDER_BITS)
        unused = Signal()  # weights that no MATMUL has taken
        with m.If(load):
            m.d.sync += [loads.eq(loads + 1), unused.eq(1)]
        with m.If(stream_rows):
            m.d.sync += [swaps.eq(swaps + unused), unused.eq(0)]
        m.d.comb += [
            weights.row.eq(command.a),
            weights.stride.eq(values.weight_stride),
            weights.rows.eq(command.c),
            weights.swaps.eq(swaps),
            weights.signal.eq(command.signal),
            weights.pc.eq(command.pc),
            matmul.row.eq(command.a),
            matmul.strides[0].eq(values.act_stride),
            matmul.strides[1].eq(values.act_stride2),
            matmul.strides[2].eq(values.act_stride3),
            matmul.counts[0].eq(values.act_count),
            matmul.counts[1].eq(values.act_count2),
            matmul.rows.eq(command.c),
            matmul.dest.eq(command.b),
            matmul.end.eq(end),
            matmul.swap.eq(unused),
            matmul.loads.eq(loads),
            matmul.signal.eq(command.signal),
            matmul.pc.eq(command.pc),
        ]


def rows_end(number: Value, count: Value) -> tuple[Value, Value]:
    """``number`` + ``count``, and whether that is more than 2 ** bits of ``number``, of which ``count`` has one more;
    then the sum means nothing.
    Whether the low bits of the sum are 0 is found beside them: of such a sum each carry is the OR of two bits."""
    bits = len(number)
    low, high = count[:bits], count[bits]
    total = number + low
    carry = total[bits]
    zero = (number ^ low) == Cat(0, (number | low)[:-1])
    return Cat(total[:bits], carry ^ high), (carry & ~zero) | (high & (number | low).any())
