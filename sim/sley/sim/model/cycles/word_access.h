// The twin of sley.hw.command.words: small accesses to memory, with what is written and read.
#pragma once

#include "command_parts.h"
#include "flit.h"

#define WORD_ACCESS_PORTS(IN, OUT)                                                                              \
    IN(i_valid, "i.valid") WORD_COMMAND_PORTS(IN, i, "i", "", "") IN(request_ready, "request.ready")            \
    IN(response_valid, "response.valid") IN(response_error, "response.payload.error")                           \
    BEAT_WORDS_PORTS(IN, response_data, "response.payload.data", "")                                            \
    OUT(i_ready, "i.ready") OUT(done, "done") OUT(error, "error?done") OUT(has_value, ".has_value")             \
    OUT(value[0], "value@0?.has_value") OUT(value[1], "value@1?.has_value") OUT(request_valid, "request.valid") \
    OUT(heads, ".heads") OUT(body, ".body") REQUEST_FLIT_PORTS(OUT, head, "request", "?.heads")                 \
    OUT(head.share, "~request.payload.payload.head.share?.heads") OUT(last, "request.payload.last?.body")       \
    BEAT_WORDS_PORTS(OUT, beat, "request.payload.payload.beat.data", "?.body")                                  \
    OUT(strobe[0], "request.payload.payload.beat.strobe@0?.body")                                               \
    OUT(strobe[1], "request.payload.payload.beat.strobe@1?.body")

enum { LINE_WORDS = FENCE_BYTES / 4, LINE_MASK = FENCE_BYTES - 1 };
enum { PIECE_BYTES = BUS_BYTES < FENCE_BYTES ? BUS_BYTES : FENCE_BYTES, PIECE_WORDS = PIECE_BYTES / 4 };
enum { PIECES = FENCE_BYTES / PIECE_BYTES, PIECE_BURST = PIECES < MAX_BURST ? PIECES : MAX_BURST };

typedef struct WordAccess {
    uint32_t i_valid, request_ready, response_valid, response_error, response_data[PACKET_WORDS];
    WordCommand i;
    uint32_t i_ready, done, error, has_value, value[2], request_valid, heads, body, last, beat[PACKET_WORDS], strobe[2];
    Flit head;

    WordCommand command;
    // Beats to send; answers to come, to the command and to the write before it; the next beat's place in the line.
    uint32_t unsent, outstanding, outstanding_before, position, failed, in_body;
} WordAccess;

// Parameters: the numbers of the node and of that of memory, and the tag of answers.
static void word_access_reset(WordAccess* w, const uint32_t* parameters) {
    w->head = (Flit){.src = parameters[0], .dest = parameters[1], .tag = parameters[2]};
}

static void word_access_shows(WordAccess* w) {
    const WordCommand* c = &w->command;
    w->heads = !w->in_body;
    w->body = w->in_body;
    if (w->heads) {
        uint32_t together = w->unsent > PIECE_BURST ? PIECE_BURST : w->unsent;
        uint32_t start = PIECE_BURST < PIECES ? (c->addr & ~LINE_MASK) | w->position * PIECE_BYTES : c->addr;
        w->head.kind = c->write ? KIND_WRITE : KIND_READ;
        w->head.beats = together - 1;
        w->head.addr = start & -BUS_BYTES;
        w->head.context = c->context;
        w->head.last = !c->write;
        return;
    }
    w->last = PIECE_BURST == 1 || (w->unsent & (PIECE_BURST - 1)) == 1;
    uint64_t lanes = (1ull << PIECE_BYTES) - 1;
    if (1u << c->size < PIECE_BYTES) lanes = ((1ull << (1u << c->size)) - 1) << c->addr % PIECE_BYTES;
    if (BUS_BYTES > FENCE_BYTES) lanes <<= c->addr % BUS_BYTES & ~LINE_MASK;
    w->strobe[0] = (uint32_t)lanes, w->strobe[1] = (uint32_t)(lanes >> 32);
    for (int k = 0; k < BUS_BYTES / 4; ++k) w->beat[k] = c->line[k % PIECE_WORDS];
}

static void word_access_outputs(WordAccess* w) {
    const WordCommand* c = &w->command;
    w->request_valid = w->unsent != 0;
    w->done = w->heads = w->body = 0;
    w->i_ready = !w->outstanding || (!w->unsent && c->write && !w->outstanding_before);
    if (w->request_valid) word_access_shows(w);
    if (w->response_valid) {
        w->done = (w->outstanding_before ? w->outstanding_before : w->outstanding) == 1;
        w->error = w->failed ? w->failed : w->response_error;
    }
}

// What was read is at the upper end of a line of several pieces, otherwise where it is in memory.
static void word_access_value(WordAccess* w) {
    uint32_t at = PIECES > 1 ? 2 : w->command.addr / SEMAPHORE_BYTES % 2 * 2;
    w->has_value = !w->command.write && !w->outstanding;
    memcpy(w->value, w->command.line + at, sizeof w->value);
}

static void word_access_tick(WordAccess* w) {
    if (!w->i_valid && !w->request_valid && !w->response_valid) return;
    WordCommand* c = &w->command;
    uint32_t outstanding = w->outstanding, moves = 0, wrote = c->write;
    if (w->request_valid && w->request_ready) {
        if (w->body) {
            --w->unsent, ++w->position;
            w->in_body = !w->last;
            moves = PIECES > 1;
        } else if (wrote) {
            w->in_body = 1;
        } else {
            w->unsent -= w->head.beats + 1, w->position += w->head.beats + 1;
        }
        w->position %= PIECES;
    }
    if (w->response_valid) {
        w->failed = w->done ? 0 : w->error;
        if (w->outstanding_before) --w->outstanding_before;
        else --w->outstanding;
        moves |= !wrote;
    }
    if (moves) {
        uint32_t from = BUS_BYTES > FENCE_BYTES ? (c->addr % BUS_BYTES & ~LINE_MASK) / 4 : 0;
        memmove(c->line, c->line + PIECE_WORDS, (LINE_WORDS - PIECE_WORDS) * 4);
        memcpy(c->line + LINE_WORDS - PIECE_WORDS, w->response_data + from, PIECE_WORDS * 4);
    }
    if (w->response_valid && w->done) word_access_value(w);
    if (w->i_valid && w->i_ready) {
        uint32_t beats = 1u << w->i.size > PIECE_BYTES ? (1u << w->i.size) / PIECE_BYTES : 1;
        uint32_t bursts = beats > PIECE_BURST ? beats / PIECE_BURST : 1;
        *c = w->i;
        w->unsent = beats;
        w->outstanding_before = outstanding - w->response_valid;
        w->outstanding = c->write ? bursts : beats;
        w->position = PIECES > 1 ? (c->addr & LINE_MASK) / PIECE_BYTES : 0;
        w->has_value = 0;
    }
}
