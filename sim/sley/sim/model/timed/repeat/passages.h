// Moments that were, each once, and the passages from one to another.
#pragma once

#include "normal.h"

enum { MOMENTS = 1 << 15, MOMENT_SLOTS = 1 << 16, MOMENT_PASSAGES = 32, PASSAGE_STEPS = 1 << 14 };

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
    uint32_t commands[UNITS_BEHIND];  // of each unit, that came to the output of its queue, in this order in
    Handed* command;
    uint32_t stays[UNITS_BEHIND];  // the last of them is there still
    Counted counted;
    struct Passage* other;  // from the same moment
    uint32_t progressed, watchdog;  // a unit retired a command; what the watchdog had left then
} Passage;

typedef struct Past {
    uint64_t hash;
    uint32_t program;   // its number
    uint32_t watchdog;  // as in the normal form
    size_t end;         // of its bytes
    uint64_t* words;    // in which it differs from the first moment of all, as runs of them
    Passage* passages;
    uint32_t count;
} Past;

typedef struct Program {
    uint32_t words;
    Instruction* text;
} Program;

typedef struct Passages {
    Past* slots[MOMENT_SLOTS];
    Moment* first;
    uint32_t count, programs;
    Program* program;
} Passages;

static inline uint64_t moment_hash(const Moment* m) {
    MomentPart parts[MOMENT_PARTS];
    uint64_t lanes[4] = {1, 2, 3, 4}, word[4];
    moment_parts(m, parts);
    for (int part = 0; part < MOMENT_PARTS; ++part) {
        const uint8_t *p = (const uint8_t*)m + parts[part].begin, *end = (const uint8_t*)m + parts[part].end;
        for (; p + sizeof word <= end; p += sizeof word) {
            memcpy(word, p, sizeof word);
            for (int k = 0; k < 4; ++k) lanes[k] = (lanes[k] ^ word[k]) * 0x9E3779B97F4A7C15ull, lanes[k] ^= lanes[k] >> 29;
        }
        for (; p < end; ++p) lanes[0] = (lanes[0] ^ *p) * 0x9E3779B97F4A7C15ull;
    }
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

enum { MOMENT_WORDS = sizeof(Moment) / sizeof(uint64_t) };

static inline Past* past_write(Passages* p, const Moment* m) {
    uint64_t packed[2 * MOMENT_WORDS + 1];
    MomentPart parts[MOMENT_PARTS];
    Past* past = calloc(1, sizeof *past);
    uint32_t end = 0;
    if (!p->first) moment_copy(p->first = calloc(1, sizeof *p->first), m);
    moment_parts(m, parts);
    parts[0].begin = 0;
    past->end = parts[1].end;
    const uint64_t *x = (const uint64_t*)p->first, *y = (const uint64_t*)m;
    for (int part = 0; part < MOMENT_PARTS; ++part) {
        uint32_t last = parts[part].end / sizeof *x;
        for (uint32_t k = parts[part].begin / sizeof *x; k < last; ++k) {
            if (x[k] == y[k]) continue;
            uint32_t head = end++;
            packed[head] = k;
            for (; k < last && x[k] != y[k]; ++k) packed[end++] = y[k];
            packed[head] |= (uint64_t)(end - head - 1) << 32;
        }
    }
    packed[end++] = 0;
    past->words = malloc(end * sizeof *packed);
    if (!past->words) abort();
    memcpy(past->words, packed, end * sizeof *packed);
    ++p->count;
    return past;
}

static inline void past_read(const Passages* p, const Past* past, Moment* m) {
    MomentPart parts[MOMENT_PARTS];
    moment_parts(p->first, parts);
    parts[0].begin = 0, parts[1].end = past->end;
    for (int k = 0; k < MOMENT_PARTS; ++k) part_copy(m, p->first, parts[k]);
    for (const uint64_t* w = past->words; *w;) {
        uint32_t place = (uint32_t)*w, count = *w >> 32;
        memcpy((uint64_t*)m + place, ++w, count * sizeof *w);
        w += count;
    }
}

// The moment with this normal form, or where it would be; `scratch`: for normal forms of others.
static inline Past** passages_find(Passages* p, const Moment* normal, uint64_t hash, uint32_t program, Moment* scratch) {
    Past** slot = &p->slots[hash % MOMENT_SLOTS];
    while (*slot) {
        Past* past = *slot;
        if (past->hash == hash && past->program == program) {
            past_read(p, past, scratch);
            moment_normal(scratch);
            if (moment_equal(scratch, normal)) return slot;
        }
        if (++slot == p->slots + MOMENT_SLOTS) slot = p->slots;
    }
    return slot;
}

static inline void passages_forget(Passages* p) {
    for (uint32_t k = 0; k < MOMENT_SLOTS; ++k) {
        Past* past = p->slots[k];
        for (Passage* passage = past ? past->passages : 0; passage;) {
            Passage* other = passage->other;
            free(passage->step);
            free(passage->command);
            free(passage);
            passage = other;
        }
        if (past) free(past->words);
        free(past);
    }
    for (uint32_t k = 0; k < p->programs; ++k) free(p->program[k].text);
    free(p->program);
    free(p->first);
    free(p);
}
