"""The front of the matrix unit: in-order commands become jobs of two engines."""

from functools import reduce
from operator import or_

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op
from sley.hw.core.activations import ROWS_BITS, matmul_job
from sley.hw.core.params import UnitParams, flag_bits
from sley.hw.core.unit import Fault, UnitCommand
from sley.hw.core.weights import ORDER_BITS, weights_job


class MatrixFront(wiring.Component):
    """Checks commands, writes parameters, and hands WEIGHTS and MATMUL to their engines.

    A MATMUL that has rows takes the weights loaded since the MATMUL before it, if there are any; each job carries the
    counts by which the engines wait for one another. Faults that show before execution are raised here, after all
    that could still fault before them: the command waits until both engines are idle, and becomes a void job.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    i : In(stream of UnitCommand)
        Ops other than SET, WEIGHTS and MATMUL must not come.
    weights : Out(stream of weights_job(config)), matmuls : Out(stream of matmul_job(config))
    engines_idle : In(1)
        Both engines are idle.
    set_done : Out(stream of 0 bits)
        A SET is complete.
    fault : Out(Fault)
    clear : In(1)
        Parameters return to their reset values.
    idle : Out(1)
        No command is here, and no ``set_done`` is on offer.

    Latency: one cycle from ``i`` to a job; throughput one command a cycle. Cost: one command and the parameters.
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
        m.submodules.params = params = UnitParams(Unit.MATRIX)

        # A command is decoded and checked on its way in, so that what becomes of it depends on registers alone.
        incoming = self.i.payload
        incoming_end = incoming.b[:dest_bits] + incoming.c[: dest_bits + 1]
        incoming_dtype = Signal()
        bad_parameter = Signal()
        outside = Signal()
        too_many = incoming.c[dest_bits + 1 :].any()
        with m.Switch(incoming.op):
            with m.Case(Op.WEIGHTS):
                m.d.comb += [
                    incoming_dtype.eq(incoming.flags[flag_bits(Op.WEIGHTS, "dtype")]),
                    bad_parameter.eq((incoming.c == 0) | (incoming.c > array)),
                ]
            with m.Case(Op.MATMUL):
                m.d.comb += [
                    incoming_dtype.eq(incoming.flags[flag_bits(Op.MATMUL, "dtype")]),
                    bad_parameter.eq(incoming.c[ROWS_BITS:].any()),
                    outside.eq((incoming.c != 0) & (incoming.b[dest_bits:].any() | too_many | (incoming_end > rows))),
                ]
            with m.Default():
                m.d.comb += bad_parameter.eq(params.bad)
        is_set = (incoming.op != Op.WEIGHTS) & (incoming.op != Op.MATMUL)
        found = Signal(FaultCode)
        with m.If(bad_parameter):
            m.d.comb += found.eq(FaultCode.BAD_PARAMETER)
        with m.Elif(incoming_dtype & (not self._config.bf16)):
            m.d.comb += found.eq(FaultCode.ILLEGAL_INSTRUCTION)
        with m.Elif(outside):
            m.d.comb += found.eq(FaultCode.LOCAL_ADDRESS)

        full = Signal()
        command = Signal(UnitCommand, reset_less=True)
        is_weights = Signal(reset_less=True)
        is_matmul = Signal(reset_less=True)
        dtype = Signal(reset_less=True)
        code = Signal(FaultCode, reset_less=True)
        bad = Signal(reset_less=True)
        end = Signal(range(rows + 1), reset_less=True)  # accumulator row behind a MATMUL's last
        no_rows = Signal(reset_less=True)
        done = Signal()
        m.d.comb += [self.i.ready.eq(~full | done), self.idle.eq(~full & ~self.set_done.valid)]
        with m.If(self.i.ready):
            m.d.sync += [
                full.eq(self.i.valid),
                command.eq(incoming),
                is_weights.eq(incoming.op == Op.WEIGHTS),
                is_matmul.eq(incoming.op == Op.MATMUL),
                dtype.eq(incoming_dtype),
                code.eq(found),
                bad.eq(found != FaultCode.NONE),
                end.eq(incoming_end),
                no_rows.eq(incoming.c == 0),
            ]

        accumulate = command.flags[flag_bits(Op.MATMUL, "accumulate")]
        param = flag_bits(Op.SET, "param")
        m.d.comb += [
            params.clear.eq(self.clear),
            params.param.eq(incoming.flags[param]),
            params.value.eq(incoming.a),
            params.set.eq(self.i.valid & self.i.ready & is_set),
        ]
        # What a fault shows: rc, rb, the row behind the last one, a parameter's number, or nothing.
        sources = [command.c, command.b, Const(rows, 32), command.flags[param]]
        shown = [Signal(name=f"shown{k}", reset_less=True) for k in range(len(sources))]
        with m.If(self.i.ready):
            m.d.sync += [
                shown[0].eq(~is_set & bad_parameter),
                shown[1].eq((found == FaultCode.LOCAL_ADDRESS) & incoming.b[dest_bits:].any()),
                shown[2].eq((found == FaultCode.LOCAL_ADDRESS) & ~incoming.b[dest_bits:].any()),
                shown[3].eq(is_set & bad_parameter),
            ]
        gated = [source & select.replicate(len(source)) for source, select in zip(sources, shown, strict=True)]

        settled = Signal()  # both engines are idle, and nothing was handed to them in the cycle before
        m.d.sync += settled.eq(self.engines_idle & ~done)
        go = full & (~bad | settled)
        space = Mux(is_weights, self.weights.ready, Mux(is_matmul, self.matmuls.ready, ~self.set_done.valid))
        m.d.comb += [
            done.eq(go & space),
            self.weights.valid.eq(go & is_weights),
            self.matmuls.valid.eq(go & is_matmul),
            self.fault.valid.eq(done & bad),
            self.fault.code.eq(code),
            self.fault.pc.eq(command.pc),
            self.fault.address.eq(reduce(or_, gated)),
        ]
        with m.If(self.set_done.ready):
            m.d.sync += self.set_done.valid.eq(0)
        with m.If(done & ~is_weights & ~is_matmul):
            m.d.sync += self.set_done.valid.eq(1)

        self._jobs(m, command, params.values, done & ~bad & is_weights, done & ~bad & is_matmul & ~no_rows, end)
        m.d.comb += [
            self.weights.payload.bf16.eq(dtype),
            self.weights.payload.void.eq(bad),
            self.matmuls.payload.bf16.eq(dtype),
            self.matmuls.payload.accumulate.eq(accumulate),
            self.matmuls.payload.void.eq(bad | no_rows),
        ]
        return m

    def _jobs(
        self, m: Module, command: data.View, values: data.View, load: Signal, stream_rows: Signal, end: Signal
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
