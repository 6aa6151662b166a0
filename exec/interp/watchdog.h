/* watchdog.h - no rank waits for ever: when a wait is too long, and which rank is to blame.
 *
 * The ranks of a node share a board, a small mapped file with one row each, in which a rank notes what it
 * does and moves a heart beat with every poll and every task. A rank that waited too long looks who has no
 * heart beat: a stopped rank is then named rightly, however many others wait for it or for each other. */
#ifndef HP_WATCHDOG_H
#define HP_WATCHDOG_H

#include "plan/program/program.h"
#include "traces/faults/process.h"

typedef struct hp_watch hp_watch;

/* `path` NULL: a board of this rank's own. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_watch_open(const char *path, int rank, int ranks, hp_watch **w, hp_error *err);
void hp_watch_close(hp_watch *w);

/* What this rank does now: a task of its role at iteration `iter`; cheap (a store and an atomic addition). */
void hp_watch_note(hp_watch *w, int32_t task, int32_t iter);
void hp_watch_beat(hp_watch *w); /* from any thread */

/* How long this rank may go without any task done. */
typedef struct hp_patience {
    double fixed_s;      /* > 0: this and nothing else */
    double predicted_s;  /* predicted duration of one step, seconds */
    bool predicted_here; /* the plan was made for this machine */
    double longest_s;    /* step measured so far, 0 before the first is over */
} hp_patience;
double hp_patience_limit_s(const hp_patience *p);

/* Marks that this rank begins or ends to read data, in any thread. Meanwhile it beats with every row, and
 * others wait until it ends, then for their limit. */
void hp_watch_reads(hp_watch *w, bool begins);

/* A rank without a heart beat. */
typedef struct hp_suspect {
    int rank;           /* -1: all ranks of this node move */
    int32_t task, iter; /* what it last did */
    bool reads;         /* it was reading data */
    hp_process_state state;
} hp_suspect;
/* Why it may be silent, in words that follow "rank 3 gives no sign of life: ". */
const char *hp_suspect_words(const hp_suspect *s);

typedef enum hp_waited {
    HP_WAITED_WAIT,    /* not yet too long */
    HP_WAITED_AGAIN,   /* another rank still reads its data: begin to count anew */
    HP_WAITED_STALLED, /* the suspect is set */
} hp_waited;
/* Called with every poll by a rank that has waited `waited_s` and may wait `limit_s`; it counts as a beat.
 * Takes a fifth of a second once the limit is reached. A computing rank is silent if it does not beat in that
 * fifth of a second, a reading rank if it does not beat in the second half of the wait. */
hp_waited hp_watch_wait(hp_watch *w, double waited_s, double limit_s, hp_suspect *suspect);

/* Is that rank one of this node, whose beats are seen? */
bool hp_watch_sees(const hp_watch *w, int rank);

/* True for the first rank of the node that asks: the one that speaks. */
bool hp_watch_speak(hp_watch *w);

#endif
