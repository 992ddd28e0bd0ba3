// One instance of a compiled design: its state, its events, its recording; and the C API that debugs it.
// A host (simulation.c, engines/fast_host.c) includes this file, embeds an Instance as the first member of its own
// structure, and defines what belongs to the state besides the design:
//   host_bytes(instance, memory)        bytes that host_save writes
//   host_save(instance, to, memory)     writes them; `memory`: with the device memory
//   host_load(instance, from, memory)   the other way
#pragma once
#include <stddef.h>
#include <stdlib.h>

#include "design.h"
#include "tables.h"

#define API __attribute__((visibility("default")))

enum { STOPPED = -3, NOT_YET = -4 };

// An entry of a recording: one commit, one write from outside, or inputs that settled. The inputs, or what was written,
// follow it.
typedef struct {
    u64 cycle, edges;
    u32 kind, offset, size, unused;
} Entry;

enum { ENTRY_TICK, ENTRY_HALF, ENTRY_SETTLE, ENTRY_WRITE };

typedef struct {
    u8 *start, *entries;
    u64 count;
} Segment;

// The last cycles as two segments: the state before the first entry and the inputs of every entry, from which a replay
// makes everything again. When the younger segment is full it becomes the older one.
typedef struct {
    u64 depth;  // entries of a segment; 0: off
    u64 entry_bytes;
    Segment segment[2];
    unsigned young;
} Recorder;

typedef struct {
    S state;
    u64 cycle;
    Hook hook;
    void* user;
    int failed;
    u64* counts;     // how often each event fired
    u64* arguments;  // of unclocked events, as they fired last
    u8* conditions;
    Recorder recorder;
} Instance;

static u64 host_bytes(const Instance* instance, int memory);
static void host_save(const Instance* instance, u8* to, int memory);
static void host_load(Instance* instance, const u8* from, int memory);

static int instance_create(Instance* instance) {
    init(&instance->state);
    instance->counts = (u64*)calloc(fast_event_count + 1, 8);
    instance->arguments = (u64*)calloc(fast_event_words + 1, 8);
    instance->conditions = (u8*)calloc(fast_event_count + 1, 1);
    return instance->counts && instance->arguments && instance->conditions;
}

static void record_stop(Instance* instance) {
    Recorder* const r = &instance->recorder;
    for (int i = 0; i < 2; i++) {
        free(r->segment[i].start);
        free(r->segment[i].entries);
    }
    memset(r, 0, sizeof *r);
}

static void instance_destroy(Instance* instance) {
    record_stop(instance);
    free(instance->counts);
    free(instance->arguments);
    free(instance->conditions);
}

// Events.

static int on_event(void* user, u32 number) {
    Instance* const instance = (Instance*)user;
    const EventPlace* const event = &fast_events[number];
    instance->counts[number]++;
    if (!instance->hook || (event->kind == EVENT_COVER && !event->message)) return 0;
    return instance->hook(instance->user, number) ? instance->failed = STOPPED : 0;
}

// Events without a clock, after everything settled: a print or cover fires when it begins to hold or its arguments
// change, an assertion as long as it does not hold.
static int fire_unclocked(Instance* instance) {
    const u8* const state = (const u8*)&instance->state;
    u64* last = instance->arguments;
    for (u32 i = 0; i < fast_event_count; i++) {
        const EventPlace* const event = &fast_events[i];
        if (!event->unclocked) continue;
        const u8 now = state[event->condition], before = instance->conditions[i];
        const void* const arguments = state + event->arguments;
        const int lasting = event->kind == EVENT_ASSERT || event->kind == EVENT_ASSUME;
        const int fires = now && (lasting || !before || memcmp(last, arguments, 8 * event->words));
        memcpy(last, arguments, 8 * event->words);
        last += event->words;
        instance->conditions[i] = now;
        if (fires && on_event(instance, i)) return instance->failed;
    }
    return 0;
}

// Recording.

static Entry* record_entry(Instance* instance, u32 kind) {
    Recorder* const r = &instance->recorder;
    if (!r->segment[r->young].start || r->segment[r->young].count == r->depth) {
        if (r->segment[r->young].count == r->depth) r->young ^= 1;
        Segment* const next = &r->segment[r->young];
        if (!next->start) next->start = (u8*)malloc(sizeof(S));
        if (!next->entries) next->entries = (u8*)malloc(r->depth * r->entry_bytes);
        if (!next->start || !next->entries) {
            record_stop(instance);
            return 0;
        }
        next->count = 0;
    }
    Segment* const segment = &r->segment[r->young];
    if (!segment->count) memcpy(segment->start, &instance->state, sizeof(S));
    Entry* const entry = (Entry*)(segment->entries + segment->count++ * r->entry_bytes);
    entry->kind = kind;
    entry->cycle = instance->cycle;
    return entry;
}

