/* store.h - plan.db: everything needed to run, compare and explain a plan without searching again. */
#ifndef HP_STORE_H
#define HP_STORE_H

#include "base/db.h"
#include "base/hash.h"
#include "machines/machine.h"
#include "plan/program/program.h"
#include "plan/lower/lower.h"

typedef struct hp_plan {
    char net[64];
    int32_t image_h, image_w, classes;
    int32_t mode;  /* hp_mode */
    int32_t dtype; /* hp_dtype */
    int64_t batch;
    uint64_t seed;
    int32_t optimizer; /* hp_optimizer; of inference the first */
    int32_t clips;     /* gradients are clipped by their norm */
    const hp_device_info *device;
    const char
        *model; /* the network as JSON (graph/graph_json.h) where `net` is not one built by name; NULL */
    const char *float_layers; /* of inference: layers kept real, separated by commas; NULL: none */
    hp_strategy strategy;     /* with its cut written out */
    hp_machine machine;
    const hp_comm_table *comm; /* to build with: see hp_lower_options; not stored */
    double step_s;             /* predicted */
    hp_graph *graph;           /* rebuilt: hp_plan_graph; its text is compared with the stored hash */
    hp_program *program;       /* the chosen program */
    hp_program *eval;          /* the same ranks evaluating the test split (training plans), or NULL */
    hp_hash hash;              /* of everything above */
} hp_plan;

typedef struct hp_candidate {
    char strategy[HP_STRATEGY_TEXT];
    int32_t gpus;
    int64_t batch; /* global: a sweep over devices has one per count */
    double step_s, step_low_s, step_high_s, images_per_s;
    int64_t memory_bytes;
    double bubble, exposed_comm;
    int64_t comm_bytes;
    double measured_share;
    double step_quiet_s;                                /* on the quiet machine; 0: not known */
    double measured_s, measured_low_s, measured_high_s; /* of `rounds` runs, with the confidence interval */
    int32_t rounds;                                     /* 0: not run */
    int32_t tie;    /* not distinguishable from the one ranked before it */
    char note[200]; /* what bounds it, in words */
} hp_candidate;

typedef struct hp_rejected {
    hp_reject_code code;
    int64_t count;
    char example[HP_STRATEGY_TEXT], limit[160], fix[HP_FIX_TEXT];
} hp_rejected;

/* Another device than the plan was made for shall run it: its program and prediction have to be made anew. Errors:
 * HP_EUSAGE. */
hp_status hp_plan_on_device(hp_plan *plan, const char *device, hp_error *err);

/* The network of a plan's net or model, image and classes; in inference deployed in the strategy's precision.
 */
hp_status hp_plan_graph(hp_arena *arena, const hp_plan *plan, hp_graph **graph, hp_error *err);

/* Builds graph, program and eval program of a plan whose scalar fields are set; fills cut, graph, program,
 * eval, hash. unit_cost: see hp_lower_options. */
hp_status hp_plan_build(hp_arena *arena, hp_plan *plan, const double *unit_cost, hp_error *err);
/* Sets the predicted step, of which a built plan's hash is, too. */
void hp_plan_set_step(hp_plan *plan, double step_s);

/* Puts a hand-made program (a benchmark of messages) in the place of an inference plan's own; its hash
 * follows. */
void hp_plan_use(hp_plan *plan, hp_program *program);

hp_status hp_plan_write(hp_db *db, const hp_plan *plan, hp_error *err);
/* Reads, validates and proves (hp_program_check) a stored plan. Errors: HP_EDATA. */
hp_status hp_plan_read(hp_arena *arena, hp_db *db, hp_plan *plan, hp_error *err);

hp_status hp_candidates_write(hp_db *db, const hp_candidate *c, int n, const hp_rejected *r, int n_rejected,
                              hp_error *err);
hp_status hp_candidates_read(hp_arena *arena, hp_db *db, hp_candidate **c, int *n, hp_rejected **r,
                             int *n_rejected, hp_error *err);

#endif
