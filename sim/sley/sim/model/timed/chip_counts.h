// What a chip counts of its memory bus.
#pragma once

static inline void chip_count(Chip* c) {
    enum { AR, AR_READY, AW, AW_READY, R, R_READY, R_LAST, W, W_READY, B };
    const MemoryPort* p = &c->gateway.port;
    uint32_t e = c->bus_events, freeze = R_CHIP_COUNTER_CONTROL_FREEZE(c->bank.values[REGISTER_CHIP_COUNTER_CONTROL]);
    uint32_t read_burst = e >> AR & e >> AR_READY & 1, write_burst = e >> AW & e >> AW_READY & 1;
    uint32_t read_beat = e >> R & e >> R_READY & 1, write_beat = e >> W & e >> W_READY & 1;
    uint32_t reading = (e >> AR & 1) || c->reads, writing = (e >> AW & 1) || c->writes;
    uint32_t read = read_beat << READ_BEAT | (e >> R & 1) << READ_REFUSED | reading << READ_WAIT | 1u << READ_IDLE;
    uint32_t write = write_beat << WRITE_BEAT | (e >> W & 1) << WRITE_REFUSED | writing << WRITE_WAIT | 1u << WRITE_IDLE;
    classes_tick(&c->bus, __builtin_ctz(read) | __builtin_ctz(write) << CLASS_BITS, 1, freeze);
    amounts_tick(&c->bursts, 1u << BUS_CYCLES | read_burst << BUS_READ_BURSTS | write_burst << BUS_WRITE_BURSTS, freeze);
    c->reads += read_burst - (read_beat & e >> R_LAST);
    c->writes += write_burst - (e >> B & 1);
    c->bus_events = p->ar_valid << AR | p->ar_ready << AR_READY | p->aw_valid << AW | p->aw_ready << AW_READY |
                    p->r_valid << R | p->r_ready << R_READY | p->r_last << R_LAST | p->w_valid << W |
                    p->w_ready << W_READY | (p->b_valid && p->b_ready) << B;
}
