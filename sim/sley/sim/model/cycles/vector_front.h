// The twin of the front of sley.hw.core.vector.unit, of decoded and chain_table: the command at hand, up to where it leaves.
#pragma once

#include "vector_kind.h"

typedef enum VectorState { VECTOR_NONE, VECTOR_CHECK, VECTOR_DECODE, VECTOR_REFUSE } VectorState;

typedef struct VectorFront {
    UnitCommand command;
    VectorKind kind;
    VectorState state;
    uint32_t params[PARAMS], chains[CHAINS + 1][CHAIN_WORDS];
    uint32_t flags;  // of the command that began last
    Chain chain;
    uint8_t chain_legal, cleared;  // the table of chains was, a cycle ago
    uint8_t bad;    // a SET or a VFOLD is a fault
    uint8_t same;   // the flags are those of the command that began last
    uint8_t keeps;  // what the lanes do is what the last VECTOR asked for, and nothing else was asked for since

    // In this cycle: the command is done; begins to read rows, alike those before, begins a fold; a SET is done.
    uint8_t done, rows, alike, fold, sets;
} VectorFront;

static inline const Chain* vector_front_chain(const VectorFront* f) { return f->kind.chained ? &f->chain : 0; }

static inline int vector_set_is_bad(uint32_t param, uint32_t value) {
    if (!CHAINS || param < CHAIN_PARAM) return set_is_bad(UNIT_VECTOR, param, value);
    uint32_t chain = (param - CHAIN_PARAM) / WORDS_KEPT, word = (param - CHAIN_PARAM) % WORDS_KEPT;
    return !chain || chain > CHAINS || word >= CHAIN_WORDS || value & ~chain_masks[word];
}

// Whether a parameter says which rows there are, and nothing of what the lanes do.
static inline int vector_param_is_walked(uint32_t param) {
    return param == PARAM_A_STRIDE || param == PARAM_B_ROW || param == PARAM_B_STRIDE || param == PARAM_OUT_STRIDE ||
           param == PARAM_C_ROW || param == PARAM_C_STRIDE;
}

static inline void vector_front_decode(VectorFront* f) {
    uint32_t flags = f->command.flags;
    f->chain_legal = chain_decode(f->chains[FLAG(VECTOR_CHAIN, flags)], &f->chain) && vector_chain_is_legal(&f->chain, flags);
}

static inline void vector_front_take(VectorFront* f, const UnitCommand* command) {
    uint32_t flags = command->flags;
    f->command = *command;
    f->kind = vector_kind(command);
    f->same = flags == f->flags;
    f->state = VECTOR_CHECK;
    f->bad = f->kind.set ? vector_set_is_bad(FLAG(SET_PARAM, flags), command->a)
                         : f->kind.vfold && !(has(FOLDS, FLAG(VFOLD_REDUCE, flags)) && has(WORD_TYPES, FLAG(VFOLD_DTYPE, flags)));
}

// `room`: a signal set may wait; `follows`: all rows of commands before are read; `quiet`: and nothing of them is in the
// lanes; `counts`: what those do begins anew with each command.
static inline void vector_front_outputs(VectorFront* f, int room, int some, int follows, int quiet, int counts) {
    f->done = f->rows = f->fold = f->sets = 0;
    if (f->state == VECTOR_NONE) return;
    const VectorKind* kind = &f->kind;
    f->alike = follows && kind->vector && f->keeps && f->same && !counts;
    int begins = room && (quiet | f->alike);
    if (f->state == VECTOR_REFUSE) f->done = !some;
    else if (f->state == VECTOR_DECODE) {
        f->done = f->chain_legal && kind->empty && room;
        f->rows = f->chain_legal && !kind->empty && begins;
    } else if (kind->set) {
        f->sets = room;
        f->done = room && !f->bad;
    } else if (kind->refused || (CHAINS && kind->chained)) {
    } else if (kind->vfold) f->done = f->fold = room && quiet && !f->bad;
    else if (kind->runs) f->rows = begins;
    else f->done = room;
}

// A clock edge, but for the command that comes.
static inline void vector_front_tick(VectorFront* f) {
    const VectorKind* kind = &f->kind;
    uint32_t param = FLAG(SET_PARAM, f->command.flags);
    if (f->sets && !f->bad) {
        if (param >= CHAIN_PARAM) f->chains[(param - CHAIN_PARAM) / WORDS_KEPT][param % WORDS_KEPT] = f->command.a;
        else f->params[param] = f->command.a;
    }
    if (f->fold | (f->rows && !f->alike)) f->keeps = f->rows && kind->vector;
    if (CHAINS && f->sets && !vector_param_is_walked(param)) f->keeps = 0;
    if (f->rows) f->flags = f->command.flags;
    if (f->done | f->rows) {
        f->state = VECTOR_NONE;
    } else if (f->state == VECTOR_CHECK) {
        if (f->kind.set | f->kind.vfold ? f->bad : f->kind.refused) {
            f->state = VECTOR_REFUSE;
        } else if (CHAINS && kind->chained) {
            f->state = VECTOR_DECODE;
            vector_front_decode(f);
        }
    } else if (f->state == VECTOR_DECODE) {
        if (!f->chain_legal) f->state = VECTOR_REFUSE;
        else if (f->cleared) vector_front_decode(f);
    }
    f->cleared = 0;
}

// Parameters and chains take the values of a block that begins.
static inline void vector_front_clear(VectorFront* f) {
    params_reset(f->params);
    memset(f->chains, 0, sizeof f->chains);
    f->cleared = 1;
    f->keeps = 0;
}

static inline void vector_front_abort(VectorFront* f) { f->state = VECTOR_NONE; }
