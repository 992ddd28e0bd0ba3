// The twin of sley.hw.core.vector.writes: rows of results on their way to the memories.
#pragma once

#include "vector_reads.h"

enum { VECTOR_ROWS = 64 };  // in flight at most, on any chip

typedef struct VectorDestination {
    uint16_t row;
    uint8_t space, enable, written, last;
} VectorDestination;

typedef struct VectorWrites {
    VectorDestination to[VECTOR_ROWS], next;  // of rows in flight; of the row that is read
    uint32_t first, end;                      // of those, counted
    uint32_t arrived;                         // rows that have come to their end
    uint8_t valid;                            // the oldest of them is at the ports

    uint8_t done, ends;  // in this cycle
} VectorWrites;

static inline const VectorDestination* vector_writes_oldest(const VectorWrites* w) { return &w->to[w->first % VECTOR_ROWS]; }

static inline void vector_writes_outputs(VectorWrites* w, uint32_t scratchpad_ready, uint32_t accumulator_ready) {
    w->done = w->ends = 0;
    if (!w->valid) return;
    const VectorDestination* to = vector_writes_oldest(w);
    w->done = !to->written || (to->space == SPACE_ACCUMULATOR ? accumulator_ready : scratchpad_ready);
    w->ends = w->done && to->last;
}

// A row is read that goes there.
static inline void vector_writes_read(VectorWrites* w, uint32_t row, int last) {
    VectorDestination* to = &w->to[w->end++ % VECTOR_ROWS];
    to->row = row;
    to->space = w->next.space;
    to->enable = w->next.enable;
    to->written = w->next.written;
    to->last = last;
}

// A clock edge. A row that arrives is at the ports two cycles later.
static inline void vector_writes_tick(VectorWrites* w, int arrives) {
    w->first += w->done;
    w->arrived -= w->done;
    w->valid = w->arrived != 0;
    w->arrived += arrives;
}

static inline void vector_writes_abort(VectorWrites* w) { w->first = w->end = w->arrived = w->valid = 0; }
