/* flights.h - messages and collectives of a trace while they are in flight. */
#ifndef HP_FLIGHTS_H
#define HP_FLIGHTS_H

#include "traces/query.h"

/* From the moment at which all that meet have started, or its sender alone if it did not wait, to the end: of
 * a message at its receiver, of a collective at each of its ranks (a flight of its own). */
typedef struct hp_flight {
    int64_t from, to; /* spans; of a collective the same one twice */
    int64_t t0_ns, t1_ns;
    int64_t bytes;
} hp_flight;

/* By start. Messages of which an end was not recorded are left out, and so are those that end before they
 * start: the clocks of two hosts. */
hp_flight *hp_trace_flights(hp_arena *arena, const hp_trace *t, int64_t *n);

/* Bytes in flight after each change, by time; rank and iter are 0. */
hp_trace_value *hp_flights_bytes(hp_arena *arena, const hp_flight *flight, int64_t n_flight, int64_t *n);

#endif
