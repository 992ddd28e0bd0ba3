// What a chip counts of its memory bus.
#pragma once

static inline void chip_count(Chip* c) {
    const MemoryPort* p = &c->gateway.port;
    BusCounters* b = &c->counters;
    b->freeze = R_CHIP_COUNTER_CONTROL_FREEZE(c->bank.values[REGISTER_CHIP_COUNTER_CONTROL]);
    b->arvalid = p->ar_valid, b->arready = p->ar_ready, b->awvalid = p->aw_valid, b->awready = p->aw_ready;
    b->rvalid = p->r_valid, b->rready = p->r_ready, b->rlast = p->r_last;
    b->wvalid = p->w_valid, b->wready = p->w_ready, b->bvalid = p->b_valid, b->bready = p->b_ready;
    bus_counters_tick(b);
}
