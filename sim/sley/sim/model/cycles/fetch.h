// The twin of sley.hw.core.sequencer.fetch: arguments and program from memory, and the program that is here.
#pragma once

#include "abi.h"
#include "instruction.h"
#include "launch.h"

enum { BEAT_WORDS = BUS_BYTES / 4, INSTRUCTION_WORDS = INSTRUCTION_BYTES / 4 };
enum {
    WORDS_PER_BEAT = BEAT_WORDS > INSTRUCTION_WORDS ? BEAT_WORDS / INSTRUCTION_WORDS : 1,
    BEATS_PER_WORD = BEAT_WORDS < INSTRUCTION_WORDS ? INSTRUCTION_WORDS / BEAT_WORDS : 1,
};
enum { FETCH_IDLE, FETCH_ARGS, FETCH_PROGRAM };

typedef struct Fetch {
    uint32_t phase, args_left, expects, reusable, available, error, code, program_at_fault, beyond, runs;
    uint32_t split;  // bytes of the longest run
    uint32_t full, full_args, piece, collected, argument;
    uint32_t beat[BEAT_WORDS], word[INSTRUCTION_WORDS];
    Instruction program[PROGRAM_WORDS];
} Fetch;

// A run to ask for.
typedef struct FetchRun {
    uint32_t valid, address, bytes, execute;
} FetchRun;

static uint32_t fetch_length(const Fetch* f, const Order* o) {
    return f->phase == FETCH_PROGRAM ? o->words * INSTRUCTION_BYTES : o->arg_words * 4;
}

static FetchRun fetch_run(const Fetch* f, const Order* o) {
    if (f->phase == FETCH_IDLE) return (FetchRun){0};
    int program = f->phase == FETCH_PROGRAM;
    uint32_t requested = f->runs * f->split, left = fetch_length(f, o) - requested;
    uint32_t begin = program ? o->program : o->args;
    return (FetchRun){!f->beyond, begin + requested, left <= f->split ? left : f->split, program};
}

static int fetch_missing(const Fetch* f, const Order* o) { return f->available != o->words; }

static int fetch_busy(const Fetch* f, const Order* o) {
    return f->phase != FETCH_IDLE || f->args_left || (f->expects && fetch_missing(f, o));
}

static int fetch_puts_argument(const Fetch* f, int open) { return f->full && f->full_args && open; }

static int fetch_leaves(const Fetch* f, const Order* o, int open) {
    if (fetch_puts_argument(f, open)) return f->piece == BEAT_WORDS - 1 || f->args_left == 1;
    if (!f->full || f->full_args) return 0;
    return WORDS_PER_BEAT == 1 || f->piece == WORDS_PER_BEAT - 1 || f->available + 1 == o->words;
}

static int fetch_ready(const Fetch* f, const Order* o, int open) { return !f->full || fetch_leaves(f, o, open); }

static void fetch_ask(Fetch* f, const Order* o, int start, int needed, int run_ready) {
    uint32_t phase = f->phase, beyond = f->beyond;
    uint32_t length = fetch_length(f, o), requested = f->runs * f->split;
    if (phase == FETCH_IDLE || run_ready) {
        // Whether a run reaches beyond the address width is looked at a cycle before it is asked for.
        int args = phase == FETCH_IDLE && o->fetch_args;
        uint64_t first = args ? o->args : o->program;
        uint64_t size = args ? o->arg_words * 4 : (uint64_t)o->words * INSTRUCTION_BYTES;
        f->beyond = first >= ADDRESS_LIMIT || first + size > ADDRESS_LIMIT;
    }
    if (phase == FETCH_IDLE) {
        if (!start) return;
        f->expects = needed;
        f->runs = 0;
        f->phase = o->fetch_args ? FETCH_ARGS : needed ? FETCH_PROGRAM : FETCH_IDLE;
        return;
    }
    if (run_ready) {
        if (phase == FETCH_ARGS) {
            f->phase = f->expects ? FETCH_PROGRAM : FETCH_IDLE;
        } else {
            ++f->runs;
            if (length - requested <= f->split) f->phase = FETCH_IDLE;
        }
    }
    if (beyond) {
        f->phase = FETCH_IDLE;
        f->expects = 0;
        f->error = 1;
        f->code = FAULT_BAD_ADDRESS;
        f->program_at_fault = phase == FETCH_PROGRAM;
        if (phase == FETCH_ARGS) f->args_left = 0;
    }
}

// What comes from memory in a cycle.
typedef struct FetchBeat {
    uint32_t valid, error;
    const uint32_t* data;
} FetchBeat;

// One cycle; returns whether an argument goes to `argument`, whose value is `*value`.
static int fetch_tick(Fetch* f, const Order* o, int start, int forget, int open, int run_ready, FetchBeat beat,
                      uint32_t* argument, uint32_t* value) {
    if (f->phase == FETCH_IDLE && !start && !f->full && !beat.valid && !f->expects) {
        fetch_ask(f, o, 0, 0, run_ready);
        if (forget) f->reusable = 0;
        return 0;
    }
    int reused = f->reusable && o->same, needed = !reused && o->words;
    int missing = fetch_missing(f, o), put_argument = fetch_puts_argument(f, open), put_word = f->full && !f->full_args;
    int leaves = fetch_leaves(f, o, open), takes = beat.valid && (!f->full || leaves);
    uint32_t args_left = f->args_left;
    if (!missing) f->expects = 0;
    if (put_argument) {
        *argument = f->argument++, *value = f->beat[f->piece++];
        --f->args_left;
    }
    if (put_word) {
        f->program[f->available++ % PROGRAM_WORDS] =
            decoded(BEATS_PER_WORD > 1 ? f->word : f->beat + f->piece * INSTRUCTION_WORDS);
        ++f->piece;
    }
    if (leaves) f->full = 0;
    if (takes) {
        int args_follow = args_left != (uint32_t)put_argument;
        memcpy(f->beat, beat.data, sizeof f->beat);
        if (BEATS_PER_WORD > 1) {
            memmove(f->word, f->word + BEAT_WORDS, sizeof f->word - sizeof f->beat);
            memcpy(f->word + INSTRUCTION_WORDS - BEAT_WORDS, f->beat, sizeof f->beat);
        }
        f->piece = 0;
        f->full_args = args_follow;
        if (args_follow || f->collected == BEATS_PER_WORD - 1) f->full = 1, f->collected = 0;
        else ++f->collected;
        if (beat.error && !f->error) {
            f->error = 1;
            f->code = beat.error == ERROR_PAGE ? FAULT_PAGE_FAULT : beat.error == ERROR_PERMISSION ? FAULT_PERMISSION : FAULT_BUS_ERROR;
            f->program_at_fault = !args_follow;
        }
    }
    fetch_ask(f, o, start, needed, run_ready);
    if (start) {
        f->argument = ARG_REGISTER;
        f->full = f->collected = 0;
        f->args_left = o->fetch_args ? o->arg_words : 0;
        f->available = reused ? o->words : 0;
        f->error = 0;
        f->reusable = o->tagged;
    }
    if (forget) f->reusable = 0;
    return put_argument;
}
