// The twin of sley.hw.core.matrix.row_walk, the affine walk in it included: positions, one ahead of their reader.
#pragma once

#include "abi.h"
#include "twin.h"

typedef struct WalkJob {
    uint32_t base, rows, counts[2];  // a count of 0 is more than all
    int32_t strides[3];
    uint8_t single, empty;  // it has one position, whatever `rows` is; and that is not inside
} WalkJob;

typedef struct RowWalk {
    uint32_t position;  // at the reader
    uint8_t valid, inside, outside, first, final;
    uint8_t busy, starts, ending;  // there is a next position, the first one of the waiting job, the final one of its job
    uint32_t next, left, inner, middle, begin_middle, begin_outer, counts[2];
    int32_t strides[3];
} RowWalk;

static inline void row_walk_step(RowWalk* w) {
    if (--w->inner) {
        w->next += w->strides[0];
        return;
    }
    w->inner = w->counts[0];
    if (--w->middle) {
        w->next = w->begin_middle += w->strides[1];
        return;
    }
    w->middle = w->counts[1];
    w->next = w->begin_middle = w->begin_outer += w->strides[2];
}

static inline void row_walk_start(RowWalk* w, const WalkJob* job) {
    w->busy = w->starts = 1;
    w->next = w->begin_middle = w->begin_outer = job->base;
    w->inner = w->counts[0] = job->counts[0];
    w->middle = w->counts[1] = job->counts[1];
    memcpy(w->strides, job->strides, sizeof w->strides);
}

// Neither the first position, the final one nor the one before it is at the reader, and none is outside.
static inline int row_walk_flows(const RowWalk* w) { return w->inside && w->busy && !w->first && !w->starts && !w->ending; }

// A clock edge of a walk that flows, whose position leaves. Returns whether it still does.
static inline int row_walk_flow(RowWalk* w) {
    w->position = w->next;
    w->ending = --w->left == 1;
    w->outside = w->position >= SCRATCHPAD_ROWS;
    w->inside = !w->outside;
    row_walk_step(w);
    return !(w->ending | w->outside);
}

// The waiting job is accepted in this cycle.
static inline int row_walk_takes(const RowWalk* w, int leaves) { return w->starts && (!w->valid || leaves); }

// A clock edge. `leaves`: the reader's position goes, and the rest of its job with it if it is outside.
static inline void row_walk_tick(RowWalk* w, int leaves, int waits, const WalkJob* waiting) {
    int drop = leaves && w->outside && !w->final;
    int moves = w->busy && (!w->valid || leaves);
    int starts = waits && (!w->busy || (moves && w->ending));
    if (moves) {
        int first = w->starts, single = first && waiting->single;
        w->valid = 1;
        w->position = w->next;
        w->outside = w->next >= SCRATCHPAD_ROWS;
        w->inside = !w->outside && !(first && waiting->empty);
        w->first = first;
        w->final = single || w->ending;
        w->busy = !w->final;
        w->starts = 0;
        if (first) w->left = waiting->rows;
        w->ending = --w->left == 1 && !single;
        if (w->busy) row_walk_step(w);
    } else if (leaves) {
        w->valid = w->inside = 0;
    }
    if (starts) row_walk_start(w, waiting);
    if (drop) w->valid = w->inside = w->busy = w->starts = w->ending = 0;
}
