// The twin of sley.hw.command.interrupts: the interrupt line.
#pragma once

#include "twin.h"

#define INTERRUPTS_PORTS(IN, OUT)                                                                                   \
    IN(fences, "status.fence") IN(errors, "status.error") IN(enabled_fences, "enable.fence")                       \
    IN(enabled_errors, "enable.error") IN(limit, "coalesce.count") IN(patience, "coalesce.cycles") IN(fence, "fence") \
    OUT(irq, "irq")

typedef struct Interrupts {
    uint32_t fences, errors, enabled_fences, enabled_errors, limit, patience, fence;
    uint32_t irq;

    uint32_t count, cycles, due;
} Interrupts;

static void interrupts_reset(Interrupts* i, const uint32_t* parameters) {}

static void interrupts_outputs(Interrupts* i) {}

static void interrupts_tick(Interrupts* i) {
    uint32_t pending = i->fences & i->enabled_fences, raised = (i->fence & i->enabled_fences) != 0;
    i->irq = (pending && (i->due || i->limit <= 1)) || (i->errors & i->enabled_errors);
    if (!pending) {
        i->count = raised;
        i->cycles = i->due = 0;
    } else if (!i->due) {
        i->due = i->count >= i->limit || i->cycles >= i->patience;
        i->count += raised;
        ++i->cycles;
    }
}
