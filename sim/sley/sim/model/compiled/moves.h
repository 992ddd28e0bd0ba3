// What LOAD and STORE do: runs between device memory and local rows, and which of their faults comes first.
#pragma once

#include "core.h"

#ifdef SANITIZE
#include "sanitize/moves.h"
#endif

static int by_list(int unit, const Command* command) {
    return unit == UNIT_LOAD ? LOAD_BY_LIST(command->word) : STORE_BY_LIST(command->word);
}

// Of a run that has bytes.
static uint32_t run_address(const Core* core, int unit, const Command* command, int64_t slab, int64_t run) {
    const int64_t* p = core->params[unit];
    int64_t offset = by_list(unit, command) ? core->list[run] : run * p[PARAM_MEM_STRIDE];
    return (uint32_t)(command->a + slab * p[PARAM_MEM_STRIDE2] + offset);
}

// Takes the list, if the command uses one. Returns 1 for a fault.
static int take_list(Core* core, int unit, const Command* command) {
    const int64_t* p = core->params[unit];
    int64_t row = p[PARAM_LIST_ROW], rows = ((int64_t)command->c + N - 1) / N;
    if (!by_list(unit, command) || !p[PARAM_RUN_BYTES]) return 0;
    if (row + rows > ACCUMULATOR_ROWS) return fail(core, FAULT_BAD_PARAMETER, unit, command->pc, row);
    memcpy(core->list, core->accumulator[row], rows * ACCUMULATOR_ROW_BYTES);
    HOOK(for (int64_t r = 0; r < rows; ++r)
             row_read(core, SPACE_ACCUMULATOR, row + r, 0, 4 * (r + 1 < rows ? N : command->c - r * N));)
    return 0;
}

// Reads a run; the first chunk whose data is refused goes to `bad_chunk`. Returns 1 for a fault.
static int load_run(Core* core, const Command* command, uint32_t address, uint8_t* to, int64_t width,
                    int64_t* bad_chunk, Refused* refused) {
    int64_t length = core->params[UNIT_LOAD][PARAM_RUN_BYTES];
    *bad_chunk = -1;
    if (address + (uint64_t)length > ADDRESS_LIMIT)
        return fail(core, FAULT_BAD_ADDRESS, UNIT_LOAD, command->pc, address);
    if (!memory_read(core->memory, core->space, address, to, length, refused))
        *bad_chunk = (int64_t)(refused->address - address) / width;
    return 0;
}

static void fill(uint8_t* rows, int64_t from, int64_t to, uint32_t value) {
    for (int64_t k = from; k < to; ++k) rows[k] = (uint8_t)(value >> 8 * (k & 3));
}

static int load_plain(Core* core, const Command* command, uint8_t* target, int64_t width, int64_t limit) {
    const int64_t* p = core->params[UNIT_LOAD];
    int64_t length = p[PARAM_RUN_BYTES], chunks = p[PARAM_CHUNKS], data_runs = length ? command->c : 0;
    int64_t runs = command->c + p[PARAM_PAD_RUNS];
    uint8_t* data = core_scratch(core, chunks * width);
    HOOK(uint32_t space = target == (uint8_t*)core->accumulator ? SPACE_ACCUMULATOR : SPACE_SCRATCHPAD;)
    for (int64_t slab = 0; slab < p[PARAM_COUNT2]; ++slab) {
        for (int64_t run = 0; run < runs; ++run) {
            HOOK(const uint8_t* shadow = 0;)
            uint32_t address = run < data_runs ? run_address(core, UNIT_LOAD, command, slab, run) : 0;
            int64_t bad_chunk = -1;
            Refused refused;
            fill(data, run < data_runs ? length : 0, chunks * width, (uint32_t)p[PARAM_FILL]);
            if (run < data_runs && load_run(core, command, address, data, width, &bad_chunk, &refused)) return 1;
            HOOK(if (run < data_runs) shadow = loaded_run(core, address, length, chunks * width);)
            int64_t row = command->b + slab * p[PARAM_LOCAL_STRIDE2] + run * p[PARAM_LOCAL_STRIDE];
            for (int64_t chunk = 0; chunk < chunks; ++chunk, row += p[PARAM_CHUNK_STRIDE]) {
                if (outside(row, limit)) return fail(core, FAULT_LOCAL_ADDRESS, UNIT_LOAD, command->pc, row);
                if (chunk == bad_chunk) return fail(core, refused.code, UNIT_LOAD, command->pc, address);
                memcpy(target + row * width, data + chunk * width, width);
                HOOK(loaded_row(core, space, row, shadow ? shadow + chunk * width : 0);)
            }
        }
    }
    return 0;
}

