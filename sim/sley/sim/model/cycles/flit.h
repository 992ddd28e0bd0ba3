// Flits of both networks, without the data of beats: sley.hw.noc.messages.
#pragma once

#include "abi.h"
#include "queue.h"

// A flit of either network. Behind the head of a packet of requests its fields are bits of a beat, which pass like them.
// `data` of an answer: the low word, in which that to a WALK is.
typedef struct Flit {
    union {
        uint32_t addr, data;
    };
    uint8_t dest, far, last, kind, tag, src, beats, context, execute, error, share, walk;
} Flit;

// `when`: the port while which the flit means something, behind a question mark.
#define REQUEST_FLIT_PORTS(PORT, flit, path, when)                                                                   \
    PORT(flit.addr, path ".payload.payload.head.addr" when) PORT(flit.kind, path ".payload.payload.head.kind" when) \
    PORT(flit.tag, path ".payload.payload.head.tag" when) PORT(flit.src, path ".payload.payload.head.src" when)     \
    PORT(flit.beats, path ".payload.payload.head.beats" when)                                                       \
    PORT(flit.context, path ".payload.payload.head.context" when)                                                   \
    PORT(flit.execute, path ".payload.payload.head.execute" when)                                                   \
    PORT(flit.error, path ".payload.payload.head.error" when) PORT(flit.dest, path ".payload.dest" when)            \
    PORT(flit.last, path ".payload.last" when)

STREAM_BUFFER(Flit, FlitBuffer)
