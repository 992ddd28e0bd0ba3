// The twin of sley.hw.core.vector.retirement: signal sets of the vector unit, in the order of its commands.
#pragma once

#include "abi.h"
#include "twin.h"

enum { VECTOR_COMMANDS = 16 };  // that have begun, or are done, and whose signal sets were not taken

typedef struct VectorEnding {
    uint32_t signal;
    uint8_t rows, fold;  // it waits for its last row, for a fold
} VectorEnding;

typedef struct VectorRetirement {
    VectorEnding commands[VECTOR_COMMANDS];
    uint32_t first, count;
    uint32_t ended;  // commands whose last rows are done
    uint8_t ends;    // one more is

    uint8_t offers;  // in this cycle
} VectorRetirement;

static inline const VectorEnding* retirement_oldest(const VectorRetirement* r) { return &r->commands[r->first % VECTOR_COMMANDS]; }
static inline int retirement_room(const VectorRetirement* r) { return r->count < VECTOR_COMMANDS; }

static inline int retirement_rows_next(const VectorRetirement* r) {
    return r->count && retirement_oldest(r)->rows && !r->ended && !r->ends;
}

static inline void retirement_outputs(VectorRetirement* r, int folding) {
    const VectorEnding* oldest = retirement_oldest(r);
    r->offers = r->count && !(oldest->rows && !r->ended) && !(oldest->fold && folding);
}

// A clock edge. `comes`: a command, or nothing; `taken`: the signal set; `rows_end`: the last row of a command is done.
static inline void retirement_tick(VectorRetirement* r, const VectorEnding* comes, int taken, int rows_end) {
    if (r->ends) ++r->ended;
    r->ends = rows_end;
    if (taken) {
        r->ended -= retirement_oldest(r)->rows;
        ++r->first;
        --r->count;
    }
    if (comes) r->commands[(r->first + r->count++) % VECTOR_COMMANDS] = *comes;
}

static inline void retirement_abort(VectorRetirement* r) { r->first = r->count = r->ended = r->ends = 0; }