#if ROW_BYTES == 2 * N
typedef uint16_t Lane;
#else
typedef uint8_t Lane;
#endif

// How one chunk and half of a unit of runs becomes rows.
typedef struct Permute {
    int interleave, transpose;
    int64_t block, half, chunk, run_size;
} Permute;

static void gather_rows(const Permute* how, const uint8_t* data, uint8_t* rows) {
    for (int64_t j = 0; j < how->block; ++j) {
        const uint8_t* first = data + j * (1 + how->interleave) * how->run_size + how->chunk;
        if (!how->interleave) {
            memcpy(rows + j * ROW_BYTES, first, ROW_BYTES);
            continue;
        }
        // A half of a double row, which has bytes of both runs in turn.
        const uint8_t* from = first + how->half * ROW_BYTES / 2;
        for (int k = 0; k < ROW_BYTES / 2; ++k) {
            rows[j * ROW_BYTES + 2 * k] = from[k];
            rows[j * ROW_BYTES + 2 * k + 1] = from[how->run_size + k];
        }
    }
}

static void permuted_row(const Permute* how, const uint8_t* rows, int64_t j, uint8_t* to) {
    if (!how->transpose) memcpy(to, rows + j * ROW_BYTES, ROW_BYTES);
    else
        for (int lane = 0; lane < N; ++lane) ((Lane*)to)[lane] = ((const Lane*)rows)[lane * N + j];
}

static int load_permuted(Core* core, const Command* command, int interleave, int transpose) {
    const int64_t* p = core->params[UNIT_LOAD];
    int64_t length = p[PARAM_RUN_BYTES], chunks = p[PARAM_CHUNKS], data_runs = length ? command->c : 0;
    int64_t halves = 1 + interleave, block = transpose ? N : 1, whole = halves * block, width = ROW_BYTES;
    int64_t units = (command->c + p[PARAM_PAD_RUNS] + whole - 1) / whole, run_size = chunks * width;
    uint8_t* data = core_scratch(core, whole * run_size + 2 * block * width);
    uint8_t* rows = data + whole * run_size;  // of one chunk and half
    HOOK(uint8_t* shadow = loaded_unit(core, whole * run_size + 2 * block * width);)
    for (int64_t slab = 0; slab < p[PARAM_COUNT2]; ++slab) {
        for (int64_t unit = 0; unit < units; ++unit) {
            fill(data, 0, whole * run_size, (uint32_t)p[PARAM_FILL]);
            HOOK(memset(shadow, DEFINED, whole * run_size);)
            HOOK(int undefined = 0;)
            for (int64_t r = 0; r < whole; ++r) {
                int64_t run = unit * whole + r, bad_chunk;
                Refused refused;
                if (run >= data_runs) break;
                uint32_t address = run_address(core, UNIT_LOAD, command, slab, run);
                if (load_run(core, command, address, data + r * run_size, width, &bad_chunk, &refused)) return 1;
                if (bad_chunk >= 0) return fail(core, refused.code, UNIT_LOAD, command->pc, address);
                HOOK(undefined |= bytes_load(core, address, length, shadow + r * run_size) != 0;)
            }
            int64_t base = command->b + slab * p[PARAM_LOCAL_STRIDE2] + unit * p[PARAM_LOCAL_STRIDE];
            // A row's number is checked in the order of the walk: rows of the block, then halves, then chunks.
            for (int64_t j = 0; j < block; ++j)
                for (int64_t half = 0; half < halves; ++half)
                    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
                        int64_t row = base + j + (chunk * halves + half) * p[PARAM_CHUNK_STRIDE];
                        if (outside(row, SCRATCHPAD_ROWS))
                            return fail(core, FAULT_LOCAL_ADDRESS, UNIT_LOAD, command->pc, row);
                    }
            for (int64_t half = 0; half < halves; ++half)
                for (int64_t chunk = 0; chunk < chunks; ++chunk) {
                    Permute how = {interleave, transpose, block, half, chunk * ROW_BYTES, run_size};
                    gather_rows(&how, data, rows);
                    HOOK(if (undefined) gather_rows(&how, shadow, shadow + whole * run_size);)
                    for (int64_t j = 0; j < block; ++j) {
                        int64_t row = base + j + (chunk * halves + half) * p[PARAM_CHUNK_STRIDE];
                        permuted_row(&how, rows, j, core->scratchpad[row]);
                        HOOK(loaded_row(core, SPACE_SCRATCHPAD, row, 0);)
                        HOOK(if (undefined) permuted_row(&how, shadow + whole * run_size, j,
                                                         row_shadow(core, SPACE_SCRATCHPAD, row));)
                    }
                }
        }
    }
    return 0;
}

