// The twin of sley.hw.core.matrix.activations: the engine that executes MATMUL.
#pragma once

#include "hazards.h"
#include "matrix_front.h"
#include "row_walk.h"

enum { MOST_VOIDS = 6 };

typedef struct MatmulJob {
    WalkJob walk;
    uint32_t dest, end, pc;
    uint8_t accumulate, bf16, swap, loads;
} MatmulJob;

typedef struct ActivationStreamer {
    RowWalk walk;
    Hazards hazards;
    MatmulJob waiting_job, job;
    int64_t flying;  // the last cycle in which something is in flight
    uint32_t dest;
    uint8_t waiting, voids, later_voids, room, loads, swaps, bf16;

    uint8_t reads, granted, leaves, fails, ended, swap, hazard, unloaded, lasts;  // in this cycle
} ActivationStreamer;

// What the command at the front becomes.
static inline MatmulJob matmul_job(const MatrixFront* f) {
    const int32_t* p = f->params;
    WalkJob walk = {f->command.a, f->command.c, {p[PARAM_ACT_COUNT], p[PARAM_ACT_COUNT2]},
                    {p[PARAM_ACT_STRIDE], p[PARAM_ACT_STRIDE2], p[PARAM_ACT_STRIDE3]}};
    walk.single = f->command.c == 1;
    return (MatmulJob){walk, f->command.b, f->end, f->command.pc, FLAG(MATMUL_ACCUMULATE, f->command.flags), f->bf16,
                       f->unused, f->loads};
}

static inline void activation_streamer_abort(ActivationStreamer* s) {
    s->walk.valid = s->walk.inside = s->walk.busy = s->walk.starts = s->walk.ending = 0;
    s->waiting = s->voids = s->later_voids = s->loads = s->swaps = s->bf16 = 0;
    s->room = 1;
    s->flying = 0;
    hazards_abort(&s->hazards);
}

static inline int activation_streamer_idle(const ActivationStreamer* s) {
    return !s->waiting && !s->walk.valid && !s->voids;
}

// `settled`: a row of int8 may swap.
static inline void activation_streamer_outputs(ActivationStreamer* s, int64_t now, int ready, int settled) {
    const RowWalk* w = &s->walk;
    s->reads = s->granted = s->leaves = s->fails = s->ended = s->swap = s->hazard = s->unloaded = 0;
    if (!w->valid) {
        s->lasts = s->voids;
        return;
    }
    if (w->first) {
        const MatmulJob* job = &s->job;
        s->unloaded = job->swap && (job->loads != s->loads || !(job->bf16 || settled));
        s->hazard = !s->unloaded && (now < s->hazards.free || (now <= s->flying && job->bf16 != s->bf16));
        if (s->unloaded | s->hazard) {
            s->lasts = 0;
            return;
        }
        s->swap = job->swap && (w->outside || ready);
    }
    s->reads = w->inside;
    s->granted = s->reads && ready;
    s->fails = w->outside;
    s->leaves = s->granted | s->fails;
    s->ended = s->fails | (s->granted && w->final);
    s->lasts = s->ended ? 1 + s->voids : 0;
}

// A clock edge. `taken`: the job that comes, or none; `empty`: a job without rows comes; `loaded`: a load of weights is
// complete.
static inline void activation_streamer_tick(
    ActivationStreamer* s, int64_t now, const MatmulJob* taken, int empty, int loaded) {
    int starts = row_walk_takes(&s->walk, s->leaves), valid = s->walk.valid;
    s->loads = s->loads + loaded & ORDER_MASK;
    s->swaps = s->swaps + s->swap & ORDER_MASK;
    if (s->granted | s->lasts) {
        if (s->granted) {
            s->bf16 = s->job.bf16;
            ++s->dest;
        }
        s->flying = now + (s->bf16 ? WRITE_LATENCY_BF16 : WRITE_LATENCY_INT8);
    }
    if (s->ended) hazards_end(&s->hazards, now);
    if (empty | s->voids | s->later_voids | !s->room) {
        // What counts for the room are the numbers before this edge.
        int count = s->waiting ? s->later_voids : valid && !s->ended ? s->voids : 0;
        s->room = taken || count + empty < MOST_VOIDS;
        if (s->ended || !valid) s->voids = 0;
        if (s->waiting)
            s->later_voids += empty;
        else
            s->voids += empty;
        if (starts) {
            s->voids = s->later_voids;
            s->later_voids = 0;
        }
    }
    int waits = s->waiting && !hazards_full(&s->hazards, now);
    if (s->waiting | valid) row_walk_tick(&s->walk, s->leaves, waits, &s->waiting_job.walk);
    if (starts) {
        s->job = s->waiting_job;
        s->dest = s->job.dest;
        s->waiting = 0;
        hazards_start(&s->hazards, s->job.dest, s->job.end, s->job.accumulate, s->job.bf16);
    }
    if (taken) {
        s->waiting_job = *taken;
        s->waiting = 1;
    }
}
