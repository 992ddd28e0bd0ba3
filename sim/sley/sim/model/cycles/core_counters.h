// The twin of sley.hw.counters.core: what the units of a core do, and what moves between the core and memory.
#pragma once

#include "abi.h"
#include "twin.h"

#define CORE_COUNTERS_AMOUNT(IN, which, path) IN(amounts[TRAFFIC_##which], "traffic_amounts." path)

#define CORE_COUNTERS_PORTS(IN, OUT)                                                                                \
    IN(events[GROUP_SEQUENCER], "sequencer_events") IN(events[GROUP_LOAD], "load_events")                          \
    IN(events[GROUP_STORE], "store_events") IN(events[GROUP_MATRIX], "matrix_events")                              \
    IN(events[GROUP_VECTOR], "vector_events") CORE_COUNTERS_AMOUNT(IN, LOAD_BEATS, "load_beats")                   \
    CORE_COUNTERS_AMOUNT(IN, LOAD_BYTES, "load_bytes") CORE_COUNTERS_AMOUNT(IN, STORE_BEATS, "store_beats")        \
    CORE_COUNTERS_AMOUNT(IN, STORE_BYTES, "store_bytes") CORE_COUNTERS_AMOUNT(IN, FETCH_BEATS, "fetch_beats")      \
    CORE_COUNTERS_AMOUNT(IN, SCRATCHPAD_WEIGHTS, "scratchpad_weights")                                             \
    CORE_COUNTERS_AMOUNT(IN, SCRATCHPAD_VECTOR_A, "scratchpad_vector_a")                                           \
    CORE_COUNTERS_AMOUNT(IN, SCRATCHPAD_VECTOR_B, "scratchpad_vector_b")                                           \
    CORE_COUNTERS_AMOUNT(IN, SCRATCHPAD_STORE, "scratchpad_store")                                                 \
    CORE_COUNTERS_AMOUNT(IN, SCRATCHPAD_VECTOR_OUT, "scratchpad_vector_out")                                       \
    CORE_COUNTERS_AMOUNT(IN, ACCUMULATOR_VECTOR_A, "accumulator_vector_a")                                         \
    CORE_COUNTERS_AMOUNT(IN, ACCUMULATOR_VECTOR_B, "accumulator_vector_b")                                         \
    CORE_COUNTERS_AMOUNT(IN, ACCUMULATOR_STORE, "accumulator_store")                                               \
    CORE_COUNTERS_AMOUNT(IN, ACCUMULATOR_LOAD, "accumulator_load")                                                 \
    CORE_COUNTERS_AMOUNT(IN, ACCUMULATOR_VECTOR_OUT, "accumulator_vector_out")                                     \
    IN(freeze, "select.freeze") IN(group, "select.group") IN(counter, "select.counter") OUT(shows, ".shows")       \
    OUT(value, "value?.shows")

enum { CLASS_GROUPS = GROUP_TRAFFIC };

typedef struct CoreCounters {
    uint32_t events[CLASS_GROUPS], amounts[GROUP_COUNTERS], freeze, group, counter;
    uint32_t shows;  // `value` means something: the counters froze in the last two cycles
    uint32_t value;

    uint32_t counts[CLASS_GROUPS][GROUP_COUNTERS];  // of classes without the one of this cycle, up to `since`
    uint32_t sums[GROUP_COUNTERS], now[GROUP_COUNTERS];
    uint32_t time, since[CLASS_GROUPS];  // cycles that counted
    uint32_t seen[CLASS_GROUPS];         // events of the cycle before
    uint8_t classes[CLASS_GROUPS], frozen, some;  // of that cycle; there are amounts of it
} CoreCounters;

static void core_counters_reset(CoreCounters* c, const uint32_t* parameters) {
    memset(c, 0, sizeof *c);
    for (int g = 0; g < CLASS_GROUPS; ++g) c->classes[g] = last_classes[g];
}

static void core_counters_outputs(CoreCounters* c) {}

static inline uint32_t core_counters_count(const CoreCounters* c, uint32_t group, uint32_t counter) {
    if (group == GROUP_TRAFFIC) return c->sums[counter];
    if (group > GROUP_TRAFFIC) return 0;
    return c->counts[group][counter] + (c->classes[group] == counter ? c->time - c->since[group] : 0);
}

static void core_counters_tick(CoreCounters* c) {
    c->shows = c->freeze && c->frozen;
    if (c->shows) c->value = core_counters_count(c, c->group, c->counter);
    c->frozen = c->freeze;
    c->time += !c->freeze;
    for (int g = 0; g < CLASS_GROUPS; ++g) {
        if (c->events[g] == c->seen[g]) continue;
        c->counts[g][c->classes[g]] += c->time - c->since[g];
        c->since[g] = c->time;
        c->seen[g] = c->events[g];
        c->classes[g] = __builtin_ctz(c->events[g] | 1u << last_classes[g]);
    }
    uint32_t some = 0;
    if (c->some && !c->freeze)
        for (int k = 0; k < GROUP_COUNTERS; ++k) c->sums[k] += c->now[k];
    for (int k = 0; k < GROUP_COUNTERS; ++k) some |= c->amounts[k];
    c->some = some != 0;
    if (some) memcpy(c->now, c->amounts, sizeof c->now);
}
