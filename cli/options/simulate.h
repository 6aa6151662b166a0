/* simulate.h - inside of `simulate` and `why`: options, the set-up both share, and how results are shown. */
#ifndef HP_SIMULATE_H
#define HP_SIMULATE_H

#include "cli/cli.h"
#include "networks/graph/deploy.h"
#include "plan/program/epoch.h"
#include "sim/search/mix_cost.h"
#include "sim/search/fix.h"
#include "sim/search/predict.h"
#include "sim/search/search.h"

enum {
    SIM_MAX_COUNTS = 32,
    SIM_MAX_NOTES = 8,
    SIM_MAX_GAINS = 8,
    SIM_MAX_STRATEGIES = 8,
    SIM_MAX_CHANGES = 16
};

/* The command line's words; NULL: not given. */
typedef struct simulate_network_options {
    const char *net, *onnx, *image, *classes, *prec, *float_layers;
} simulate_network_options;

typedef struct simulate_step_options {
    const char *mode, *batch, *batch_per_gpu, *optimizer, *seed;
    bool clip_norm;
} simulate_step_options;

typedef struct simulate_epoch_options {
    const char *samples, *data, *price;
} simulate_epoch_options;

typedef struct simulate_machine_options {
    const char *name, *device, *gpus, *ranks_per_node, *memory, *memory_limit;
    int n_set;
    const char *set[SIM_MAX_CHANGES]; /* changes of the machine */
} simulate_machine_options;

typedef struct simulate_cost_options {
    const char *table, *as, *jitter, *straggler;
    bool check_speed, no_fold;
} simulate_cost_options;

typedef struct simulate_show_options {
    const char *top, *sort;
    bool all, json;
} simulate_show_options;

typedef struct simulate_race_options {
    const char *measure, *seconds;
} simulate_race_options;

typedef struct simulate_options {
    simulate_network_options network;
    simulate_step_options step;
    simulate_epoch_options epoch;
    simulate_machine_options machine;
    simulate_cost_options costs;
    const char *strategy, *rules;
    int n_more; /* --strategy after the first */
    const char *more[SIM_MAX_STRATEGIES];
    bool sweeps; /* strategies may be several, and leave a number open */
    simulate_show_options show;
    simulate_race_options race;
    const char *out;
} simulate_options;

/* --- options as values --- */

typedef struct simulate_network {
    char net[64];
    int image_h, image_w, classes;
    hp_dtype dtype;
    hp_graph *trained;                /* as built or imported */
    const char *model, *float_layers; /* see hp_plan */
    int n_prec, prec[HP_PRECS];
    hp_graph *graph; /* of the precision at hand: simulate_precision */
} simulate_network;

typedef struct simulate_step {
    hp_mode mode;
    int64_t batch;         /* 0: default */
    int64_t batch_per_gpu; /* 0: not given */
    uint64_t seed;
    int32_t optimizer, clips; /* see hp_plan */
} simulate_step;

typedef struct simulate_epoch {
    int64_t samples; /* 0: not given */
    double price;    /* of a device's hour; 0: not given */
} simulate_epoch;

typedef struct simulate_predicting {
    hp_cost_table *table;
    bool checked;        /* --check-speed: the table predicts for the speed now */
    hp_speed now, usual; /* then: that, and that of the calibration */
} simulate_predicting;

typedef struct simulate_swept { /* --gpus and --strategy */
    int n_count, count[SIM_MAX_COUNTS];
    bool has_strategy;
    hp_strategy strategy; /* the first: with 1 for its star */
    int n_template;       /* strategies, as given */
    const char *template[SIM_MAX_STRATEGIES];
    bool sweep; /* several counts or strategies, or a star: a curve for each strategy */
} simulate_swept;

typedef struct simulate_setup {
    simulate_network network;
    simulate_step step;
    simulate_epoch epoch;
    const hp_device_info *device;
    hp_machine machine;
    simulate_predicting costs;
    simulate_swept curves;
    hp_rules rules;
    bool top_given;
    hp_search_options search;
    hp_eval_setup eval; /* limits, jitter; the rest is filled per count */
    int n_note;
    char note[SIM_MAX_NOTES][400]; /* what was assumed; the user is told */
} simulate_setup;

/* How many times as fast the selected plan would be with something that changes its numbers: a precision, or a strategy's
 * key. option: what of the command line takes it, "" a strategy. */
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
    int n_absent; /* of the largest count: families without a candidate, and plain data parallelism */
    hp_absent *absent;
    hp_rejected plain;
    const hp_rejected *nearest; /* of the count at hand */
} simulate_without;

/* What was not simulated. */
typedef struct simulate_unseen {
    double gap;      /* it is at most this part faster than number 1 */
    int n_promising; /* of those, of the last count */
    hp_open_strategy promising[HP_OPEN_LISTED];
} simulate_unseen;

