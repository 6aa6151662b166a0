/* trace_ring.h - records spans without slowing the run: one memory-mapped file per rank,
 * one writer, no locks.
 *
 * The file's space is reserved when it is created (so that a full disk is an error then, not a signal
 * later) and survives a kill of the rank. When it is full, the oldest spans are overwritten and
 * counted as dropped. */
#ifndef HP_TRACE_RING_H
#define HP_TRACE_RING_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_span {
    int32_t task;
    int32_t iter;         /* step, from 0; evaluation steps: -1 - batch */
    int64_t t0_ns, t1_ns; /* the rank's clock, offset already applied: common to all ranks of the run */
} hp_span;

typedef struct hp_sample { /* a counter's value */
    int32_t name;          /* hp_counter */
    int32_t iter;
    int64_t t_ns;
    double value;
} hp_sample;

typedef enum hp_counter {
#define COUNTER(id, name, unit) HP_COUNTER_##id,
#include "traces/counters.def"
#undef COUNTER
    HP_COUNTERS
} hp_counter;
extern const char *const hp_counter_names[HP_COUNTERS];

/* The yardsticks; their counters are HP_COUNTER_YARD_ARITH + yardstick. */
typedef enum hp_yardstick {
#define YARDSTICK(id, name, bound) HP_YARD_##id,
#include "traces/yardsticks.def"
#undef YARDSTICK
    HP_YARDSTICKS
} hp_yardstick;
extern const char *const hp_yardstick_names[HP_YARDSTICKS];
enum { HP_SPEED_CLASSES = HP_YARD_DRAM + 1 }; /* arith, l2, dram: what compute tasks consist of */
static inline hp_counter hp_yardstick_counter(hp_yardstick y) {
    return (hp_counter)(HP_COUNTER_YARD_ARITH + (int)y);
}

typedef struct hp_ring hp_ring;

hp_status hp_ring_create(const char *path, int rank, int role, int64_t span_capacity, int64_t sample_capacity,
                         hp_ring **ring, hp_error *err); /* HP_ECREATE, HP_EIO (disk full) */
void hp_ring_span(hp_ring *r, hp_span s);
void hp_ring_sample(hp_ring *r, hp_sample s);
void hp_ring_close(hp_ring *r);

/* The contents of a ring, complete or cut off, oldest first. Arrays live until hp_ring_free. */
typedef struct hp_ring_data {
    int rank, role;
    int64_t n_span, n_sample, dropped;
    hp_span *span;
    hp_sample *sample;
} hp_ring_data;
hp_status hp_ring_read(const char *path, hp_ring_data *data, hp_error *err); /* HP_EDATA */
void hp_ring_free(hp_ring_data *data);

#endif
