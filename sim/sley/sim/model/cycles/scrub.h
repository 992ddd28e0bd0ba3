// The twin of sley.hw.core.scrub: what a block of one context left is cleared before a block of another begins.
#pragma once

#include "unit_front.h"

#define SCRUB_PORTS(IN, OUT)                                                                                        \
    IN(start, "start") IN(context, "context") IN(abort, "abort") IN(invalidate_valid, "invalidate.valid")          \
    IN(invalidate_context, "invalidate.context") IN(invalidate_contents, "invalidate.contents")                    \
    IN(clearing, "clearing") IN(matrix_ready, "matrix.ready") IN(vector_ready, "vector.ready")                     \
    IN(units_idle, "units_idle") OUT(foreign, "foreign") OUT(busy, "busy") OUT(clear, "clear")                     \
    OUT(matrix_valid, "matrix.valid") OUT(matrix.op, "matrix.payload.op?matrix.valid")                             \
    OUT(matrix.c, "matrix.payload.c?matrix.valid") OUT(vector_valid, "vector.valid")                               \
    OUT(vector.op, "vector.payload.op?vector.valid") OUT(vector.flags, "vector.payload.flags?vector.valid")

typedef enum ScrubState { SCRUB_NONE, SCRUB_MEMORIES, SCRUB_WEIGHTS, SCRUB_ROWS, SCRUB_DRAIN } ScrubState;

typedef struct Scrub {
    uint32_t start, context, abort, invalidate_valid, invalidate_context, invalidate_contents, clearing, units_idle;
    uint32_t matrix_ready, matrix_valid, vector_ready, vector_valid, foreign, busy, clear;
    UnitCommand matrix, vector;  // their fields that are not ports are 0

    ScrubState state;
    uint32_t held;  // the context whose data the core holds, if any
    uint8_t holds;
} Scrub;

static void scrub_reset(Scrub* s, const uint32_t* parameters) { memset(s, 0, sizeof *s); }

static void scrub_outputs(Scrub* s) {
    s->foreign = !s->holds || s->held != s->context;
    s->clear = s->state == SCRUB_NONE && s->start && s->foreign;
}

// The commands of a state, and the state itself.
static inline void scrub_go(Scrub* s, ScrubState state) {
    s->state = state;
    s->busy = state != SCRUB_NONE;
    s->matrix_valid = state == SCRUB_WEIGHTS;
    s->vector_valid = state == SCRUB_ROWS;
    if (s->matrix_valid) s->matrix.op = OP_WEIGHTS, s->matrix.c = N;
    if (s->vector_valid) s->vector.op = OP_VROW, s->vector.flags = 1u << VROW_SPLAT_AT - FLAGS_LSB;
}

static void scrub_tick(Scrub* s) {
    if (s->state == SCRUB_NONE && !s->start && !s->invalidate_valid) return;
    int forgets = s->invalidate_valid && s->invalidate_contents && s->invalidate_context == s->held;
    if (s->start) s->holds = 1, s->held = s->context;
    if (forgets || (s->abort && s->busy)) s->holds = 0;
    if (s->clear) {
        scrub_go(s, SCRUB_MEMORIES);
    } else if (s->state == SCRUB_MEMORIES) {
        if (!s->clearing) scrub_go(s, SCRUB_WEIGHTS);
    } else if (s->state == SCRUB_WEIGHTS) {
        if (!s->matrix_ready) return;
        if (s->matrix.op == OP_MATMUL) scrub_go(s, SCRUB_ROWS);
        else s->matrix.op = OP_MATMUL, s->matrix.c = 1;
    } else if (s->state == SCRUB_ROWS) {
        if (!s->vector_ready) return;
        if (FLAG(VROW_ROW, s->vector.flags) == ROW_REGISTERS - 1) scrub_go(s, SCRUB_DRAIN);
        else s->vector.flags += 1u << VROW_ROW_AT - FLAGS_LSB;
    } else if (s->state == SCRUB_DRAIN && s->units_idle) {
        scrub_go(s, SCRUB_NONE);
    }
}
