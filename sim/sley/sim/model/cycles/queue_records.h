// The twin of sley.hw.command.queue_records: what software reads of a queue's last doorbell and of its error.
#pragma once

#include "command_parts.h"

#define QUEUE_ERROR_PORTS(IN, k) \
    IN(errors[k].code, "~errors[" #k "].code") IN(errors[k].address, "~errors[" #k "].address")

#define QUEUE_RECORDS_PORTS(IN, OUT)                                                                              \
    IN(read_index, "registers.read_index") IN(readback, "registers.readback_read.address") IN(time[0], "time@0")  \
    IN(time[1], "time@1") IN(doorbell, "doorbell") IN(rings, "rings") IN(owner, "owner") IN(faulted, "faulted")   \
    BLOCK_FAULT_PORTS(IN, fault, "fault", "") IN(rung, "rung") QUEUE_ERROR_PORTS(IN, 0) QUEUE_ERROR_PORTS(IN, 1)  \
    QUEUE_ERROR_PORTS(IN, 2) QUEUE_ERROR_PORTS(IN, 3) QUEUE_ERROR_PORTS(IN, 4) QUEUE_ERROR_PORTS(IN, 5)           \
    QUEUE_ERROR_PORTS(IN, 6) QUEUE_ERROR_PORTS(IN, 7)                                                             \
    OUT(index, "registers.index") OUT(shown.code, "registers.error.code") OUT(shown.unit, "registers.error.unit") \
    OUT(shown.core, "registers.error.core") OUT(shown.pc, "registers.error_pc.pc")                                \
    OUT(shown.block, "registers.error_block.block") OUT(shown.address, "registers.error_address.address")         \
    OUT(rung_at[0], "registers.doorbell_time_lo.cycles") OUT(rung_at[1], "registers.doorbell_time_hi.cycles")

typedef struct QueueError {
    uint32_t code, address;
} QueueError;

typedef struct DoorbellRecord {
    uint32_t time[2], index;
} DoorbellRecord;

typedef struct QueueRecords {
    uint32_t read_index, readback, time[2], doorbell, rings, owner, faulted, rung;
    BlockFault fault;
    QueueError errors[QUEUES_MAX];
    uint32_t index, rung_at[2];
    BlockFault shown;

    DoorbellRecord bells[QUEUES_MAX];
    BlockFault faults[QUEUES_MAX];
} QueueRecords;

static void queue_records_reset(QueueRecords* r, const uint32_t* parameters) {}

// What is shown of the queue that is read; whoever looks at it only when software reads may call it only then.
static void queue_records_show(QueueRecords* r) {
    const QueueError* error = &r->errors[r->read_index];
    const DoorbellRecord* bell = &r->bells[r->read_index];
    r->shown = (BlockFault){.code = error->code, .unit = error->code ? UNIT_COMMAND : 0};
    switch (error->address) {
    case ADDRESS_FAULT:
        r->shown = r->faults[r->read_index];
        r->shown.code = error->code;
        break;
    case ADDRESS_DOORBELL: r->shown.address = bell->index; break;
    case ADDRESS_READBACK: r->shown.address = r->readback & ~3u; break;
    }
    int rung = r->rung >> r->read_index & 1;
    for (int k = 0; k < 2; ++k) r->rung_at[k] = rung ? bell->time[k] : 0;
}

static void queue_records_outputs(QueueRecords* r) {
    r->index = r->owner ? 31 - (uint32_t)__builtin_clz(r->owner) : 0;
    queue_records_show(r);
}

static void queue_records_tick(QueueRecords* r) {
    if (r->rings) r->bells[__builtin_ctz(r->rings)] = (DoorbellRecord){{r->time[0], r->time[1]}, r->doorbell};
    if (r->faulted) r->faults[r->index] = r->fault;
}
