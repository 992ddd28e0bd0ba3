// The twin of sley.hw.core.sequencer: the life of a block from its launch message to its done message.
#pragma once

#include "execute.h"
#include "twin.h"

#define UNIT_INPUTS(IN, k)                                                                                         \
    IN(dispatch_ready[k], "dispatch[" #k "].ready") IN(unit_fault[k].valid, "unit_fault[" #k "].valid")           \
    IN(unit_fault[k].code, "unit_fault[" #k "].code") IN(unit_fault[k].pc, "unit_fault[" #k "].pc")               \
    IN(unit_fault[k].address, "unit_fault[" #k "].address")
#define UNIT_OUTPUTS(OUT, k) OUT(dispatch_valid[k], "dispatch[" #k "].valid")
#define COMMAND_OUTPUTS(OUT, k)                                                                                    \
    OUT(x.command.op, "dispatch[" #k "].payload.op?dispatch[" #k "].valid")                                       \
    OUT(x.command.pc, "dispatch[" #k "].payload.pc?dispatch[" #k "].valid")                                       \
    OUT(x.command.wait, "dispatch[" #k "].payload.wait?dispatch[" #k "].valid")                                   \
    OUT(x.command.signal, "dispatch[" #k "].payload.signal?dispatch[" #k "].valid")                               \
    OUT(x.command.a, "dispatch[" #k "].payload.a?dispatch[" #k "].valid")                                         \
    OUT(x.command.b, "dispatch[" #k "].payload.b?dispatch[" #k "].valid")                                         \
    OUT(x.command.c, "dispatch[" #k "].payload.c?dispatch[" #k "].valid")                                         \
    OUT(x.command.flags, "dispatch[" #k "].payload.flags?dispatch[" #k "].valid")
#define BEAT_INPUT(IN, k) IN(beat_data[k], "beat.payload.data@" #k)
#define BEAT_INPUTS(IN)                                                                                            \
    BEAT_INPUT(IN, 0) BEAT_INPUT(IN, 1) BEAT_INPUT(IN, 2) BEAT_INPUT(IN, 3) BEAT_INPUT(IN, 4) BEAT_INPUT(IN, 5)   \
    BEAT_INPUT(IN, 6) BEAT_INPUT(IN, 7) BEAT_INPUT(IN, 8) BEAT_INPUT(IN, 9) BEAT_INPUT(IN, 10) BEAT_INPUT(IN, 11) \
    BEAT_INPUT(IN, 12) BEAT_INPUT(IN, 13) BEAT_INPUT(IN, 14) BEAT_INPUT(IN, 15) BEAT_INPUT(IN, 16)                \
    BEAT_INPUT(IN, 17) BEAT_INPUT(IN, 18) BEAT_INPUT(IN, 19) BEAT_INPUT(IN, 20) BEAT_INPUT(IN, 21)                \
    BEAT_INPUT(IN, 22) BEAT_INPUT(IN, 23) BEAT_INPUT(IN, 24) BEAT_INPUT(IN, 25) BEAT_INPUT(IN, 26)                \
    BEAT_INPUT(IN, 27) BEAT_INPUT(IN, 28) BEAT_INPUT(IN, 29) BEAT_INPUT(IN, 30) BEAT_INPUT(IN, 31)

#define SEQUENCER_PORTS(IN, OUT)                                                                                   \
    IN(core, "core") IN(scrubbing, "scrubbing") IN(forget, "forget") IN(cancel, "cancel") IN(retired, "retired")  \
    IN(launch_valid, "launch.valid") IN(launch_last, "launch.payload.last")                                       \
    IN(launch_word, "launch.payload.payload.beat.data@0") IN(launch_address, "launch.payload.payload.head.addr") \
    IN(done_ready, "done.ready") IN(run_ready, "run.ready") IN(beat_valid, "beat.valid")                          \
    IN(beat_error, "beat.payload.error") BEAT_INPUTS(IN)                                                           \
    UNIT_INPUTS(IN, 0) UNIT_INPUTS(IN, 1) UNIT_INPUTS(IN, 2) UNIT_INPUTS(IN, 3)                                   \
    IN(wait_ready, "wait.ready") IN(signal_ready, "signal.ready") IN(semaphores, "semaphores")                    \
    IN(units_idle, "units_idle")                                                                                  \
    OUT(context, "context") OUT(starts, "starts") OUT(launch_ready, "launch.ready") OUT(done_valid, "done.valid") \
    OUT(done_last, "done.payload.last?done.valid") OUT(done_word, "done.payload.payload.data@0?done.valid")       \
    OUT(run.valid, "run.valid") OUT(run.address, "run.payload.addr?run.valid")                                    \
    OUT(run.bytes, "run.payload.bytes?run.valid") OUT(run.execute, "run.payload.execute?run.valid")               \
    OUT(beat_ready, "beat.ready")                                                                                 \
    UNIT_OUTPUTS(OUT, 0) UNIT_OUTPUTS(OUT, 1) UNIT_OUTPUTS(OUT, 2) UNIT_OUTPUTS(OUT, 3)                           \
    COMMAND_OUTPUTS(OUT, 0) COMMAND_OUTPUTS(OUT, 1) COMMAND_OUTPUTS(OUT, 2) COMMAND_OUTPUTS(OUT, 3)               \
    OUT(wait_valid, "wait.valid") OUT(x.instruction.wait, "wait.payload?wait.valid")                              \
    OUT(signal_valid, "signal.valid") OUT(x.instruction.signal, "signal.payload?signal.valid")                    \
    OUT(abort, "abort") OUT(clear, "clear") OUT(gang, "gang") OUT(pc, "pc") OUT(running, "running")               \
    OUT(shown, "state") OUT(event_launch, "events.launch") OUT(event_fetch, "events.fetch")                       \
    OUT(event_queue[0], "events.load_queue") OUT(event_queue[1], "events.store_queue")                            \
    OUT(event_queue[2], "events.matrix_queue") OUT(event_queue[3], "events.vector_queue")                         \
    OUT(event_sync_wait, "events.sync_wait") OUT(event_sync_signal, "events.sync_signal")                         \
    OUT(event_end, "events.end") OUT(event_report, "events.report") OUT(event_execute, "events.execute")

enum { S_IDLE, S_LAUNCH, S_RUN, S_ABORT, S_REPORT };
enum { BEAT_WORDS_MAX = 32, UNITS_BEHIND = 4 };

typedef struct FaultRecord {
    uint32_t valid, unit, code, pc, address;
} FaultRecord;

typedef struct Sequencer {
    uint32_t core, scrubbing, forget, cancel, retired, launch_valid, launch_last, launch_word, launch_address;
    uint32_t done_ready, run_ready, beat_valid, beat_error, beat_data[BEAT_WORDS_MAX], dispatch_ready[UNITS_BEHIND];
    FaultRecord unit_fault[UNITS_BEHIND];
    uint32_t wait_ready, signal_ready, semaphores, units_idle;
    uint32_t context, starts, launch_ready, done_valid, done_last, done_word, beat_ready;
    FetchRun run;
    uint32_t dispatch_valid[UNITS_BEHIND], wait_valid, signal_valid, abort, clear, gang, pc, running, shown;
    uint32_t event_launch, event_fetch, event_queue[UNITS_BEHIND], event_sync_wait, event_sync_signal, event_end;
    uint32_t event_report, event_execute;

    Launch l;
    Fetch f;
    Execute x;
    uint32_t state, position, cancelled, late_cancelled, fetch_failed, watchdog_left, expired;
    FaultRecord record, late_fault;
} Sequencer;

static void sequencer_reset(Sequencer* s, const uint32_t* parameters) { s->f.split = parameters[0]; }

static int sequencer_stalls(const Sequencer* s) { return s->l.inside || s->f.args_left || s->scrubbing; }

static void sequencer_outputs(Sequencer* s) {
    const Execute* x = &s->x;
    int run = s->state == S_RUN;
    s->context = s->l.order.context;
    s->starts = s->l.start;
    s->gang = s->l.gang;
    s->launch_ready = s->state == S_IDLE || s->state == S_LAUNCH;
    s->run = fetch_run(&s->f, &s->l.order);
    s->beat_ready = fetch_ready(&s->f, &s->l.order, !s->l.inside);
    s->done_valid = s->state == S_REPORT;
    s->done_last = s->position == DONE_ADDRESS;
    s->done_word = s->position == DONE_STATUS ? s->core | s->record.code << 8 | s->record.unit << 16
                   : s->position == DONE_PC ? s->record.pc
                                      : s->record.address;
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        s->dispatch_valid[k] = x->pending == (uint32_t)k + UNIT_LOAD;
        s->event_queue[k] = s->dispatch_valid[k] && execute_blocked(x);
    }
    s->wait_valid = x->state == X_WAIT;
    s->signal_valid = x->state == X_SIGNAL;
    s->pc = execute_pc(x);
    s->running = s->state != S_IDLE;
    s->shown = s->signal_valid ? SHOWN_SIGNAL : s->wait_valid ? SHOWN_WAIT : s->running ? SHOWN_RUN : SHOWN_IDLE;
    s->event_launch = s->state == S_LAUNCH || (run && s->l.inside);
    s->event_fetch = run && execute_fetching(x, s->f.available, sequencer_stalls(s));
    s->event_sync_wait = s->wait_valid && !s->wait_ready;
    s->event_sync_signal = s->signal_valid && !s->signal_ready;
    s->event_end = run && x->state == X_ENDED;
    s->event_report = s->state == S_ABORT || s->state == S_REPORT;
    s->event_execute = run;
}

// The first of all faults of a cycle, as the record shows it; with none, where the program is.
static FaultRecord sequencer_fault(const Sequencer* s, int* happened, int quiet) {
    const Execute* x = &s->x;
    uint32_t leftover = x->state == X_ENDED && s->semaphores, pc = execute_pc(x);
    uint32_t fetch_address = s->f.program_at_fault ? s->l.order.program : s->l.order.args;
    *happened = 1;
    if (x->failed) return (FaultRecord){1, UNIT_SEQUENCER, x->code, pc, x->address};
    if (s->fetch_failed) return (FaultRecord){1, UNIT_SEQUENCER, s->f.code, 0, fetch_address};
    if (s->late_fault.valid) return s->late_fault;
    if (s->late_cancelled) return (FaultRecord){1, UNIT_SEQUENCER, FAULT_ABORTED, pc, 0};
    if (s->expired) return (FaultRecord){1, UNIT_SEQUENCER, FAULT_WATCHDOG, pc, 0};
    *happened = leftover && quiet;
    if (leftover) return (FaultRecord){1, UNIT_SEQUENCER, FAULT_SEMAPHORE_LEFTOVER, pc, s->semaphores};
    return (FaultRecord){0, 0, 0, pc, 0};
}

static void sequencer_tick(Sequencer* s) {
    uint32_t state = s->state;
    Order order = s->l.order;  // before this cycle's word
    int start = s->l.start, open = !s->l.inside, stall = sequencer_stalls(s);
    int quiet = s->units_idle && !s->x.pending && !fetch_busy(&s->f, &order), happened;
    FaultRecord fault = sequencer_fault(s, &happened, quiet);
    int ended = s->x.state == X_ENDED, done = state == S_REPORT && s->done_ready && s->done_last;

    // Registers that are behind the faults and the watchdog.
    s->late_fault.valid = 0;
    for (int k = UNITS_BEHIND; k--;)
        if (s->unit_fault[k].valid) s->late_fault = s->unit_fault[k], s->late_fault.unit = UNIT_LOAD + k;
    s->fetch_failed = s->f.error;
    s->late_cancelled = s->cancelled;
    s->cancelled = s->cancel >> s->l.queue & 1;
    int progress = s->retired || state != S_RUN || s->scrubbing;
    s->expired = !progress && s->watchdog_left == 1;
    if (progress) s->watchdog_left = s->l.watchdog;
    else if (s->watchdog_left) --s->watchdog_left;

    Accepted flit = launch_tick(&s->l, s->launch_valid && s->launch_ready, s->launch_word, s->launch_last,
                                s->launch_address);
    uint32_t argument, value;
    uint32_t available = s->f.available;
    FetchBeat beat = {s->beat_valid, s->beat_error, s->beat_data};
    int argued = fetch_tick(&s->f, &order, start, state == S_ABORT || s->forget, open, s->run_ready, beat, &argument,
                            &value);
    uint32_t accepted = 0;
    for (int k = 0; k < UNITS_BEHIND; ++k)
        if (s->dispatch_valid[k] && s->dispatch_ready[k]) accepted = UNIT_LOAD + k;
    ExecuteInputs in = {flit.done, stall, state == S_ABORT || state == S_REPORT, s->wait_ready, s->signal_ready,
                        order.words, available, accepted};
    execute_tick(&s->x, s->f.program, &in);
    if (flit.begin) memset(s->x.registers, 0, sizeof s->x.registers);
    if (flit.writes) s->x.registers[flit.index] = s->launch_word;
    else if (argued) s->x.registers[argument % REGISTERS] = value;

    s->clear = flit.begin;
    switch (state) {
    case S_IDLE:
        if (flit.begin) s->state = S_LAUNCH;
        break;
    case S_LAUNCH:
        if (flit.done) s->state = S_RUN;
        break;
    case S_RUN:
        s->record = fault;
        if (ended && quiet) s->state = S_REPORT;
        if (happened) s->state = S_ABORT, s->abort = 1;
        break;
    case S_ABORT:
        if (quiet) s->state = S_REPORT, s->abort = 0, s->clear = 1;
        break;
    case S_REPORT:
        if (done) s->state = S_IDLE;
        if (s->done_ready) s->position = s->done_last ? 0 : s->position + 1;
    }
}
