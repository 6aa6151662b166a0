/* update.h - what the optimiser's tasks work on: its states, what decays, who sums which squares; and what
 * they cost. */
#ifndef HP_UPDATE_H
#define HP_UPDATE_H

#include "plan/program/program.h"
#include "plan/program/work.h"

/* Elements of one state of the optimiser: they follow each other in its buffer. */
int64_t hp_state_elems(const hp_program *p, const hp_graph *g, const hp_role *r);

/* Elements that decay in a member's part of the task's bucket; they come first. */
int64_t hp_decayed_elems(const hp_graph *g, const hp_role *r, const hp_task *t, int member);

/* The elements whose squares a member sums, in the buffer of gradients: its part of the bucket; an equal
 * share where all members have all of it; all of it on a server that updates it. Every gradient thus counts
 * once, on one rank. */
typedef struct hp_norm_share {
    int64_t first, count;
} hp_norm_share;
hp_norm_share hp_norm_share_of(const hp_program *p, const hp_role *r, const hp_task *t, int member);

/* What the optimiser's task costs, "adamw f32", or that of the norm, "norm f32". */
hp_work hp_update_work(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t);

#endif
