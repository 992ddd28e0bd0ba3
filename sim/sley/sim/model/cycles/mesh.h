// The twin of sley.hw.noc.mesh: both networks, with a port of each for every node that sends there or is sent to.
#pragma once

#include "network.h"
#include "nodes.h"

#define MESH_INPUTS(IN, k, net, x, y)                                                                                \
    IN(net[k].in_valid, "~" #net "_i_" #x "_" #y ".valid") IN(net[k].in.data, "~" #net "_i_" #x "_" #y ".payload.payload") \
    IN(net[k].in.dest, "~" #net "_i_" #x "_" #y ".payload.dest") IN(net[k].in.far, "~" #net "_i_" #x "_" #y ".payload.far") \
    IN(net[k].in.last, "~" #net "_i_" #x "_" #y ".payload.last") IN(net[k].out_ready, "~" #net "_o_" #x "_" #y ".ready")

#define MESH_OUTPUT(OUT, k, net, x, y, field)                                                                        \
    OUT(net[k].out.field, "~" #net "_o_" #x "_" #y ".payload." #field "?~" #net "_o_" #x "_" #y ".valid")

#define MESH_OUTPUTS(OUT, k, net, x, y)                                                                              \
    OUT(net[k].in_ready, "~" #net "_i_" #x "_" #y ".ready") OUT(net[k].out_valid, "~" #net "_o_" #x "_" #y ".valid") \
    OUT(net[k].out.data, "~" #net "_o_" #x "_" #y ".payload.payload?~" #net "_o_" #x "_" #y ".valid")               \
    MESH_OUTPUT(OUT, k, net, x, y, dest) MESH_OUTPUT(OUT, k, net, x, y, far) MESH_OUTPUT(OUT, k, net, x, y, last)

// MESH_NODES(NODE, PORT): NODE(PORT, number, x, y) of each; from nodes.h, as its inputs and outputs come apart.
#define MESH_NODE_INPUTS(IN, k, x, y) MESH_INPUTS(IN, k, request, x, y) MESH_INPUTS(IN, k, response, x, y)
#define MESH_NODE_OUTPUTS(OUT, k, x, y) MESH_OUTPUTS(OUT, k, request, x, y) MESH_OUTPUTS(OUT, k, response, x, y)
#define MESH_PORTS(IN, OUT) MESH_NODES(MESH_NODE_INPUTS, IN) MESH_NODES(MESH_NODE_OUTPUTS, OUT)

#define MESH_NODE_COUNT(PORT, k, x, y) +1
#define MESH_NODE_NUMBER(PORT, k, x, y) (x) | (y) << COORDINATE_BITS,
enum { MESH_NODE_TOTAL = MESH_NODES(MESH_NODE_COUNT, ) };
static const uint32_t mesh_nodes[] = {MESH_NODES(MESH_NODE_NUMBER, )};

typedef struct MeshPort {
    Flit in, out;
    uint32_t in_valid, in_ready, out_valid, out_ready;
} MeshPort;

typedef struct Mesh {
    MeshPort request[MESH_NODE_TOTAL], response[MESH_NODE_TOTAL];
    Network requests, responses;
} Mesh;

// parameters: of each network how many routers it has, and those of each router
static void mesh_reset(Mesh* m, const uint32_t* parameters) {
    const uint32_t(*routers)[ROUTER_PARAMETERS] = (const void*)(parameters + 1);
    network_reset(&m->requests, routers, parameters[0]);
    parameters = routers[parameters[0]];
    network_reset(&m->responses, (const void*)(parameters + 1), parameters[0]);
}

static void mesh_network_outputs(Network* n, MeshPort* ports) {
    for (uint32_t k = 0; k < MESH_NODE_TOTAL; ++k) {
        Router* router = network_at(n, mesh_nodes[k]);
        network_enter(n, router, ports[k].in_valid, &ports[k].in);
        router->out_ready[SIDE_LOCAL] = ports[k].out_ready;
    }
    network_outputs(n);
    for (uint32_t k = 0; k < MESH_NODE_TOTAL; ++k) {
        const Router* router = network_at(n, mesh_nodes[k]);
        ports[k].in_ready = router->in_ready[SIDE_LOCAL];
        ports[k].out_valid = router->out_valid[SIDE_LOCAL];
        if (ports[k].out_valid) ports[k].out = router->out[SIDE_LOCAL].item;
    }
}

static void mesh_outputs(Mesh* m) {
    mesh_network_outputs(&m->requests, m->request);
    mesh_network_outputs(&m->responses, m->response);
}

static void mesh_tick(Mesh* m) {
    network_tick(&m->requests);
    network_tick(&m->responses);
}
