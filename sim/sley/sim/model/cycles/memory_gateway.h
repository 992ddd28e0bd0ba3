// The twin of sley.hw.mmu.gateway: the memory port, and the walker beside it.
#pragma once

#include "memory_port.h"
#include "walker.h"

#define GATEWAY_ROOT_INPUTS(IN, k)                                                                     \
    IN(walker.roots[k % CONTEXTS].mode, "~roots[" #k "].root.mode")                                    \
    IN(walker.roots[k % CONTEXTS].page, "~roots[" #k "].root.page")

// The words of a beat.
#define GATEWAY_WORD_INPUT(IN, k) IN(r_data[k], "axi.rdata@" #k)
#define GATEWAY_WORD_INPUTS(IN, a, b, c, d, e, f, g, h)                                                        \
    GATEWAY_WORD_INPUT(IN, a) GATEWAY_WORD_INPUT(IN, b) GATEWAY_WORD_INPUT(IN, c) GATEWAY_WORD_INPUT(IN, d)   \
    GATEWAY_WORD_INPUT(IN, e) GATEWAY_WORD_INPUT(IN, f) GATEWAY_WORD_INPUT(IN, g) GATEWAY_WORD_INPUT(IN, h)
#define GATEWAY_DATA_INPUTS_8(IN) GATEWAY_WORD_INPUTS(IN, 0, 1, 2, 3, 4, 5, 6, 7)
#define GATEWAY_DATA_INPUTS_16(IN) GATEWAY_DATA_INPUTS_8(IN) GATEWAY_WORD_INPUTS(IN, 8, 9, 10, 11, 12, 13, 14, 15)
#define GATEWAY_DATA_INPUTS_32(IN)                                                                             \
    GATEWAY_DATA_INPUTS_16(IN) GATEWAY_WORD_INPUTS(IN, 16, 17, 18, 19, 20, 21, 22, 23)                        \
    GATEWAY_WORD_INPUTS(IN, 24, 25, 26, 27, 28, 29, 30, 31)
#if BUS_BYTES <= 32
#define GATEWAY_DATA_INPUTS GATEWAY_DATA_INPUTS_8
#elif BUS_BYTES == 64
#define GATEWAY_DATA_INPUTS GATEWAY_DATA_INPUTS_16
#else
#define GATEWAY_DATA_INPUTS GATEWAY_DATA_INPUTS_32
#endif

// Roots from the highest, so that those that a chip lacks do not hide others.
#define MEMORY_GATEWAY_PORTS(IN, OUT)                                                                          \
    MEMORY_REQUEST_INPUTS(IN) MEMORY_BUS_INPUTS(IN, port.) GATEWAY_ROOT_INPUTS(IN, 15)                        \
    GATEWAY_ROOT_INPUTS(IN, 14) GATEWAY_ROOT_INPUTS(IN, 13) GATEWAY_ROOT_INPUTS(IN, 12)                       \
    GATEWAY_ROOT_INPUTS(IN, 11) GATEWAY_ROOT_INPUTS(IN, 10) GATEWAY_ROOT_INPUTS(IN, 9)                        \
    GATEWAY_ROOT_INPUTS(IN, 8) GATEWAY_ROOT_INPUTS(IN, 7) GATEWAY_ROOT_INPUTS(IN, 6)                          \
    GATEWAY_ROOT_INPUTS(IN, 5) GATEWAY_ROOT_INPUTS(IN, 4) GATEWAY_ROOT_INPUTS(IN, 3)                          \
    GATEWAY_ROOT_INPUTS(IN, 2) GATEWAY_ROOT_INPUTS(IN, 1) GATEWAY_ROOT_INPUTS(IN, 0)                          \
    GATEWAY_DATA_INPUTS(IN) MEMORY_RESPONSE_OUTPUTS(OUT)                                                      \
    OUT(response.walk, "response_i.payload.payload.walk?response_i.valid") OUT(answers, ".answers")           \
    OUT(response.data, "response_i.payload.payload.data?.answers") MEMORY_BUS_OUTPUTS(OUT, port.)

enum { GATEWAY_WORDS = BUS_BYTES <= 32 ? 8 : BUS_BYTES / 4 };

// Packets go through, but that a flit is inserted between two of them.
typedef struct Between {
    uint32_t inserting, inside;
} Between;

typedef struct MemoryGateway {
    Flit request;
    Flit response;
    uint32_t request_valid, request_ready, response_valid, response_ready, r_data[GATEWAY_WORDS], answers;

    uint8_t node;  // that of memory
    MemoryPort port;
    Walker walker;
    uint32_t in_packet;
    Between asking, answering;
    // For the tick: a walk comes; requests of others, and answers to them, are here.
    uint32_t walks, others, other_answers;
    uint32_t idle;  // nothing is here, and the outputs say so

    // In a chip the data of a flit is the `place` of its beat among these, and the walker's word is read there.
    const uint8_t* beats;
    uint32_t place;
} MemoryGateway;

// parameters: the node of memory, and those of memory_port
static void memory_gateway_reset(MemoryGateway* g, const uint32_t* parameters) {
    g->node = parameters[0];
    memory_port_reset(&g->port, parameters + 1);
    walker_reset(&g->walker);
}

static inline int memory_gateway_rests(const MemoryGateway* g) {
    return g->idle && !g->request_valid && !g->port.r_valid && !g->port.b_valid && !g->port.drain;
}

static void memory_gateway_outputs(MemoryGateway* g) {
    MemoryPort* port = &g->port;
    Walker* walker = &g->walker;
    if (memory_gateway_rests(g)) return;
    uint32_t walks = !g->in_packet && g->request.kind == KIND_WALK;
    g->others = g->request_valid && !walks;
    if (g->asking.inserting) {
        port->request_valid = walker->state == WALKER_ASK;
        uint32_t addr = walker_entry(walker) & ~(BUS_BYTES - 1);
        port->request = (Flit){.addr = addr, .kind = KIND_READ, .tag = TAG_TABLE, .src = g->node, .last = 1};
    } else {
        port->request_valid = g->others;
        port->request = g->request;
    }
    uint32_t to_walker = port->out.item.tag == TAG_TABLE;
    port->response_ready = to_walker || (g->response_ready && !g->answering.inserting);
    memory_port_outputs(port);

    g->other_answers = port->response_valid && !to_walker;
    if (g->answering.inserting) {
        const Flit* head = walker_head(walker);
        g->response_valid = walker->state == WALKER_ANSWER;
        g->response = (Flit){.data = walker->answer, .tag = head->tag, .walk = 1, .dest = head->src, .far = head->src, .last = 1};
    } else {
        g->response_valid = g->other_answers;
        g->response = port->response;
    }
    g->answers = g->response_valid && g->response.walk;
    g->request_ready = walks ? queue_ready(&walker->waiting) && !port->drain : port->request_ready && !g->asking.inserting;
    g->walks = walks && g->request_valid && g->request_ready;
}

static inline void between_tick(Between* b, uint32_t flit, uint32_t packet, uint32_t last, uint32_t ready) {
    if (b->inserting) {
        b->inserting = !ready;
        return;
    }
    uint32_t continues = packet ? !(ready && last) : b->inside;
    b->inserting = flit && !continues;
    if (packet && ready) b->inside = !last;
}

// The entry that an answer brings.
static inline uint32_t memory_gateway_entry(const MemoryGateway* g) {
    uint32_t word = g->port.response.data;
    if (g->beats) memcpy(&word, g->beats + word * BUS_BYTES + (walker_entry(&g->walker) & BUS_BYTES - 1), sizeof word);
    return word;
}

static void memory_gateway_tick(MemoryGateway* g) {
    MemoryPort* port = &g->port;
    Walker* walker = &g->walker;
    if (memory_gateway_rests(g)) return;
    uint32_t quiet = walker->state == WALKER_IDLE && queue_empty(&walker->waiting) && !g->request_valid &&
                     !g->asking.inserting && !g->answering.inserting;
    uint32_t asks = walker->state == WALKER_ASK, answers = walker->state == WALKER_ANSWER;
    uint32_t asked = asks && g->asking.inserting && port->request_ready;
    uint32_t answered = answers && g->answering.inserting && g->response_ready;
    uint32_t arrives = port->response_valid && port->response.tag == TAG_TABLE;
    between_tick(&g->asking, asks, g->others, g->request.last, port->request_ready);
    between_tick(&g->answering, answers, g->other_answers, port->response.last, g->response_ready);
    if (port->drain) {
        g->asking = g->answering = (Between){0};
        g->in_packet = 0;
        walker_reset(walker);
    } else {
        if (g->request_valid && g->request_ready) g->in_packet = !g->request.last;
        if (g->walks || answered || walker->state != WALKER_IDLE || !queue_empty(&walker->waiting))
            walker_tick(walker, g->walks, &g->request, asked, answered, arrives, arrives ? memory_gateway_entry(g) : 0,
                        port->response.error);
    }
    // Only the word that the walker reads is carried.
    port->r_data = g->beats ? g->place : g->r_data[(walker_entry(walker) & BUS_BYTES - 1) / ENTRY_BYTES];
    memory_port_tick(port);
    g->idle = quiet && port->idle;
}
