// A chip: its twins as sley.hw.chip connects them. Its pins are those of `target` and of the gateware's memory bus.
#pragma once

#include "axi_lite.h"
#include "bus_counters.h"
#include "command_processor.h"
#include "command_sleep.h"
#include "core_sleep.h"
#include "memory_gateway.h"
#include "network.h"
#include "wiring.h"
#include "register_bank.h"
#include "written.h"

enum { BEATS_UNDERWAY = 1 << 12 };  // more than all networks and queues hold
enum { NODE_MEMORY, NODE_COMMAND, NODE_CORE };  // in `nodes`
enum { REST_CYCLES = 8 };  // after which all pipelines that end at registers have passed
enum { RESET_RUN, RESET_DRAIN, RESET_RESET };
enum { WATCH_CYCLES = 2, PROGRESS_DELAYS = 1 + WATCH_CYCLES + (CORES + 2 > 8) + (CORES + 2 > 64) };  // of CoreWatch

typedef struct Chip {
    AxiLite target;
    RegisterBank bank;
    CommandProcessor command;
    Core cores[CORES];
    Network requests, responses;
    MemoryGateway gateway;
    Written written;
    BusCounters counters;
    uint32_t reset_state, drained;
    uint32_t progress, progressing[PROGRESS_DELAYS];
    Values values;
    CommandSleep sleep;
    CoreSleep sleeps[CORES];
    uint32_t rested;  // cycles in which all of it slept

    uint8_t beats[BEATS_UNDERWAY][BUS_BYTES];  // what memory gave, by the data of a flit
    uint32_t beat;
} Chip;

// All that a reset by software resets, too.
static void chip_clear(Chip* c) {
    static const uint32_t split[] = {FETCH_SPLIT};
    memset(&c->requests, 0, sizeof c->requests);
    memset(&c->responses, 0, sizeof c->responses);
    memset(&c->command, 0, sizeof c->command);
    c->progress = 0;
    c->sleep.still = c->sleep.asleep = 0;
    memset(c->progressing, 0, sizeof c->progressing);
    network_reset(&c->requests, request_routers, REQUEST_ROUTERS);
    network_reset(&c->responses, response_routers, RESPONSE_ROUTERS);
    command_processor_reset(&c->command, command_parameters);
    for (int k = 0; k < CORES; ++k) {
        Core* core = &c->cores[k];
        CoreCounters counters = core->counters;
        uint32_t happened[CLASS_GROUPS];
        memcpy(happened, core->happened, sizeof happened);
        memset(core, 0, sizeof *core);
        core->counters = counters;
        counter_groups_forget(&core->counters.groups);
        memcpy(core->happened, happened, sizeof happened);
        core->values = &c->values;
        core->model = c->values.cores[k];
        core_reset(core, k, nodes[NODE_CORE + k], nodes[NODE_MEMORY], split, vector_parameters);
        core->path.beats = (const void*)c->beats;
        c->sleeps[k].still = c->sleeps[k].asleep = 0;
    }
}

static void chip_reset(Chip* c) {
    for (int k = 0; k < CORES; ++k) core_counters_reset(&c->cores[k].counters, 0);
    bus_counters_reset(&c->counters, 0);
    chip_clear(c);
    register_bank_reset(&c->bank, 0);
    memory_gateway_reset(&c->gateway, nodes);
    c->gateway.beats = c->beats[0];
}

#include "chip_command.h"
#include "chip_counts.h"

// What is on the networks at the beginning of a cycle.
static inline void chip_links(Chip* c) {
    for (int k = 0; k < CORES; ++k) {
        const FlitBuffer* launch = &network_at(&c->requests, nodes[NODE_CORE + k])->out[SIDE_LOCAL];
        const FlitBuffer* answer = &network_at(&c->responses, nodes[NODE_CORE + k])->out[SIDE_LOCAL];
        Core* core = &c->cores[k];
        core->launch_valid = launch->here;
        if (launch->here) core->launch = launch->item;
        core->path.port.answer_valid = answer->here;
        if (answer->here) core->path.port.answer = answer->item;
    }
    const FlitBuffer* request = &network_at(&c->requests, nodes[NODE_MEMORY])->out[SIDE_LOCAL];
    c->gateway.request_valid = request->here;
    if (request->here) c->gateway.request = request->item;
}

static inline void chip_core(Chip* c, int k, uint32_t freeze) {
    Core* core = &c->cores[k];
    CoreSleep* sleep = &c->sleeps[k];
    sleep->stirs = core_stirs(core, c->command.abort, c->command.port.invalidate, freeze);
    if (sleep->asleep && !sleep->stirs) return;
    sleep->asleep = 0;
    core->freeze = freeze;
    core->cancel = c->command.abort;
    core->invalidate = c->command.port.invalidate;
    core->invalidated = c->command.port.invalidated;
    core->contents = c->command.contents;
    core_outputs(core);
    network_enter(&c->requests, network_at(&c->requests, nodes[NODE_CORE + k]), core->path.port.out_valid, &core->path.port.out);
    const Sequencer* s = &core->sequencer;
    Flit done = {.data = s->done_word, .dest = nodes[NODE_COMMAND], .far = nodes[NODE_COMMAND], .last = s->done_last, .tag = TAG_MESSAGE};
    network_enter(&c->responses, network_at(&c->responses, nodes[NODE_CORE + k]), s->done_valid, &done);
}

