// The compiled model: what sley.sim.model.compiled.core calls.

#include "sequencer.h"

#define EXPORT __attribute__((visibility("default")))

#ifdef SANITIZE
#include "sanitize/calls.h"
#endif

EXPORT Memory* memory_create(uint8_t* data, uint64_t size) {
    Memory* memory = calloc(1, sizeof *memory);
    if (memory) memory->data = data, memory->size = size;
    HOOK(if (memory && !memory_follow(memory)) free(memory), memory = 0;)
    return memory;
}

EXPORT void memory_root(Memory* memory, uint32_t context, uint32_t mode, uint32_t table) {
    memory->spaces[context].mode = mode;
    memory->spaces[context].table = table;
}

EXPORT void memory_invalidate(Memory* memory, uint32_t context) {
    free(memory->spaces[context].seen);
    memory->spaces[context].seen = 0;
}

EXPORT void memory_destroy(Memory* memory) {
    for (uint32_t context = 0; context <= CONTEXTS; ++context) free(memory->spaces[context].seen);
    HOOK(free(memory->shadow);)
    HOOK(free(memory->lines);)
    free(memory);
}

EXPORT Core* core_create(Memory* memory, OwnFunction own) {
    Core* core = aligned_alloc(64, (sizeof(Core) + 63) / 64 * 64);
    if (!core) return 0;
    memset(core, 0, sizeof *core);
    core->memory = memory, core->own = own;
    HOOK(if (!(core->sanitizer = calloc(1, sizeof *core->sanitizer))) free(core), core = 0;)
    return core;
}

EXPORT void core_destroy(Core* core) {
    HOOK(free(core->sanitizer->scratch);)
    HOOK(free(core->sanitizer);)
    free(core->scratch);
    free(core);
}

// What a block of another context finds: zeros.
EXPORT void core_scrub(Core* core) {
    memset(core->scratchpad, 0, sizeof core->scratchpad);
    memset(core->accumulator, 0, sizeof core->accumulator);
    memset(core->weights, 0, sizeof core->weights);
}

EXPORT void core_stop(Core* core) {
    core->running = 0;
    memset(core->queues, 0, sizeof core->queues);
    memset(core->semaphores, 0, sizeof core->semaphores);
}

// Begins a block with these registers, and with a program of so many words or, if it is NULL, with the one that is here.
EXPORT void core_begin(Core* core, uint32_t context, const uint8_t* program, uint32_t words, const uint32_t* registers) {
    core_stop(core);
    HOOK(clocks_begin_block(core);)
    core->space = memory_space(core->memory, context);
    memset(core->rows, 0, sizeof core->rows);
    memset(core->partial_counts, 0, sizeof core->partial_counts);
    memset(core->chains, 0, sizeof core->chains);
    for (int unit = 0; unit < UNIT_COUNT; ++unit)
        for (int param = 0; param < PARAMS; ++param) core->params[unit][param] = param_infos[param].reset;
    if (program) {
        memcpy(core->program, program, words * sizeof(Word));
        core->program_words = words;
    }
    memcpy(core->registers, registers, sizeof core->registers);
    core->fault = (Fault){0};
    core->pc = core->loop_depth = core->sync_wait_done = 0;
    core->quiet = 0;
    core->running = 1;
}

// What a timed chip lets a core do, of which the sequencer, queues and semaphores are its own. A block begins;
EXPORT void core_enter(Core* core, uint32_t context) {
    static const uint32_t registers[REGISTERS];
    core_begin(core, context, 0, 0, registers);
}

// a unit takes a command, whose operands are as in its unit_front.h. What it does wrong its twin finds, too.
EXPORT void core_execute(Core* core, uint32_t unit, const uint32_t* command) {
    enum { COMMAND_OP, COMMAND_PC, COMMAND_WAIT, COMMAND_SIGNAL, COMMAND_A, COMMAND_B, COMMAND_C, COMMAND_FLAGS };
    Command taken = {(Word)command[COMMAND_FLAGS] << FLAGS_LSB | command[COMMAND_OP], command[COMMAND_A], command[COMMAND_B],
                     command[COMMAND_C], command[COMMAND_PC]};
    execute(core, unit, &taken);
}

EXPORT uint32_t core_word(const Core* core, uint32_t row, uint32_t lane) { return core->accumulator[row][lane]; }

// A copy, as far as it is allowed.
EXPORT void memory_copy(Memory* memory, uint32_t context, uint64_t from, uint64_t to, uint64_t bytes) {
    Space* space = memory_space(memory, context);
    Refused refused;
    if (!memory_check(memory, space, from, bytes, NEED_READ, &refused)) return;
    if (!memory_check(memory, space, to, bytes, NEED_WRITE, &refused)) return;
    uint8_t* data = malloc(bytes);
    if (!data) abort();
    memory_read(memory, space, from, data, bytes, &refused);
    memory_write(memory, space, to, data, bytes);
    free(data);
}

EXPORT void memory_fill(Memory* memory, uint32_t context, uint64_t to, uint64_t bytes, uint32_t value) {
    Space* space = memory_space(memory, context);
    Refused refused;
    if (!memory_check(memory, space, to, bytes, NEED_WRITE, &refused)) return;
    while (bytes) {
        uint64_t size;
        uint8_t* piece = memory_piece(memory, space, to, bytes, NEED_WRITE, &size, &refused);
        memset(piece, (int)value, size);
        to += size, bytes -= size;
    }
}

// At most so many steps; returns how many something moved in.
EXPORT uint64_t core_run(Core* core, uint64_t steps) {
    uint64_t moved = run(core, steps);
    if (!core->running) core_stop(core);
    return moved;
}

// The commands of a unit: how many wait, and whether one waits to signal.
EXPORT uint32_t core_waiting(const Core* core, uint32_t unit) { return core->queues[unit].count; }
EXPORT const uint8_t* core_weights(const Core* core) { return core->weights[0]; }
EXPORT uint32_t core_signalling(const Core* core, uint32_t unit) { return (uint32_t)core->queues[unit].signalling; }
