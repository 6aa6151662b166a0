/* fix_worlds.h - internals of fix.c: evaluations under options other than the requested ones. */
#ifndef HP_FIX_WORLDS_H
#define HP_FIX_WORLDS_H

#include "sim/search/fix.h"

typedef struct fix_world {
    hp_question q; /* question, ignoring its strategy's degrees */
    hp_eval *eval; /* NULL: no such network */
    struct fix_world *next;
} fix_world;

typedef struct fix_worlds {
    hp_arena *arena;
    hp_eval *eval; /* evaluation of the requested question */
    hp_eval_setup setup;
    const hp_question *asked;
    fix_world *first;
    int n;
} fix_worlds;

/* Evaluates under a question's options, batch and precision; NULL if it cannot. */
fix_world *fix_world_of(fix_worlds *w, const hp_question *q);

/* Maximum number of devices; 0: any number. Cores may be shared; GPUs are limited to the existing ones. */
int fix_most_devices(const hp_machine *m, const hp_question *q);
/* Checks everything except memory. `e` must have the question's batch. */
bool fix_is_legal(const hp_eval *e, const hp_question *q, hp_reject *why);

/* Finds legal questions near the original by following the rules' proposals, and returns their number
 * (fix_roots.c). The second is plain data parallelism if the proposals lead nowhere. */
enum { FIX_ROOTS = 8 };
int fix_near(fix_worlds *w, hp_question found[FIX_ROOTS]);
int fix_roots(fix_worlds *w, hp_question found[FIX_ROOTS]);

#endif
