// The twin of sley.hw.core.params: a unit's parameters; and its fault record.
#pragma once

#include "params.h"
#include "unit_front.h"

typedef struct Fault {
    uint32_t valid, code, pc, address;
} Fault;

static inline void params_reset(uint32_t* values) {
    for (int k = 0; k < PARAMS; ++k) values[k] = (uint32_t)param_infos[k].reset;
}
