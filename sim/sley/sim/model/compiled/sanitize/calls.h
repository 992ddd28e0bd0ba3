// What sley.sim.model.sanitize calls.
#pragma once

#include "hooks.h"

// Makes room for what is known of memory, which costs none before it is used. Returns whether there is any.
static int memory_follow(Memory* memory) {
    memory->shadow = calloc(memory->size, 1);
    memory->lines = calloc((memory->size >> LINE_BITS) + 1, sizeof(Line));
    if (memory->shadow && memory->lines) return 1;
    free(memory->shadow);
    free(memory->lines);
    return 0;
}

// Which block of which launch begins.
EXPORT void core_block(Core* core, uint32_t launch, uint32_t linear) {
    core->sanitizer->launch = launch, core->sanitizer->linear = linear;
}

// The reports of a core, and which sanitizers look.
EXPORT Sanitizer* core_sanitizer(Core* core) { return core->sanitizer; }

// Writes down what every part of a core waits for.
EXPORT void core_stuck(Core* core) {
    Sanitizer* s = core->sanitizer;
    uint32_t empty = 0, full = 0;
    for (int i = 0; i < SEMAPHORES; ++i) {
        empty |= (uint32_t)(core->semaphores[i] == 0) << i;
        full |= (uint32_t)(core->semaphores[i] == SEMAPHORE_MAX) << i;
    }
    memset(s->stuck, 0, sizeof s->stuck);
    for (uint32_t unit = UNIT_LOAD; unit < UNIT_COUNT; ++unit) {
        const Queue* queue = &core->queues[unit];
        const Command* command = &queue->items[queue->first];
        if (queue->signalling) s->stuck[unit].state = FOR_ROOM, s->stuck[unit].semaphores = queue->signal & full;
        else if (queue->count) s->stuck[unit].state = FOR_SIGNALS, s->stuck[unit].semaphores = WORD_WAIT(command->word) & empty;
        s->stuck[unit].pc = queue->signalling ? s->pcs[unit] : command->pc;
    }
    Word w = core->program[core->pc];
    uint32_t op = WORD_OP(w), state = op == OP_END ? FOR_UNITS : FOR_QUEUE, semaphores = 0;
    if (op == OP_SYNC) {
        state = core->sync_wait_done ? FOR_ROOM : FOR_SIGNALS;
        semaphores = core->sync_wait_done ? WORD_SIGNAL(w) & full : WORD_WAIT(w) & empty;
    }
    s->stuck[UNIT_SEQUENCER].state = state, s->stuck[UNIT_SEQUENCER].pc = core->pc;
    s->stuck[UNIT_SEQUENCER].semaphores = semaphores;
}

// What is known of bytes of device memory: bits to clear, and bits to set.
EXPORT void memory_mark(Memory* memory, uint64_t address, uint64_t length, uint32_t clear, uint32_t set) {
    uint8_t* shadow = memory->shadow + address;
    if (set & MEMORY_USABLE) memory->watched = 1;
    for (uint64_t k = 0; k < length; ++k) shadow[k] = (shadow[k] & ~clear) | set;
}

// Bytes were copied, and with them whether they were written.
EXPORT void memory_copied(Memory* memory, uint64_t from, uint64_t to, uint64_t length) {
    uint8_t *source = memory->shadow + from, *target = memory->shadow + to;
    for (uint64_t k = 0; k < length; ++k) target[k] = (target[k] & ~MEMORY_DEFINED) | (source[k] & MEMORY_DEFINED);
}

// How many of these bytes, from the first on, belong to somebody.
EXPORT uint64_t memory_usable(Memory* memory, uint64_t address, uint64_t length) {
    const uint8_t* shadow = memory->shadow + address;
    if (!memory->watched) return length;
    for (uint64_t k = 0; k < length; ++k)
        if (!(shadow[k] & MEMORY_USABLE)) return k;
    return length;
}
