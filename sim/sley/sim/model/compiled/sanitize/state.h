// What the sanitizers of a core remember: clocks, shadows of the local memories, and reports.
#pragma once

#include <stdint.h>

#include "abi.h"

// Who accesses rows: the units by their numbers, and WEIGHTS, which the matrix unit executes beside MATMULs before it.
enum { AGENT_WEIGHTS = UNIT_COUNT, AGENTS = 8 };

// How many instructions of each agent have finished for sure.
typedef struct Clock {
    uint32_t at[AGENTS];
} Clock;

// The last accesses to a row in this block: instructions of agents, numbered from 1, and where in the program they are.
typedef struct Record {
    uint32_t block;  // everything here is of this block
    uint32_t writer, written, write_pc;
    uint32_t read[AGENTS], read_pc[AGENTS];
} Record;

// The weights in the array: how many rows, those of the scratchpad that they were, and which elements nobody wrote.
typedef struct Weights {
    uint32_t count, pc, undefined, rows[N];
    uint8_t missing[N * ELEMENTS];
} Weights;

// What a byte of a local memory holds.
// UNDEFINED: LOAD brought it from memory that nobody wrote. DERIVED: VECTOR made it of something that is not defined.
enum { NOTHING = 0, DEFINED = 1, UNDEFINED = 2, DERIVED = 4 };

// What is known of a byte of device memory, as bits: it was written, it belongs to somebody, it did before.
enum { MEMORY_DEFINED = 1, MEMORY_USABLE = 2, MEMORY_FREED = 4 };

// An access to some bytes of a line of memory: in which launch and block, and which instruction of its agent.
typedef struct Cell {
    uint64_t bytes;
    uint32_t launch, block, clock, pc;
    uint8_t agent, writes;
} Cell;

#define LINE_BITS 6
#define CELLS 4

// The last accesses to a line.
typedef struct Line {
    Cell cells[CELLS];
    uint32_t victim;
} Line;

// As sley.sim.model.sanitize.found.Found.
typedef struct Report {
    uint32_t finding, unit, pc, writes;
    uint32_t space, row;  // a local row, or a row register
    uint32_t address, length;
    uint64_t physical;
    uint32_t other_unit, other_pc, other_writes, other_block;
} Report;

// What a part of the core that does not move waits for.
enum { IDLE = 0, FOR_SIGNALS = 1, FOR_ROOM = 2, FOR_QUEUE = 3, FOR_UNITS = 4 };

#define REPORTS 32
#define LOCAL_ROWS (SCRATCHPAD_ROWS + ACCUMULATOR_ROWS)

typedef struct Sanitizer {
    // What Python sees, as sley.sim.model.sanitize.core.Visible.
    uint32_t enabled;  // a bit for each kind
    uint32_t count;    // of reports; one more than there is room for if some were left out
    Report reports[REPORTS];
    uint32_t signal_pc[SEMAPHORES];  // of the last signal

    struct {
        uint32_t state, pc, semaphores;
    } stuck[UNIT_COUNT];

    uint32_t launch, linear;  // the block that runs: its launch, from 1 on, and its number there
    uint32_t block;           // the same as a number that no other block of this core has
    uint32_t agent, unit, pc, pcs[UNIT_COUNT];
    Clock now;  // of the instruction that executes
    Clock base[UNIT_COUNT], signalling[UNIT_COUNT];
    Clock dispatched[UNIT_COUNT][UNIT_QUEUE];
    Clock tokens[SEMAPHORES][SEMAPHORE_MAX];
    uint32_t executed[AGENTS];

    Record records[LOCAL_ROWS];
    uint8_t scratchpad[SCRATCHPAD_ROWS][ROW_BYTES];
    uint8_t accumulator[ACCUMULATOR_ROWS][ACCUMULATOR_ROW_BYTES];
    uint32_t shadow_block[LOCAL_ROWS];
    uint8_t registers[ROW_REGISTERS + 1];
    Weights weights;
    uint8_t* scratch;
    uint64_t scratch_size;
} Sanitizer;
