// The twin of sley.hw.core.load.permute: the rows of a LOAD that interleaves or transposes.
#pragma once

#include "abi.h"
#include "transposer.h"

enum { INTERLEAVES = ELEMENTS == 2, ROW_LOOPS = INTERLEAVES ? 3 : 2, FLAG_INTERLEAVE = 1, FLAG_TRANSPOSE = 2 };

typedef struct Permute {
    uint32_t flags, i_valid, i_last, i_tag, i_ready, o_valid, o_ready, last, tag, complete, idle;
    Transposer blocks, halves;
} Permute;

static void permute_reset(Permute* p) {
    transposer_reset(&p->blocks, (uint32_t[]){N, TRANSPOSE_CHUNKS});
    transposer_reset(&p->halves, (uint32_t[]){2, INTERLEAVE_CHUNKS});
    transposer_outputs(&p->blocks);
    transposer_outputs(&p->halves);
}

// Of the two, one that the flags do not ask for is empty.
static inline void permute_outputs(Permute* p) {
    Transposer *blocks = &p->blocks, *halves = &p->halves;
    uint32_t interleave = INTERLEAVES ? p->flags & FLAG_INTERLEAVE : 0;
    uint32_t transpose = INTERLEAVES ? p->flags & FLAG_TRANSPOSE : FLAG_TRANSPOSE;
    if (interleave) transposer_outputs(halves);
    if (transpose) transposer_outputs(blocks);
    const Transposer *first = interleave ? halves : blocks, *behind = transpose ? blocks : halves;
    const PieceTags* out = &behind->out;
    p->i_ready = first->i_ready;
    p->o_valid = behind->o_valid;
    p->tag = out->tag;
    p->complete = first->complete | behind->complete;
    p->idle = first->idle & behind->idle;
    if (!INTERLEAVES)
        p->last = out->row_end | out->block_end << 1;
    else if (!transpose)
        p->last = out->row_end | out->block_end << 1 | 4;
    else if (interleave)
        p->last = out->row_end | out->middle | out->row_end << 1 | out->block_end << 2;
    else
        p->last = out->row_end | 2 | out->block_end << 2;
}

static inline void permute_tick(Permute* p) {
    Transposer *blocks = &p->blocks, *halves = &p->halves;
    int transpose = !INTERLEAVES || p->flags & FLAG_TRANSPOSE, interleave = INTERLEAVES && p->flags & FLAG_INTERLEAVE;
    if (transpose) {
        blocks->i_valid = interleave ? halves->o_valid : p->i_valid;
        blocks->i_last = interleave ? halves->out.block_end : p->i_last;
        blocks->i_tag = interleave ? halves->out.tag : p->i_tag;
        blocks->o_ready = p->o_ready;
    }
    if (interleave) {
        halves->i_valid = p->i_valid;
        halves->i_last = p->i_last;
        halves->i_tag = p->i_tag;
        halves->o_ready = transpose ? blocks->i_ready : p->o_ready;
        transposer_tick(halves);
    }
    if (transpose) transposer_tick(blocks);
}

static inline void permute_clear(Permute* p) {
    transposer_clear(&p->blocks);
    transposer_clear(&p->halves);
    transposer_outputs(&p->blocks);
    transposer_outputs(&p->halves);
}
