// The twin of sley.hw.mmu.port and of the translator in it, sley.hw.mmu.translate.
#pragma once

#include "node_port.h"
#include "tlb.h"

#define TRANSLATED_PORT_PORTS(IN, OUT)                                                                                \
    NODE_PARTS_INPUTS(IN, port.) NODE_ROUTER_INPUTS(IN) IN(answer.walk, "response_o.payload.payload.walk")            \
    IN(answer.data, "response_o.payload.payload.data") IN(invalidate, "invalidate.valid")                            \
    IN(invalidated, "invalidate.context") NODE_PARTS_OUTPUTS(OUT, port.) NODE_ROUTER_OUTPUTS(OUT)

typedef struct TranslatedPort {
    Flit out;
    Flit answer;
    uint32_t out_valid, out_ready, answer_valid, answer_ready, invalidate, invalidated;

    NodePort port;
    Tlb tlb;
    FlitBuffer buffer;
    uint32_t idle;  // nothing is here, and the outputs say so
    uint32_t inside, walking, stale, absent, looked;
    uint32_t translates, asks;  // for the tick: the flit is a head with an address, which is not held
} TranslatedPort;

// parameters: those of node_port
static void translated_port_reset(TranslatedPort* p, const uint32_t* parameters) { node_port_reset(&p->port, parameters); }

static inline void translated_port_look(TranslatedPort* p) {
    const Flit* head = &p->port.buffer.item;
    p->translates = !p->inside && (head->kind == KIND_READ || head->kind == KIND_WRITE);
    p->looked = 1;
    if (!p->translates) return;
    uint32_t access = head->kind == KIND_WRITE ? 1u << NEED_WRITE : 1u << (head->execute ? NEED_EXECUTE : NEED_READ);
    tlb_look(&p->tlb, head->context, head->addr >> PAGE_BITS, access);
}

static inline int translated_port_rests(const TranslatedPort* p) {
    return p->idle && !p->answer_valid && !p->invalidate && !node_port_requests(&p->port);
}

static void translated_port_outputs(TranslatedPort* p) {
    NodePort* port = &p->port;
    if (translated_port_rests(p)) return;
    p->out_valid = p->buffer.here;
    p->out = p->buffer.item;
    if (port->buffer.here && !p->looked) translated_port_look(p);
    p->asks = port->buffer.here && p->translates && !p->tlb.hit && !p->absent;
    port->out_ready = !p->buffer.full && !p->asks;
    port->answer_valid = p->answer_valid && !p->answer.walk;
    port->answer.tag = p->answer.tag;
    node_port_outputs(port);
    p->answer_ready = port->answer_ready || p->answer.walk;
}

static inline void translated_port_answered(TranslatedPort* p) {
    const Flit* head = &p->port.buffer.item;
    uint32_t forgets = p->invalidate && p->invalidated == head->context, valid = ANSWER_VALID(p->answer.data);
    if (!p->answer_valid || !p->answer.walk) {
        p->stale |= forgets;
        return;
    }
    if (valid && !p->stale) tlb_fill(&p->tlb, head->context, head->addr >> PAGE_BITS, p->answer.data);
    p->absent = !valid && !p->stale && !forgets;
    p->walking = p->stale = p->looked = 0;
}

static void translated_port_tick(TranslatedPort* p) {
    NodePort* port = &p->port;
    if (translated_port_rests(p)) return;
    p->idle = !p->buffer.here && !port->buffer.here && !p->answer_valid && !node_port_requests(port);
    uint32_t ready = !p->buffer.full, comes = port->buffer.here && !(p->asks && p->walking), walking = p->walking;
    Flit flit = port->buffer.item;
    if (comes && p->translates) {
        flit.addr = p->tlb.page << PAGE_BITS | (flit.addr & ((1u << PAGE_BITS) - 1));
        if (!p->tlb.allowed) flit.error |= p->absent ? ERROR_PAGE : ERROR_PERMISSION;
        if (p->asks) {
            flit.kind = KIND_WALK;
            flit.last = 1;
        }
    }
    if (comes && ready) {
        if (p->asks) {
            p->walking = 1;
        } else {
            p->inside = !flit.last;
            p->looked = 0;
        }
    }
    if (ready) p->absent = 0;
    if (walking) translated_port_answered(p);
    if (p->invalidate) {
        tlb_forget(&p->tlb, p->invalidated);
        p->looked = 0;
    }
    if (comes || p->buffer.here) FlitBuffer_tick(&p->buffer, comes, flit, p->out_ready);
    node_port_tick(port);
}
