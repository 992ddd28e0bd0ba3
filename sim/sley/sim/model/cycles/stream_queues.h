// Twins of the queues of streams: how many items are where. The items are in a ring of the user, in their order.
#pragma once

#include <stdint.h>

// sley.hw.stream.fifo.StreamFIFO: items in its memory, and whether one is in its output register.
typedef struct Fifo {
    uint32_t memory, valid;
} Fifo;

static inline int fifo_empty(const Fifo* f) { return !(f->memory | f->valid); }

static inline void fifo_tick(Fifo* f, uint32_t push, uint32_t ready) {
    uint32_t open = !f->valid | ready, fetch = open & (f->memory != 0);
    f->valid = open ? fetch : 1;
    f->memory += push - fetch;
}

// sley.hw.stream.buffer.StreamBuffer: offers an item if it has one, takes one if it has less than two.
enum { BUFFER = 2 };
