/* simulate_found.h - what `simulate` finds: the plans of all counts, and why some have none. */
#ifndef HP_SIMULATE_FOUND_H
#define HP_SIMULATE_FOUND_H

#include "cli/options/simulate.h"
#include "sim/search/mix_cost.h"

enum { SIM_MAX_GAINS = 8 };

/* The speed-up that the selected plan would have with a change to its numbers: a precision, or a key of the
 * strategy. option: the option that takes it, "" a strategy. */
typedef struct simulate_gain {
    const char *option, *what;
    double ratio;
} simulate_gain;

/* A count of one curve: its best plan, or why there is none. */
typedef struct simulate_point {
    const char *curve; /* the strategy as given; "": the best of a search */
    int gpus;
    int64_t batch;
    const hp_evaluation *plan;  /* NULL: none */
    const hp_rejected *why;     /* then the nearest; NULL: nothing was searched */
    double speedup, efficiency; /* against the curve's smallest count that has a plan; NaN without one */
    hp_epoch epoch;
} simulate_point;

typedef struct simulate_tally {
    int64_t searched, valid, simulated, cut_off, open;
    bool stopped; /* by the user */
    double elapsed_s;
} simulate_tally;

/* What has no plan, and why. */
typedef struct simulate_without {
    int n_rejected;
    hp_rejected *rejected;
    int n_absent; /* families without a candidate for the largest count, and plain data parallelism */
    hp_absent *absent;
    hp_rejected plain;
    const hp_rejected *nearest; /* for the current count */
} simulate_without;

/* What was not simulated. */
typedef struct simulate_unseen {
    double gap;      /* it is at most this part faster than number 1 */
    int n_promising; /* how many of them the last count had */
    hp_open_strategy promising[HP_OPEN_LISTED];
} simulate_unseen;

/* What there is to say of the chosen plan beside its figures. */
typedef struct simulate_facts {
    int n_gain;
    simulate_gain gain[SIM_MAX_GAINS];
    hp_mix_cost mix;       /* on a machine whose devices are not all alike; else zero */
    int n_real, n_counted; /* int8 network: layers that stay real, layers counted; 0, 0: other networks */
    const char **real_layer;
    bool replaced;              /* a plan that lay where this one is written */
    int64_t without_zero_bytes; /* its memory with zero=0; 0: it has none */
} simulate_facts;

/* What was found for all counts together. */
typedef struct simulate_found {
    simulate_tally tally;
    int64_t batch;
    int gpus;
    int n;
    hp_evaluation *list;
    int chosen; /* index of the plan to write: the best of the largest count */
    simulate_without without;
    simulate_unseen unseen;
    simulate_facts facts;
    int n_point; /* curve by curve as they were given, counts too */
    simulate_point *point;
} simulate_found;

/* What was found for one of several image sizes. */
typedef struct simulate_size {
    char image[32];
    int gpus;
    int64_t batch;
    const hp_evaluation *plan; /* NULL: none */
    const hp_rejected *why;    /* then the nearest; may be NULL */
} simulate_size;

typedef struct simulate_sizes {
    int n; /* 0: one size is asked for */
    simulate_size size[SIM_MAX_COUNTS];
} simulate_sizes;

#endif
