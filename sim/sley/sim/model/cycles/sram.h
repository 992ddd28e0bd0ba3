// The twin of sley.hw.core.sram.sram: which requests the banks serve.
#pragma once

#include "abi.h"
#include "twin.h"

enum { MOST_READERS = 6, MOST_WRITERS = 3 };

#define SRAM_PORTS(IN, OUT)                                                                                     \
    IN(read.valid[0], "read[0].valid") IN(read.valid[1], "~read[1].valid") IN(read.valid[2], "~read[2].valid")   \
    IN(read.valid[3], "~read[3].valid") IN(read.valid[4], "~read[4].valid") IN(read.valid[5], "~read[5].valid")   \
    IN(read.row[5], "~read[5].row") IN(read.row[0], "read[0].row")                                               \
    IN(read.row[1], "~read[1].row") IN(read.row[2], "~read[2].row") IN(read.row[3], "~read[3].row")               \
    IN(read.row[4], "~read[4].row") IN(write.valid[0], "write[0].valid") IN(write.valid[1], "~write[1].valid")   \
    IN(write.valid[2], "~write[2].valid") IN(write.row[0], "write[0].row") IN(write.row[1], "~write[1].row")     \
    IN(write.row[2], "~write[2].row") IN(clear, "clear") OUT(read.ready[0], "read[0].ready")                    \
    OUT(read.ready[1], "~read[1].ready") OUT(read.ready[2], "~read[2].ready") OUT(read.ready[3], "~read[3].ready") \
    OUT(read.ready[5], "~read[5].ready") OUT(read.ready[4], "~read[4].ready") OUT(write.ready[0], "write[0].ready")                                  \
    OUT(write.ready[1], "~write[1].ready") OUT(write.ready[2], "~write[2].ready") OUT(clearing, "clearing")

typedef struct SramRequests {
    uint32_t valid[MOST_READERS], row[MOST_READERS], ready[MOST_READERS], count;
} SramRequests;

typedef struct Sram {
    SramRequests read, write;
    uint32_t clear, clearing;

    uint32_t bank_shift;  // of a row's number
    uint32_t depth, left;  // rows of a bank, and of them those to clear
} Sram;

// Parameters: rows, banks, readers, writers.
static void sram_reset(Sram* s, const uint32_t* parameters) {
    memset(s, 0, sizeof *s);
    s->depth = parameters[0] / parameters[1];
    s->bank_shift = __builtin_ctz(s->depth);
    s->read.count = parameters[2];
    s->write.count = parameters[3];
}

// Each bank serves the first port that asks it.
static inline void sram_grant(SramRequests* requests, uint32_t bank_shift) {
    uint64_t busy = 0;
    for (uint32_t k = 0; k < requests->count; ++k) {
        uint32_t bank = requests->row[k] >> bank_shift;
        requests->ready[k] = !(busy >> bank & 1);
        busy |= (uint64_t)(requests->valid[k] & 1) << bank;
    }
}

static void sram_outputs(Sram* s) {
    sram_grant(&s->read, s->bank_shift);
    sram_grant(&s->write, s->bank_shift);
    s->clearing = s->left != 0;
}

static void sram_tick(Sram* s) {
    if (s->left) --s->left;
    if (s->clear) s->left = s->depth;
}
