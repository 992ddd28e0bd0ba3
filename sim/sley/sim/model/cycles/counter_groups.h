// Performance counters, as sley.hw.counters.groups counts them; core_counters.h and bus_counters.h are twins made of them.
#pragma once

#include "abi.h"
#include "twin.h"

enum { CLASS_GROUPS = GROUP_TRAFFIC };

// Of a group of classes one counts in every cycle: the first of all events, or the group's last.
typedef struct CounterGroups {
    uint32_t counts[CLASS_GROUPS][GROUP_COUNTERS];  // of classes, up to `since`
    uint32_t sums[AMOUNT_GROUPS][GROUP_COUNTERS], now[AMOUNT_GROUPS][GROUP_COUNTERS];
    uint32_t time, since[CLASS_GROUPS];  // cycles that counted
    uint32_t seen[CLASS_GROUPS];         // events of the cycle before
    uint8_t classes[CLASS_GROUPS], some;  // of that cycle; there are amounts of it
    uint8_t groups, amounts, last[CLASS_GROUPS];
} CounterGroups;

// Nothing happened in the cycle before.
static inline void counter_groups_forget(CounterGroups* c) {
    for (int g = 0; g < c->groups; ++g) {
        c->counts[g][c->classes[g]] += c->time - c->since[g];
        c->since[g] = c->time;
        c->seen[g] = 0;
        c->classes[g] = c->last[g];
    }
    c->some = 0;
}

static inline void counter_groups_reset(CounterGroups* c, const uint8_t* last, uint32_t groups, uint32_t amounts) {
    memset(c, 0, sizeof *c);
    c->groups = groups;
    c->amounts = amounts;
    memcpy(c->last, last, groups);
    counter_groups_forget(c);
}

static inline uint32_t counter_groups_class(const CounterGroups* c, uint32_t group, uint32_t counter) {
    return c->counts[group][counter] + (c->classes[group] == counter ? c->time - c->since[group] : 0);
}

static inline void counter_groups_tick(
    CounterGroups* c, const uint32_t* events, const uint32_t (*amounts)[GROUP_COUNTERS], uint32_t freeze
) {
    uint32_t some = 0;
    c->time += !freeze;
    for (int g = 0; g < c->groups; ++g) {
        if (events[g] == c->seen[g]) continue;
        c->counts[g][c->classes[g]] += c->time - c->since[g];
        c->since[g] = c->time;
        c->seen[g] = events[g];
        c->classes[g] = __builtin_ctz(events[g] | 1u << c->last[g]);
    }
    if (c->some && !freeze)
        for (int g = 0; g < c->amounts; ++g)
            for (int k = 0; k < GROUP_COUNTERS; ++k) c->sums[g][k] += c->now[g][k];
    for (int g = 0; g < c->amounts; ++g)
        for (int k = 0; k < GROUP_COUNTERS; ++k) some |= amounts[g][k];
    c->some = some != 0;
    if (some) memcpy(c->now, amounts, c->amounts * sizeof *c->now);
}
