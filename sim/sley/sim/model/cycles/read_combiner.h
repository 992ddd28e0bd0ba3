// The twin of sley.hw.memory.combine: where loads that cores of a gang share become one read.
#pragma once

#include "arbiter.h"
#include "flit.h"
#include "queue.h"

#define READ_COMBINER_PORTS(IN, OUT)                                                                              \
    IN(i_valid, "i.valid") IN(i.addr, "i.payload.addr") IN(i.beats, "i.payload.beats")                           \
    IN(i.share, "i.payload.share") IN(i.error, "i.payload.error") IN(i_src, "i.payload.src")                     \
    IN(o_ready, "o.ready") IN(ended[0], "ended@0") IN(ended[1], "ended@1") OUT(i_ready, "i.ready")               \
    OUT(o_valid, "o.valid") OUT(o.addr, "o.payload.addr?o.valid") OUT(o.beats, "o.payload.beats?o.valid")        \
    OUT(o.near, "o.payload.near?o.valid") OUT(o.far, "o.payload.far?o.valid") OUT(o.error, "o.payload.error?o.valid")

enum { COMBINER_RING = 2 * READER_BEATS, NO_CORE = 0xFF };

typedef struct SharedRead {
    uint32_t addr;
    uint8_t beats, share, error;
} SharedRead;

// A read for all nodes from `near` to `far`.
typedef struct CombinedRead {
    uint32_t addr;
    uint8_t beats, near, far, error;
} CombinedRead;

STREAM_BUFFER(SharedRead, FrontBuffer)
STREAM_BUFFER(CombinedRead, CombinedBuffer)

typedef struct ReadCombiner {
    SharedRead i;
    CombinedRead o;
    uint32_t i_valid, i_src, i_ready, o_valid, o_ready, ended[2];

    uint8_t node[CORES], core_at[256];
    Queue queues[CORES];
    SharedRead rings[CORES][COMBINER_RING];
    FrontBuffer heads[CORES];  // the oldest read of each core
    CombinedBuffer out;
    Grant grant;
    uint64_t busy, waiting, shared, ready;  // cores that have reads, one at the head, a shared one, one that can go on
    uint64_t granted;                       // for the tick
    uint32_t changed, deadlocked;
} ReadCombiner;

// The state after reset, of the nodes of all cores.
static void read_combiner_clear(ReadCombiner* c) {
    for (uint32_t k = 0; k < CORES; ++k) {
        c->queues[k] = (Queue){.depth = READER_BEATS};
        c->heads[k].here = c->heads[k].full = 0;
    }
    c->out.here = c->out.full = 0;
    grant_reset(&c->grant, CORES);
    c->busy = c->waiting = c->shared = c->ready = c->granted = 0;
    c->changed = c->deadlocked = 0;
}

// parameters: the node of each core
static void read_combiner_reset(ReadCombiner* c, const uint32_t* parameters) {
    memset(c->core_at, NO_CORE, sizeof c->core_at);
    for (uint32_t k = 0; k < CORES; ++k) {
        c->node[k] = parameters[k];
        c->core_at[parameters[k]] = k;
    }
    read_combiner_clear(c);
}

static inline int combiner_same(const ReadCombiner* c, uint32_t a, uint32_t b) {
    const SharedRead *x = &c->heads[a].item, *y = &c->heads[b].item;
    return c->waiting >> b & 1 && x->addr == y->addr && x->beats == y->beats && x->share == y->share && x->error == y->error;
}

// Whether cores `first`, `first` + step, … wait with the same read.
static inline int combiner_alike(const ReadCombiner* c, uint32_t first, uint32_t step, uint32_t count) {
    for (uint32_t k = 0; k < count; ++k)
        if (!combiner_same(c, first, first + k * step)) return 0;
    return 1;
}

// Whether the oldest read of a core can go on, and this core asks for all that share it.
static inline int combiner_can_go(const ReadCombiner* c, uint32_t k) {
    uint32_t share = c->heads[k].item.share, x = k % CORES_X, y = k / CORES_X;
    if (share == SHARE_NONE) return 1;
    if (share == SHARE_ROW) return x == 0 && combiner_alike(c, k, 1, CORES_X);
    if (share == SHARE_COLUMN) return y == 0 && combiner_alike(c, k, CORES_X, CORES_Y);
    if (k) return 0;
    for (uint32_t row = 0; row < CORES_Y; ++row)
        if (!combiner_alike(c, row * CORES_X, 1, CORES_X)) return 0;
    return combiner_alike(c, 0, CORES_X, CORES_Y);
}

