// The twin of sley.hw.command.urgent: which queue is next.
#pragma once

#include "command_parts.h"

enum { LEVELS = 1 << PRIORITY_BITS };

typedef struct Urgent {
    uint32_t before[QUEUES_MAX];  // queues that go before each
    uint32_t members[LEVELS + 1], above[LEVELS + 1];
    uint32_t passed[QUEUES_MAX], priorities[QUEUES_MAX], overdue, count;
    int changed;
} Urgent;

static void urgent_reset(Urgent* u, uint32_t count) {
    u->count = count;
    u->changed = 1;
    for (uint32_t k = 0; k < count; ++k) u->before[k] = (1u << k) - 1;
}

static uint32_t urgent_grant(const Urgent* u, uint32_t requests) {
    for (uint32_t k = 0; k < u->count; ++k)
        if (requests >> k & 1 && !(requests & u->before[k])) return 1u << k;
    return 0;
}

static uint32_t urgent_rank(const Urgent* u, const uint32_t* priorities, uint32_t k) {
    if (u->overdue >> k & 1) return 1u << (1 + PRIORITY_BITS) | (u->above[LEVELS] >> k & 1);
    return priorities[k] << 1 | (u->above[priorities[k]] >> k & 1);
}

// A cycle; `grant` is what urgent_grant says of these requests, and all QUEUES_MAX priorities are there.
static void urgent_tick(Urgent* u, uint32_t requests, uint32_t grant, int moved, const uint32_t* priorities) {
    uint32_t old_members[LEVELS + 1];
    if (!moved && !u->changed && !memcmp(u->priorities, priorities, sizeof u->priorities)) return;
    memcpy(old_members, u->members, sizeof old_members);
    // The order is that of the cycle before.
    uint32_t ranks[QUEUES_MAX];
    for (uint32_t k = 0; k < u->count; ++k) ranks[k] = urgent_rank(u, priorities, k), u->before[k] = 0;
    for (uint32_t j = 0; j < u->count; ++j)
        for (uint32_t k = j + 1; k < u->count; ++k) {
            if (ranks[j] >= ranks[k]) u->before[k] |= 1u << j;
            else u->before[j] |= 1u << k;
        }
    for (uint32_t level = 0; level <= LEVELS; ++level) u->members[level] = level == LEVELS ? u->overdue : 0;
    for (uint32_t k = 0; k < u->count; ++k)
        if (!(u->overdue >> k & 1)) u->members[priorities[k]] |= 1u << k;
    memcpy(u->priorities, priorities, sizeof u->priorities);
    u->changed = moved;
    if (!moved) return;
    for (int level = LEVELS; level >= 0; --level)
        if (requests & old_members[level]) {
            u->above[level] = grant ? ~(grant - 1) << 1 & ((1u << u->count) - 1) : 0;
            break;
        }
    for (uint32_t k = 0; k < u->count; ++k) {
        uint32_t bit = 1u << k;
        if (grant & bit) {
            u->passed[k] = 0;
            u->overdue &= ~bit;
        } else if (requests & bit) {
            if (u->passed[k] == PATIENCE - 1) u->overdue |= bit;
            u->passed[k] = (u->passed[k] + 1) % PATIENCE;
        }
    }
}
