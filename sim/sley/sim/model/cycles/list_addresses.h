// The twin of sley.hw.core.list_addresses: addresses of runs by a list of offsets in the accumulators.
#pragma once

#include "abi.h"
#include "queue.h"

// The words of a list decide addresses, so they are a port.
#define LIST_ADDRESSES_PORTS(IN, OUT)                                                                       \
    IN(start, "start") IN(enable, "enable") IN(base, "base") IN(runs, "runs") IN(row, "row")                \
    IN(stride, "stride") IN(o_ready, "o.ready") IN(read_ready, "read.ready") IN(read_data, "read.data")     \
    OUT(o_valid, "o.valid") OUT(o, "o.payload?o.valid") OUT(read_valid, "read.valid")                       \
    OUT(read_row, "read.row?read.valid") OUT(read_part, "read.part?read.valid")

// The port of a unit to its lists, which chips without lists lack.
#define LIST_INPUTS(IN, list) IN(list.read_ready, "~list_read.ready") IN(list.read_data, "~list_read.data")
#define LIST_OUTPUTS(OUT, list)                                                                             \
    OUT(list.read_valid, "~list_read.valid") OUT(list.read_row, "~list_read.row?~list_read.valid")          \
    OUT(list.read_part, "~list_read.part?~list_read.valid")

enum { LIST_QUEUE = 4, LIST_AHEAD = LIST_QUEUE + 1, LIST_RING = 8, LIST_LANES = N * ACCUMULATOR_ROWS };

typedef struct ListAddresses {
    uint32_t start, enable, base, runs, row, stride;
    uint32_t o_valid, o, o_ready, read_valid, read_ready, read_data, read_row, read_part;

    uint32_t place;     // lane and row of the next word
    uint32_t left;      // words of the list behind it
    uint32_t room;
    uint32_t arriving;  // bit k: a word comes in k + 1 cycles
    uint32_t last;      // bit k: it is the last one of the list
    uint32_t slab;      // its address
    Queue queue;
    uint32_t addresses[LIST_RING];
} ListAddresses;

// Whether a list from this row on, of so many runs, ends behind the accumulators.
static inline int list_beyond(uint32_t row, uint32_t runs) { return row * N + runs > LIST_LANES; }

static void list_addresses_reset(ListAddresses* l, const uint32_t* parameters) {
    l->room = LIST_AHEAD;
    l->queue.depth = LIST_QUEUE;
}

static inline void list_addresses_outputs(ListAddresses* l) {
    l->o_valid = l->queue.here;
    l->o = l->addresses[l->queue.first % LIST_RING];
    l->read_valid = l->enable && l->room;
    l->read_row = l->place / N;
    l->read_part = l->place % N;
}

static void list_addresses_start(ListAddresses* l) {
    l->place = l->row * N % LIST_LANES;
    l->left = l->runs - 1;
    l->room = LIST_AHEAD;
    l->arriving = 0;
    l->slab = l->base;
    l->queue = (Queue){.depth = LIST_QUEUE};
}

// Of a unit's command: from its parameters.
static void list_addresses_begin(ListAddresses* l, uint32_t base, uint32_t runs, const uint32_t* params) {
    l->base = base;
    l->runs = runs;
    l->row = params[PARAM_LIST_ROW];
    l->stride = params[PARAM_MEM_STRIDE2];
    list_addresses_start(l);
}

static inline void list_addresses_tick(ListAddresses* l) {
    if (l->start) {
        list_addresses_start(l);
        return;
    }
    uint32_t granted = l->read_valid && l->read_ready, moved = l->o_valid && l->o_ready, comes = l->arriving & 1;
    if (comes) {
        l->addresses[l->queue.end % LIST_RING] = l->slab + l->read_data;
        if (l->last & 1) l->slab += l->stride;
    }
    if (comes | moved | l->queue.count) queue_tick(&l->queue, comes, moved);
    l->arriving = l->arriving >> 1 | granted << (SRAM_READ - 1);
    l->last = l->last >> 1 | (uint32_t)!l->left << (SRAM_READ - 1);
    l->room += moved - granted;
    if (!granted) return;
    if (l->left--) {
        l->place = (l->place + 1) % LIST_LANES;
    } else {
        l->place = l->row * N % LIST_LANES;
        l->left = l->runs - 1;
    }
}
