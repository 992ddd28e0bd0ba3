// State of a core: its local memories and registers, queues and semaphores.
#pragma once

#include "abi.h"
#include "codes.h"
#include "memory.h"

#define UNIT_COUNT 5

#ifdef SANITIZE
#include "sanitize/state.h"
#endif

// An instruction of a unit with its operands read.
typedef struct Command {
    Word word;
    uint32_t a, b, c, pc;
} Command;

typedef struct Fault {
    uint32_t code, unit, pc, address;
} Fault;

typedef struct Queue {
    Command items[UNIT_QUEUE];
    uint32_t first, count, signal;
    int signalling;
} Queue;

typedef struct Loop {
    uint32_t first, last, remaining;
} Loop;

// A function of one's own: its code, and words that become its results.
typedef void (*OwnFunction)(int code, uint32_t* x, int64_t count);

typedef struct Core {
    // What Python sees, as sley.sim.model.compiled.core.Visible.
    uint32_t running, frozen, pc;
    Fault fault;
    uint32_t registers[REGISTERS];
    uint8_t semaphores[SEMAPHORES];
    uint64_t retired;  // instructions of units
    uint64_t quiet;    // steps since one of them finished
    uint64_t matrix_counts[16], traffic_counts[16];

    Memory* memory;
    Space* space;
    OwnFunction own;

    uint8_t scratchpad[SCRATCHPAD_ROWS][ROW_BYTES];
    uint32_t accumulator[ACCUMULATOR_ROWS][N];
    uint32_t list[ACCUMULATOR_ROWS * N];  // of the LOAD or STORE at hand, as it was when that began
    uint8_t weights[N][ROW_BYTES];  // lane n of row r: of array row r, column n

    uint32_t rows[ROW_REGISTERS][N];
    uint32_t partials[ROW_REGISTERS][PARTIALS][N];
    uint64_t partial_counts[ROW_REGISTERS];
    uint32_t chains[CHAINS + 1][CHAIN_WORDS];
    int64_t params[UNIT_COUNT][PARAMS];

    Word program[PROGRAM_WORDS];
    uint32_t program_words, loop_depth;
    Loop loops[LOOP_DEPTH];
    Queue queues[UNIT_COUNT];
    int sync_wait_done;

    uint8_t* scratch;
    uint64_t scratch_size;

#ifdef SANITIZE
    Sanitizer* sanitizer;
#endif
} Core;

// Room for numbers on the way, of the largest size that was asked for.
static void* core_scratch(Core* core, uint64_t bytes) {
    if (bytes > core->scratch_size) {
        free(core->scratch);
        core->scratch = malloc(bytes);
        core->scratch_size = bytes;
    }
    return core->scratch;
}

// What every function of a unit returns: 1 for a fault, which is then in the core.
static int fail(Core* core, uint32_t code, uint32_t unit, uint32_t pc, uint64_t address) {
    core->fault = (Fault){code, unit, pc, (uint32_t)address};
    return 1;
}

static inline int outside(int64_t row, int64_t limit) { return row < 0 || row >= limit; }

#include "sanitize/hooks.h"
