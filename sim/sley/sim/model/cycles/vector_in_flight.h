// The twin of sley.hw.core.vector.in_flight: rows between their reads and their writes, and reads that wait for them.
#pragma once

#include "abi.h"
#include "twin.h"

typedef struct VectorInFlight {
    uint32_t outstanding, earlier;  // rows in flight; of them those of commands before
    uint32_t low, high;             // rows that commands before have yet to write are among these,
    uint8_t spaces;                 // in these memories: bits
    uint8_t touches;                // operands whose next row is there: bits
    uint32_t first;                 // where the first row of the current command is written
} VectorInFlight;

static inline int in_flight_blocks(const VectorInFlight* f) { return f->touches && f->earlier; }

// A command begins, which writes its first row there.
static inline void in_flight_begin(VectorInFlight* f, uint32_t first) {
    f->earlier = f->outstanding;
    f->first = first;
    f->touches = 0;
}

// An operand goes to its next row.
static inline void in_flight_look(VectorInFlight* f, int operand, uint32_t row, uint32_t space) {
    int inside = row >= f->low && row <= f->high && f->spaces >> space & 1;
    f->touches = f->touches & ~(1u << operand) | inside << operand;
}

// The last row of the current command is read, which is written there.
static inline void in_flight_last(VectorInFlight* f, uint32_t row, uint32_t space, int backwards) {
    uint32_t low = backwards ? row : f->first, high = backwards ? f->first : row;
    int joined = f->earlier != 0;
    f->spaces = (joined ? f->spaces : 0) | 1u << space;
    f->low = joined && f->low < low ? f->low : low;
    f->high = joined && f->high > high ? f->high : high;
}

// A clock edge. `issue`: a row is read; `done`: the oldest one is written.
static inline void in_flight_tick(VectorInFlight* f, uint32_t issue, uint32_t done) {
    f->outstanding += issue - done;
    f->earlier -= done && f->earlier;
}

static inline void in_flight_abort(VectorInFlight* f) { f->outstanding = f->earlier = 0; }
