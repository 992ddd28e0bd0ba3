// The twin of sley.hw.memory.port: packets to and from bursts of the bus.
#pragma once

#include "arbiter.h"
#include "flit.h"
#include "queue.h"
#include "read_combiner.h"

// Of the bus and of a drain, in a twin that has the port at `P`.
#define MEMORY_BUS_INPUTS(IN, P)                                                                        \
    IN(P ar_ready, "axi.arready") IN(P aw_ready, "axi.awready") IN(P w_ready, "axi.wready")             \
    IN(P r_valid, "axi.rvalid") IN(P r_resp, "axi.rresp") IN(P r_last, "axi.rlast")                     \
    IN(P b_valid, "axi.bvalid") IN(P b_resp, "axi.bresp") IN(P drain, "drain")                          \
    IN(P combiner.ended[0], "~ended@0") IN(P combiner.ended[1], "~ended@1")

#define MEMORY_BUS_OUTPUTS(OUT, P)                                                                      \
    OUT(P ar_valid, "axi.arvalid") OUT(P ar.item.addr, "axi.araddr?axi.arvalid")                        \
    OUT(P ar.item.len, "axi.arlen?axi.arvalid") OUT(P aw_valid, "axi.awvalid")                          \
    OUT(P aw.item.addr, "axi.awaddr?axi.awvalid") OUT(P aw.item.len, "axi.awlen?axi.awvalid")           \
    OUT(P w_valid, "axi.wvalid") OUT(P w.item, "axi.wlast?axi.wvalid") OUT(P r_ready, "axi.rready")     \
    OUT(P b_ready, "axi.bready") OUT(P drained, "drained")

#define MEMORY_REQUEST_INPUTS(IN)                                                                       \
    IN(request_valid, "request_o.valid") REQUEST_FLIT_PORTS(IN, request, "request_o", "")               \
    IN(request.share, "~request_o.payload.payload.head.share") IN(response_ready, "response_i.ready")

#define MEMORY_RESPONSE_OUTPUTS(OUT)                                                                    \
    OUT(request_ready, "request_o.ready?request_o.valid") OUT(response_valid, "response_i.valid")                       \
    OUT(response.tag, "response_i.payload.payload.tag?response_i.valid")                                \
    OUT(response.error, "response_i.payload.payload.error?response_i.valid")                            \
    OUT(response.dest, "response_i.payload.dest?response_i.valid")                                      \
    OUT(response.far, "~response_i.payload.far?response_i.valid")                                       \
    OUT(response.last, "response_i.payload.last?response_i.valid")

#define MEMORY_PORT_PORTS(IN, OUT) \
    MEMORY_REQUEST_INPUTS(IN) MEMORY_BUS_INPUTS(IN, ) MEMORY_RESPONSE_OUTPUTS(OUT) MEMORY_BUS_OUTPUTS(OUT, )

enum { PORT_READS_RING = 256, PORT_WRITES_RING = 128, RESP_BAD = 2 };

typedef struct BusAddress {
    uint32_t addr;
    uint8_t len;
} BusAddress;

typedef struct BusBeat {
    uint32_t data;
    uint8_t error, last;
} BusBeat;

// Whom an answer is for; with an `error` it does not come from the bus.
typedef struct Requester {
    uint8_t src, far, tag, error, beats;
} Requester;

STREAM_BUFFER(BusAddress, AddressBuffer)
STREAM_BUFFER(BusBeat, BeatBuffer)
STREAM_BUFFER(uint8_t, FlagBuffer)

typedef struct MemoryPort {
    Flit request;
    Flit response;
    uint32_t request_valid, request_ready, response_valid, response_ready, ar_valid, ar_ready, aw_valid, aw_ready, w_valid,
        w_ready, r_valid, r_ready, r_resp, r_last, r_data, b_valid, b_ready, b_resp, drain, drained;

    uint8_t command;  // the node of the command processor
    AddressBuffer ar, aw;
    FlagBuffer w, b;  // last, error
    BeatBuffer r;
    Queue reads, writes;
    Requester read_ring[PORT_READS_RING], write_ring[PORT_WRITES_RING], dropped;
    uint32_t in_write, in_message, dropping, left, combiner_next, beat;
    ReadCombiner combiner;
    Grant grant;
    FlitBuffer out;

    uint32_t idle;  // nothing is here, and the outputs say so
    // For the tick: what goes to the bus and the queues, and whose answer is granted.
    uint32_t ar_comes, aw_comes, w_comes, read_comes, write_comes, direct, granted, last;
    Requester read;
    uint32_t read_addr, read_taken, write_taken, r_taken, b_taken;
} MemoryPort;