static inline void chip_cores(Chip* c) {
    uint32_t freeze = R_CHIP_COUNTER_CONTROL_FREEZE(c->bank.values[REGISTER_CHIP_COUNTER_CONTROL]);
    for (int k = 0; k < CORES; ++k) chip_core(c, k, freeze);
}

// Who is ready for what networks bring, and they for what enters.
static inline void chip_accepted(Chip* c) {
    MemoryGateway* g = &c->gateway;
    Router *to_memory = network_at(&c->requests, nodes[NODE_MEMORY]), *from_memory = network_at(&c->responses, nodes[NODE_MEMORY]);
    if (g->response_valid && !from_memory->in_ready[SIDE_LOCAL]) {
        g->response_ready = 0;
        memory_gateway_outputs(g);
    }
    to_memory->out_ready[SIDE_LOCAL] = g->request_ready;
    for (int k = 0; k < CORES; ++k) {
        Core* core = &c->cores[k];
        Router *request = network_at(&c->requests, nodes[NODE_CORE + k]), *response = network_at(&c->responses, nodes[NODE_CORE + k]);
        core->path.port.out_ready = request->in_ready[SIDE_LOCAL];
        core->done_ready = response->in_ready[SIDE_LOCAL];
        request->out_ready[SIDE_LOCAL] = core->sequencer.launch_ready;
        response->out_ready[SIDE_LOCAL] = core->path.port.answer_ready;
    }
    c->command.port.out_ready = network_at(&c->requests, nodes[NODE_COMMAND])->in_ready[SIDE_LOCAL];
    network_at(&c->responses, nodes[NODE_COMMAND])->out_ready[SIDE_LOCAL] = c->command.port.answer_ready;
}

static void chip_outputs(Chip* c) {
    MemoryGateway* g = &c->gateway;
    chip_links(c);
    chip_command(c);
    chip_cores(c);
    if (CORES > 1) memcpy(g->port.combiner.ended, c->command.scheduler.ended_words, sizeof g->port.combiner.ended);
    g->port.drain = c->reset_state != RESET_RUN;
    g->response_ready = 1;
    memory_gateway_outputs(g);
    network_enter(&c->responses, network_at(&c->responses, nodes[NODE_MEMORY]), g->response_valid, &g->response);
    network_outputs(&c->requests);
    network_outputs(&c->responses);
    chip_accepted(c);
}

// A beat of memory is taken, and beats for it are.
static inline void chip_beats(Chip* c) {
    MemoryPort* p = &c->gateway.port;
    Written* w = &c->written;
    if (p->r_valid && p->r_ready) {
        c->gateway.place = c->beat;
        c->beat = (c->beat + 1) % BEATS_UNDERWAY;
    }
    if (p->w_valid && p->w_ready) ++w->first;
    if (p->w_comes) {
        int has_data = p->request_valid && p->request.tag == TAG_WORD;
        w->at_bus[w->end++ % WRITTEN_BEATS] = has_data ? p->request.data : NO_BEAT;
    }
}

static inline void chip_tick_reset(Chip* c) {
    uint32_t state = c->reset_state, asked = c->command.reset_request;
    if (state == RESET_RUN && asked) c->reset_state = RESET_DRAIN;
    if (state == RESET_DRAIN && c->drained) c->reset_state = RESET_RESET;
    if (state != RESET_RESET) return;
    c->reset_state = RESET_RUN;
    chip_clear(c);
}

static inline void chip_tick_core(Core* core, CoreSleep* sleep) {
    if (sleep->asleep) {
        core_pass(core, 1);
        return;
    }
    core_tick(core);
    core_sleep_look(sleep, core);
}

// Whether nothing is anywhere, so that no cycle changes anything before somebody outside says something.
static inline int chip_rests(const Chip* c) {
    const BusCounters* b = &c->counters;
    if (!c->sleep.asleep || c->requests.awake || c->responses.awake || c->reset_state != RESET_RUN) return 0;
    for (int k = 0; k < CORES; ++k)
        if (!c->sleeps[k].asleep) return 0;
    return c->gateway.idle && !(b->events[BUS_READ] | b->events[BUS_WRITE] | b->reads | b->writes);
}

// So many cycles of a chip that has rested for `REST_CYCLES`.
static inline void chip_pass(Chip* c, uint64_t cycles) {
    c->command.time += cycles;
    for (int k = 0; k < CORES; ++k) core_pass(&c->cores[k], cycles);
    if (c->counters.freeze) return;
    c->counters.groups.time += cycles;
    c->counters.groups.sums[0][BUS_CYCLES] += cycles;
}

static void chip_tick(Chip* c) {
    chip_count(c);
    chip_beats(c);
    c->drained = c->gateway.port.drained;
    memory_gateway_tick(&c->gateway);
    for (int k = 0; k < CORES; ++k) chip_tick_core(&c->cores[k], &c->sleeps[k]);
    network_tick(&c->requests);
    network_tick(&c->responses);
    chip_tick_command(c);
    chip_tick_reset(c);
    c->rested = chip_rests(c) ? c->rested + 1 : 0;
}
