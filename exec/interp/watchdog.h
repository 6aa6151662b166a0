/* watchdog.h - no rank waits for ever: when a wait is too long, and which rank is to blame.
 *
 * The ranks of a node share a board, a small mapped file with one row each, in which a rank notes what it
 * does and moves a heart beat with every poll and every task. A rank that waited too long looks who has no
 * heart beat: a stopped rank is then named rightly, however many others wait for it or for each other. */
#ifndef HP_WATCHDOG_H
#define HP_WATCHDOG_H

#include "plan/program/program.h"

typedef struct hp_watch hp_watch;

/* `path` NULL: a board of this rank's own. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_watch_open(const char *path, int rank, int ranks, hp_watch **w, hp_error *err);
void hp_watch_close(hp_watch *w);

/* What this rank does now: a task of its role at iteration `iter`; cheap (two stores). */
void hp_watch_note(hp_watch *w, int32_t task, int32_t iter);
void hp_watch_beat(hp_watch *w);

/* How long this rank may go without any task done. */
typedef struct hp_patience {
    double fixed_s;      /* > 0: this and nothing else */
    double predicted_s;  /* of one step, by the plan */
    bool predicted_here; /* the plan was made for this machine */
    double longest_s;    /* step measured so far, 0 before the first is over */
} hp_patience;
double hp_patience_limit_s(const hp_patience *p);

/* The rank without a heart beat, what it last did, or -1 when all ranks of this node move. Takes a fifth of a
 * second. */
int hp_watch_silent(hp_watch *w, int32_t *task, int32_t *iter);
/* True for the first rank of the node that asks: the one that speaks. */
bool hp_watch_speak(hp_watch *w);

#endif