// parameters: the nodes of the command processor and of each core
static void memory_port_reset(MemoryPort* p, const uint32_t* parameters) {
    p->command = parameters[0];
    p->reads.depth = PORT_READS;
    p->writes.depth = PORT_WRITES;
    grant_reset(&p->grant, 2);
    if (CORES > 1) read_combiner_reset(&p->combiner, parameters + 1);
}

// A read of the request, if one is here; or else one that comes out of the combiner.
static inline uint32_t memory_port_read(MemoryPort* p, uint32_t valid) {
    const Flit* head = &p->request;
    uint32_t room = queue_ready(&p->reads), load = 0, offered = valid;
    p->direct = valid;
    if (CORES > 1) {
        ReadCombiner* c = &p->combiner;
        load = head->tag == TAG_LOAD && head->src != p->command;
        c->i_valid = valid && load;
        c->i_src = head->src;
        c->i = (SharedRead){head->addr, head->beats, head->share, head->error};
        read_combiner_outputs(c);
        p->direct = valid && !load && !(p->combiner_next && c->o_valid);
        offered = p->direct || (c->o_valid && !p->drain);
        if (!p->direct) {
            p->read = (Requester){c->o.near, c->o.far, TAG_LOAD, c->o.error, c->o.beats};
            p->read_addr = c->o.addr;
        }
    }
    if (p->direct) {
        p->read = (Requester){head->src, head->src, head->tag, head->error, head->beats};
        p->read_addr = head->addr;
    }
    p->read_comes = offered && room && (!p->ar.full || p->read.error);
    p->ar_comes = p->read_comes && !p->read.error;
    if (CORES > 1) p->combiner.o_ready = p->read_comes && !p->direct;
    if (CORES == 1) return room && (!p->ar.full || head->error);
    return load ? p->combiner.i_ready : p->direct && p->read_comes;
}

static inline void memory_port_requests(MemoryPort* p) {
    uint32_t valid = p->request_valid, room = queue_ready(&p->writes), reads = 0;
    const Flit* head = &p->request;
    p->ar_comes = p->aw_comes = p->w_comes = p->read_comes = p->write_comes = p->request_ready = p->direct = 0;
    if (p->in_write) {
        p->w_comes = (valid || p->drain) && !p->w.full;
        p->request_ready = !p->drain && !p->w.full;
    } else if (p->dropping) {
        p->request_ready = (room || !head->last) && !p->drain;
        p->write_comes = valid && head->last && !p->drain && room;
    } else if (p->in_message) {
        p->request_ready = !p->drain;
    } else if (!p->drain) {
        if (head->kind == KIND_READ) {
            reads = valid;
        } else if (head->kind == KIND_WRITE) {
            p->aw_comes = p->write_comes = valid && room && !head->error && !p->aw.full;
            p->request_ready = head->error || (room && !p->aw.full);
        } else {
            p->request_ready = 1;
        }
        if (head->kind == KIND_READ) {
            p->request_ready = memory_port_read(p, reads);
            return;
        }
    }
    if (CORES > 1) memory_port_read(p, 0);
}

static inline void memory_port_responses(MemoryPort* p) {
    const Requester* read = &p->read_ring[p->reads.first & PORT_READS_RING - 1];
    const Requester* write = &p->write_ring[p->writes.first & PORT_WRITES_RING - 1];
    uint32_t read_here = p->reads.here && (p->r.here || read->error);
    uint32_t write_here = p->writes.here && (p->b.here || write->error);
    p->granted = p->r_taken = p->b_taken = p->read_taken = p->write_taken = 0;
    if (!read_here && !write_here) return;
    if (!p->out.full) p->granted = grant_choose(&p->grant, read_here | write_here << 1);
    p->last = read->error ? p->beat == read->beats : p->r.item.last;
    uint32_t read_passes = read_here && (p->granted & 1 || p->drain), write_passes = write_here && (p->granted & 2 || p->drain);
    p->r_taken = read_passes && !read->error;
    p->b_taken = write_passes && !write->error;
    p->read_taken = read_passes && p->last;
    p->write_taken = write_passes;
}

static inline int memory_port_rests(const MemoryPort* p) {
    return p->idle && !p->request_valid && !p->r_valid && !p->b_valid && !p->drain;
}

static void memory_port_outputs(MemoryPort* p) {
    if (memory_port_rests(p)) return;
    p->response_valid = p->out.here;
    p->response = p->out.item;
    p->ar_valid = p->ar.here;
    p->aw_valid = p->aw.here;
    p->w_valid = p->w.here;
    p->r_ready = !p->r.full;
    p->b_ready = !p->b.full;
    memory_port_requests(p);
    memory_port_responses(p);
}

