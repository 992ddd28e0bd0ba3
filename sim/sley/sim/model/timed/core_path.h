// The way from a core to memory: readers, a writer, and the port that they share.
#pragma once

#include "fetched.h"
#include "memory_reader.h"
#include "memory_writer.h"
#include "translated_port.h"

enum { CORE_FETCH, CORE_LOAD, CORE_STORE, CORE_PARTS, FETCH_RUNS = 4, STORE_WEIGHT = 1, LOAD_WEIGHT = 16 };

typedef struct CorePath {
    MemoryReader fetch, load;
    MemoryWriter store;
    FlitBuffer requests[CORE_PARTS];  // between each of them and the port
    TranslatedPort port;
    Fetched fetched;
    uint32_t node, memory;

    const uint8_t (*beats)[BUS_BYTES];  // where what comes for the sequencer lies, by the data of a flit
} CorePath;

static void core_path_reset(CorePath* p, uint32_t node, uint32_t memory) {
    p->node = node;
    p->memory = memory;
    memory_reader_reset(&p->fetch, (uint32_t[]){FETCH_RUNS, 2 * MAX_BURST});
    memory_reader_reset(&p->load, (uint32_t[]){READER_RUNS, READER_BEATS});
    memory_writer_reset(&p->store, 0);
    translated_port_reset(&p->port, (uint32_t[]){CORE_PARTS, TAG_FETCH, TAG_LOAD, TAG_STORE, 1, LOAD_WEIGHT, STORE_WEIGHT});
}

static void core_path_outputs(CorePath* p) {
    NodePort* port = &p->port.port;
    for (int k = 0; k < CORE_PARTS; ++k) {
        port->request_valid[k] = p->requests[k].here;
        if (p->requests[k].here) port->request[k] = p->requests[k].item;
    }
    uint32_t answer = p->port.answer_valid && !p->port.answer.walk, tag = p->port.answer.tag;
    p->fetch.request_ready = !p->requests[CORE_FETCH].full;
    p->load.request_ready = !p->requests[CORE_LOAD].full;
    p->store.request_ready = !p->requests[CORE_STORE].full;
    p->fetch.response_valid = answer && tag == TAG_FETCH;
    p->load.response_valid = answer && tag == TAG_LOAD;
    p->store.response_valid = answer && tag == TAG_STORE;
    p->fetch.response_error = p->load.response_error = p->store.response_error = p->port.answer.error;
    memory_reader_outputs(&p->fetch);
    memory_reader_outputs(&p->load);
    memory_writer_outputs(&p->store);
    port->response_ready[CORE_FETCH] = p->fetch.response_ready;
    port->response_ready[CORE_LOAD] = p->load.response_ready;
    port->response_ready[CORE_STORE] = 1;
    translated_port_outputs(&p->port);
}

static inline Flit reader_flit(const CorePath* p, const MemoryReader* r, uint32_t tag) {
    return (Flit){.addr = r->request_addr, .dest = p->memory, .far = p->memory, .last = 1, .kind = KIND_READ, .tag = tag,
                  .src = p->node, .beats = r->request_beats, .context = r->request_context,
                  .execute = r->request_execute, .share = r->request_share};
}

static inline Flit writer_flit(const CorePath* p, const MemoryWriter* w) {
    Flit flit = {.dest = p->memory, .far = p->memory, .last = w->request_last};
    if (!w->head) return flit;
    flit.addr = w->request_addr, flit.kind = KIND_WRITE, flit.tag = TAG_STORE, flit.src = p->node;
    flit.beats = w->request_beats, flit.context = w->request_context;
    return flit;
}

static inline void core_path_request(CorePath* p, int part, uint32_t valid, Flit flit) {
    FlitBuffer* b = &p->requests[part];
    if (valid || b->here) FlitBuffer_tick(b, valid, flit, p->port.port.request_ready[part]);
}

static void core_path_tick(CorePath* p) {
    if (p->fetch.i_valid && p->fetch.i_ready) fetched_ask(&p->fetched, &p->fetch.i);
    if (p->fetch.response_valid && p->fetch.response_ready) fetched_arrive(&p->fetched, p->beats[p->port.answer.data]);
    if (p->fetch.o_valid && p->fetch.o_ready) fetched_take(&p->fetched, p->fetch.o_last);
    Flit none = {0};
    core_path_request(p, CORE_FETCH, p->fetch.request_valid, p->fetch.request_valid ? reader_flit(p, &p->fetch, TAG_FETCH) : none);
    core_path_request(p, CORE_LOAD, p->load.request_valid, p->load.request_valid ? reader_flit(p, &p->load, TAG_LOAD) : none);
    core_path_request(p, CORE_STORE, p->store.request_valid, p->store.request_valid ? writer_flit(p, &p->store) : none);
    memory_reader_tick(&p->fetch);
    memory_reader_tick(&p->load);
    memory_writer_tick(&p->store);
    translated_port_tick(&p->port);
}
