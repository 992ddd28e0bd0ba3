// Parameters of the units: what SET may write.
#pragma once

#include "abi.h"

// Whether a unit has no such parameter, or the value does not fit its width.
static inline int set_is_bad(uint32_t unit, uint32_t param, uint32_t value) {
    if (param >= PARAMS || !(param_infos[param].units >> unit & 1)) return 1;
    int width = param_infos[param].width;
    if (!param_infos[param].is_signed) return width < 32 && value >> width;
    int32_t dropped = (int32_t)value >> (width - 1);
    return dropped != 0 && dropped != -1;
}

// The number that a parameter's 32 bits are.
static inline int64_t param_value(uint32_t param, uint32_t value) {
    return param_infos[param].is_signed ? (int64_t)(int32_t)value : (int64_t)value;
}
