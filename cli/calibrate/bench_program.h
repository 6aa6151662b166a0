/* bench_program.h - task programs of messages only, for `hplan calibrate --comm`. */
#ifndef HP_BENCH_PROGRAM_H
#define HP_BENCH_PROGRAM_H

#include "plan/program/program.h"

typedef struct bench_sizes {
    int n;
    int64_t elems[64]; /* float32 */
    int rounds[64];    /* rounds per size */
} bench_sizes;

/* Sizes from `begin` to `end` bytes by `factor`, with `rounds` each. Large sizes have only as many rounds (at
 * least 2) as move `most_bytes`, so that a pass over all sizes stays short. */
enum { BENCH_MOST_BYTES = 1 << 28 };
bench_sizes bench_sizes_make(int64_t begin, int64_t end, int64_t factor, int rounds, int64_t most_bytes);

/* What runs a program, and which back end carries its messages. For collectives, which one and how (LIBRARY:
 * by the rule, or as the library does it). */
typedef struct bench_way {
    hp_device_kind device;
    hp_backend backend;
    hp_collective what;
    hp_algorithm algorithm;
    int32_t per_node; /* ranks per node; 0: all on one node */
} bench_way;

/* An all-to-all has two buffers, as in programs; NCCL supports no other form. */
static inline bool bench_in_place(hp_collective what) {
    return what != HP_COLLECTIVE_ALL_TO_ALL;
}
/* Consecutive collectives over `ranks` ranks. */
hp_program *bench_collectives(hp_arena *arena, const hp_graph *g, int ranks, const bench_sizes *s,
                              const bench_way *way);
/* A message to the other rank and one back, round by round. */
hp_program *bench_ping_pong(hp_arena *arena, const hp_graph *g, const bench_sizes *s, const bench_way *way);

#endif
