// Sets of codes, as masks of bits.
#pragma once

#include "abi.h"

static inline int has(uint32_t mask, uint32_t code) { return code < 32 && mask >> code & 1; }
