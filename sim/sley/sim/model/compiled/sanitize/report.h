// Reports of a core, each once in a block.
#pragma once

#include "../core.h"

static int enabled(const Core* core, int kind) { return core->sanitizer->enabled >> kind & 1; }

static void report(Core* core, Report found) {
    Sanitizer* s = core->sanitizer;
    found.unit = s->unit, found.pc = s->pc;
    for (uint32_t k = 0; k < s->count && k < REPORTS; ++k) {
        const Report* r = &s->reports[k];
        if (r->finding == found.finding && r->pc == found.pc && r->other_pc == found.other_pc &&
            r->other_unit == found.other_unit && r->other_writes == found.other_writes)
            return;
    }
    if (s->count < REPORTS) s->reports[s->count] = found;
    s->count += s->count <= REPORTS;
}
