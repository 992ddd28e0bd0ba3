// The twin of sley.hw.core.vector.reads and walk: which rows are read, and when.
#pragma once

#include "vector_in_flight.h"
#include "vector_kind.h"

enum { WALK_A, WALK_B, WALK_C, WALK_OUT, VECTOR_WALKS, READ_OPERANDS = WALK_OUT };
enum { SCRATCHPAD_A, SCRATCHPAD_B, ACCUMULATOR_A, ACCUMULATOR_B, VECTOR_READ_PORTS };

typedef struct VectorReads {
    // Of the walks: a row at or behind the limit does not exist. Those that are not needed stay at row 0.
    uint32_t rows[VECTOR_WALKS], strides[VECTOR_WALKS], limits[VECTOR_WALKS];
    uint8_t spaces[VECTOR_WALKS];
    uint8_t ports[READ_OPERANDS], unused[READ_OPERANDS];
    uint8_t skip[READ_OPERANDS];       // of this part it is read, or it is unused
    uint8_t broadcast[READ_OPERANDS];  // a row of it serves N rows
    uint8_t broadcasts;                // there is such an operand
    uint8_t some_read;                 // of the part, but not all
    uint8_t last, outside, writes, backwards;
    uint32_t part, left, served;  // rows behind the current one; that N rows share, so far

    uint8_t advance, row_advance;  // in this cycle
} VectorReads;

static inline int vector_walk_outside(const VectorReads* r, int walk) { return r->rows[walk] >= r->limits[walk]; }

static inline void vector_walk_start(VectorReads* r, int walk, int needed, uint32_t space, uint32_t row, uint32_t stride) {
    r->rows[walk] = needed ? row : 0;
    r->strides[walk] = needed ? stride : 0;
    r->limits[walk] = !needed ? UINT32_MAX : space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS;
    r->spaces[walk] = space;
}

static inline void vector_reads_look(const VectorReads* r, int operand, VectorInFlight* flight) {
    if (!r->unused[operand]) in_flight_look(flight, operand, r->rows[operand], r->spaces[operand]);
}

// A command begins. `chain`: of a VECTOR that has one.
static inline void vector_reads_begin(VectorReads* r, const UnitCommand* command, const Chain* chain, const uint32_t* params,
                                      VectorInFlight* flight) {
    uint32_t flags = command->flags;
    int vrow = command->op == OP_VROW, splat = vrow && FLAG(VROW_SPLAT, flags);
    int b = !vrow && (chain ? uses_b(chain) : FLAG(VECTOR_B_OP, flags) != BINARY_NONE);
    int c = chain && late_is(chain, LATE_C, 0);
    uint32_t a_space = vrow ? SPACE_ACCUMULATOR : FLAG(VECTOR_A_SPACE, flags), b_space = FLAG(VECTOR_B_SPACE, flags);
    uint32_t c_space = b_space == SPACE_ACCUMULATOR ? SPACE_SCRATCHPAD : SPACE_ACCUMULATOR;
    uint32_t out_space = has(WORD_TYPES, FLAG(VECTOR_OUT, flags)) ? SPACE_ACCUMULATOR : SPACE_SCRATCHPAD;
    const uint8_t unused[READ_OPERANDS] = {splat, !b, !c};
    memcpy(r->unused, unused, sizeof unused);
    memcpy(r->skip, unused, sizeof unused);
    r->writes = !vrow && !(chain && chain->silent);
    r->backwards = (int32_t)params[PARAM_OUT_STRIDE] < 0;
    vector_walk_start(r, WALK_A, !splat, a_space, command->a, params[PARAM_A_STRIDE]);
    vector_walk_start(r, WALK_B, b, b_space, params[PARAM_B_ROW], params[PARAM_B_STRIDE]);
    vector_walk_start(r, WALK_C, c, c_space, params[PARAM_C_ROW], params[PARAM_C_STRIDE]);
    vector_walk_start(r, WALK_OUT, r->writes, out_space, command->b, params[PARAM_OUT_STRIDE]);
    in_flight_begin(flight, command->b);
    r->outside = r->broadcasts = 0;
    for (int k = 0; k < VECTOR_WALKS; ++k) r->outside |= vector_walk_outside(r, k);
    for (int k = 0; k < READ_OPERANDS; ++k) {
        r->ports[k] = (r->spaces[k] == SPACE_ACCUMULATOR ? ACCUMULATOR_A : SCRATCHPAD_A) + (k != WALK_A);
        r->broadcast[k] = k != WALK_A && chain && late_is(chain, k == WALK_B ? LATE_B : LATE_C, 1);
        r->broadcasts |= r->broadcast[k];
        vector_reads_look(r, k, flight);
    }
    r->part = r->served = r->some_read = 0;
    r->left = command->c - 1;
    r->last = vrow || command->c == 1;
}

// A part is asked for: `valid` of the ports, and `row`.
static inline void vector_reads_outputs(VectorReads* r, uint32_t* valid, uint32_t* row, const uint32_t* ready) {
    int every = 1;
    for (int k = 0; k < READ_OPERANDS; ++k) {
        if (r->skip[k]) continue;
        int port = r->ports[k];
        valid[port] = 1;
        row[port] = r->rows[k];
        every &= ready[port];
    }
    r->advance = every;
    r->row_advance = every && r->part == ROW_PARTS - 1;
}

static inline void vector_reads_follow(VectorReads* r, VectorInFlight* flight) {
    r->last = --r->left == 0;
    int serves = r->broadcasts && ++r->served == N;
    if (serves) r->served = 0;
    uint32_t outside = 0;
    for (int k = 0; k < VECTOR_WALKS; ++k) {
        r->rows[k] += r->strides[k];
        outside |= r->rows[k] >= r->limits[k];
    }
    r->outside = outside;
    if (r->broadcasts && !serves) {
        r->outside = 0;
        for (int k = 0; k < VECTOR_WALKS; ++k) {
            if (k < READ_OPERANDS && r->broadcast[k]) r->rows[k] -= r->strides[k];
            r->outside |= vector_walk_outside(r, k);
        }
    }
    if (!flight->earlier) return;
    for (int k = 0; k < READ_OPERANDS; ++k) vector_reads_look(r, k, flight);
}

// A clock edge, in a cycle in which a part was asked for.
static inline void vector_reads_tick(VectorReads* r, const uint32_t* ready, VectorInFlight* flight) {
    if (!r->advance) {
        r->some_read = 1;
        for (int k = 0; k < READ_OPERANDS; ++k) r->skip[k] |= ready[r->ports[k]];
        return;
    }
    if (r->some_read) memcpy(r->skip, r->unused, sizeof r->skip);
    r->some_read = 0;
    r->part = r->row_advance ? 0 : r->part + 1;
    if (!r->row_advance) return;
    if (!r->last) vector_reads_follow(r, flight);
    else if (r->writes) in_flight_last(flight, r->rows[WALK_OUT], r->spaces[WALK_OUT], r->backwards);
}

// The first row that is outside.
static inline uint32_t vector_reads_address(const VectorReads* r) {
    int k = WALK_A;
    while (!vector_walk_outside(r, k)) ++k;
    return r->rows[k];
}
