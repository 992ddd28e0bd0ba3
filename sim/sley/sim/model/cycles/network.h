// A network of sley.hw.noc.mesh: routers, and the links between neighbours.
#pragma once

#include "router.h"

enum { MESH_COLUMNS = CORES_X + (CORES_Y == 1 ? 2 : 1), MESH_PLACES = MESH_COLUMNS * CORES_Y, NO_ROUTER = 0xFF };

typedef struct Network {
    Router routers[MESH_PLACES];
    uint8_t number[MESH_PLACES];       // of the router at a place
    uint8_t next[MESH_PLACES][SIDES];  // the router behind each output
    uint32_t count;
    uint32_t awake;  // something is here, or the routers do not know yet that nothing is
} Network;

static const uint8_t opposite_side[SIDES] = {SIDE_LOCAL, SIDE_SOUTH, SIDE_WEST, SIDE_NORTH, SIDE_EAST};

static inline uint32_t mesh_place(uint32_t x, uint32_t y) { return y * MESH_COLUMNS + x; }

static void network_reset(Network* n, const uint32_t (*parameters)[ROUTER_PARAMETERS], uint32_t count) {
    static const int8_t right[SIDES] = {0, 0, 1, 0, -1}, down[SIDES] = {0, -1, 0, 1, 0};
    n->count = count;
    n->awake = 1;
    memset(n->number, NO_ROUTER, sizeof n->number);
    memset(n->next, NO_ROUTER, sizeof n->next);
    for (uint32_t k = 0; k < count; ++k) {
        router_reset(&n->routers[k], parameters[k]);
        n->number[mesh_place(parameters[k][1], parameters[k][2])] = k;
    }
    for (uint32_t k = 0; k < count; ++k)
        for (uint32_t side = SIDE_NORTH; side < SIDES; ++side) {
            const Router* r = &n->routers[k];
            if (r->grants[side].all) n->next[k][side] = n->number[mesh_place(r->x + right[side], r->y + down[side])];
        }
}

// The router of a node, by the node's number in a flit.
static inline Router* network_at(Network* n, uint32_t node) {
    return &n->routers[n->number[mesh_place(node & COORDINATE_MASK, node >> COORDINATE_BITS)]];
}

// What a node sends into its router. Comes before network_outputs.
static inline void network_enter(Network* n, Router* router, uint32_t valid, const Flit* flit) {
    router->in_valid[SIDE_LOCAL] = valid;
    if (!valid) return;
    router->in[SIDE_LOCAL] = *flit;
    n->awake = 1;
}

// Of all routers, the links between them included; what a node is sent is at the local output of its router.
static void network_outputs(Network* n) {
    if (!n->awake) return;
    for (uint32_t k = 0; k < n->count; ++k) {
        const Router* from = &n->routers[k];
        if (from->idle) continue;
        for (uint32_t side = SIDE_NORTH; side < SIDES; ++side) {
            if (n->next[k][side] == NO_ROUTER) continue;
            Router* to = &n->routers[n->next[k][side]];
            to->in_valid[opposite_side[side]] = from->out[side].here;
            if (from->out[side].here) to->in[opposite_side[side]] = from->out[side].item;
        }
    }
    for (uint32_t k = 0; k < n->count; ++k) router_outputs(&n->routers[k]);
    for (uint32_t k = 0; k < n->count; ++k) {
        Router* from = &n->routers[k];
        if (from->idle) continue;
        for (uint32_t side = SIDE_NORTH; side < SIDES; ++side)
            if (n->next[k][side] != NO_ROUTER)
                from->out_ready[side] = n->routers[n->next[k][side]].in_ready[opposite_side[side]];
    }
}

static void network_tick(Network* n) {
    if (!n->awake) return;
    n->awake = 0;
    for (uint32_t k = 0; k < n->count; ++k) {
        router_tick(&n->routers[k]);
        n->awake |= !n->routers[k].idle;
    }
}
