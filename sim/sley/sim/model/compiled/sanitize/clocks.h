// What comes before what: vector clocks of the agents of a core.
//
// A unit's instruction begins behind those before it in its queue, behind its dispatch, and behind the signals that it
// waits for. Of the instructions before it in the queue it comes after the end; but WEIGHTS does so only of WEIGHTS, as
// the MATMULs before it may still stream.
//
// A wait takes one of the tokens of a semaphore, and which one may depend on time: all that holds for sure after k waits
// is that k signals have happened. So each component of the clocks is kept in order, and a wait takes the least of each.
#pragma once

#include "report.h"

static void join(Clock* to, const Clock* from) {
    for (int a = 0; a < AGENTS; ++a)
        if (from->at[a] > to->at[a]) to->at[a] = from->at[a];
}

static void clocks_begin_block(Core* core) {
    Sanitizer* s = core->sanitizer;
    ++s->block;
    memset(s->base, 0, sizeof s->base);
    memset(s->executed, 0, sizeof s->executed);
    memset(s->registers, 0, sizeof s->registers);
    s->weights = (Weights){0};
}

// The command that the sequencer has just put into the queue of a unit.
static void clocks_dispatch(Core* core, uint32_t unit) {
    const Queue* queue = &core->queues[unit];
    core->sanitizer->dispatched[unit][(queue->first + queue->count - 1) % UNIT_QUEUE] =
        core->sanitizer->base[UNIT_SEQUENCER];
}

// The semaphores of the mask have been taken.
static void clocks_take(Core* core, uint32_t unit, uint32_t mask) {
    Sanitizer* s = core->sanitizer;
    for (; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        join(&s->base[unit], &s->tokens[i][0]);
        memmove(&s->tokens[i][0], &s->tokens[i][1], core->semaphores[i] * sizeof(Clock));
    }
}

// The semaphores of the mask have been given.
static void clocks_give(Core* core, uint32_t unit, uint32_t mask) {
    Sanitizer* s = core->sanitizer;
    const Clock* clock = unit == UNIT_SEQUENCER ? &s->base[unit] : &s->signalling[unit];
    for (; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        s->signal_pc[i] = unit == UNIT_SEQUENCER ? core->pc : s->pcs[unit];
        for (int a = 0; a < AGENTS; ++a) {
            int k = core->semaphores[i] - 1;
            for (; k && s->tokens[i][k - 1].at[a] > clock->at[a]; --k) s->tokens[i][k].at[a] = s->tokens[i][k - 1].at[a];
            s->tokens[i][k].at[a] = clock->at[a];
        }
    }
}

// An instruction is about to execute.
static void clocks_execute(Core* core, uint32_t unit, const Command* command) {
    Sanitizer* s = core->sanitizer;
    join(&s->base[unit], &s->dispatched[unit][core->queues[unit].first]);
    s->unit = unit, s->pc = s->pcs[unit] = command->pc;
    s->agent = WORD_OP(command->word) == OP_WEIGHTS ? AGENT_WEIGHTS : unit;
    s->now = s->base[unit];
    s->now.at[s->agent] = ++s->executed[s->agent];
    if (s->agent == UNIT_MATRIX) s->now.at[AGENT_WEIGHTS] = s->executed[AGENT_WEIGHTS];
    s->signalling[unit] = s->now;
}
