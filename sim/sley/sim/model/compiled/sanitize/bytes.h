// Accesses to device memory: whether its bytes belong to somebody, and whether they were written before.
#pragma once

#include "lines.h"

static void* sanitizer_scratch(Core* core, uint64_t bytes) {
    Sanitizer* s = core->sanitizer;
    if (bytes > s->scratch_size) {
        free(s->scratch);
        s->scratch = malloc(bytes);
        s->scratch_size = bytes;
    }
    return s->scratch;
}

static uint8_t bytes_common(const uint8_t* shadow, uint64_t count) {
    uint8_t all = 0xFF;
    for (uint64_t k = 0; k < count; ++k) all &= shadow[k];
    return all;
}

// The shadow of the bytes from an address on that lie side by side, at most `length`; NULL if they are refused.
static uint8_t* bytes_piece(Core* core, uint64_t address, uint64_t length, int need, uint64_t* size) {
    Refused refused;
    const uint8_t* data = memory_piece(core->memory, core->space, address, length, need, size, &refused);
    return data ? core->memory->shadow + (data - core->memory->data) : 0;
}

static void bytes_usable(Core* core, uint64_t address, uint64_t length, const uint8_t* shadow, uint64_t size, int writes) {
    if (!enabled(core, SANITIZE_MEMORY) || !core->memory->watched || bytes_common(shadow, size) & MEMORY_USABLE) return;
    uint64_t k = 0;
    while (shadow[k] & MEMORY_USABLE) ++k;
    report(core, (Report){.finding = FOUND_OUTSIDE, .writes = writes, .address = (uint32_t)(address + k),
                          .length = (uint32_t)length, .physical = shadow + k - core->memory->shadow});
}

// LOAD reads a run. Returns NULL if all its bytes were written before, else what is to be known of each.
static const uint8_t* bytes_load(Core* core, uint64_t address, uint64_t length, uint8_t* to) {
    uint8_t all = MEMORY_DEFINED;
    for (uint64_t done = 0, size; done < length; done += size) {
        const uint8_t* shadow = bytes_piece(core, address + done, length - done, NEED_READ, &size);
        if (!shadow) return 0;
        bytes_usable(core, address + done, length, shadow, size, 0);
        lines_access(core, shadow - core->memory->shadow, address + done, size, 0);
        all &= bytes_common(shadow, size);
        for (uint64_t k = 0; k < size; ++k) to[done + k] = shadow[k] & MEMORY_DEFINED ? DEFINED : UNDEFINED;
    }
    return all ? 0 : to;
}

// STORE writes a run whose bytes the local shadow says this of.
static void bytes_store(Core* core, uint64_t address, uint64_t length, const uint8_t* from) {
    for (uint64_t done = 0, size; done < length; done += size) {
        uint8_t* shadow = bytes_piece(core, address + done, length - done, NEED_WRITE, &size);
        if (!shadow) return;
        bytes_usable(core, address + done, length, shadow, size, 1);
        lines_access(core, shadow - core->memory->shadow, address + done, size, 1);
        for (uint64_t k = 0; k < size; ++k)
            shadow[k] = (shadow[k] & ~MEMORY_DEFINED) | (from[done + k] == UNDEFINED ? 0 : MEMORY_DEFINED);
    }
}
