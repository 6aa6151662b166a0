/* events.h - the simulator's queue: a binary heap over (time, sequence), so that ties have one order. */
#ifndef HP_SIM_EVENTS_H
#define HP_SIM_EVENTS_H

#include "plan/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_event {
    int64_t t_ns;
    uint64_t seq; /* order of insertion: breaks ties */
    int32_t what; /* the owner's id */
    uint32_t age; /* the owner's generation when it was queued; an older one is stale */
} hp_event;

typedef struct hp_events {
    hp_arena *arena;
    hp_event *heap;
    int n, capacity;
    uint64_t next_seq;
} hp_events;

void hp_events_init(hp_events *q, hp_arena *arena);
void hp_events_push(hp_events *q, int64_t t_ns, int32_t what, uint32_t age);
/* The earliest event; false when the queue is empty. */
bool hp_events_pop(hp_events *q, hp_event *e);

#endif
