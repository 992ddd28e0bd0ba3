// Flits of both networks, without the data of beats: sley.hw.noc.messages.
#pragma once

#include "abi.h"
#include "twin.h"

// A flit of requests. Behind the head of a packet its fields are bits of a beat, which pass like them.
typedef struct RequestFlit {
    uint32_t addr;
    uint8_t kind, tag, src, beats, context, execute, error, share, dest, last;
} RequestFlit;

// `when`: the port while which the flit means something, behind a question mark.
#define REQUEST_FLIT_PORTS(PORT, flit, path, when)                                                                   \
    PORT(flit.addr, path ".payload.payload.head.addr" when) PORT(flit.kind, path ".payload.payload.head.kind" when) \
    PORT(flit.tag, path ".payload.payload.head.tag" when) PORT(flit.src, path ".payload.payload.head.src" when)     \
    PORT(flit.beats, path ".payload.payload.head.beats" when)                                                       \
    PORT(flit.context, path ".payload.payload.head.context" when)                                                   \
    PORT(flit.execute, path ".payload.payload.head.execute" when)                                                   \
    PORT(flit.error, path ".payload.payload.head.error" when) PORT(flit.dest, path ".payload.dest" when)            \
    PORT(flit.last, path ".payload.last" when)

// `data`: the low word, in which the answer to a WALK is.
typedef struct ResponseFlit {
    uint32_t data;
    uint8_t tag, error, walk, dest, far, last;
} ResponseFlit;

static inline uint32_t node_of(uint32_t x, uint32_t y) { return x | y << COORDINATE_BITS; }
