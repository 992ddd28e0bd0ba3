// The twin of sley.hw.core.load.transposer: which piece of which block comes and goes.
#pragma once

#include "abi.h"
#include "twin.h"

#define TRANSPOSER_PORTS(IN, OUT)                                                                             \
    IN(i_valid, "i.valid") IN(i_last, "i.payload.last") IN(i_tag, "i.payload.tag") IN(o_ready, "o.ready")    \
    OUT(i_ready, "i.ready") OUT(o_valid, "o.valid") OUT(complete, "complete") OUT(idle, "idle")               \
    OUT(out.tag, "tag?o.valid") OUT(out.row_end, "row_end?o.valid") OUT(out.block_end, "block_end?o.valid")   \
    OUT(out.middle, "middle?o.valid")

typedef struct PiecePlace {
    uint32_t half, row, column;
} PiecePlace;

typedef struct PieceTags {
    uint32_t tag, row_end, block_end, middle;
} PieceTags;

typedef struct Transposer {
    uint32_t i_valid, i_last, i_tag, o_ready, i_ready, o_valid, complete, idle;
    PieceTags out;

    uint32_t size, columns;
    int late;  // a register is behind the banks
    PiecePlace fill, drain;
    uint32_t width[2], tags[2];  // of the block in each half
    uint32_t blocks;             // complete ones that have not left
    uint32_t begun;              // some of a block is here, and not all of it
    uint32_t read;               // a piece is on the outputs of the banks
    PieceTags found;
} Transposer;

static void transposer_reset(Transposer* t, const uint32_t* parameters) {
    memset(t, 0, sizeof *t);
    t->size = parameters[0];
    t->columns = parameters[1];
    t->late = t->size > TRANSPOSER_SMALL;
}

static inline void transposer_outputs(Transposer* t) {
    t->i_ready = t->blocks < 2;
    if (!t->late) {
        t->o_valid = t->read;
        t->out = t->found;
    }
    t->complete = t->blocks || t->read || t->o_valid;
    t->idle = !t->complete && !t->begun;
}

// Whether the piece is the last one of its block.
static inline int place_step(const Transposer* t, PiecePlace* place, int last) {
    if (!last) {
        place->column = (place->column + 1) & (t->columns - 1);
        return 0;
    }
    place->column = 0;
    if (++place->row < t->size) return 0;
    place->row = 0;
    place->half ^= 1;
    return 1;
}

static inline void transposer_tick(Transposer* t) {
    int moves = t->late ? !t->o_valid || t->o_ready : t->o_ready, open = !t->read || moves;
    int fetch = t->blocks && open, arrives = 0, leaves = 0;
    if (t->late && moves) {
        t->o_valid = t->read;
        t->out = t->found;
    }
    if (t->i_valid && t->i_ready) {
        t->width[t->fill.half] = t->fill.column;
        t->tags[t->fill.half] = t->i_tag;
        arrives = place_step(t, &t->fill, t->i_last);
        t->begun = !arrives;
    }
    if (fetch) {
        uint32_t half = t->drain.half, column = t->drain.column, width = t->width[half];
        t->found.tag = t->tags[half];
        t->found.middle = column == width >> 1;
        t->found.row_end = column == width;
        leaves = place_step(t, &t->drain, column == width);
        t->found.block_end = leaves;
    }
    if (open) t->read = fetch;
    t->blocks += arrives - leaves;
}

// What its reset leaves: sizes.
static inline void transposer_clear(Transposer* t) {
    uint32_t sizes[2] = {t->size, t->columns};
    transposer_reset(t, sizes);
}