static int unit_load(Core* core, const Command* command) {
    const int64_t* p = core->params[UNIT_LOAD];
    int interleave = LOAD_INTERLEAVE(command->word), transpose = LOAD_TRANSPOSE(command->word);
    int space = LOAD_SPACE(command->word);
    if ((interleave || transpose) && (space || (interleave && ELEMENTS == 1)))
        return fail(core, FAULT_ILLEGAL_INSTRUCTION, UNIT_LOAD, command->pc, 0);
    int64_t width = space ? ACCUMULATOR_ROW_BYTES : ROW_BYTES, chunks = p[PARAM_CHUNKS];
    if (!p[PARAM_COUNT2] || !command->c) return 0;
    if (p[PARAM_RUN_BYTES] > chunks * width)
        return fail(core, FAULT_BAD_PARAMETER, UNIT_LOAD, command->pc, p[PARAM_RUN_BYTES]);
    if (!chunks) return 0;
    if ((interleave || transpose) && chunks > (transpose ? TRANSPOSE_CHUNKS >> interleave : INTERLEAVE_CHUNKS))
        return fail(core, FAULT_BAD_PARAMETER, UNIT_LOAD, command->pc, chunks);
    if (take_list(core, UNIT_LOAD, command)) return 1;
    if (!interleave && !transpose) {
        uint8_t* target = space ? (uint8_t*)core->accumulator : (uint8_t*)core->scratchpad;
        return load_plain(core, command, target, width, space ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS);
    }
    return load_permuted(core, command, interleave, transpose);
}

static int unit_store(Core* core, const Command* command) {
    const int64_t* p = core->params[UNIT_STORE];
    int space = STORE_SPACE(command->word);
    int64_t width = space ? ACCUMULATOR_ROW_BYTES : ROW_BYTES, limit = space ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS;
    const uint8_t* source = space ? (uint8_t*)core->accumulator : (uint8_t*)core->scratchpad;
    int64_t length = p[PARAM_RUN_BYTES], chunks = (length + width - 1) / width;
    if (!length || !command->c || !p[PARAM_COUNT2]) return 0;
    if (take_list(core, UNIT_STORE, command)) return 1;
    uint8_t* data = core_scratch(core, chunks * width);
    HOOK(uint8_t* shadow = sanitizer_scratch(core, chunks * width);)
    for (int64_t slab = 0; slab < p[PARAM_COUNT2]; ++slab) {
        for (int64_t run = 0; run < command->c; ++run) {
            uint32_t address = run_address(core, UNIT_STORE, command, slab, run);
            Refused refused;
            if (address + (uint64_t)length > ADDRESS_LIMIT)
                return fail(core, FAULT_BAD_ADDRESS, UNIT_STORE, command->pc, address);
            int64_t row = command->b + slab * p[PARAM_LOCAL_STRIDE2] + run * p[PARAM_LOCAL_STRIDE];
            for (int64_t chunk = 0; chunk < chunks; ++chunk, row += p[PARAM_CHUNK_STRIDE]) {
                if (outside(row, limit)) return fail(core, FAULT_LOCAL_ADDRESS, UNIT_STORE, command->pc, row);
                memcpy(data + chunk * width, source + row * width, width);
                HOOK(stored_row(core, space, row, length - chunk * width, shadow + chunk * width);)
            }
            if (!memory_check(core->memory, core->space, address, length, NEED_WRITE, &refused))
                return fail(core, refused.code, UNIT_STORE, command->pc, command->a);
            memory_write(core->memory, core->space, address, data, length);
            HOOK(bytes_store(core, address, length, shadow);)
        }
    }
    return 0;
}
