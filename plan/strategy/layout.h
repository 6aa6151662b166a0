/* layout.h - which rank does what: stages, their parts (tiles, slices), and where GEMS mirrors them.
 *
 * Roles 0 .. n_role-1 are the ranks of one data replica. Stage positions follow one another; a position's
 * parts have consecutive roles. Flipped (GEMS, every second pass) everything sits mirrored: role n_role-1-r
 * does what role r does (Jain et al., SC 2020); with channel and tensor parallelism, blocks of `cp` and `tp`
 * roles are mirrored, so that a role keeps its channel slice. With tail=shared the stage after the spatial
 * ones shares the last spatial position.
 *
 * Data replicas that take unequal shares of the batch (share=3:1) cannot be copies of one program: they are
 * slices of the samples of one replica of it, with the same roles in a row for each. */
#ifndef HP_LAYOUT_H
#define HP_LAYOUT_H

#include "plan/strategy/strategy.h"
#include "plan/tiles/tile.h"

/* Data replicas with shares of their own; their slices are the first factor of every layout. 1: replicas are
 * alike. */
int hp_shares(const hp_strategy *s);
/* Positions of the pipeline: stages, or the spatial stages alone with tail=shared. */
int hp_positions(const hp_strategy *s);
int hp_position_of(const hp_strategy *s, int stage);
/* How the tensors of a stage are split. */
hp_layout hp_stage_layout(const hp_strategy *s, int stage);
/* Parts of a stage; the ranks of a position. */
int hp_stage_parts(const hp_strategy *s, int stage);
/* Ranks of one data replica, or of all those with shares of their own. */
int hp_strategy_roles(const hp_strategy *s);
/* The role of part `part` of `stage`; flip 1: mirrored. */
int hp_role_of(const hp_strategy *s, int stage, int part, int flip);
/* The other way round: position and part of a role. */
void hp_role_place(const hp_strategy *s, int role, int flip, int *position, int *part);
/* Number of orientations: 2 with GEMS, else 1. */
static inline int hp_flips(const hp_strategy *s) {
    return s->gems > 1 ? 2 : 1;
}
/* Micro-batches of one data replica in one step: passes * micro. */
static inline int hp_strategy_groups(const hp_strategy *s) {
    return s->gems * s->micro;
}

#endif
