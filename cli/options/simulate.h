/* simulate.h - the options of `simulate`, as words and as values: the set-up that other commands share. */
#ifndef HP_SIMULATE_H
#define HP_SIMULATE_H

#include "cli/cli.h"
#include "networks/deploy/deploy.h"
#include "plan/program/epoch.h"
#include "sim/search/fix.h"
#include "sim/search/predict.h"
#include "sim/search/search.h"

enum { SIM_MAX_COUNTS = 32, SIM_MAX_NOTES = 8, SIM_MAX_STRATEGIES = 8, SIM_MAX_CHANGES = 16 };

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
    hp_graph *graph; /* network in the current precision: simulate_precision */
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
    double price;    /* price of one device for an hour; 0: not given */
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
    bool any; /* one plan answers the question, good or not */
    hp_search_options search;
    hp_eval_setup eval; /* limits, jitter; the rest is filled per count */
    int n_note;
    char note[SIM_MAX_NOTES][400]; /* what was assumed; the user is told */
} simulate_setup;

extern const struct argp simulate_argp;

hp_status simulate_prepare(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that settles counts, machine and device. */
hp_status simulate_choose_machine(const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that reads --gpus, --batch-per-gpu, --strategy, and what an epoch is. Errors: HP_EUSAGE. */
hp_status simulate_parse_curves(const simulate_options *o, simulate_setup *s, hp_error *err);

/* The part of it that decides for which speed of the machine the cost table predicts. Errors: HP_EUSAGE,
 * HP_EUNAVAIL. */
hp_status simulate_choose_speed(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err);

/* What there is to say of a cost table beside its origin. */
typedef struct simulate_costs {
    int days;       /* age in days; -1: the table holds nothing measured */
    bool measured;  /* on a processor that it names */
    bool here;      /* which is this one */
    bool has_speed; /* it says how fast the machine was */
} simulate_costs;
simulate_costs simulate_costs_of(const hp_cost_table *t);
/* Slowdown of one speed against another, the mean over classes. */
double simulate_mean_slowdown(const hp_speed *s, const hp_speed *against);

/* Prints the notes on stderr. */
void simulate_tell(const simulate_setup *s);

/* Sets the graph for a precision: in training there is one. */
hp_status simulate_precision(hp_arena *arena, simulate_setup *s, int prec, hp_error *err);

/* A plan's scalar fields for a strategy and batch; strategy and batch of one candidate. */
hp_plan simulate_plan(const simulate_setup *s, const hp_strategy *strategy, int64_t batch);

/* The set-up of the evaluations of one batch. */
hp_eval *simulate_eval(hp_arena *arena, const simulate_setup *s, int64_t batch);

/* The global batch of so many devices; 0: not given. */
int64_t simulate_batch(const simulate_setup *s, int gpus);

#endif
