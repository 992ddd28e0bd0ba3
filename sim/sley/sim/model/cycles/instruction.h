// The twin of sley.hw.core.sequencer.instruction: an instruction with what is decoded of it.
#pragma once

#include "abi.h"

typedef enum Kind { KIND_ILLEGAL, KIND_SIMPLE, KIND_UNIT, KIND_BRANCH, KIND_LOOP, KIND_END, KIND_SYNC, KIND_MULTIPLY } Kind;

typedef struct Instruction {
    uint32_t low, imm, wait, signal, flags;  // low: the first 32 bits
    uint8_t op, kind, immediate, unit, rd, ra, rb, rc;
} Instruction;

static Instruction decoded(const uint32_t* words) {
    Word w = 0;
    for (int k = INSTRUCTION_BYTES / 4; k--;) w = w << 32 | words[k];
    Instruction i = {(uint32_t)w, WORD_IMM(w), WORD_WAIT(w), WORD_SIGNAL(w), WORD_FLAGS(w), WORD_OP(w)};
    const Format* format = &formats[i.op];
    i.rd = WORD_RD(w), i.ra = WORD_RA(w), i.rb = WORD_RB(w), i.rc = WORD_RC(w);
    i.immediate = WORD_USE_IMM(w) ? format->immediate : IMM_NONE;
    i.unit = i.op == OP_SET ? SET_UNIT(w) : format->unit;
    int legal = format->known && !((uint64_t)w & ~format->low) && !((uint64_t)(w >> 64) & ~format->high);
    i.kind = i.op == OP_SET && (i.unit == UNIT_SEQUENCER || i.unit > UNIT_VECTOR) ? KIND_ILLEGAL
             : !legal                                                              ? KIND_ILLEGAL
             : i.op == OP_SET || format->unit != UNIT_SEQUENCER                    ? KIND_UNIT
             : format->branch                                                      ? KIND_BRANCH
             : i.op == OP_LOOP                                                     ? KIND_LOOP
             : i.op == OP_END                                                      ? KIND_END
             : i.op == OP_SYNC && (i.wait || i.signal)                             ? KIND_SYNC
             : i.op == OP_MUL                                                      ? KIND_MULTIPLY
                                                                                   : KIND_SIMPLE;
    return i;
}
