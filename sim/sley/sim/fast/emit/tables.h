// What the host code of any compiled design knows of its state; manifest.py writes the tables.
#pragma once
#include <stdint.h>

// A top-level input: byte offset in the state, bytes there.
typedef struct {
    uint32_t offset, size;
} InputPlace;

// An event: what it is, byte offsets of its condition (one byte) and its arguments, 64-bit words of these.
typedef struct {
    uint8_t kind, unclocked, message;
    uint32_t condition, arguments, words;
} EventPlace;

enum { EVENT_PRINT, EVENT_ASSERT, EVENT_ASSUME, EVENT_COVER };

extern const InputPlace fast_inputs[];
extern const uint32_t fast_input_count;
// All inputs lie in these bytes of the state.
extern const uint32_t fast_inputs_low, fast_inputs_bytes;
extern const EventPlace fast_events[];
extern const uint32_t fast_event_count;
// Words of arguments of all events together.
extern const uint32_t fast_event_words;
// Whether a register can change without a clock.
extern const uint32_t fast_async_resets;
