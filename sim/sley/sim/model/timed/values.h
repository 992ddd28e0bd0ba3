// Who computes the values that blocks and copies work on; without one only time passes.
#pragma once

#include "copy_scheduler.h"
#include "unit_front.h"

// Functions of the compiled model, for its memory and for a core.
typedef struct Values {
    void (*begin)(void* core, uint32_t context);
    void (*execute)(void* core, uint32_t unit, const UnitCommand* command);
    void (*scrub)(void* core);
    uint32_t (*word)(void* core, uint32_t row, uint32_t lane);  // of the accumulators
    void (*copy)(void* memory, uint32_t context, uint64_t from, uint64_t to, uint64_t bytes);
    void (*fill)(void* memory, uint32_t context, uint64_t to, uint64_t bytes, uint32_t value);
    void (*root)(void* memory, uint32_t context, uint32_t mode, uint32_t page);
    void (*forget)(void* memory, uint32_t context);
    void* memory;
    void* cores[CORES];
} Values;
