// What normal forms are made of.
#pragma once

#include "addresses.h"

#define FORGET(place) memset(&(place), 0, sizeof(place))

// The items of a ring from the oldest on, and nothing behind them.
static inline void ring_normal(void* items, size_t size, uint32_t ring, uint32_t first, uint32_t end) {
    uint8_t turned[ring * size];
    memset(turned, 0, sizeof turned);
    for (uint32_t n = first; n != end; ++n)
        memcpy(turned + (n - first) % ring * size, (uint8_t*)items + n % ring * size, size);
    memcpy(items, turned, sizeof turned);
}

#define RING_NORMAL(items, first, end) ring_normal(items, sizeof *(items), sizeof(items) / sizeof *(items), first, end)

static inline void queue_normal(Queue* q) { q->end -= q->first, q->first = 0; }

// Bytes behind the last member of a struct, which hold anything.
#define PADDING_NORMAL(place, last)                                                                             \
    memset((uint8_t*)&(place).last + sizeof (place).last, 0,                                                    \
           (uint8_t*)(&(place) + 1) - ((uint8_t*)&(place).last + sizeof (place).last))

#define BUFFER_NORMAL(b)                    \
    do {                                    \
        if (!(b).here) FORGET((b).item);    \
        if (!(b).full) FORGET((b).spare);   \
    } while (0)
