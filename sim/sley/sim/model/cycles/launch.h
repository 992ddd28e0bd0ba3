// The twin of sley.hw.core.sequencer.launch: the message that starts a block.
#pragma once

#include "abi.h"

// What a block needs from memory, as far as its message is here.
typedef struct Order {
    uint32_t context, program, words, tagged, same, args, fetch_args, arg_words;
} Order;

typedef struct Launch {
    Order order;
    uint32_t before[3];  // sizes, program and tag of this message or, as far as it is not here, of the one before
    uint32_t queue, watchdog, gang, start, inside, position;
} Launch;

// What a flit does in its cycle.
typedef struct Accepted {
    int begin, done, writes;
    uint32_t index;  // of the register that it writes
} Accepted;

static Accepted launch_tick(Launch* l, int accepted, uint32_t word, uint32_t last, uint32_t head_address) {
    Accepted a = {0};
    l->start = 0;
    if (!accepted) return a;
    if (!l->inside) {
        a.begin = 1;
        l->inside = !last;
        l->position = 0;
        l->watchdog = head_address;
        l->order.same = 1;
        return a;
    }
    uint32_t position = l->position++;
    a.done = last;
    l->inside = !last;
    l->start = position == LAUNCH_ARGS || (position == LAUNCH_TAG && !l->order.fetch_args);
    if (position >= LAUNCH_BLOCK_X) {
        a.writes = 1;
        a.index = position > LAUNCH_GRID_Z ? position - LAUNCH_WORDS + ARG_REGISTER
                                           : position - LAUNCH_BLOCK_X + BLOCK_REGISTER;
    }
    if (position == LAUNCH_ARGS) l->order.args = word;
    if (position > LAUNCH_TAG) return a;
    // Of the sizes, only what belongs to a program counts.
    uint32_t old = l->before[0], equal = word == old;
    if (position == LAUNCH_SIZES) {
        equal = SIZES_PROGRAM_WORDS(word) == SIZES_PROGRAM_WORDS(old) && SIZES_CONTEXT(word) == SIZES_CONTEXT(old);
        l->order.fetch_args = SIZES_ARG_WORDS(word) > INLINE_ARGS;
        l->order.context = SIZES_CONTEXT(word);
        l->queue = SIZES_QUEUE(word);
        l->gang = SIZES_GANG(word);
    }
    l->order.same &= equal;
    l->before[0] = l->before[1], l->before[1] = l->before[2], l->before[2] = word;
    if (position == LAUNCH_TAG) {
        l->order.tagged = word != 0;
        if (!l->order.fetch_args) l->position = LAUNCH_BLOCK_X;
    }
    l->order.words = SIZES_PROGRAM_WORDS(l->before[0]);
    l->order.arg_words = SIZES_ARG_WORDS(l->before[0]);
    l->order.program = l->before[1];
    return a;
}