static void record_inputs(Instance* instance, u32 kind, u64 edges) {
    Entry* const entry = record_entry(instance, kind);
    if (!entry) return;
    entry->edges = edges;
    memcpy(entry + 1, (const u8*)&instance->state + fast_inputs_low, fast_inputs_bytes);
}

// After a jump of the state the recording begins again.
static void record_again(Instance* instance) {
    instance->recorder.segment[0].count = instance->recorder.segment[1].count = 0;
}

// What hosts do.

static inline int instance_settle(Instance* instance) {
    settle(&instance->state);
    return fast_event_count ? fire_unclocked(instance) : 0;
}

// Everything has settled: the events of these edges. If one stops the run, the edge does not happen.
static inline int instance_check(Instance* instance, u64 edges) {
    return fast_event_count ? fire(&instance->state, edges, on_event, instance) : 0;
}

static inline void instance_commit(Instance* instance, u64 edges, int half) {
    if (instance->recorder.depth) record_inputs(instance, half ? ENTRY_HALF : ENTRY_TICK, edges);
    commit(&instance->state, edges);
    instance->cycle += !half;
}

// Inputs that settle between two ticks matter where a register has an asynchronous reset.
static inline void instance_pause(Instance* instance) {
    if (fast_async_resets && instance->recorder.depth) record_inputs(instance, ENTRY_SETTLE, 0);
}

// The API that both hosts share.

API u64 fast_state_bytes(void) { return sizeof(S); }
API void* fast_state(Instance* instance) { return &instance->state; }
API u64 fast_cycle(const Instance* instance) { return instance->cycle; }
API const u64* fast_counts(const Instance* instance) { return instance->counts; }
API void fast_hook(Instance* instance, Hook hook) { instance->hook = hook; }
API void fast_poke(Instance* instance, u32 input, const u64* value) { poke(&instance->state, input, value); }

API int fast_settle(Instance* instance) {
    instance->failed = 0;
    const int result = instance_settle(instance);
    instance_pause(instance);
    return result;
}

// Writes at most 8 bytes of the state: a piece of a register or of a row of a memory.
API void fast_write(Instance* instance, u32 offset, u32 size, u64 value) {
    if (instance->recorder.depth) {
        Entry* const entry = record_entry(instance, ENTRY_WRITE);
        if (entry) {
            entry->offset = offset;
            entry->size = size;
            memcpy(entry + 1, &value, 8);
        }
    }
    memcpy((u8*)&instance->state + offset, &value, size);
    mark_all(&instance->state);
}

// Snapshots: state and cycle in one block, then what the host adds.

API u64 fast_snapshot_bytes(const Instance* instance, int memory) {
    return offsetof(Instance, hook) + host_bytes(instance, memory);
}

// Bytes written, or 0 if the buffer is too small.
API u64 fast_snapshot(const Instance* instance, u8* to, u64 room, int memory) {
    const u64 bytes = fast_snapshot_bytes(instance, memory);
    if (bytes > room) return 0;
    memcpy(to, instance, offsetof(Instance, hook));
    host_save(instance, to + offsetof(Instance, hook), memory);
    return bytes;
}

API void fast_restore(Instance* instance, const u8* from, int memory) {
    memcpy(instance, from, offsetof(Instance, hook));
    host_load(instance, from + offsetof(Instance, hook), memory);
    instance->failed = 0;
    record_again(instance);
}

// After a state from a file of another build: everything that is computed is computed again.
API void fast_touch(Instance* instance) { mark_all(&instance->state); }

// Breakpoints.

typedef struct {
    u32 offset, size;
    u64 mask, value;
} Term;

// Holds if all terms do (or, negated, if one does not), or if the function says so.
typedef struct {
    u32 count, negate;
    const Term* terms;
    u64 (*function)(const void* state);
} Condition;

static inline int holds(const Instance* instance, const Condition* condition) {
    if (condition->function) return condition->function(&instance->state) != 0;
    for (u32 i = 0; i < condition->count; i++) {
        const Term* const term = &condition->terms[i];
        const void* const place = (const u8*)&instance->state + term->offset;
        u64 value = 0;
        switch (term->size) {
            case 1: memcpy(&value, place, 1); break;
            case 2: memcpy(&value, place, 2); break;
            case 4: memcpy(&value, place, 4); break;
            default: memcpy(&value, place, 8);
        }
        if ((value & term->mask) != term->value) return !!condition->negate;
    }
    return !condition->negate;
}

#include "recording.h"
