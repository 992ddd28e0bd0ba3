// Beats that the command processor writes, on their way to memory. Their place is the data of their flits; beats of Store
// and of copies have none, as what they write is there already.
#pragma once

#include "command_processor.h"

enum { WRITTEN_BEATS = 256, NO_BEAT = 0 };

typedef struct WrittenBeat {
    uint32_t data[PACKET_WORDS], strobe[2];
} WrittenBeat;

typedef struct Written {
    WrittenBeat beats[WRITTEN_BEATS];
    uint32_t next;                         // place of the next one
    uint8_t at_bus[WRITTEN_BEATS];         // places of those that the memory port holds
    uint32_t first, end;
} Written;

static inline uint32_t written_put(Written* w, const uint32_t* data, const uint32_t* strobe) {
    uint32_t place = 1 + w->next++ % (WRITTEN_BEATS - 1);
    memcpy(w->beats[place].data, data, BUS_BYTES);
    memcpy(w->beats[place].strobe, strobe, sizeof w->beats[place].strobe);
    return place;
}

static inline const WrittenBeat* written_first(const Written* w) {
    uint32_t place = w->at_bus[w->first % WRITTEN_BEATS];
    return place ? &w->beats[place] : 0;
}
