// The twin of sley.hw.core.load.unit: DMA from memory into the scratchpad and the accumulators.
#pragma once

#include "abi.h"
#include "load_feed.h"
#include "load_queues.h"
#include "load_request.h"
#include "unit_front.h"

#define LOAD_UNIT_PORTS(IN, OUT)                                                                                      \
    IN(command_valid, "command.valid") IN(command.op, "command.payload.op") IN(command.pc, "command.payload.pc")      \
    IN(command.signal, "command.payload.signal") IN(command.a, "command.payload.a")                                   \
    IN(command.b, "command.payload.b") IN(command.c, "command.payload.c") IN(command.flags, "command.payload.flags")  \
    IN(signal_ready, "signal[0].ready") IN(abort, "abort") IN(clear, "clear") IN(gang, "gang")                        \
    IN(run_ready, "run.ready") IN(beat.valid, "beat.valid") IN(beat.last, "beat.payload.last")                        \
    IN(beat.error, "beat.payload.error") IN(scratchpad_ready, "scratchpad.ready")                                     \
    IN(accumulator_ready, "accumulator.ready") LIST_INPUTS(IN, request.list)                                          \
    OUT(command_ready, "command.ready") OUT(signal_valid, "signal[0].valid")                                          \
    OUT(signal_set, "signal[0].payload?signal[0].valid") OUT(feed.fault.valid, "fault.valid")                         \
    OUT(feed.fault.code, "fault.code?fault.valid") OUT(feed.fault.pc, "fault.pc?fault.valid")                         \
    OUT(feed.fault.address, "fault.address?fault.valid") OUT(busy, "busy") OUT(retired, "retired")                    \
    OUT(run_valid, "run.valid") OUT(request.runs.item.addr, "run.payload.addr?run.valid")                                           \
    OUT(request.runs.item.bytes, "run.payload.bytes?run.valid") OUT(request.runs.item.share, "run.payload.share?run.valid")                       \
    OUT(request.runs.item.more, "run.payload.more?run.valid") OUT(request.runs.item.joins, "run.payload.joins?run.valid")                         \
    OUT(feed.beat_ready, "beat.ready") OUT(scratchpad_valid, "scratchpad.valid")                                      \
    OUT(writes.item.row, "scratchpad.row?scratchpad.valid") OUT(accumulator_valid, "accumulator.valid")                     \
    OUT(writes.item.row, "accumulator.row?accumulator.valid") OUT(writes.item.beats, "accumulator.enable?accumulator.valid") \
    LIST_OUTPUTS(OUT, request.list)

typedef struct LoadUnit {
    uint32_t command_valid, command_ready, signal_valid, signal_ready, signal_set, abort, clear, gang, busy, retired;
    uint32_t run_valid, run_ready, scratchpad_valid, scratchpad_ready, accumulator_valid, accumulator_ready;
    UnitCommand command;
    Beat beat;

    int asleep;  // nothing is here, and nothing changes but by a command
    int known;   // the outputs are those of a unit asleep
    LoadQueues queues;
    LoadRequest request;
    LoadFeed feed;
    PlacedBuffer writes;
    uint32_t written;   // the first of them is taken
    uint32_t finished;  // commands whose signals have not been accepted
} LoadUnit;

static void load_unit_reset(LoadUnit* u, const uint32_t* parameters) {
    memset(u, 0, sizeof *u);
    load_queues_reset(&u->queues);
    load_request_reset(&u->request);
    load_feed_reset(&u->feed);
}

static void load_unit_outputs(LoadUnit* u) {
    int known = u->asleep && !u->abort && !u->command_valid;
    if (known && u->known) return;
    u->known = known;
    LoadQueues* q = &u->queues;
    LoadRequest* r = &u->request;
    load_request_outputs(r, q);
    u->command_ready = r->free || u->abort;
    u->run_valid = r->runs.here;

    const Placed* item = &u->writes.item;
    int writing = u->writes.here && item->write;
    u->scratchpad_valid = writing && item->space == SPACE_SCRATCHPAD;
    u->accumulator_valid = writing && item->space == SPACE_ACCUMULATOR;
    u->written = u->writes.here && (!writing || (item->space ? u->accumulator_ready : u->scratchpad_ready));
    load_feed_outputs(&u->feed, q, &u->beat, !u->writes.full, u->abort);

    u->signal_valid = u->finished != 0;
    u->signal_set = q->signal_sets[q->signals.first % COMMAND_RING];
    u->retired = u->signal_valid && u->signal_ready;
    int queued = !queue_empty(&q->signals) || !queue_empty(&q->feeds) || !queue_empty(&q->pending) || q->oldest;
    u->busy = queued || r->active || u->writes.here || feed_busy(&u->feed);
}

static void load_unit_tick(LoadUnit* u) {
    if (u->asleep && !u->abort && !u->command_valid && !u->clear) return;
    LoadQueues* q = &u->queues;
    LoadFeed* f = &u->feed;
    int curtail = f->state == FEED_COMPLETE && !f->drained && queue_empty(&q->feeds);
    load_request_tick(&u->request, q, u->command_valid ? &u->command : 0, curtail, u->run_ready, u->gang, u->abort);
    Placed placed;
    int given = load_feed_tick(f, q, &u->beat, !u->writes.full, u->abort, &placed);
    u->finished += (u->written && u->writes.item.done) - u->retired;
    if (given | u->writes.here) PlacedBuffer_tick(&u->writes, given, placed, u->written);
    q->pop_signal = u->retired | u->abort;
    load_queues_tick(q);
    if (u->abort) u->finished = 0;
    if (u->abort || u->clear) {
        params_reset(u->request.params);
        load_feed_clear(f);
    }
    u->asleep = u->known = 0;
    if (queue_empty(&q->signals) && !u->abort) {
        int still = f->settled && !f->fault.valid && !f->dropped && f->permute.idle && !feed_busy(f) && !u->writes.here;
        u->asleep = still && !u->request.runs.here && queue_empty(&q->targets) && !u->finished && !q->oldest;
    }
}
