// The twin of sley.hw.command.copies: copies of all queues on one engine, a slice at a time.
#pragma once

#include "command_parts.h"
#include "copy_engine.h"
#include "urgent.h"

#define COPY_SCHEDULER_PORTS(IN, OUT)                                                                              \
    IN(i_valid, "i.valid") COPY_COMMAND_PORTS(IN, i, "i", "") IN(o_ready, "o.ready")                               \
    PRIORITY_PORTS(IN, priorities, "priorities") IN(abort, "abort") IN(engine.read_ready, "read.ready")            \
    IN(engine.beat_valid, "beats.valid") IN(engine.beat_last, "beats.payload.last")                                \
    IN(engine.beat_error, "beats.payload.error") IN(engine.write_ready, "write.ready")                             \
    IN(engine.data_ready, "data.ready") IN(engine.writing, "writing") IN(engine.write_refused, "write_error")      \
    OUT(o_valid, "o.valid") WORK_RESULT_PORTS(OUT, o, "o", "?o.valid") OUT(engine.read_valid, "read.valid")        \
    OUT(engine.run_address, "read.payload.addr?read.valid") OUT(engine.run_bytes, "read.payload.bytes?read.valid") \
    OUT(context, "read.payload.context?read.valid") OUT(engine.beat_ready, "beats.ready")                          \
    OUT(engine.write_valid, "write.valid") OUT(engine.write_address, "write.payload.addr?write.valid")             \
    OUT(engine.write_bytes, "write.payload.bytes?write.valid") OUT(write_context, "write.payload.context?write.valid") \
    OUT(engine.data_valid, "data.valid")

enum { COPIES_IDLE, COPIES_START, COPIES_RUN, COPIES_REPORT };

typedef struct CopyScheduler {
    CopyCommand i;
    uint32_t i_valid, o_ready, priorities[QUEUES_MAX], abort;
    uint32_t o_valid, context, write_context;
    WorkResult o;

    CopyEngine engine;
    Urgent urgent;
    CopyCommand jobs[QUEUES_MAX];
    uint32_t rests[QUEUES_MAX];  // what is left of those that were begun
    uint32_t state, waiting, begun, current, queue, resumes, aborted, slice_left, used_up, others;
    uint32_t requests, grant, chosen, moved, renews;  // of this cycle
    int asleep;                                       // nothing is here, and the outputs say so
} CopyScheduler;

static void copy_scheduler_reset(CopyScheduler* s, const uint32_t* parameters) {
    copy_engine_reset(&s->engine, parameters);
    urgent_reset(&s->urgent, QUEUES);
}

static void copy_scheduler_begin(CopyScheduler* s, const CopyCommand* job) {
    CopyEngine* e = &s->engine;
    uint32_t left = s->resumes ? s->rests[s->queue] : job->bytes, offset = job->bytes - left;
    uint32_t within = s->resumes ? 0 : job->dst & (CHUNK_BYTES - 1);  // it goes on where a chunk begins
    e->start = 1;
    e->src = job->src + offset;
    e->dst = ((job->dst + offset) & -CHUNK_BYTES) | within;
    e->bytes = left;
}

static void copy_scheduler_outputs(CopyScheduler* s) {
    if (s->asleep) return;
    CopyEngine* e = &s->engine;
    const CopyCommand* job = &s->jobs[s->queue];
    uint32_t state = s->state;
    s->chosen = s->moved = s->renews = s->requests = s->grant = e->start = e->stop = 0;
    e->fill = job->fill;
    s->context = s->write_context = job->context;
    s->o_valid = state == COPIES_REPORT;
    s->o.queue = s->queue;
    if (state == COPIES_START) copy_scheduler_begin(s, job);
    if (state == COPIES_RUN) {
        s->requests = s->waiting | s->current;
        e->stop = s->aborted || (s->used_up && s->others);
    } else if (state == COPIES_IDLE) {
        s->requests = s->waiting;
    }
    copy_engine_outputs(e);
    if (!s->requests) return;
    s->grant = urgent_grant(&s->urgent, s->requests);
    if (state == COPIES_RUN) {
        s->renews = s->used_up && s->grant & s->current;
        s->moved = s->renews && e->requested;
    } else {
        uint32_t ended = s->waiting & s->abort;
        s->chosen = ended ? ended & -ended : s->grant;
        s->moved = !ended;
    }
}

// Returns the queue whose copy makes room for another.
static uint32_t copy_scheduler_run(CopyScheduler* s, const CopyCommand* job) {
    CopyEngine* e = &s->engine;
    if (e->requested) {
        uint32_t left = s->slice_left;
        s->slice_left = s->used_up ? 0 : left - 1;
        s->used_up = left < 2;
        if (s->renews) s->slice_left = SLICE_CHUNKS - 1, s->used_up = 0;
    }
    s->others = !(s->grant & s->current) || s->waiting & s->abort;
    if (!e->done) return 0;
    s->rests[s->queue] = e->left;
    s->state = COPIES_REPORT;
    if (e->error) {
        s->o.fault.code = access_fault(e->error);
        s->o.fault.address = e->of_read ? job->src : job->dst;
    } else if (e->left && s->aborted) {
        s->o.fault.code = FAULT_ABORTED;
    } else if (e->left) {
        s->state = COPIES_IDLE;
        return s->current;
    }
    return 0;
}

static void copy_scheduler_tick(CopyScheduler* s) {
    urgent_tick(&s->urgent, s->requests, s->grant, s->moved, s->priorities);
    if (s->asleep && !s->i_valid) return;
    CopyEngine* e = &s->engine;
    uint32_t aborted = (s->abort & s->current) != 0, back = 0, state = s->state;
    switch (state) {
    case COPIES_IDLE:
        if (!s->chosen) break;
        s->current = s->chosen;
        s->queue = (uint32_t)__builtin_ctz(s->chosen);
        s->resumes = (s->begun & s->chosen) != 0;
        s->slice_left = SLICE_CHUNKS - 1;
        s->used_up = 0;
        s->o.fault = (BlockFault){.code = s->moved ? FAULT_NONE : FAULT_ABORTED, .unit = UNIT_COMMAND};
        s->state = s->moved ? COPIES_START : COPIES_REPORT;
        break;
    case COPIES_START: s->state = COPIES_RUN; break;
    case COPIES_RUN: back = copy_scheduler_run(s, &s->jobs[s->queue]); break;
    case COPIES_REPORT:
        if (s->o_ready) s->state = COPIES_IDLE;
    }
    s->aborted = aborted;
    uint32_t arriving = s->i_valid ? 1u << s->i.queue : 0;
    s->waiting = (s->waiting & ~s->chosen) | arriving | back;
    s->begun = (s->begun & ~arriving) | back;
    if (s->i_valid) s->jobs[s->i.queue] = s->i;
    copy_engine_tick(e);
    s->asleep = state == COPIES_IDLE && !s->chosen && !s->waiting && !e->busy && !e->beat_valid &&
                !(e->read_valid | e->write_valid | e->data_valid | e->dropped | e->fill_beats) && queue_empty(&e->buffer);
}
