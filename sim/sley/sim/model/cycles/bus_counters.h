// The twin of sley.hw.counters.bus: what moves on the memory bus.
#pragma once

#include "counter_groups.h"

#define BUS_COUNTERS_PORTS(IN, OUT)                                                                                 \
    IN(arvalid, "axi.arvalid") IN(arready, "axi.arready") IN(rvalid, "axi.rvalid") IN(rready, "axi.rready")        \
    IN(rlast, "axi.rlast") IN(awvalid, "axi.awvalid") IN(awready, "axi.awready") IN(wvalid, "axi.wvalid")          \
    IN(wready, "axi.wready") IN(bvalid, "axi.bvalid") IN(bready, "axi.bready") IN(freeze, "select.freeze")         \
    IN(group, "select.group") IN(counter, "select.counter") OUT(shows, ".shows") OUT(value, "value?.shows")

enum { BUS_READ, BUS_WRITE, BUS_GROUPS };

typedef struct BusCounters {
    PORTS(BUS_COUNTERS_PORTS)  // `shows`: `value` means something, the counters froze in the last two cycles

    CounterGroups groups;
    uint32_t events[CLASS_GROUPS], amounts[1][GROUP_COUNTERS], read_last, answered;  // of the cycle before
    uint32_t reads, writes;                                                       // outstanding
    uint32_t frozen;                                                              // in the cycle before
} BusCounters;

static void bus_counters_reset(BusCounters* c, const uint32_t* parameters) {
    memset(c, 0, sizeof *c);
    counter_groups_reset(&c->groups, (uint8_t[]){READ_IDLE, WRITE_IDLE}, BUS_GROUPS, 1);
    c->amounts[0][BUS_CYCLES] = 1;
}

static void bus_counters_outputs(BusCounters* c) {}

static inline uint32_t bus_counters_count(const BusCounters* c, uint32_t group, uint32_t counter) {
    if (group == GROUP_BUS) return c->groups.sums[0][counter];
    if (group == GROUP_READ) return counter_groups_class(&c->groups, BUS_READ, counter);
    return group == GROUP_WRITE ? counter_groups_class(&c->groups, BUS_WRITE, counter) : 0;
}

static void bus_counters_tick(BusCounters* c) {
    c->shows = c->freeze && c->frozen;
    if (c->shows) c->value = bus_counters_count(c, c->group, c->counter);
    c->frozen = c->freeze;
    c->events[BUS_READ] |= (c->reads != 0) << READ_WAIT;
    c->events[BUS_WRITE] |= (c->writes != 0) << WRITE_WAIT;
    counter_groups_tick(&c->groups, c->events, c->amounts, c->freeze);
    c->reads += c->amounts[0][BUS_READ_BURSTS] - c->read_last;
    c->writes += c->amounts[0][BUS_WRITE_BURSTS] - c->answered;
    uint32_t read = c->rvalid && c->rready, write = c->wvalid && c->wready;
    c->events[BUS_READ] = read << READ_BEAT | c->rvalid << READ_REFUSED | c->arvalid << READ_WAIT;
    c->events[BUS_WRITE] = write << WRITE_BEAT | c->wvalid << WRITE_REFUSED | c->awvalid << WRITE_WAIT;
    c->amounts[0][BUS_READ_BURSTS] = c->arvalid && c->arready;
    c->amounts[0][BUS_WRITE_BURSTS] = c->awvalid && c->awready;
    c->read_last = read && c->rlast;
    c->answered = c->bvalid && c->bready;
}