static inline void memory_port_tick_requests(MemoryPort* p) {
    const Flit* head = &p->request;
    uint32_t passes = p->request_valid && p->request_ready;
    Requester write = {head->src, head->src, head->tag, head->error};
    if (p->write_comes) p->write_ring[p->writes.end & PORT_WRITES_RING - 1] = p->dropping ? p->dropped : write;
    if (p->read_comes) {
        p->read_ring[p->reads.end & PORT_READS_RING - 1] = p->read;
        p->combiner_next = p->direct;
    }
    uint8_t last = p->left == 0;
    if (p->in_write) {
        if (p->w_comes) p->in_write = p->left-- != 0;
    } else if (p->dropping) {
        if (p->drain || (passes && head->last)) p->dropping = 0;
    } else if (p->in_message) {
        if (p->drain || (passes && head->last)) p->in_message = 0;
    } else if (passes && head->kind == KIND_WRITE) {
        p->in_write = !head->error;
        p->dropping = !p->in_write;
        p->left = head->beats;
        p->dropped = write;
    } else if (passes && head->kind != KIND_READ) {
        p->in_message = !head->last;
    }
    if (p->ar_comes || p->ar.here) {
        uint32_t addr = p->read_addr & ADDRESS_LIMIT - 1;
        AddressBuffer_tick(&p->ar, p->ar_comes, (BusAddress){addr, p->read.beats}, p->ar_ready);
    }
    if (p->aw_comes || p->aw.here) {
        uint32_t addr = head->addr & ADDRESS_LIMIT - 1;
        AddressBuffer_tick(&p->aw, p->aw_comes, (BusAddress){addr, head->beats}, p->aw_ready);
    }
    if (p->w_comes || p->w.here) FlagBuffer_tick(&p->w, p->w_comes, last, p->w_ready);
}

static inline void memory_port_tick_responses(MemoryPort* p) {
    const Requester* read = &p->read_ring[p->reads.first & PORT_READS_RING - 1];
    const Requester* write = &p->write_ring[p->writes.first & PORT_WRITES_RING - 1];
    Flit flit = {0};
    if (p->granted & 1)
        flit = (Flit){.data = read->error ? 0 : p->r.item.data,
                      .tag = read->tag,
                      .error = read->error ? read->error : p->r.item.error,
                      .dest = read->src,
                      .far = read->far,
                      .last = p->last};
    else if (p->granted)
        flit = (Flit){.tag = write->tag,
                      .error = write->error ? write->error : p->b.item,
                      .dest = write->src,
                      .far = write->src,
                      .last = 1};
    if (p->reads.here && read->error && (p->granted & 1 || p->drain)) p->beat = p->last ? 0 : p->beat + 1;
    if (p->drain) {
        p->out.here = p->out.full = 0;
        grant_reset(&p->grant, 2);
    } else {
        if (p->granted) grant_moved(&p->grant, p->granted, flit.last);
        if (p->granted || p->out.here) FlitBuffer_tick(&p->out, p->granted != 0, flit, p->response_ready);
    }
    if (p->r_valid || p->r.here) {
        uint8_t error = p->r_resp & RESP_BAD ? ERROR_BUS : ERROR_NONE;
        BeatBuffer_tick(&p->r, p->r_valid, (BusBeat){p->r_data, error, p->r_last}, p->r_taken);
    }
    if (p->b_valid || p->b.here)
        FlagBuffer_tick(&p->b, p->b_valid, p->b_resp & RESP_BAD ? ERROR_BUS : ERROR_NONE, p->b_taken);
}

static void memory_port_tick(MemoryPort* p) {
    if (memory_port_rests(p)) return;
    uint32_t waiting = p->in_write || p->in_message || p->dropping || p->ar.here || p->aw.here || p->w.here ||
                       !queue_empty(&p->reads) || !queue_empty(&p->writes);
    uint32_t combines = CORES > 1 && (p->combiner.busy || p->combiner.out.here);
    p->idle = !waiting && !p->out.here && !p->r.here && !p->b.here && !combines && !p->request_valid && !p->r_valid &&
              !p->b_valid && !p->drain && !p->drained;
    p->drained = p->drain && !waiting;
    memory_port_tick_responses(p);
    memory_port_tick_requests(p);
    if (p->read_comes || !queue_empty(&p->reads)) prefetch_tick(&p->reads, p->read_comes, p->read_taken);
    if (p->write_comes || !queue_empty(&p->writes)) prefetch_tick(&p->writes, p->write_comes, p->write_taken);
    if (CORES > 1) {
        if (p->drain) read_combiner_clear(&p->combiner);
        else read_combiner_tick(&p->combiner);
    }
}
