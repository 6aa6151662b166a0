/* broken.h - run --on-broken skip: reads all samples before the first step and leaves out those that cannot
 * be read (hp_dataset_leave_out).
 *
 * Ranks search equal shares and then exchange what they found. So tiles, stages and replicas leave out the
 * same samples, whichever part of a file they read. A run resumed from a checkpoint repeats the search. */
#ifndef HP_BROKEN_H
#define HP_BROKEN_H

#include "exec/comm/comm.h"
#include "exec/data/dataset/loader.h"

#include <signal.h>

typedef struct hp_broken_options {
    hp_comm *comm;
    double percent;                            /* samples that may be left out, in %, rounded up; 0: none */
    const volatile sig_atomic_t *stop, *leave; /* signals: both end the search */
} hp_broken_options;

/* Searches with the loader's threads. *n: number of samples left out; a note on stderr names each.
 * Collective: over all ranks. Errors: HP_EDATA (more than allowed, or all), HP_EUSAGE (not a folder of
 * images), those of killed decoders; 128 + a signal; HP_EREQUEUE. Cost: decodes everything once,
 * divided among the ranks. */
hp_status hp_broken_leave_out(const hp_broken_options *o, hp_loader *l, int64_t *n, bool *speaker,
                              hp_error *err);

#endif
