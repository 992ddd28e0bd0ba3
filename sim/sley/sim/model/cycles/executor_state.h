// Ports and state of the executor's twin.
#pragma once

#include "command_parts.h"
#include "command_queue.h"
#include "packet_fetch.h"
#include "urgent.h"

#define QUEUE_VIEW_PORTS(IN, k)                                                                                  \
    IN(priorities[k], "~priorities[" #k "]") IN(queues[k].place.packet, "~queues[" #k "].place.packet")          \
    IN(queues[k].place.nested, "~queues[" #k "].place.nested")                                                   \
    IN(queues[k].place.context, "~queues[" #k "].place.context") IN(queues[k].ahead, "~queues[" #k "].ahead")    \
    IN(queues[k].stays, "~queues[" #k "].stays") IN(queues[k].read_next, "~queues[" #k "].read_next")

#define EXECUTOR_PORTS(IN, OUT)                                                                                  \
    IN(pending, "pending") QUEUE_VIEW_PORTS(IN, 0) QUEUE_VIEW_PORTS(IN, 1) QUEUE_VIEW_PORTS(IN, 2)               \
    QUEUE_VIEW_PORTS(IN, 3) QUEUE_VIEW_PORTS(IN, 4) QUEUE_VIEW_PORTS(IN, 5) QUEUE_VIEW_PORTS(IN, 6)              \
    QUEUE_VIEW_PORTS(IN, 7) IN(readback, "readback") IN(watchdog, "watchdog")                                    \
    IN(grid_valid, "grid_result.valid") WORK_RESULT_PORTS(IN, grid_result, "grid_result", "")                    \
    IN(copied_valid, "copy_result.valid") WORK_RESULT_PORTS(IN, copy_result, "copy_result", "")                  \
    IN(request_ready, "request.ready") IN(response_valid, "response.valid")                                      \
    IN(response_error, "response.payload.error") BEAT_WORDS_PORTS(IN, response_data, "response.payload.data", "") \
    IN(words_ready, "words.ready") IN(word_done, "word_done") IN(word_error, "word_error")                       \
    IN(word[0], "word@0") IN(word[1], "word@1") IN(time[0], "time@0") IN(time[1], "time@1") IN(stall, "stall")   \
    OUT(owner, "queue") OUT(taken, "taken") OUT(event, "event") OUT(faulted, ".faulted") OUT(enters, ".enters")  \
    OUT(writes, ".writes") BLOCK_FAULT_PORTS(OUT, fault, "fault", "?.faulted")                                   \
    OUT(buffer, "buffer?.enters") OUT(buffer_packets, "buffer_packets?.enters")                                  \
    OUT(launch_valid, "launch.valid") LAUNCH_PORTS(OUT, launch_queue, grid, "launch", "?launch.valid")           \
    OUT(beat_valid, "beat.valid")                                                                                \
    OUT(beat_index, "beat.index?beat.valid") BEAT_WORDS_PORTS(OUT, beat_data, "beat.data", "?beat.valid")        \
    OUT(copy_valid, "copy.valid") COPY_COMMAND_PORTS(OUT, copy, "copy", "?copy.valid")                           \
    OUT(grid_ready, "grid_result.ready") OUT(copied_ready, "copy_result.ready") OUT(posted, "posted")            \
    OUT(lost, "lost") OUT(lost_code, "lost_code?lost") OUT(request_valid, "request.valid")                       \
    REQUEST_FLIT_PORTS(OUT, request, "request", "?request.valid")                                                \
    OUT(request.share, "~request.payload.payload.head.share?request.valid") OUT(words_valid, "words.valid")      \
    WORD_COMMAND_PORTS(OUT, words, "words", "?words.valid", "?.writes") OUT(fence, "fence")

typedef struct QueueView {
    PacketPlace place;
    uint32_t ahead, stays, read_next;
} QueueView;

enum { TURN_IDLE, TURN_FETCH, TURN_EXECUTE, TURN_ENTERED, TURN_ACKNOWLEDGE, TURN_COMPARE, TURN_DECIDE, TURN_RETIRE, TURN_READBACK, TURN_FAULT };
enum { KEPT_WORDS = 6 };  // of a packet that executes

typedef struct Executor {
    uint32_t pending, priorities[QUEUES_MAX], readback, watchdog, grid_valid, copied_valid, request_ready;
    uint32_t response_valid, response_error, response_data[PACKET_WORDS], words_ready, word_done, word_error, word[2];
    uint32_t time[2], stall;
    QueueView queues[QUEUES_MAX];
    WorkResult grid_result, copy_result;
    uint32_t owner, taken, event, faulted, enters, writes, buffer, buffer_packets, launch_valid, launch_queue;
    uint32_t beat_valid, beat_index, beat_data[PACKET_WORDS], copy_valid, grid_ready, copied_ready, posted, lost;
    uint32_t lost_code, request_valid, words_valid, fence;
    BlockFault fault;
    GridOrder grid;
    CopyCommand copy;
    WordCommand words;
    Flit request;

    PacketFetch fetch;
    PacketPlace awaited;
    Urgent urgent;
    uint32_t packet[KEPT_WORDS], state, satisfied, number, source, ours, early, look_ahead, address, stays, read_index;
    uint32_t own_posted, settling, interrupts;
    // For the tick: whose turn it is, whether it is taken, a packet is fetched, one is dropped; where the state goes.
    uint32_t grant, moved, start, drop, stale, next, failure, rests;
} Executor;
