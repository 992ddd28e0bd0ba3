// When a command processor with the registers in front of it need not be computed: if a cycle has changed nothing in it but
// the time, and nothing comes, no later one does.
#pragma once

#include "axi_lite.h"
#include "command_processor.h"
#include "register_bank.h"

enum { STILL_CYCLES = 16 };  // without anything that comes or goes, from one look to the next; a power of 2

typedef struct CommandSleep {
    CommandProcessor before;  // a cycle ago
    uint32_t still, asleep;
} CommandSleep;

// Whether software, memory or a core says something; `answer`: a flit is here.
static inline int command_stirs(const AxiLite* a, const RegisterBank* b, const CommandProcessor* p, uint32_t answer) {
    uint32_t software = a->awvalid | a->wvalid | a->arvalid | a->address_full | a->data_full | a->read_full | a->bvalid | a->rvalid;
    return software | answer | p->resetting || b->pulse != NO_REGISTER;
}

// After the clock edge of a cycle that was computed.
static inline void command_sleep_look(CommandSleep* s, const CommandProcessor* p, int stirs) {
    if (stirs || p->port.out_valid) {
        s->still = 0;
        return;
    }
    uint32_t place = ++s->still % STILL_CYCLES;
    if (place == 0) memcpy(&s->before, p, sizeof s->before);
    if (place != 1 || s->still == 1) return;
    s->before.time = p->time;
    memcpy(s->before.executor.time, p->executor.time, sizeof p->executor.time);
    memcpy(s->before.records.time, p->records.time, sizeof p->records.time);
    memcpy(s->before.shown_time, p->shown_time, sizeof p->shown_time);
    s->asleep = !memcmp(&s->before, p, sizeof s->before);
}
