// The twin of sley.hw.core.load.queues: what the request side of the load unit tells the others, in their queues.
#pragma once

#include "abi.h"
#include "queue.h"

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
    Queue signals, feeds, targets, pending;  // `end` of the first three is the same
    uint32_t oldest;                         // runs in the register behind `pending`
    uint32_t first_run;                      // the place of the first of them in the ring

    uint32_t push_command, push_run, pop_signal, pop_feed, pop_target, pop_run;  // in this cycle
    uint32_t stirs;  // a command is on its way to the output of a queue

    uint16_t signal_sets[COMMAND_RING];
    FeedJob feed_jobs[COMMAND_RING];
    TargetJob target_jobs[COMMAND_RING];
    PendingRun runs[RUN_RING];
} LoadQueues;

static void load_queues_reset(LoadQueues* q) {
    q->signals.depth = q->feeds.depth = q->targets.depth = COMMANDS_IN_FLIGHT;
    q->pending.depth = RUNS_IN_FLIGHT;
}

static inline const FeedJob* feed_job(const LoadQueues* q) { return &q->feed_jobs[q->feeds.first % COMMAND_RING]; }
static inline const TargetJob* target_job(const LoadQueues* q) { return &q->target_jobs[q->targets.first % COMMAND_RING]; }
static inline const PendingRun* first_run(const LoadQueues* q) { return &q->runs[q->first_run % RUN_RING]; }

static inline void load_queues_tick(LoadQueues* q) {
    uint32_t fetched = q->pending.here && q->oldest < 2;
    q->oldest += fetched - q->pop_run;
    q->first_run += q->pop_run;
    if (q->push_run | q->pending.count | fetched) queue_tick(&q->pending, q->push_run, fetched);
    if (!(q->push_command | q->pop_signal | q->pop_feed | q->pop_target | q->stirs)) return;
    Queue *signals = &q->signals, *feeds = &q->feeds, *targets = &q->targets;
    queue_tick(signals, q->push_command, q->pop_signal & signals->here);
    queue_tick(feeds, q->push_command, q->pop_feed & feeds->here);
    queue_tick(targets, q->push_command, q->pop_target & targets->here);
    q->stirs = (signals->count && !signals->here) || (feeds->count && !feeds->here) || (targets->count && !targets->here);
}
