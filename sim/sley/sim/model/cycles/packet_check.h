// The twin of sley.hw.command.check: what is wrong with a packet. It is found in the cycle in which the last beat is here.
#pragma once

#include "abi.h"
#include "twin.h"

#define PACKET_CHECK_PORTS(IN, OUT)                                                                           \
    IN(beat_valid, "beat.valid") IN(beat_index, "beat.index") BEAT_WORDS_PORTS(IN, beat_data, "beat.data", "") \
    IN(nested, "nested") IN(restart, "restart")                                                               \
    OUT(done, "done") OUT(shows, ".shows") OUT(names, ".names") OUT(found.code, "code?.shows")                \
    OUT(bad, "bad?.shows") OUT(found.address, "address?.names")

// `names`: the address means something.
typedef struct PacketFinding {
    uint32_t code, address, names;
} PacketFinding;

typedef struct PacketCheck {
    uint32_t beat_valid, beat_index, beat_data[PACKET_WORDS], nested, restart;
    uint32_t done, shows, names, bad;
    PacketFinding found;

    uint32_t packet[PACKET_WORDS], stays_nested;
} PacketCheck;

static void packet_check_reset(PacketCheck* c, const uint32_t* parameters) {}

static int grid_dimension_bad(uint32_t blocks, uint32_t gang, uint32_t across) {
    return blocks - 1 >= MAX_GRID || (gang && across && blocks != across);
}

// A word of a LAUNCH has a value that it must not have.
static int launch_word_bad(const uint32_t* p, uint32_t word) {
    uint32_t args = PACKET_LAUNCH_ARG_WORDS(p), gang = PACKET_LAUNCH_GANG(p), in_memory = args > INLINE_ARGS;
    switch (word) {
    case PACKET_LAUNCH_PROGRAM_WORDS_AT: return PACKET_LAUNCH_PROGRAM_WORDS(p) - 1 >= PROGRAM_WORDS || args > MAX_ARGS;
    case PACKET_LAUNCH_GRID_X_AT: return grid_dimension_bad(p[word], gang, CORES_X);
    case PACKET_LAUNCH_GRID_Y_AT: return grid_dimension_bad(p[word], gang, CORES_Y);
    case PACKET_LAUNCH_GRID_Z_AT: return grid_dimension_bad(p[word], gang, 0);
    case PACKET_LAUNCH_PROGRAM_AT: return p[word] % INSTRUCTION_BYTES != 0;
    case PACKET_LAUNCH_ARGS_AT: return p[word] & 3 || (!in_memory && (p[word] | p[word + 1]));
    }
    if (word < PACKET_LAUNCH_ARG0_AT) return 0;
    return p[word] && (in_memory || word - PACKET_LAUNCH_ARG0_AT >= args);
}

static int packet_word_bad(const uint32_t* p, uint32_t op, uint32_t word, uint32_t nested) {
    if (p[word] & ~packet_masks[op][word]) return 1;
    switch (op) {
    case PACKET_LAUNCH: return launch_word_bad(p, word);
    case PACKET_FENCE: return word == PACKET_FENCE_ADDRESS_AT && p[word] % FENCE_BYTES;
    case PACKET_WAIT: return word == PACKET_WAIT_ADDRESS_AT && p[word] % SEMAPHORE_BYTES;
    case PACKET_SIGNAL: return word == PACKET_SIGNAL_ADDRESS_AT && p[word] % SEMAPHORE_BYTES;
    case PACKET_INDIRECT:
        return (word == 0 && nested) || (word == PACKET_INDIRECT_ADDRESS_AT && p[word] % (4 * PACKET_WORDS));
    }
    return 0;
}

// A range of memory, whose address begins in a word, ends beyond the chip's address width.
static int range_outside(const uint32_t* p, uint32_t word, uint64_t bytes) {
    uint64_t begin = p[word] | (uint64_t)p[word + 1] << 32;
    return begin > ADDRESS_LIMIT || begin + bytes > ADDRESS_LIMIT;
}

// The word with the address of the first range that does, or 0.
static uint32_t packet_outside(const uint32_t* p, uint32_t op) {
    uint32_t word = 0, second = 0;
    uint64_t bytes = 1, more = 0;
    switch (op) {
    case PACKET_LAUNCH:
        word = PACKET_LAUNCH_PROGRAM_AT, bytes = PACKET_LAUNCH_PROGRAM_WORDS(p) * INSTRUCTION_BYTES;
        second = PACKET_LAUNCH_ARGS_AT, more = PACKET_LAUNCH_ARG_WORDS(p) * 4;
        break;
    case PACKET_COPY:
        word = PACKET_COPY_SRC_AT, second = PACKET_COPY_DST_AT, bytes = more = PACKET_COPY_BYTES(p);
        break;
    case PACKET_FILL: word = PACKET_FILL_DST_AT, bytes = PACKET_FILL_BYTES(p); break;
    case PACKET_FENCE: word = PACKET_FENCE_ADDRESS_AT; break;
    case PACKET_WAIT: word = PACKET_WAIT_ADDRESS_AT; break;
    case PACKET_SIGNAL: word = PACKET_SIGNAL_ADDRESS_AT; break;
    case PACKET_INDIRECT:
        word = PACKET_INDIRECT_ADDRESS_AT, bytes = (uint64_t)PACKET_INDIRECT_PACKETS(p) << PACKET_SHIFT;
        break;
    }
    if (word && range_outside(p, word, bytes)) return word;
    return second && range_outside(p, second, more) ? second : 0;
}

static PacketFinding packet_finding(const uint32_t* p, uint32_t nested) {
    uint32_t op = p[0] & 0xFF;
    if (op < PACKET_NOP || op > PACKET_INDIRECT) return (PacketFinding){FAULT_BAD_PACKET, p[0], 1};
    for (uint32_t word = 0; word < PACKET_WORDS; ++word)
        if (packet_word_bad(p, op, word, nested)) return (PacketFinding){FAULT_BAD_FIELD, word, 1};
    uint32_t outside = packet_outside(p, op);
    if (outside) return (PacketFinding){FAULT_BAD_ADDRESS, p[outside], 1};
    int names = op == PACKET_FENCE || op == PACKET_WAIT || op == PACKET_SIGNAL;
    return (PacketFinding){FAULT_NONE, p[PACKET_FENCE_ADDRESS_AT], names};
}

static void packet_check_outputs(PacketCheck* c) {
    c->bad = c->found.code != FAULT_NONE;
    c->names = c->shows && c->found.names;
}

static void packet_check_tick(PacketCheck* c) {
    if (!c->beat_valid && !c->done && !c->restart) return;
    if (c->beat_valid || c->restart) c->shows = 0;
    if (c->done) {
        c->found = packet_finding(c->packet, c->stays_nested);
        c->shows = 1;
    }
    c->done = c->beat_valid && c->beat_index == PACKET_WORDS / PACKET_LANES - 1;
    if (!c->beat_valid) return;
    memcpy(c->packet + c->beat_index * PACKET_LANES, c->beat_data, PACKET_LANES * sizeof(uint32_t));
    if (c->beat_index == 0) c->stays_nested = c->nested;
}
