// The twin of sley.hw.core.matrix.weights: the engine that executes WEIGHTS.
#pragma once

#include "matrix_front.h"
#include "row_walk.h"

typedef struct WeightsJob {
    WalkJob walk;
    uint32_t signal, pc;
    uint8_t bf16, swaps;
} WeightsJob;

typedef struct WeightLoader {
    RowWalk walk;
    WeightsJob waiting_job, job;
    uint32_t neutral, signal;  // words without a row that are left to send
    uint8_t waiting, last_bf16, failing, signals;

    uint8_t reads, granted, leaves, finishes, loaded, will_fail;  // in this cycle
} WeightLoader;

// What the command at the front becomes.
static inline WeightsJob weights_job(const MatrixFront* f) {
    WalkJob walk = {f->command.a, f->command.c, {0, 0}, {f->params[PARAM_WEIGHT_STRIDE], 0, 0}};
    walk.single = f->bad || f->command.c == 1;
    walk.empty = f->bad;
    return (WeightsJob){walk, f->command.signal, f->command.pc, f->bf16, f->swaps};
}

static inline void weight_loader_abort(WeightLoader* l) {
    l->walk.valid = l->walk.inside = l->walk.busy = l->walk.starts = l->walk.ending = 0;
    l->waiting = l->failing = l->signals = 0;
    l->neutral = 0;
}

static inline int weight_loader_idle(const WeightLoader* l) { return !l->waiting && !l->walk.valid && !l->neutral; }

// `swaps`: the count of earlier cycles; `swap`: one more in this cycle; `settled`: a word of int8 may come; `quiet`: no
// MATMUL before the job can fail.
static inline void weight_loader_outputs(WeightLoader* l, int ready, uint32_t swaps, int swap, int settled, int quiet) {
    const RowWalk* w = &l->walk;
    l->reads = l->granted = l->leaves = l->finishes = l->will_fail = 0;
    l->loaded = l->neutral == 1;
    if (!w->valid) return;
    int go = !l->neutral;
    if (w->first && go) {
        uint32_t left = l->job.swaps - swaps & ORDER_MASK;
        go = (l->job.bf16 || settled) && (left == 0 || (left == 1 && swap));
    }
    l->reads = w->inside && go && !(w->final && l->signals);
    l->granted = l->reads && ready;
    int empty = l->job.walk.empty && !l->signals;
    l->leaves = l->granted | l->failing | empty;
    l->finishes = (l->granted && w->final) | l->failing | empty;
    l->loaded |= l->failing | (l->granted && w->final && l->job.walk.rows == N);
    l->will_fail = w->outside && !l->job.walk.empty && !l->signals && !l->failing && go && quiet;
}

// Whether a word of bf16 has its turn.
static inline int weight_loader_turn_bf16(const WeightLoader* l) {
    return l->granted ? l->job.bf16 : l->neutral && l->last_bf16;
}

// A clock edge. `taken`: the job that comes, or none; `signal_taken`: the set on offer is.
static inline void weight_loader_tick(WeightLoader* l, const WeightsJob* taken, int signal_taken) {
    int starts = row_walk_takes(&l->walk, l->leaves), last = l->granted && l->walk.final;
    if (signal_taken) l->signals = 0;
    if (l->finishes) {
        l->signals = 1;
        l->signal = l->job.signal;
    }
    if (l->neutral)
        --l->neutral;
    else if (last)
        l->neutral = l->job.bf16 ? N - l->job.walk.rows : l->job.walk.rows != N;
    if (l->granted) l->last_bf16 = l->job.bf16;
    l->failing = l->will_fail;
    if (l->waiting | l->walk.valid) row_walk_tick(&l->walk, l->leaves, l->waiting, &l->waiting_job.walk);
    if (starts) {
        l->job = l->waiting_job;
        l->waiting = 0;
    }
    if (taken) {
        l->waiting_job = *taken;
        l->waiting = 1;
    }
}