static void read_combiner_outputs(ReadCombiner* c) {
    uint32_t core = c->core_at[c->i_src];
    c->i_ready = core != NO_CORE && queue_ready(&c->queues[core]);
    c->o_valid = c->out.here;
    c->o = c->out.item;
    if (c->changed) {
        c->ready = c->shared = c->changed = 0;
        for (uint64_t left = c->waiting; left; left &= left - 1) {
            uint32_t k = __builtin_ctzll(left);
            c->shared |= (uint64_t)(c->heads[k].item.share != SHARE_NONE) << k;
            c->ready |= (uint64_t)combiner_can_go(c, k) << k;
        }
    }
    c->granted = grant_choose(&c->grant, c->deadlocked ? c->waiting : c->ready);
}

// The granted read, and which heads it takes.
static inline CombinedRead combiner_join(const ReadCombiner* c, uint64_t* taken) {
    uint32_t k = __builtin_ctzll(c->granted), share = c->deadlocked ? SHARE_NONE : c->heads[k].item.share;
    uint32_t near = c->node[k], far = near, left = c->node[0], right = c->node[CORES - 1];
    uint32_t low = (1u << COORDINATE_BITS) - 1, high = low << COORDINATE_BITS;
    *taken = 0;
    if (share & SHARE_ROW) near = (near & high) | (left & low), far = (far & high) | (right & low);
    if (share & SHARE_COLUMN) near = (near & low) | (left & high), far = (far & low) | (right & high);
    if (share == SHARE_NONE) *taken = c->granted;
    for (uint64_t others = share ? c->waiting : 0; others; others &= others - 1) {
        uint32_t other = __builtin_ctzll(others);
        uint32_t joins = share == SHARE_ALL || (share == SHARE_ROW ? other / CORES_X == k / CORES_X : other % CORES_X == k);
        if (joins && c->heads[other].item.share == share) *taken |= 1ull << other;
    }
    const SharedRead* read = &c->heads[k].item;
    return (CombinedRead){read->addr, read->beats, near, far, c->deadlocked ? ERROR_BUS : read->error};
}

static void read_combiner_tick(ReadCombiner* c) {
    uint32_t comes = c->i_valid && c->i_ready;
    if (!comes && !c->busy && !c->out.here) {
        c->deadlocked = 0;
        return;
    }
    uint64_t taken = 0, all = c->grant.all, ended = c->ended[0] | (uint64_t)c->ended[1] << 32;
    CombinedRead read = {0};
    uint32_t deadlocked = !c->granted && c->waiting && (c->shared | (ended & ~c->waiting)) == all;
    uint32_t moves = c->granted && !c->out.full;
    if (moves) {
        read = combiner_join(c, &taken);
        grant_moved(&c->grant, c->granted, 1);
    }
    c->deadlocked = deadlocked;
    CombinedBuffer_tick(&c->out, moves, read, c->o_ready);

    uint32_t core = comes ? c->core_at[c->i_src] : NO_CORE;
    if (comes) {
        c->rings[core][c->queues[core].end & COMBINER_RING - 1] = c->i;
        c->busy |= 1ull << core;
    }
    for (uint64_t left = c->busy; left; left &= left - 1) {
        uint32_t k = __builtin_ctzll(left);
        FrontBuffer* head = &c->heads[k];
        Queue* queue = &c->queues[k];
        uint32_t was = head->here, leaves = taken >> k & 1, moves_on = queue->here && !head->full;
        FrontBuffer_tick(head, queue->here, c->rings[k][queue->first & COMBINER_RING - 1], leaves);
        queue_tick(queue, k == core, moves_on);
        if (leaves || head->here != was) c->changed = 1;
        c->waiting = (c->waiting & ~(1ull << k)) | (uint64_t)head->here << k;
        if (!head->here && queue_empty(queue)) c->busy &= ~(1ull << k);
    }
}
