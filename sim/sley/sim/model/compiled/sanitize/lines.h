// The order of accesses to device memory: within a block by its semaphores; blocks of a launch have none.
//
// Launches are taken as ordered, whatever their queues are. A line remembers some accesses, each with the bytes that it
// was for; one more takes the place of one of another launch, or of a read.
#pragma once

#include "rows.h"

static void line_raced(Core* core, uint64_t address, int writes, const Cell* cell) {
    report(core, (Report){.finding = FOUND_MEMORY_RACE, .writes = writes, .address = (uint32_t)address,
                          .other_unit = unit_of_agent[cell->agent], .other_pc = cell->pc, .other_writes = cell->writes,
                          .other_block = cell->block});
}

static inline void line_access(Core* core, Line* line, uint64_t bytes, uint64_t address, int writes) {
    Sanitizer* s = core->sanitizer;
    Cell* to = 0;
    for (int k = 0; k < CELLS; ++k) {
        Cell* cell = &line->cells[k];
        if (cell->launch != s->launch) {
            to = cell;
            continue;
        }
        int own = cell->block == s->linear, ordered = own && cell->clock <= s->now.at[cell->agent];
        if (cell->bytes & bytes && (writes || cell->writes) && !ordered)
            line_raced(core, address + __builtin_ctzll(cell->bytes & bytes), writes, cell);
        // What all bytes of an access before are covered by takes its place.
        if (own && ordered && cell->writes <= writes && !(cell->bytes & ~bytes)) to = cell;
    }
    for (int k = 0; !to && k < CELLS; ++k)
        if (!line->cells[k].writes) to = &line->cells[k];
    if (!to) to = &line->cells[line->victim++ % CELLS];
    *to = (Cell){bytes, s->launch, s->linear, s->now.at[s->agent], s->pc, (uint8_t)s->agent, (uint8_t)writes};
}

// Bytes that lie side by side, at `physical` in memory and at `address` for the program.
static void lines_access(Core* core, uint64_t physical, uint64_t address, uint64_t size, int writes) {
    if (!enabled(core, SANITIZE_RACE) || !core->sanitizer->launch) return;
    enum { LINE = 1 << LINE_BITS };
    while (size) {
        uint64_t first = physical % LINE, count = size < LINE - first ? size : LINE - first;
        uint64_t bytes = (count == LINE ? ~0ull : (1ull << count) - 1) << first;
        line_access(core, &core->memory->lines[physical >> LINE_BITS], bytes, address - first, writes);
        physical += count, address += count, size -= count;
    }
}
