// The twin of sley.hw.mmu.walker, a part of that of the gateway.
#pragma once

#include "flit.h"
#include "queue.h"

enum { WALKER_RING = CORES < 14 ? 16 : 128 };
enum { WALKER_IDLE, WALKER_ROOT, WALKER_ASK, WALKER_RECEIVE, WALKER_LOOK, WALKER_ANSWER };

typedef struct Root {
    uint32_t mode, page;
} Root;

typedef struct Walker {
    Root roots[CONTEXTS];
    Queue waiting;
    Flit ring[WALKER_RING];
    uint32_t state, lower, table, word, lost, answer;
    Root root;
} Walker;

static void walker_reset(Walker* w) {
    w->waiting = (Queue){.depth = 1 + CORES};
    w->state = WALKER_IDLE;
}

// The walk in progress.
static inline const Flit* walker_head(const Walker* w) { return &w->ring[w->waiting.first & WALKER_RING - 1]; }

// Address of the entry that is read.
static inline uint32_t walker_entry(const Walker* w) {
    uint32_t page = walker_head(w)->addr >> PAGE_BITS;
    uint32_t index = w->lower ? page & (1u << TABLE_BITS) - 1 : page >> TABLE_BITS;
    return w->table << PAGE_BITS | index * ENTRY_BYTES;
}

static inline uint32_t walk_answer(uint32_t valid, uint32_t rights, uint32_t large, uint32_t page) {
    return valid << ANSWER_VALID_AT | rights << ANSWER_READ_AT | large << ANSWER_LARGE_AT | page << ANSWER_PAGE_AT;
}

static inline void walker_look(Walker* w) {
    uint32_t word = w->word, rights = word >> ENTRY_READ_AT & 7, page = ENTRY_PAGE(word);
    uint32_t sound = ENTRY_VALID(word) && !(word & ~PAGE_ENTRY_MASK) && !w->lost &&
                     (uint64_t)page << PAGE_BITS < ADDRESS_LIMIT;
    uint32_t aligned = !(page & (1u << TABLE_BITS) - 1);
    w->answer = walk_answer(sound && (w->lower || aligned), rights, !w->lower, page);
    w->state = WALKER_ANSWER;
    if (!w->lower && sound && !rights) {
        w->lower = 1;
        w->table = page;
        w->state = WALKER_ASK;
    }
}

// `asked`, `answered`: its request and its answer pass; `word`: the entry, if an answer `arrives`.
static void walker_tick(Walker* w, uint32_t comes, const Flit* head, uint32_t asked, uint32_t answered, uint32_t arrives,
                        uint32_t word, uint32_t error) {
    if (w->state == WALKER_IDLE) {
        if (w->waiting.here) {
            uint32_t context = walker_head(w)->context;
            w->root = context < CONTEXTS ? w->roots[context] : (Root){0};
            w->state = WALKER_ROOT;
        }
    } else if (w->state == WALKER_ROOT) {
        w->table = w->root.page;
        w->lower = 0;
        uint32_t large = walker_head(w)->addr >> PAGE_BITS + TABLE_BITS << TABLE_BITS;
        w->answer = walk_answer(w->root.mode == MODE_PHYSICAL, 7, 1, large);
        w->state = w->root.mode == MODE_PAGED ? WALKER_ASK : WALKER_ANSWER;
    } else if (w->state == WALKER_ASK) {
        if (asked) w->state = WALKER_RECEIVE;
    } else if (w->state == WALKER_RECEIVE) {
        if (arrives) {
            w->word = word;
            w->lost = error != ERROR_NONE;
            w->state = WALKER_LOOK;
        }
    } else if (w->state == WALKER_LOOK) {
        walker_look(w);
    } else if (answered) {
        w->state = WALKER_IDLE;
    }
    if (comes) w->ring[w->waiting.end & WALKER_RING - 1] = *head;
    queue_tick(&w->waiting, comes, answered);
}
