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

#include <stddef.h>
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

// The words of a port of 16 or fewer; `when`: as in a path, behind a question mark.
#define TWIN_WORD(PORT, name, path, when, k) PORT(name[k], path "@" #k when)
#define BEAT_WORDS_PORTS(PORT, name, path, when)                                                          \
    TWIN_WORD(PORT, name, path, when, 0) TWIN_WORD(PORT, name, path, when, 1) TWIN_WORD(PORT, name, path, when, 2) \
    TWIN_WORD(PORT, name, path, when, 3) TWIN_WORD(PORT, name, path, when, 4) TWIN_WORD(PORT, name, path, when, 5) \
    TWIN_WORD(PORT, name, path, when, 6) TWIN_WORD(PORT, name, path, when, 7) TWIN_WORD(PORT, name, path, when, 8) \
    TWIN_WORD(PORT, name, path, when, 9) TWIN_WORD(PORT, name, path, when, 10) TWIN_WORD(PORT, name, path, when, 11) \
    TWIN_WORD(PORT, name, path, when, 12) TWIN_WORD(PORT, name, path, when, 13) TWIN_WORD(PORT, name, path, when, 14) \
    TWIN_WORD(PORT, name, path, when, 15)

// A field of an instruction's flags, as they are in a command.
#define FLAG(field, flags) field((Word)(flags) << FLAGS_LSB)

// Whether an output is compared: always, never (the gateware has no such port), or while a port is high, which is named by
// its number among all of them.
enum { COMPARED = -1, UNSEEN = -2 };

// The first output of the gateware that is not that of the twin, or -1. `inputs`: how many come before the outputs.
static inline int twin_difference(const uint32_t* ports, int inputs, const uint32_t* results, const int32_t* conditions,
                                  int outputs) {
    for (int k = 0; k < outputs; ++k) {
        int when = conditions[k];
        if (ports[inputs + k] == results[k] || when == UNSEEN) continue;
        if (when == COMPARED || (when < inputs ? ports[when] : results[when - inputs])) return k;
    }
    return -1;
}

#define TWIN_COUNT(name, path) +1

// The functions that a test calls. A cycle takes all ports of the gateware, in the order of the list.
#define TWIN(Block, block, list)                                                                                    \
    __attribute__((visibility("default"))) const char block##_twin_ports[] = list(TWIN_NAME_IN, TWIN_NAME_OUT);    \
    __attribute__((visibility("default"))) void* block##_twin_create(const uint32_t* parameters) {                 \
        Block* twin = calloc(1, sizeof *twin);                                                                     \
        if (twin) block##_reset(twin, parameters);                                                                 \
        return twin;                                                                                               \
    }                                                                                                              \
    __attribute__((visibility("default"))) int block##_twin_cycle(Block* twin, const uint32_t* ports,              \
                                                                  const int32_t* conditions, uint32_t* results) {  \
        enum { INPUTS = 0 list(TWIN_COUNT, TWIN_NONE), OUTPUTS = 0 list(TWIN_NONE, TWIN_COUNT) };                  \
        uint32_t* values = (uint32_t*)ports;                                                                       \
        list(TWIN_IN, TWIN_NONE) block##_outputs(twin);                                                            \
        values = results;                                                                                          \
        list(TWIN_NONE, TWIN_OUT) block##_tick(twin);                                                              \
        return twin_difference(ports, INPUTS, results, conditions, OUTPUTS);                                       \
    }                                                                                                              \
    __attribute__((visibility("default"))) void block##_twin_destroy(Block* twin) { free(twin); }
