/* fix_worlds.h - inside of fix.c: evaluations under other options than those asked for. */
#ifndef HP_SIM_FIX_WORLDS_H
#define HP_SIM_FIX_WORLDS_H

#include "sim/search/fix.h"

typedef struct fix_world {
    hp_question q; /* but for its strategy's degrees */
    hp_eval *eval; /* NULL: there is no such network */
    struct fix_world *next;
} fix_world;

typedef struct fix_worlds {
    hp_arena *arena;
    hp_eval *eval; /* of what was asked */
    hp_eval_setup setup;
    const hp_question *asked;
    fix_world *first;
    int n;
} fix_worlds;

/* Evaluates under the options, the batch and the precision of a question; NULL: cannot. */
fix_world *fix_world_of(fix_worlds *w, const hp_question *q);

#endif
