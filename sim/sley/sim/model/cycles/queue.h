// The twins of sley.hw.stream.fifo, prefetch and buffer: which items of a queue are where. Their contents are the user's.
#pragma once

#include "twin.h"

// Of a queue of up to ``depth`` items in memory: `first` counts those that left, `end` those that came, for an index into
// a ring that holds two more, whose length is a power of 2.
typedef struct Queue {
    uint32_t first, end, depth, count;  // count: in the memory
    uint32_t here, ahead;               // an item is at the output; one is in the register of the memory
} Queue;

static inline int queue_ready(const Queue* q) { return q->count < q->depth; }
static inline int queue_empty(const Queue* q) { return q->first == q->end; }

// StreamFIFO
static inline void queue_tick(Queue* q, uint32_t comes, uint32_t leaves) {
    uint32_t fetch = q->count && (!q->here || leaves);
    if (!q->here || leaves) q->here = fetch;
    q->count += comes - fetch;
    q->first += leaves;
    q->end += comes;
}

// PrefetchFIFO
static inline void prefetch_tick(Queue* q, uint32_t comes, uint32_t leaves) {
    uint32_t some = q->count != 0, moves = !q->here || leaves, fetch = some && (!q->ahead || moves);
    if (moves) {
        q->here = q->ahead || some;
        q->ahead = q->ahead && some;
    } else if (some) {
        q->ahead = 1;
    }
    q->count += comes - fetch;
    q->first += leaves;
    q->end += comes;
}

// A StreamBuffer of any type of item: `item` is at its output if one is `here`, another one is behind it if not `ready`.
// _slot: where an item that comes in this cycle is to be put; _moves: a clock edge, once it is there.
#define STREAM_BUFFER(Item, Name)                                                     \
    typedef struct Name {                                                             \
        Item item, spare;                                                             \
        uint32_t here, full;                                                          \
    } Name;                                                                           \
    static inline Item* Name##_slot(Name* b, uint32_t ready) {                        \
        return b->here && !ready ? &b->spare : &b->item;                              \
    }                                                                                 \
    static inline void Name##_moves(Name* b, uint32_t comes, uint32_t ready) {        \
        if (b->here && !ready) {                                                      \
            b->full |= comes;                                                         \
        } else if (b->full) {                                                         \
            b->item = b->spare;                                                       \
            b->full = 0;                                                              \
        } else {                                                                      \
            b->here = comes;                                                          \
        }                                                                             \
    }                                                                                 \
    static inline void Name##_tick(Name* b, uint32_t comes, Item item, uint32_t ready) { \
        if (comes && !b->full) *Name##_slot(b, ready) = item;                         \
        Name##_moves(b, comes, ready);                                                \
    }
