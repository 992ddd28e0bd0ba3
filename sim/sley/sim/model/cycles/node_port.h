// The twin of sley.hw.memory.node: requests of a node's parts merged, and answers by tag.
#pragma once

#include "arbiter.h"
#include "flit.h"
#include "queue.h"

enum { NODE_PARTS = 5 };

#define NODE_PART_INPUTS(IN, P, k)                                                                                 \
    IN(P request_valid[k], "~request[" #k "].valid") REQUEST_FLIT_PORTS(IN, P request[k], "~request[" #k "]", "") \
    IN(P request[k].share, "~request[" #k "].payload.payload.head.share")                                         \
    IN(P response_ready[k], "~response[" #k "].ready")

#define NODE_PART_OUTPUTS(OUT, P, k)                                                                   \
    OUT(P request_ready[k], "~request[" #k "].ready") OUT(P response_valid[k], "~response[" #k "].valid")

// Of the parts, in a twin that has the port at `P`.
#define NODE_PARTS_INPUTS(IN, P)                                                                            \
    NODE_PART_INPUTS(IN, P, 0) NODE_PART_INPUTS(IN, P, 1) NODE_PART_INPUTS(IN, P, 2) NODE_PART_INPUTS(IN, P, 3) \
    NODE_PART_INPUTS(IN, P, 4)

#define NODE_PARTS_OUTPUTS(OUT, P)                                                                                  \
    NODE_PART_OUTPUTS(OUT, P, 0) NODE_PART_OUTPUTS(OUT, P, 1) NODE_PART_OUTPUTS(OUT, P, 2) NODE_PART_OUTPUTS(OUT, P, 3) \
    NODE_PART_OUTPUTS(OUT, P, 4)

// To and from the router.
#define NODE_ROUTER_INPUTS(IN) \
    IN(out_ready, "request_i.ready") IN(answer_valid, "response_o.valid") IN(answer.tag, "response_o.payload.payload.tag")

#define NODE_ROUTER_OUTPUTS(OUT)                                                \
    OUT(answer_ready, "response_o.ready") OUT(out_valid, "request_i.valid")     \
    REQUEST_FLIT_PORTS(OUT, out, "request_i", "?request_i.valid")               \
    OUT(out.share, "~request_i.payload.payload.head.share?request_i.valid")

#define NODE_PORT_PORTS(IN, OUT) \
    NODE_PARTS_INPUTS(IN, ) NODE_ROUTER_INPUTS(IN) NODE_PARTS_OUTPUTS(OUT, ) NODE_ROUTER_OUTPUTS(OUT)

typedef struct NodePort {
    Flit request[NODE_PARTS], out;
    Flit answer;
    uint32_t request_valid[NODE_PARTS], request_ready[NODE_PARTS], response_valid[NODE_PARTS], response_ready[NODE_PARTS],
        out_valid, out_ready, answer_valid, answer_ready;

    uint32_t parts;
    uint8_t tags[NODE_PARTS];
    Grant grant;
    uint32_t granted;  // for the tick
    uint32_t idle;     // nothing is here, and the outputs say so
    FlitBuffer buffer;
} NodePort;

// parameters: how many parts, the tag of each, the weight of each
static void node_port_reset(NodePort* p, const uint32_t* parameters) {
    p->parts = parameters[0];
    grant_reset(&p->grant, p->parts);
    for (uint32_t k = 0; k < p->parts; ++k) {
        p->tags[k] = parameters[1 + k];
        grant_weight(&p->grant, k, parameters[1 + p->parts + k]);
    }
}

static inline uint32_t node_port_requests(const NodePort* p) {
    uint32_t requests = p->request_valid[0];
    for (uint32_t k = 1; k < p->parts; ++k) requests |= p->request_valid[k] << k;
    return requests;
}

static inline int node_port_rests(const NodePort* p) { return p->idle && !p->answer_valid && !node_port_requests(p); }

static void node_port_outputs(NodePort* p) {
    if (node_port_rests(p)) return;
    p->out_valid = p->buffer.here;
    p->out = p->buffer.item;
    uint32_t requests = node_port_requests(p);
    p->granted = requests && !p->buffer.full ? grant_choose(&p->grant, requests) : 0;
    p->answer_ready = 1;
    for (uint32_t k = 0; k < p->parts; ++k) {
        p->request_ready[k] = p->granted >> k & 1;
        p->response_valid[k] = p->answer_valid && p->answer.tag == p->tags[k];
        if (p->response_valid[k] && !p->response_ready[k]) p->answer_ready = 0;
    }
}

static void node_port_tick(NodePort* p) {
    p->idle = !p->buffer.here && !p->answer_valid && !node_port_requests(p);
    if (p->granted) {
        const Flit* flit = &p->request[__builtin_ctz(p->granted)];
        grant_moved(&p->grant, p->granted, flit->last);
        FlitBuffer_tick(&p->buffer, 1, *flit, p->out_ready);
    } else if (p->buffer.here) {
        FlitBuffer_tick(&p->buffer, 0, (Flit){0}, p->out_ready);
    }
}
