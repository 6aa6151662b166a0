/* space.h - every strategy for a number of devices: data replicas x clients x channels x branches x tile
 * grids of spatial stages x stages and slices after them x schedule x micro-batches x model chunks x GEMS
 * passes x halo depth and overlap x cut x recomputation; in inference x strips of the image x their depth. */
#ifndef HP_SPACE_H
#define HP_SPACE_H

#include "plan/program/program.h"
#include "sim/search/cuts.h"

typedef struct hp_space {
    const hp_graph *graph;
    hp_mode mode;
    int64_t batch;
    int n_devices;
    bool strips;       /* the points that take an image in strips, instead of all others */
    bool any_strips;   /* with `strips`: any power of two of them, and one per row */
    bool no_recompute; /* without the points that run layers again */
    int most_clients;  /* ranks on a device; 0 and 1: one */
} hp_space;

enum { HP_SPACE_SPATIAL = 2 /* spatial stages with grids of their own */ };

/* A point, smaller than a strategy: spaces have hundreds of thousands. */
typedef struct hp_point {
    int32_t dp, stages, micro, ldp, gems;
    int32_t rows[HP_SPACE_SPATIAL], cols[HP_SPACE_SPATIAL];
    int16_t clients, cp, tp, bp, chunks, halo, strips, deep;
    uint8_t prec, n_sp, tail, sched, recompute, overlap;
    uint8_t cut; /* hp_cut_kind; plain stages are cut by time */
} hp_point;

/* All points that use all devices, in a fixed order, some illegal ones included (they are rejected with
 * reasons): the micro-batch counts are all divisors of a replica's batch, and without tiles a few powers of
 * two that may not divide. Grids are strips and the two nearest to squares; tile counts all up to 16, beyond
 * that powers of two and what leaves few ranks to the tail. Strips are a list of their own: they cost time,
 * and save memory alone. Different spellings of one program appear once. Returns how many; the array lives in
 * `arena`. */
int hp_space_list(hp_arena *arena, const hp_space *space, hp_point **list);

/* The strategy of a point, without its cut. */
hp_strategy hp_space_strategy(const hp_point *p);

/* Tasks of the lowered program, all roles, roughly: what an evaluation costs. */
int64_t hp_space_tasks(const hp_space *space, const hp_point *p);

#endif
