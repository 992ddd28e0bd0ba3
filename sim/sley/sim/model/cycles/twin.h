// What every twin of a gateware block has: its ports, and functions for a test that runs both in lock-step.
//
// A twin is a header named after the block, with
//   #define BLOCK_PORTS(IN, OUT) IN(field, "path of the port") ... OUT(field, "path") ...     inputs first
//   typedef struct Block { PORTS(BLOCK_PORTS) state ... } Block;
//   void block_reset(Block*, const uint32_t* parameters)    of one that is all 0: the state after reset
//   void block_outputs(Block*)                              sets the outputs, from the state and the inputs
//   void block_tick(Block*)                                 a clock edge, after block_outputs of the same inputs
// Ports that carry nothing but values are left out: no timing depends on them.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TWIN_FIELD(name, path) uint32_t name;
#define TWIN_IN(name, path) twin->name = *values++;
#define TWIN_OUT(name, path) *values++ = twin->name;
#define TWIN_NONE(name, path)
#define TWIN_NAME_IN(name, path) "I" path "\n"
#define TWIN_NAME_OUT(name, path) "O" path "\n"
#define PORTS(list) list(TWIN_FIELD, TWIN_FIELD)

// A field of an instruction's flags, as they are in a command.
#define FLAG(field, flags) field((Word)(flags) << FLAGS_LSB)

// The functions that a test calls: inputs come, and outputs go, in the order of the list.
#define TWIN(Block, block, list)                                                                             \
    __attribute__((visibility("default"))) const char block##_twin_ports[] = list(TWIN_NAME_IN, TWIN_NAME_OUT); \
    __attribute__((visibility("default"))) void* block##_twin_create(const uint32_t* parameters) {          \
        Block* twin = calloc(1, sizeof *twin);                                                              \
        if (twin) block##_reset(twin, parameters);                                                          \
        return twin;                                                                                        \
    }                                                                                                       \
    __attribute__((visibility("default"))) void block##_twin_outputs(Block* twin, const uint32_t* values) { \
        list(TWIN_IN, TWIN_NONE) block##_outputs(twin);                                                     \
    }                                                                                                       \
    __attribute__((visibility("default"))) void block##_twin_tick(Block* twin, uint32_t* values) {          \
        list(TWIN_NONE, TWIN_OUT) block##_tick(twin);                                                       \
    }                                                                                                       \
    __attribute__((visibility("default"))) void block##_twin_destroy(Block* twin) { free(twin); }
