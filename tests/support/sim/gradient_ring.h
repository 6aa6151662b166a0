/* gradient_ring.h - a textbook step of data parallelism: a forward pass, then a backward pass that finishes
 * one bucket of gradients after another. Each bucket is all-reduced over a ring of all ranks while the next
 * ones are computed. */
#ifndef HP_TESTS_GRADIENT_RING_H
#define HP_TESTS_GRADIENT_RING_H

#include "sim/engine/sim.h"

typedef struct gradient_ring {
    int ranks, buckets;
    double forward_s, backward_s; /* backward: per bucket */
    int64_t bucket_bytes;
    double link_bytes_per_s, latency_s;
    hp_algorithm algorithm; /* 0: ring */
} gradient_ring;

/* 128 ranks, ten buckets: 80 ms, 10 x 16 ms, 10.24 MB each, 25 GB/s, 1 us. */
extern const gradient_ring gradient_ring_128;

/* If each bucket is reduced before the next one is ready, only the last one is visible: forward, backward,
 * and its 2(p-1) steps of 1/p of the bucket. */
int64_t gradient_ring_ns(const gradient_ring *r);

hp_program *gradient_ring_program(hp_arena *arena, const gradient_ring *r);
hp_machine gradient_ring_machine(const gradient_ring *r);
/* Points to r. */
hp_sim_costs gradient_ring_costs(const gradient_ring *r);

/* Simulates it; steps: every rank, and every message in every step of the rings. */
hp_sim_result gradient_ring_run(hp_arena *arena, const gradient_ring *r, bool steps);

#endif
