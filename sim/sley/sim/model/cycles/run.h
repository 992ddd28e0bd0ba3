// Runs of bytes, and how they lie on the bus: sley.hw.memory.run and span.
#pragma once

#include "abi.h"
#include "twin.h"

#define RUN_PORTS(IN, i)                                                                                          \
    IN(i##_valid, #i ".valid") IN(i.addr, #i ".payload.addr") IN(i.bytes, #i ".payload.bytes")                   \
    IN(i.context, #i ".payload.context") IN(i.execute, #i ".payload.execute") IN(i.share, #i ".payload.share")   \
    IN(i.more, #i ".payload.more") IN(i.joins, #i ".payload.joins")

typedef struct Run {
    uint32_t addr, bytes;
    uint8_t context, execute, share, more, joins;
} Run;

// Places of bus beats in a window of a longest burst, and of bytes in a beat.
enum { WINDOW_BITS = LANE_BITS + BURST_BITS, LANE_MASK = (1 << LANE_BITS) - 1, BURST_MASK = (1 << BURST_BITS) - 1 };

static inline uint32_t run_offset(const Run* run) { return run->addr & LANE_MASK; }
static inline uint32_t run_position(const Run* run) { return run->addr >> LANE_BITS & BURST_MASK; }
static inline uint32_t run_window(const Run* run) { return run->addr >> WINDOW_BITS; }
// The place of its last byte, from the begin of its first window.
static inline uint32_t run_reach(const Run* run) {
    return (run->addr & ((1u << WINDOW_BITS) - 1)) + (run->bytes - 1 & 0xFFFF);
}
static inline uint32_t reach_windows(uint32_t reach) { return reach >> WINDOW_BITS; }
static inline uint32_t reach_last(uint32_t reach) { return reach >> LANE_BITS & BURST_MASK; }
static inline uint32_t reach_end(uint32_t reach) { return reach & LANE_MASK; }
// Left-justified beats, minus one.
static inline uint32_t run_data_last(const Run* run) { return (run->bytes - 1 & 0xFFFF) >> LANE_BITS; }