/* What there is to say of the chosen plan beside its figures. */
typedef struct simulate_facts {
    int n_gain;
    simulate_gain gain[SIM_MAX_GAINS];
    hp_mix_cost mix;       /* on a machine whose devices are not all alike; else zero */
    int n_real, n_counted; /* of an int8 network: layers that stay real, of so many; 0 of 0: it is none */
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

extern const struct argp simulate_argp;

hp_status simulate_prepare(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that settles counts, machine and device. */
hp_status simulate_choose_machine(const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that reads --gpus, --batch-per-gpu, --strategy, and what an epoch is. Errors: HP_EUSAGE. */
hp_status simulate_parse_curves(const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that settles at which speed of the machine the cost table predicts. Errors: HP_EUSAGE, HP_EUNAVAIL. */
hp_status simulate_choose_speed(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err);

/* What there is to say of a cost table beside its origin. */
typedef struct simulate_costs {
    int days;       /* of age; -1: nothing of it was measured */
    bool measured;  /* on a processor that it names */
    bool here;      /* which is this one */
    bool has_speed; /* it says how fast the machine was */
} simulate_costs;
simulate_costs simulate_costs_of(const hp_cost_table *t);
/* Slowdown of one speed against another, the mean over classes. */
double simulate_mean_slowdown(const hp_speed *s, const hp_speed *against);

/* Adds a note, of printf's words. */
void simulate_note(simulate_setup *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the notes on stderr. */
void simulate_tell(const simulate_setup *s);

/* Sets the graph for a precision: in training there is one. */
hp_status simulate_precision(hp_arena *arena, simulate_setup *s, int prec, hp_error *err);

/* A plan's scalar fields for a strategy and batch; strategy and batch of one candidate. */
hp_plan simulate_plan(const simulate_setup *s, const hp_strategy *strategy, int64_t batch);

/* The set-up of the evaluations of one batch. */
hp_eval *simulate_eval(hp_arena *arena, const simulate_setup *s, int64_t batch);

/* Searches every count and precision; shows progress; ^C ends it with the best so far (simulate_found.stopped). */
hp_status simulate_search(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* Evaluates every strategy that was given at every count that it can occupy. */
hp_status simulate_curves(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* One of the two, as --strategy says, with its points and how long it took. */
hp_status simulate_find(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* Of a list in --image: finds the plans of all sizes but the last, which becomes the options' own. */
hp_status simulate_earlier_sizes(hp_arena *arena, simulate_options *o, simulate_sizes *sizes, hp_error *err);
void simulate_add_size(const simulate_setup *s, const simulate_found *f, simulate_sizes *sizes);
void simulate_print_sizes(const simulate_sizes *sizes);
json_t *simulate_sizes_json(const simulate_sizes *sizes);

/* The global batch of so many devices; 0: not given. */
int64_t simulate_batch(const simulate_setup *s, int gpus);
/* Adds reasons to those there are, and a point without a plan, or with the one that was found for it. */
void simulate_add_rejects(hp_arena *arena, simulate_found *f, const hp_rejected *r, int n);
simulate_point *simulate_add_point(hp_arena *arena, simulate_found *f, const char *curve, int gpus,
                                   int64_t batch);
/* Which reason says more, of the best so far (NULL: none) and n others. */
const hp_rejected *simulate_nearest(const hp_rejected *best, const hp_rejected *r, int n);
/* Fills in what follows from the points' steps. */
void simulate_rate_points(const simulate_setup *s, simulate_found *f);

/* Predicts the selected plan with what changes its numbers: simulate_found.gain. */
void simulate_gains(hp_arena *arena, const simulate_setup *s, simulate_found *f);
void simulate_print_gains(const simulate_found *f);
json_t *simulate_gains_json(const simulate_found *f);
/* What is found of the chosen plan beside its figures (simulate_facts.c), and in words. */
void simulate_find_facts(hp_arena *arena, const simulate_setup *s, simulate_found *f);
void simulate_print_real(const simulate_found *f);
/* False: there is nothing to be said of ZeRO. */
bool simulate_zero_note(const simulate_found *f, char out[200]);
/* The parts of the two below that say machine, device and precision. */
void simulate_print_device(const simulate_setup *s, const simulate_found *f);
void simulate_json_device(const simulate_setup *s, const simulate_found *f, json_t *o);
void simulate_print(const simulate_setup *s, const simulate_found *f);
/* Its parts: candidates and families without one; how sure the answer is. */
void simulate_print_table(const simulate_setup *s, const simulate_found *f);
/* One row per count of each curve; what an epoch of the selected plan takes. */
void simulate_print_scaling(const simulate_setup *s, const simulate_found *f);
void simulate_print_epoch(const simulate_setup *s, const simulate_found *f);
json_t *simulate_scaling_json(const simulate_found *f);
/* As plan.db keeps them for plots: {"dp=*": ["dp=1", "dp=2"]}; "": none. */
const char *simulate_curves_text(hp_arena *arena, const simulate_found *f);
/* Where the plan is, and the commands that may follow. */
void simulate_next(const simulate_setup *s, const simulate_found *f, const char *path);
json_t *simulate_json(const simulate_setup *s, const simulate_found *f);
/* Three significant digits, no unit. */
const char *simulate_number(double value, char out[32]);
/* "8.14-11.5", milliseconds, with `between` between the ends; false: "not known". */
bool simulate_interval(const hp_candidate *c, const char *between, char out[64]);
/* The first candidate of the table but the chosen one, from 1; 0: none. */
int simulate_shown_other(const simulate_setup *s, const simulate_found *f);
/* Less of its time rests on measurements than a prediction of a machine at hand should: hplan calibrate --net NAME. */
bool simulate_unmeasured(const hp_candidate *c);

#endif
