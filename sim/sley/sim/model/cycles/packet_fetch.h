// The twin of sley.hw.command.fetch: one packet comes from memory, is checked and kept.
#pragma once

#include "command_parts.h"
#include "flit.h"
#include "packet_check.h"

enum { PACKET_BEATS = PACKET_WORDS / PACKET_LANES };
enum { PACKET_BURST = PACKET_BEATS < MAX_BURST ? PACKET_BEATS : MAX_BURST };
enum { PACKET_IDLE, PACKET_ASK, PACKET_JUDGE, PACKET_READY };

typedef struct PacketPlace {
    uint32_t packet, nested, context;
} PacketPlace;

typedef struct PacketFetch {
    PacketPlace place;
    PacketFinding found;
    uint32_t packet[PACKET_WORDS];
    uint32_t state, failed, dropped, requested, requesting, left, outside, settles;  // settles: the check is not done
    uint32_t arrived, index;                                                         // a beat came a cycle ago; which
} PacketFetch;

static inline int packet_fetch_busy(const PacketFetch* f) { return f->state != PACKET_IDLE; }
static inline int packet_fetch_ready(const PacketFetch* f) { return f->state == PACKET_READY; }
static inline int packet_fetch_asks(const PacketFetch* f) { return f->requesting && !f->outside; }
static inline uint32_t packet_fetch_address(const PacketFetch* f) {
    return (f->place.packet << PACKET_SHIFT & -BUS_BYTES) | f->requested * BUS_BYTES;
}

// What is wrong with the packet that is here.
static inline PacketFinding packet_fetch_found(const PacketFetch* f) {
    if (!f->outside && !f->failed) return f->found;
    uint32_t code = f->outside ? FAULT_BAD_ADDRESS : access_fault(f->failed);
    return (PacketFinding){code, f->place.packet << PACKET_SHIFT, 1};
}

static void packet_fetch_start(PacketFetch* f, PacketPlace place) {
    f->place = place;
    f->outside = (uint64_t)place.packet << PACKET_SHIFT >= ADDRESS_LIMIT;
    f->state = PACKET_ASK;
    f->requesting = 1;
    f->requested = f->failed = f->dropped = f->index = 0;
    f->left = PACKET_BEATS;
}

// What comes from memory in a cycle.
typedef struct PacketAnswer {
    uint32_t valid, error;
    const uint32_t* data;
} PacketAnswer;

static void packet_fetch_tick(PacketFetch* f, int start, PacketPlace place, int drop, int request_ready,
                              PacketAnswer answer) {
    if (f->state == PACKET_IDLE) {
        f->requesting = f->arrived = 0;
        if (start) packet_fetch_start(f, place);
        return;
    }
    uint32_t state = f->state, left = f->left;
    if (f->arrived) f->index = (f->index + 1) % (PACKET_BEATS > 1 ? PACKET_BEATS : 2);
    f->arrived = answer.valid;
    if (state == PACKET_ASK) {
        if (packet_fetch_asks(f) && request_ready) {
            f->requesting = f->requested != PACKET_BEATS - PACKET_BURST;
            f->requested += PACKET_BURST;
        }
        if (drop) f->dropped = 1;
        if (answer.valid && left == 1) f->state = PACKET_JUDGE, f->settles = 1;
        if (f->outside) f->state = drop ? PACKET_IDLE : PACKET_READY;
    } else if (state == PACKET_JUDGE) {
        if (drop) {
            f->state = PACKET_IDLE;
        } else if (f->settles) {
            f->settles = 0;
        } else {
            f->state = f->dropped ? PACKET_IDLE : PACKET_READY;
            f->found = packet_finding(f->packet, f->place.nested);
        }
    } else if (drop) {
        f->state = PACKET_IDLE;
    }
    if (answer.valid) {
        memcpy(f->packet + (PACKET_BEATS - left) * PACKET_LANES, answer.data, PACKET_LANES * sizeof(uint32_t));
        f->left = left - 1;
        if (!f->failed) f->failed = answer.error;
    }
}
