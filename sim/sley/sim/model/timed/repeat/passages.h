// Moments that were, each once, and the passages from one to another.
#pragma once

#include "normal.h"

enum { MOMENTS = 1 << 12, MOMENT_SLOTS = 1 << 14, MOMENT_PASSAGES = 8, PASSAGE_STEPS = 1 << 14 };

// What counters of a chip have counted.
typedef struct Counted {
    uint32_t classes[CLASS_GROUPS][GROUP_COUNTERS], sums[AMOUNT_GROUPS][GROUP_COUNTERS];
    uint32_t bus_classes[CLASS_GROUPS][GROUP_COUNTERS], bus_sums[AMOUNT_GROUPS][GROUP_COUNTERS];
    uint32_t progress;
} Counted;

typedef struct Passage {
    struct Past* to;
    uint64_t cycles;
    uint32_t steps;
    Step* step;
    Counted counted;
} Passage;

typedef struct Past {
    uint64_t hash;
    uint32_t program;  // its number
    Follower follower;
    Moment* moment;
    Passage passages[MOMENT_PASSAGES];
    uint32_t count;
} Past;

typedef struct Program {
    uint32_t words;
    Instruction* text;
} Program;

typedef struct Passages {
    Past* slots[MOMENT_SLOTS];
    uint32_t count, programs;
    Program* program;
} Passages;

static inline uint64_t bytes_hash(const void* bytes, size_t size) {
    const uint8_t* p = bytes;
    uint64_t lanes[4] = {1, 2, 3, 4}, word[4];
    size_t at = 0;
    for (; at + sizeof word <= size; at += sizeof word) {
        memcpy(word, p + at, sizeof word);
        for (int k = 0; k < 4; ++k) lanes[k] = (lanes[k] ^ word[k]) * 0x9E3779B97F4A7C15ull, lanes[k] ^= lanes[k] >> 29;
    }
    for (; at < size; ++at) lanes[0] = (lanes[0] ^ p[at]) * 0x9E3779B97F4A7C15ull;
    uint64_t hash = lanes[0] + 3 * lanes[1] + 5 * lanes[2] + 7 * lanes[3];
    return hash ^ hash >> 32;
}

// The number of a program, by its text.
static inline uint32_t passages_program(Passages* p, const Instruction* text, uint32_t words) {
    for (uint32_t k = 0; k < p->programs; ++k)
        if (p->program[k].words == words && !memcmp(p->program[k].text, text, words * sizeof *text)) return k;
    p->program = realloc(p->program, (p->programs + 1) * sizeof *p->program);
    Instruction* kept = malloc(words * sizeof *text);
    if (!p->program || !kept) abort();
    memcpy(kept, text, words * sizeof *text);
    p->program[p->programs] = (Program){words, kept};
    return p->programs++;
}

// The moment with this normal form, or where it would be; `scratch`: for normal forms of others.
static inline Past** passages_find(Passages* p, const Moment* normal, uint64_t hash, uint32_t program, Moment* scratch) {
    Past** slot = &p->slots[hash % MOMENT_SLOTS];
    size_t size = moment_bytes(normal);
    while (*slot) {
        Past* past = *slot;
        if (past->hash == hash && past->program == program && moment_bytes(past->moment) == size) {
            memcpy(scratch, past->moment, size);
            moment_normal(scratch, &past->follower);
            if (!memcmp(scratch, normal, size)) return slot;
        }
        if (++slot == p->slots + MOMENT_SLOTS) slot = p->slots;
    }
    return slot;
}

static inline void passages_forget(Passages* p) {
    for (uint32_t k = 0; k < MOMENT_SLOTS; ++k) {
        Past* past = p->slots[k];
        for (uint32_t n = 0; past && n < past->count; ++n) free(past->passages[n].step);
        if (past) free(past->moment);
        free(past);
    }
    for (uint32_t k = 0; k < p->programs; ++k) free(p->program[k].text);
    free(p->program);
    free(p);
}
