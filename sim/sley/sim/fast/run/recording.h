// The C API of recordings; a part of instance.h, whose hosts write the entries.
#pragma once

// `depth` entries at least are kept; 0 ends it. Whether there is memory for it.
API int fast_record(Instance* instance, u64 depth) {
    Recorder* const r = &instance->recorder;
    const u64 inputs = fast_inputs_bytes < 8 ? 8 : ((u64)fast_inputs_bytes + 7) / 8 * 8;
    record_stop(instance);
    r->depth = depth;
    r->entry_bytes = sizeof(Entry) + inputs;
    return 1;
}

// Moments that a replay shows: before every recorded edge, and now. `first` becomes the first one of the last `cycles`.
API u64 fast_record_rows(const Instance* instance, u64 cycles, u64* first) {
    const Recorder* const r = &instance->recorder;
    u64 rows = 0;
    *first = 0;
    if (!r->depth) return 0;
    for (unsigned part = 0; part < 2; part++) {
        const Segment* const segment = &r->segment[r->young ^ 1 ^ part];
        for (u64 i = 0; i < segment->count; i++) {
            const Entry* const entry = (const Entry*)(segment->entries + i * r->entry_bytes);
            if (entry->kind != ENTRY_TICK && entry->kind != ENTRY_HALF) continue;
            rows++;
            if (entry->cycle + cycles < instance->cycle) *first = rows;
        }
    }
    return rows + 1;
}

typedef struct {
    u32 offset, size;
} Range;

typedef struct {
    u64 row, offset, value;  // the 8 bytes at this offset have this value from that row on
} Change;

// Plays the recording again. Of `limit` rows from `first` on it copies the `ranges` of the state side by side to `rows`,
// and to `times` the number of the cycle, the half (0: before the first edge, 1: before the second one, which counts as
// the next cycle) and the edges. `watched` are
// ranges, multiples of 8 bytes, whose contents at row `first` go to `before`; their changes after that become a list
// that the caller frees with `fast_free`. Returns its length, or -1 without memory for it.
API s64 fast_replay(const Instance* live, u64 first, u64 limit, const Range* ranges, u32 count, u8* rows, u64* times,
                    const Range* watched, u32 watched_count, u8* before, Change** changes) {
    const Recorder* const r = &live->recorder;
    S* const s = (S*)aligned_alloc(64, (sizeof(S) + 63) / 64 * 64);
    u64 watched_bytes = 0, room = 0, used = 0, row = 0, copied = 0;
    for (u32 i = 0; i < watched_count; i++) watched_bytes += watched[i].size;
    u8* const shadow = (u8*)malloc(watched_bytes + 8);
    *changes = 0;
    int failed = !s || !shadow, begun = 0;
    for (unsigned part = 0; part < 2 && !failed && row < first + limit; part++) {
        const Segment* const segment = &r->segment[r->young ^ 1 ^ part];
        // The older segment ends where the younger one begins: one start is enough.
        if (segment->count && !begun) memcpy(s, segment->start, sizeof(S)), begun = 1;
        if (!begun && part) memcpy(s, &live->state, sizeof(S));
        const u64 entries = segment->count + part;  // after the last entry comes the present
        for (u64 i = 0; i < entries && !failed && row < first + limit; i++) {
            const int present = i == segment->count;
            const Entry* const entry = present ? 0 : (const Entry*)(segment->entries + i * r->entry_bytes);
            const u8* const inputs = present ? (const u8*)&live->state + fast_inputs_low : (const u8*)(entry + 1);
            if (!present && entry->kind == ENTRY_WRITE) {
                memcpy((u8*)s + entry->offset, entry + 1, entry->size);
                mark_all(s);
                continue;
            }
            for (u32 k = 0; k < fast_input_count; k++) {
                const InputPlace* const input = &fast_inputs[k];
                const u8* const from = inputs + (input->offset - fast_inputs_low);
                if (input->size <= 8) {
                    u64 value = 0;
                    memcpy(&value, from, input->size);
                    poke(s, k, &value);
                } else {
                    poke(s, k, (const u64*)from);
                }
            }
            settle(s);
            if (!present && entry->kind == ENTRY_SETTLE) continue;
            if (row >= first) {
                u8* shadowed = shadow;
                for (u32 k = 0; k < watched_count && !failed; k++) {
                    const u8* const now = (const u8*)s + watched[k].offset;
                    if (row == first) {
                        memcpy(shadowed, now, watched[k].size);
                        memcpy(before + (shadowed - shadow), now, watched[k].size);
                    } else {
                        for (u32 at = 0; at < watched[k].size; at += 1024) {
                            const u32 block = watched[k].size - at < 1024 ? watched[k].size - at : 1024;
                            if (!memcmp(shadowed + at, now + at, block)) continue;
                            for (u32 word = at; word < at + block; word += 8) {
                                if (!memcmp(shadowed + word, now + word, 8)) continue;
                                if (used == room) {
                                    room = room ? 2 * room : 1024;
                                    Change* const more = (Change*)realloc(*changes, room * sizeof(Change));
                                    if (!more) { failed = 1; break; }
                                    *changes = more;
                                }
                                Change* const change = &(*changes)[used++];
                                change->row = row - first;
                                change->offset = watched[k].offset + word;
                                memcpy(&change->value, now + word, 8);
                                memcpy(shadowed + word, now + word, 8);
                            }
                            if (failed) break;
                        }
                    }
                    shadowed += watched[k].size;
                }
                for (u32 k = 0; k < count; k++) {
                    memcpy(rows + copied, (const u8*)s + ranges[k].offset, ranges[k].size);
                    copied += ranges[k].size;
                }
                u64* const time = times + 3 * (row - first);
                time[0] = present ? live->cycle : entry->cycle;
                time[1] = present ? 0 : entry->kind == ENTRY_HALF;
                time[2] = present ? 0 : entry->edges;
            }
            row++;
            if (!present) commit(s, entry->edges);
        }
    }
    free(s);
    free(shadow);
    if (!failed) return (s64)used;
    free(*changes);
    *changes = 0;
    return -1;
}

API void fast_free(void* memory) { free(memory); }
