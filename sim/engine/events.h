/* events.h - the simulator's queue: a binary heap over (time, sequence), so that ties have a fixed order.
 * Events queued one after another for the same instant, as equal ranks do, share one heap entry. */
#ifndef HP_EVENTS_H
#define HP_EVENTS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_event {
    int64_t t_ns;
    int32_t what; /* the owner's id */
    uint32_t age; /* the owner's generation at queueing; an older one is stale */
} hp_event;

typedef struct hp_events {
    hp_arena *arena;
    struct hp_event_instant *heap; /* instants; an instant with several events has them in order */
    int n, capacity;
    struct hp_event_link *link;
    int n_link, link_capacity, free_link; /* free links; -1: none */
    int64_t newest_ns;                    /* instant of the newest entry */
    int32_t newest;                       /* the last of its events; -1: it has been taken */
    uint64_t next_seq;
} hp_events;

void hp_events_init(hp_events *q, hp_arena *arena);
void hp_events_push(hp_events *q, int64_t t_ns, int32_t what, uint32_t age);
/* The instant of the earliest event; INT64_MAX if there is none. */
int64_t hp_events_next_ns(const hp_events *q);
/* Delays all events. */
void hp_events_delay(hp_events *q, int64_t ns);
/* Takes the earliest event; among equals, the one pushed first. Returns false if the queue is empty. */
bool hp_events_pop(hp_events *q, hp_event *e);

#endif
