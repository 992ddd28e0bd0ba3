// The twin of sley.hw.counters.core: what the units of a core do, and what moves between the core and memory.
#pragma once

#include "counter_groups.h"

enum { AMOUNT_TRAFFIC, AMOUNT_ROWS };

#define CORE_COUNTERS_AMOUNT(IN, which, path) IN(amounts[AMOUNT_TRAFFIC][TRAFFIC_##which], "traffic_amounts." path)
#define CORE_COUNTERS_ROWS(IN, which, path) IN(amounts[AMOUNT_ROWS][ROWS_##which], "rows_amounts." path)

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
    CORE_COUNTERS_ROWS(IN, SCRATCHPAD_READ, "scratchpad_read")                                                     \
    CORE_COUNTERS_ROWS(IN, SCRATCHPAD_WRITTEN, "scratchpad_written")                                               \
    CORE_COUNTERS_ROWS(IN, ACCUMULATOR_READ, "accumulator_read")                                                   \
    CORE_COUNTERS_ROWS(IN, ACCUMULATOR_WRITTEN, "accumulator_written")                                             \
    IN(freeze, "select.freeze") IN(group, "select.group") IN(counter, "select.counter") OUT(shows, ".shows")       \
    OUT(value, "value?.shows")

typedef struct CoreCounters {
    uint32_t events[CLASS_GROUPS], amounts[AMOUNT_GROUPS][GROUP_COUNTERS], freeze, group, counter;
    uint32_t shows;  // `value` means something: the counters froze in the last two cycles
    uint32_t value;

    CounterGroups groups;
    uint32_t frozen;  // in the cycle before
} CoreCounters;

static void core_counters_reset(CoreCounters* c, const uint32_t* parameters) {
    memset(c, 0, sizeof *c);
    counter_groups_reset(&c->groups, last_classes, CLASS_GROUPS, AMOUNT_GROUPS);
}

static void core_counters_outputs(CoreCounters* c) {}

static inline uint32_t core_counters_count(const CoreCounters* c, uint32_t group, uint32_t counter) {
    if (group == GROUP_TRAFFIC) return c->groups.sums[AMOUNT_TRAFFIC][counter];
    if (group == GROUP_ROWS) return c->groups.sums[AMOUNT_ROWS][counter];
    return group < GROUP_TRAFFIC ? counter_groups_class(&c->groups, group, counter) : 0;
}

static void core_counters_tick(CoreCounters* c) {
    c->shows = c->freeze && c->frozen;
    if (c->shows) c->value = core_counters_count(c, c->group, c->counter);
    c->frozen = c->freeze;
    counter_groups_tick(&c->groups, c->events, c->amounts, c->freeze);
}
