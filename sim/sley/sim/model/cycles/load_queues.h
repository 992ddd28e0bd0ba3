// The twin of sley.hw.core.load.queues: what the request side of the load unit tells the others, in their queues.
#pragma once

#include "abi.h"
#include "stream_queues.h"

enum { COMMANDS_IN_FLIGHT = 16, RUNS_IN_FLIGHT = 64, COMMAND_RING = 32, RUN_RING = 128 };

typedef struct FeedJob {
    uint8_t space, work, illegal, bad, permutation, empty;
    uint8_t param;  // a SET of it, if it is one of the feed's; otherwise PARAMS
    uint32_t runs;  // or a SET's value
} FeedJob;

typedef struct TargetJob {
    uint8_t space, work, interleave;
    uint8_t param;  // a SET of it, if it is one of the target's; otherwise PARAMS
    uint32_t pc;
    uint32_t row;  // the first one; a SET's value; or the address of the fault
} TargetJob;

typedef struct PendingRun {
    uint32_t addr;
    uint8_t bad, slab_end, final;
} PendingRun;

typedef struct LoadQueues {
    Fifo signals, feeds, targets, pending;
    uint32_t oldest;  // runs in the register behind `pending`
    uint32_t command, signal, feed, target, run, first_run;  // places in the rings: where the next one comes, and goes

    uint32_t push_command, push_run;                      // in this cycle
    uint32_t pop_signal, pop_feed, pop_target, pop_run;  // whether the reader is ready

    uint16_t signal_sets[COMMAND_RING];
    FeedJob feed_jobs[COMMAND_RING];
    TargetJob target_jobs[COMMAND_RING];
    PendingRun runs[RUN_RING];
} LoadQueues;

static inline const FeedJob* feed_job(const LoadQueues* q) { return &q->feed_jobs[q->feed % COMMAND_RING]; }
static inline const TargetJob* target_job(const LoadQueues* q) { return &q->target_jobs[q->target % COMMAND_RING]; }
static inline const PendingRun* first_run(const LoadQueues* q) { return &q->runs[q->first_run % RUN_RING]; }

static inline void load_queues_tick(LoadQueues* q) {
    uint32_t room = q->oldest < BUFFER, fetched = q->pending.valid & room, gone = q->pop_run & (q->oldest != 0);
    q->oldest += fetched - gone;
    q->first_run += gone;
    q->run += q->push_run;
    fifo_tick(&q->pending, q->push_run, room);
    q->command += q->push_command;
    q->signal += q->pop_signal & q->signals.valid;
    fifo_tick(&q->signals, q->push_command, q->pop_signal);
    q->feed += q->pop_feed & q->feeds.valid;
    fifo_tick(&q->feeds, q->push_command, q->pop_feed);
    q->target += q->pop_target & q->targets.valid;
    fifo_tick(&q->targets, q->push_command, q->pop_target);
}
