// Ports and state of the command processor's twin.
#pragma once

#include "block_scheduler.h"
#include "command_queue.h"
#include "copy_scheduler.h"
#include "executor.h"
#include "interrupts.h"
#include "memory_reader.h"
#include "memory_writer.h"
#include "queue_records.h"
#include "translated_port.h"
#include "word_access.h"

#define QUEUE_REGISTER_INPUTS(IN, k)                                                                               \
    IN(queues[k].enable, "~queue[" #k "].control.enable") IN(queues[k].abort, "~queue[" #k "].control.abort")      \
    IN(contexts[k], "~queue[" #k "].owner.context") IN(priorities[k], "~queue[" #k "].owner.priority")             \
    IN(queues[k].base, "~queue[" #k "].base.address") IN(queues[k].log2, "~queue[" #k "].size.log2")

#define QUEUE_REGISTER_OUTPUTS(OUT, k)                                                                             \
    OUT(queues[k].read, "~queue[" #k "].read_index.index") OUT(queues[k].write, "~queue[" #k "].write_index.index") \
    OUT(queues[k].buffer_index, "~queue[" #k "].buffer_index.index")                                               \
    OUT(queues[k].inside, "~queue[" #k "].buffer_index.in_buffer") OUT(queues[k].state, "~queue[" #k "].state.state")

#define COMMAND_PROCESSOR_PORTS(IN, OUT)                                                                           \
    QUEUE_REGISTER_INPUTS(IN, 0) QUEUE_REGISTER_INPUTS(IN, 1) QUEUE_REGISTER_INPUTS(IN, 2)                         \
    QUEUE_REGISTER_INPUTS(IN, 3) QUEUE_REGISTER_INPUTS(IN, 4) QUEUE_REGISTER_INPUTS(IN, 5)                         \
    QUEUE_REGISTER_INPUTS(IN, 6) QUEUE_REGISTER_INPUTS(IN, 7)                                                      \
    IN(executor.readback, "queue_shared.readback.address") IN(executor.watchdog, "queue_shared.watchdog.cycles")   \
    IN(records.read_index, "queue_shared.read_index") IN(records.readback, "queue_shared.readback_read.address")   \
    IN(doorbell, "doorbell_shared.write_index.index") IN(rung, "doorbell_shared.write_index_written")              \
    IN(reset, "chip.control.reset") IN(control_written, "chip.control_written")                                    \
    IN(interrupts.fences, "chip.irq_status.fence") IN(interrupts.errors, "chip.irq_status.error")                  \
    IN(interrupts.enabled_fences, "chip.irq_enable.fence") IN(interrupts.enabled_errors, "chip.irq_enable.error")  \
    IN(interrupts.limit, "chip.irq_coalesce.count") IN(interrupts.patience, "chip.irq_coalesce.cycles")            \
    IN(stale, "chip.invalidate.context") IN(stale_contents, "chip.invalidate.contents")                            \
    IN(invalidate_written, "chip.invalidate_written") IN(time_read, "chip.time_lo_read") IN(resetting, "resetting") \
    IN(port.out_ready, "request.ready") IN(port.answer_valid, "response.valid")                                    \
    IN(port.answer.tag, "response.payload.payload.tag") IN(port.answer.walk, "response.payload.payload.walk")      \
    IN(answer_error, "response.payload.payload.error") BEAT_WORDS_PORTS(IN, answer, "response.payload.payload.data", "") \
    QUEUE_REGISTER_OUTPUTS(OUT, 0) QUEUE_REGISTER_OUTPUTS(OUT, 1) QUEUE_REGISTER_OUTPUTS(OUT, 2)                   \
    QUEUE_REGISTER_OUTPUTS(OUT, 3) QUEUE_REGISTER_OUTPUTS(OUT, 4) QUEUE_REGISTER_OUTPUTS(OUT, 5)                   \
    QUEUE_REGISTER_OUTPUTS(OUT, 6) QUEUE_REGISTER_OUTPUTS(OUT, 7)                                                  \
    OUT(records.index, "queue_shared.index") OUT(records.shown.code, "queue_shared.error.code")                    \
    OUT(records.shown.unit, "queue_shared.error.unit") OUT(records.shown.core, "queue_shared.error.core")          \
    OUT(records.shown.pc, "queue_shared.error_pc.pc") OUT(records.shown.block, "queue_shared.error_block.block")   \
    OUT(records.shown.address, "queue_shared.error_address.address")                                               \
    OUT(records.rung_at[0], "queue_shared.doorbell_time_lo.cycles")                                                \
    OUT(records.rung_at[1], "queue_shared.doorbell_time_hi.cycles") OUT(shown_time[0], "chip.time_lo.cycles")      \
    OUT(shown_time[1], "chip.time_hi.cycles") OUT(executor.fence, "chip.irq_status_set.fence")                     \
    OUT(failed, "chip.irq_status_set.error") OUT(invalidating, "chip.status.invalidating")                         \
    OUT(port.out_valid, "request.valid") OUT(heads, ".heads")                                                      \
    REQUEST_FLIT_PORTS(OUT, port.out, "request", "?.heads") OUT(last, "request.payload.last?request.valid")        \
    OUT(port.answer_ready, "response.ready") OUT(interrupts.irq, "irq") OUT(abort, "abort")                        \
    OUT(scheduler.ended_words[0], "ended@0") OUT(scheduler.ended_words[1], "ended@1")                              \
    OUT(reset_request, "reset_request") OUT(port.invalidate, "invalidate.valid")                                   \
    OUT(port.invalidated, "invalidate.context") OUT(contents, "invalidate.contents")

enum { PART_FETCH, PART_LOAD, PART_STORE, PART_WORD, PART_MESSAGE, PARTS };

typedef struct CommandProcessor {
    uint32_t contexts[QUEUES_MAX], priorities[QUEUES_MAX], doorbell, rung, reset, control_written, stale, stale_contents;
    uint32_t invalidate_written, time_read, resetting, answer_error, answer[PACKET_WORDS];
    uint32_t shown_time[2], failed, invalidating, heads, last, abort, reset_request, contents;

    Executor executor;
    BlockScheduler scheduler;
    CopyScheduler copies;
    MemoryReader reader;
    MemoryWriter writer;
    WordAccess words;
    TranslatedPort port;
    Interrupts interrupts;
    QueueRecords records;
    CommandQueue queues[QUEUES_MAX];
    FlitBuffer loads, stores;  // requests of reader and writer, in front of the port
    uint64_t time;
    uint32_t time_high, aborting, spreading, inside, node, memory;
} CommandProcessor;
