// The twin of sley.hw.bus.register_bank, of a chip's registers as the command processor has them.
#pragma once

#include "abi.h"
#include "twin.h"

#define REGISTER_BANK_PORTS(IN, OUT)                                                                             \
    IN(read, "bus.read") IN(read_address, "bus.read_address") IN(write, "bus.write")                             \
    IN(write_address, "bus.write_address") IN(write_data, "bus.write_data") IN(index, "queue_shared.index")      \
    BANK_INPUTS(IN)                                                                                              \
    OUT(read_data, "bus.read_data") OUT(read_error, "bus.read_error") OUT(write_error, "bus.write_error")        \
    OUT(read_index, "queue_shared.read_index") BANK_OUTPUTS(OUT)

enum { NO_REGISTER = -1 };
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// Of all registers by number: `given` by the chip; `values` that are stored; `written` in the cycle before, of a shared one
// a bit for each copy at the first; `strobes`: read now. Of shared ones at the first copy: `seen` by the chip, and `shown`,
// that of the queue that software reads.
typedef struct RegisterBank {
    uint32_t read, read_address, write, write_address, write_data, index, given[REGISTER_COUNT];
    uint32_t read_data, read_error, write_error, read_index, values[REGISTER_COUNT], written[REGISTER_COUNT];
    uint32_t strobes[REGISTER_COUNT], seen[REGISTER_COUNT], shown[REGISTER_COUNT];

    int reads, pulse;  // the register that is read; the one that was written
} RegisterBank;

static void register_bank_reset(RegisterBank* b, const uint32_t* parameters) {
    for (int k = 0; k < REGISTER_COUNT; ++k) b->values[k] = register_infos[k].reset;
    b->pulse = NO_REGISTER;
}

static int register_at(uint32_t address) {
    for (int k = 0; k < LENGTH(register_blocks); ++k) {
        const RegisterBlock* block = &register_blocks[k];
        uint32_t offset = address - block->base, within = offset % block->stride;
        if (address < block->base || offset >= block->stride * block->count) continue;
        return within & 3 || within / 4 >= block->registers
                   ? NO_REGISTER
                   : block->first + offset / block->stride * block->registers + within / 4;
    }
    return NO_REGISTER;
}

static uint32_t shared_value(const RegisterBank* b, uint32_t first, uint32_t copy) {
    uint32_t step = REGISTER_QUEUE_CONTROL(1) - REGISTER_QUEUE_CONTROL(0);
    if (QUEUES == 1) return b->values[first];
    return copy < QUEUES ? b->values[first + copy * step] : register_infos[first].reset;
}

static void register_bank_outputs(RegisterBank* b) {
    enum { COPIES = QUEUES > 4 ? 8 : QUEUES > 2 ? 4 : 2 };
    b->read_index = (b->read_address - BANK_QUEUE_BASE) / BANK_QUEUE_STRIDE % COPIES;
    b->reads = b->read ? register_at(b->read_address) : NO_REGISTER;
    for (int k = 0; k < LENGTH(strobe_registers); ++k) b->strobes[strobe_registers[k]] = b->reads == strobe_registers[k];
    for (int k = 0; k < LENGTH(kept_registers); ++k) {
        uint32_t first = kept_registers[k];
        b->seen[first] = shared_value(b, first, b->index);
        b->shown[first] = shared_value(b, first, b->read_index);
    }
}

// What software reads.
static uint32_t register_read(const RegisterBank* b, int number) {
    const RegisterInfo* info = &register_infos[number];
    switch (info->access) {
    case ACCESS_CONST: return info->reset;
    case ACCESS_RO: return b->given[info->shared ? info->first : number] & info->mask;
    case ACCESS_WO: return 0;
    default: return b->values[number];
    }
}

static void register_write(RegisterBank* b, int number) {
    const RegisterInfo* info = &register_infos[number];
    uint32_t value = b->write_data & info->mask;
    if (info->access == ACCESS_RW) b->values[number] = value;
    if (info->access == ACCESS_W1C) b->values[number] &= ~value;
    if (info->access != ACCESS_WO) return;
    uint32_t* stored = info->shared ? &b->seen[info->first] : &b->values[number];
    *stored = value;
    b->pulse = info->shared ? info->first : number;
    b->written[b->pulse] = info->shared ? 1u << (number - info->first) : 1;
}

static void register_bank_tick(RegisterBank* b) {
    if (b->pulse != NO_REGISTER) {
        b->written[b->pulse] = 0;
        b->pulse = NO_REGISTER;
    }
    if (b->read) {
        b->read_error = b->reads == NO_REGISTER;
        b->read_data = b->read_error ? 0 : register_read(b, b->reads);
    }
    if (b->write) {
        int number = register_at(b->write_address);
        b->write_error = number == NO_REGISTER;
        if (!b->write_error) register_write(b, number);
    }
    for (int k = 0; k < LENGTH(pending_registers); ++k) {
        uint32_t number = pending_registers[k];
        if (b->given[number]) b->values[number] |= b->given[number] & register_infos[number].mask;
    }
}
