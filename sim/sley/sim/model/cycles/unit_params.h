// The twin of sley.hw.core.params: a unit's parameters, and which SETs are faults.
#pragma once

#include "abi.h"
#include "unit_front.h"

typedef struct Fault {
    uint32_t valid, code, pc, address;
} Fault;

#define FLAGS(command) ((Word)(command)->flags << FLAGS_LSB)  // where fields of an operation are found

static inline void params_reset(uint32_t* values) {
    for (int k = 0; k < PARAMS; ++k) values[k] = (uint32_t)param_infos[k].reset;
}

static int set_is_bad(int unit, uint32_t param, uint32_t value) {
    if (param >= PARAMS || !(param_infos[param].units >> unit & 1)) return 1;
    int width = param_infos[param].width;
    if (!param_infos[param].is_signed) return width < 32 && value >> width;
    int32_t dropped = (int32_t)value >> (width - 1);
    return dropped != 0 && dropped != -1;
}
