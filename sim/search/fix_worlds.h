/* fix_worlds.h - inside of fix.c: evaluations under other options than those asked for. */
#ifndef HP_FIX_WORLDS_H
#define HP_FIX_WORLDS_H

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

/* At most so many devices; 0: any number. Cores may be shared, GPUs are as many as there are. */
int fix_most_devices(const hp_machine *m, const hp_question *q);
/* Everything but memory. `e` has the question's batch. */
bool fix_is_legal(const hp_eval *e, const hp_question *q, hp_reject *why);

/* Legal questions near the one that was asked, which rules' proposals lead to, and how many (fix_roots.c); the second has
 * plain data parallelism where they lead nowhere. */
enum { FIX_ROOTS = 8 };
int fix_near(fix_worlds *w, hp_question found[FIX_ROOTS]);
int fix_roots(fix_worlds *w, hp_question found[FIX_ROOTS]);

#endif
