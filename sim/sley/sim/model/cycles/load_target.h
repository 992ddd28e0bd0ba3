// The twin of sley.hw.core.load.target: where the rows of loads go.
#pragma once

#include "affine.h"
#include "load_queues.h"
#include "permute.h"

enum { FOLLOWERS = 9, ROW_DIMS = ROW_LOOPS + 2 };

typedef struct LoadTarget {
    uint32_t chunk_stride, local_stride, local_stride2;  // the parameters
    uint32_t strides[ROW_DIMS];                          // of the command at hand
    Walk walk;
    uint32_t work, pc;
    uint32_t active;    // a command that followed is here
    uint32_t dropping;  // it is at fault
    uint32_t followed, waiting;
    uint32_t idle;  // it is in step with the feed

    int none, ready, valid, done, finish, start, moves, astray;  // in this cycle
} LoadTarget;

static void load_target_clear(LoadTarget* t) {
    t->chunk_stride = (uint32_t)param_infos[PARAM_CHUNK_STRIDE].reset;
    t->local_stride = (uint32_t)param_infos[PARAM_LOCAL_STRIDE].reset;
    t->local_stride2 = (uint32_t)param_infos[PARAM_LOCAL_STRIDE2].reset;
}

static inline uint32_t permuted_last(const Permute* p) { return p->last | p->tag << ROW_LOOPS; }

static inline void load_target_outputs(LoadTarget* t, const Permute* p, int room) {
    t->none = !(t->waiting | t->followed);
    t->ready = t->waiting != FOLLOWERS && !(t->waiting == FOLLOWERS - 1 && t->followed);
    int permuted = t->active && t->work && p->o_valid;
    t->valid = permuted || (t->active && !t->work);
    t->done = !t->work || permuted_last(p) == (1u << ROW_DIMS) - 1;
    t->finish = t->valid && room && t->done;
    t->start = t->waiting && (!t->active || t->finish);
    t->moves = permuted && room;
    t->astray = t->moves && t->walk.outside && !t->dropping;
}

static void load_target_begin(LoadTarget* t, const TargetJob* job) {
    switch (job->param) {
        case PARAM_CHUNK_STRIDE: t->chunk_stride = job->row; break;
        case PARAM_LOCAL_STRIDE: t->local_stride = job->row; break;
        case PARAM_LOCAL_STRIDE2: t->local_stride2 = job->row; break;
    }
    t->work = job->work;
    t->pc = job->pc;
    if (!job->work) return;
    uint32_t* stride = t->strides;
    *stride++ = t->chunk_stride << job->interleave;
    if (ROW_LOOPS == 3) *stride++ = t->chunk_stride;
    *stride++ = 1;
    *stride++ = t->local_stride;
    *stride = t->local_stride2;
    walk_start(&t->walk, job->row, (job->space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS) - 1, ROW_DIMS);
}

// In step with the feed: which of the feed's loops end with the row.
static inline void load_target_step(LoadTarget* t, uint32_t last) {
    uint32_t within_unit = (1u << ROW_LOOPS) - 2;
    walk_step(&t->walk, (last & 1) | within_unit | last >> 1 << ROW_LOOPS, t->strides, ROW_DIMS);
}

// Whatever follows is given up. It is in step with the feed then, and what only those that follow change stays.
static void load_target_drop(LoadTarget* t) {
    t->active = t->followed = t->waiting = t->valid = t->finish = t->start = t->moves = t->astray = 0;
    t->idle = t->none = t->ready = 1;
}

// `permuted`: the last of the loops of a row that leaves Permute, with `idle` as of this cycle; `step`: the feed places a
// row, with the `last` of its loops.
static inline void load_target_tick(
    LoadTarget* t, LoadQueues* q, uint32_t permute_idle, uint32_t permuted, int step, uint32_t last, int begin, int follow,
    int drop) {
    if (t->idle) {
        if (step) load_target_step(t, last);
    } else if (t->moves) {
        walk_step(&t->walk, permuted, t->strides, ROW_DIMS);
    }
    int idle = t->none && !t->active && permute_idle && !follow;
    t->waiting += t->followed - t->start;
    t->followed = follow;
    if (t->finish) t->active = 0;
    if (t->astray) t->dropping = 1;
    if (t->start) {
        t->active = 1;
        t->dropping = 0;
    }
    q->pop_target = begin | t->start;
    if (q->pop_target) load_target_begin(t, target_job(q));
    t->idle = idle;
    if (drop || idle) load_target_drop(t);
}
