"""What software reads of a queue's last doorbell and of its error."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from sley.abi.command import ErrorAddress
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.hw.command.bank import command_registers
from sley.hw.command.records import (
    INDEX_BITS,
    FaultRecord,
    QueueError,
    number,
    readback_word,
)
from sley.hw.elaboration.entries import entry_memory

Doorbell = data.StructLayout({"time": 64, "index": INDEX_BITS})


class QueueRecords(wiring.Component):
    """Time and index of each queue's last doorbell, and each queue's last fault: of one queue at a time.

    Only one doorbell rings in a cycle, and the executor reports one fault; software reads of one queue. A queue itself
    keeps what decides whether there is anything to read.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues.

    Members
    -------
    registers : In(see command_registers)
        The shared registers of queues in the register bank, of which the settings are those of ``owner``.
    time : In(64)
        The chip's time.
    doorbell : In(INDEX_BITS), rings : In(queues)
        The index that is rung; one bit per queue, at most one is set.
    owner : In(queues), faulted : In(1), fault : In(FaultRecord)
        The executor's queue, one-hot, and its record, valid with ``faulted``.
    rung : In(queues), errors : In(QueueError).array(queues)
        Of each queue, see ``Queue``.

    Latency
    -------
    What is written in a cycle is read in the next one.

    Cost
    ----
    LUT RAM of 172 bits for each queue.
    """

    registers: wiring.PureInterface
    time: Signal
    doorbell: Signal
    rings: Signal
    owner: Signal
    faulted: Signal
    fault: data.View
    rung: Signal
    errors: list[data.View]

    def __init__(self, config: ChipConfig) -> None:
        self._queues = config.queues
        super().__init__(
            {
                "registers": In(command_registers(config)["queue_shared"].signature),
                "time": In(64),
                "doorbell": In(INDEX_BITS),
                "rings": In(config.queues),
                "owner": In(config.queues),
                "faulted": In(1),
                "fault": In(FaultRecord),
                "rung": In(config.queues),
                "errors": In(QueueError).array(config.queues),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        r, queue = self.registers, self.registers.read_index
        m.submodules.bells = bells = entry_memory(Doorbell, self._queues)
        m.submodules.faults = faults = entry_memory(FaultRecord, self._queues)
        write_bell, read_bell = bells.write_port(), bells.read_port(domain="comb")
        write_fault, read_fault = faults.write_port(), faults.read_port(domain="comb")
        bell = Signal(Doorbell)  # the last one of the queue that is read, if there was any
        record = Signal(FaultRecord)  # and its last fault
        m.d.comb += [
            write_bell.en.eq(self.rings.any()),
            write_bell.addr.eq(number(self.rings)),
            write_bell.data.time.eq(self.time),
            write_bell.data.index.eq(self.doorbell),
            read_bell.addr.eq(queue),
            write_fault.en.eq(self.faulted),
            r.index.eq(number(self.owner)),
            write_fault.addr.eq(r.index),
            write_fault.data.eq(self.fault),
            read_fault.addr.eq(queue),
            bell.eq(read_bell.data),
            record.eq(read_fault.data),
        ]

        error, fault = Signal(QueueError), Signal(FaultRecord)
        m.d.comb += error.eq(Array(self.errors)[queue])
        with m.If(error.address == ErrorAddress.FAULT):
            m.d.comb += fault.eq(record)
        with m.Elif(error.code != FaultCode.NONE):
            m.d.comb += fault.unit.eq(Unit.COMMAND)
        with m.Switch(error.address):
            with m.Case(ErrorAddress.FAULT):
                m.d.comb += r.error_address.address.eq(record.address)
            with m.Case(ErrorAddress.DOORBELL):
                m.d.comb += r.error_address.address.eq(bell.index)
            with m.Case(ErrorAddress.READBACK):
                m.d.comb += r.error_address.address.eq(readback_word(r.readback_read.address))
        time = Mux(self.rung.bit_select(queue, 1), bell.time, 0)
        m.d.comb += [
            r.error.code.eq(error.code),
            r.error.unit.eq(fault.unit),
            r.error.core.eq(fault.core),
            r.error_pc.pc.eq(fault.pc),
            r.error_block.block.eq(fault.block),
            r.doorbell_time_lo.cycles.eq(time[:32]),
            r.doorbell_time_hi.cycles.eq(time[32:]),
        ]
        return m
