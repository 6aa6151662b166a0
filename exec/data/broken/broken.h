/* broken.h - run --on-broken skip: all samples are read before the first step, and those that cannot be are left out
 * (hp_dataset_leave_out).
 *
 * Ranks look through equal shares of them and then tell each other: tiles, stages and replicas leave out the same, whichever
 * part of a file they will read. A run that goes on from a checkpoint finds them again. */
#ifndef HP_BROKEN_H
#define HP_BROKEN_H

#include "exec/comm/comm.h"
#include "exec/data/dataset/loader.h"

#include <signal.h>

typedef struct hp_broken_options {
    hp_comm *comm;
    double percent;                            /* of the samples, rounded up, that may be left out; 0: none */
    const volatile sig_atomic_t *stop, *leave; /* signals: both end the search */
} hp_broken_options;

/* With the loader's threads. *n: how many are left out; a note on stderr names each. Collective: over all ranks. Errors: HP_EDATA
 * (more than may be, or all), HP_EUSAGE (the data are no folder of images), those of decoders that are killed; 128 + a signal; HP_EREQUEUE.
 * Cost: decodes everything once, divided by the ranks. */
hp_status hp_broken_leave_out(const hp_broken_options *o, hp_loader *l, int64_t *n, bool *speaker,
                              hp_error *err);

#endif
