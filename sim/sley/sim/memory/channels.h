// Channels of a DRAM with banks and refresh. The rule is published in channels.py, which is the same in Python.
// BUS_BYTES: bytes of a beat on the memory bus.
#pragma once

#include <stdint.h>

enum { INTERLEAVE = 256, DRAM_ROW_BYTES = 2048, MAX_CHANNELS = 16, MAX_BANKS = 16, MAX_PIECES = 4096 / INTERLEAVE };
#define NO_ROW (~(uint64_t)0)

// Parameters of the timing rule, in cycles, bytes and bursts, in the order of `DramTiming` in dram.py.
typedef struct {
    uint32_t latency, burst_gap, depth, bandwidth, channels, banks, row_miss, refresh, refresh_cycles;
} DramTiming;

typedef struct {
    uint64_t row, end;
} Bank;

typedef struct {
    uint64_t end, period;
    Bank banks[MAX_BANKS];
} Channel;

static inline uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline uint32_t channel_parts(const DramTiming* timing) { return timing->bandwidth ? timing->bandwidth : BUS_BYTES; }

static inline void channels_reset(Channel* channels) {
    for (int i = 0; i < MAX_CHANNELS; i++) {
        channels[i].end = channels[i].period = 0;
        for (int k = 0; k < MAX_BANKS; k++) channels[i].banks[k] = (Bank){NO_ROW, 0};
    }
}

static inline uint64_t channel_piece(Channel* channels, const DramTiming* timing, uint64_t address, uint64_t bytes,
                                     uint64_t now) {
    const uint64_t parts = channel_parts(timing), block = address / INTERLEAVE;
    Channel* channel = &channels[block % timing->channels];
    uint64_t begin = later(channel->end, now);
    const uint64_t period = timing->refresh ? begin / (timing->refresh * parts) : 0;
    if (period) {
        const uint64_t rested = (period * timing->refresh + timing->refresh_cycles) * parts;
        begin = later(begin, rested);
        if (period != channel->period) {
            channel->period = period;
            for (int k = 0; k < MAX_BANKS; k++) channel->banks[k] = (Bank){NO_ROW, later(channel->banks[k].end, rested)};
        }
    }
    if (timing->banks) {
        const uint64_t place = block / timing->channels * INTERLEAVE / DRAM_ROW_BYTES, row = place / timing->banks;
        Bank* bank = &channel->banks[place % timing->banks];
        if (bank->row != row) {
            bank->row = row;
            begin = later(begin, later(bank->end, now) + timing->row_miss * parts);
        }
        bank->end = begin + bytes;
    }
    channel->end = begin + bytes;
    return begin;
}

// A burst is accepted in cycle `now`: `ends`: when the first beat of each of its pieces has been moved.
static inline void channels_schedule(Channel* channels, const DramTiming* timing, uint64_t address, uint32_t beats,
                                     uint64_t now, uint64_t* ends) {
    const uint64_t end = address + (uint64_t)beats * BUS_BYTES;
    for (int piece = 0; address < end && piece < MAX_PIECES; piece++) {
        const uint64_t next = (address / INTERLEAVE + 1) * INTERLEAVE, bytes = (next < end ? next : end) - address;
        ends[piece] = channel_piece(channels, timing, address, bytes, now * channel_parts(timing)) + BUS_BYTES;
        address += bytes;
    }
}

// The first cycle after the beat at `address` of a burst from `start` on has been moved.
static inline uint64_t channels_moved(const DramTiming* timing, const uint64_t* ends, uint64_t start, uint64_t address) {
    const uint64_t piece = address / INTERLEAVE - start / INTERLEAVE, parts = channel_parts(timing);
    const uint64_t first = piece ? address / INTERLEAVE * INTERLEAVE : start;
    return (ends[piece] + address - first + parts - 1) / parts;
}
