// The twin of sley.hw.noc.router and of multicast, which copies packets.
#pragma once

#include "arbiter.h"
#include "flit.h"

#define ROUTER_SIDE_INPUTS(IN, k, side)                                                                            \
    IN(in_valid[k], "~i_" side ".valid") IN(in[k].data, "~i_" side ".payload.payload")                            \
    IN(in[k].dest, "~i_" side ".payload.dest") IN(in[k].far, "~i_" side ".payload.far")                           \
    IN(in[k].last, "~i_" side ".payload.last") IN(out_ready[k], "~o_" side ".ready")

#define ROUTER_SIDE_OUTPUTS(OUT, k, side)                                                                          \
    OUT(in_ready[k], "~i_" side ".ready") OUT(out_valid[k], "~o_" side ".valid")                                  \
    OUT(out[k].item.data, "~o_" side ".payload.payload?~o_" side ".valid")                                        \
    OUT(out[k].item.dest, "~o_" side ".payload.dest?~o_" side ".valid")                                           \
    OUT(out[k].item.far, "~o_" side ".payload.far?~o_" side ".valid")                                             \
    OUT(out[k].item.last, "~o_" side ".payload.last?~o_" side ".valid")

// Sides in the order of Direction.
#define ROUTER_PORTS(IN, OUT)                                                                                      \
    ROUTER_SIDE_INPUTS(IN, 0, "local") ROUTER_SIDE_INPUTS(IN, 1, "north") ROUTER_SIDE_INPUTS(IN, 2, "east")       \
    ROUTER_SIDE_INPUTS(IN, 3, "south") ROUTER_SIDE_INPUTS(IN, 4, "west") ROUTER_SIDE_OUTPUTS(OUT, 0, "local")     \
    ROUTER_SIDE_OUTPUTS(OUT, 1, "north") ROUTER_SIDE_OUTPUTS(OUT, 2, "east")                                      \
    ROUTER_SIDE_OUTPUTS(OUT, 3, "south") ROUTER_SIDE_OUTPUTS(OUT, 4, "west")

enum { SIDE_LOCAL, SIDE_NORTH, SIDE_EAST, SIDE_SOUTH, SIDE_WEST, SIDES, ROUTER_PARAMETERS = 3 + SIDES };
enum { COORDINATE_MASK = (1 << COORDINATE_BITS) - 1 };

typedef struct Router {
    Flit in[SIDES];
    uint32_t in_valid[SIDES], in_ready[SIDES], out_valid[SIDES], out_ready[SIDES];

    uint32_t x, y, copies;
    uint8_t turns[SIDES];    // sides that what enters on each may leave to
    uint8_t leaves[SIDES];   // those that a packet leaves to, and that pass it in this cycle
    uint8_t granted[SIDES];  // for each output, the input
    uint32_t idle;           // nothing is here, and the outputs say so
    Grant grants[SIDES];
    FlitBuffer out[SIDES];
} Router;

// parameters: whether packets go to rectangles, x, y, the turns of each side
static void router_reset(Router* r, const uint32_t* parameters) {
    r->copies = parameters[0];
    r->x = parameters[1];
    r->y = parameters[2];
    for (uint32_t side = 0; side < SIDES; ++side) {
        r->turns[side] = parameters[3 + side];
        grant_reset(&r->grants[side], SIDES);
        r->grants[side].all = 0;
    }
    for (uint32_t side = 0; side < SIDES; ++side)
        for (uint32_t to = 0; to < SIDES; ++to)
            if (r->turns[side] >> to & 1) r->grants[to].all |= 1u << side;
    for (uint32_t to = 0; to < SIDES; ++to) r->grants[to].eligible = r->grants[to].all;
}

// Where a flit has to go.
static inline uint32_t router_directions(const Router* r, const Flit* flit) {
    uint32_t x = r->x, y = r->y, far = r->copies ? flit->far : flit->dest;
    uint32_t left = flit->dest & COORDINATE_MASK, top = flit->dest >> COORDINATE_BITS;
    uint32_t right = far & COORDINATE_MASK, bottom = far >> COORDINATE_BITS;
    uint32_t sides = (right > x) << SIDE_EAST | (left < x) << SIDE_WEST;
    if (left <= x && x <= right)
        sides |= (bottom > y) << SIDE_SOUTH | (top < y) << SIDE_NORTH | (top <= y && y <= bottom) << SIDE_LOCAL;
    return sides;
}

static inline uint32_t router_valid(const Router* r) {
    return r->in_valid[0] | r->in_valid[1] << 1 | r->in_valid[2] << 2 | r->in_valid[3] << 3 | r->in_valid[4] << 4;
}

static void router_outputs(Router* r) {
    uint32_t valid = router_valid(r), asked = 0;
    if (!valid && r->idle) return;
    uint8_t requests[SIDES] = {0};
    memset(r->granted, 0, sizeof r->granted);
    memset(r->in_ready, 0, sizeof r->in_ready);
    for (uint32_t to = 0; to < SIDES; ++to) r->out_valid[to] = r->out[to].here;
    for (uint32_t left = valid; left; left &= left - 1) {
        uint32_t side = __builtin_ctz(left), turns = r->turns[side];
        uint32_t leaves = turns & turns - 1 ? turns & router_directions(r, &r->in[side]) : turns;
        r->leaves[side] = leaves;
        asked |= leaves;
        for (; leaves; leaves &= leaves - 1) requests[__builtin_ctz(leaves)] |= 1u << side;
    }
    for (; asked; asked &= asked - 1) {
        uint32_t to = __builtin_ctz(asked);
        if (!r->out[to].full) r->granted[to] = grant_choose(&r->grants[to], requests[to]);
    }
    for (; valid; valid &= valid - 1) {
        // A copied packet takes all its outputs at once.
        uint32_t side = __builtin_ctz(valid), refused = 0;
        for (uint32_t left = r->leaves[side]; left; left &= left - 1) refused += !(r->granted[__builtin_ctz(left)] >> side & 1);
        r->in_ready[side] = r->leaves[side] && !refused;
    }
}

static void router_tick(Router* r) {
    uint32_t valid = router_valid(r);
    if (!valid && r->idle) return;
    r->idle = !valid;
    for (uint32_t to = 0; to < SIDES; ++to) {
        uint32_t side = r->granted[to] ? __builtin_ctz(r->granted[to]) : 0, comes = r->granted[to] && r->in_ready[side];
        if (!comes && !r->out[to].here) continue;
        r->idle = 0;
        if (comes) grant_moved(&r->grants[to], r->granted[to], r->in[side].last);
        FlitBuffer_tick(&r->out[to], comes, r->in[side], r->out_ready[to]);
    }
}
