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
    int32_t optimizer; /* hp_optimizer; the first value in inference */
    int32_t clips;     /* gradients are clipped by their norm */
    const hp_device_info *device;
    const char *model; /* the network as JSON (graph/graph_json.h) if `net` cannot be built by name; otherwise
                 * NULL */
    const char *float_layers; /* inference: layers that stay real, separated by commas; NULL: none */
    hp_strategy strategy;     /* with its cut spelled out */
    hp_machine machine;
    const hp_comm_table *comm; /* used while building: see hp_lower_options; not stored */
    double step_s;             /* predicted */
    hp_graph *graph;           /* rebuilt by hp_plan_graph; its text is compared with the stored hash */
    hp_program *program;       /* the chosen program */
    hp_program *eval;          /* the same ranks evaluating the test split (training plans); otherwise NULL */
    hp_hash hash;              /* hash of all fields above */
} hp_plan;

typedef struct hp_candidate {
    char strategy[HP_STRATEGY_TEXT];
    int32_t gpus;
    int64_t batch; /* global batch; a sweep over devices has one per device count */
    double step_s, step_low_s, step_high_s, images_per_s;
    int64_t memory_bytes;
    double bubble, exposed_comm;
    int64_t comm_bytes;
    double measured_share;
    double step_quiet_s;                                /* on an idle machine; 0: unknown */
    double measured_s, measured_low_s, measured_high_s; /* over `rounds` runs, with the confidence interval */
    int32_t rounds;                                     /* 0: not run */
    int32_t tie;    /* indistinguishable from the candidate ranked before it */
    char note[200]; /* what limits it, in words */
} hp_candidate;

typedef struct hp_rejected {
    hp_reject_code code;
    int64_t count;
    char example[HP_STRATEGY_TEXT], limit[160], fix[HP_FIX_TEXT];
} hp_rejected;

/* Moves the plan to another device. The caller must rebuild its program and prediction. Errors: HP_EUSAGE. */
hp_status hp_plan_on_device(hp_plan *plan, const char *device, hp_error *err);

/* Builds the network from a plan's net or model, image and classes; for inference, deployed in the strategy's
 * precision. */
hp_status hp_plan_graph(hp_arena *arena, const hp_plan *plan, hp_graph **graph, hp_error *err);

/* Builds graph, program and eval program of a plan whose scalar fields are set; fills cut, graph, program,
 * eval and hash. unit_cost: see hp_lower_options. */
hp_status hp_plan_build(hp_arena *arena, hp_plan *plan, const double *unit_cost, hp_error *err);
/* Sets the predicted step and updates the hash of a built plan. */
void hp_plan_set_step(hp_plan *plan, double step_s);

/* Replaces an inference plan's program with a hand-made one (a benchmark of messages) and updates the
 * hash. */
void hp_plan_use(hp_plan *plan, hp_program *program);

hp_status hp_plan_write(hp_db *db, const hp_plan *plan, hp_error *err);
/* Reads, validates and proves (hp_program_check) a stored plan. Errors: HP_EDATA. */
hp_status hp_plan_read(hp_arena *arena, hp_db *db, hp_plan *plan, hp_error *err);

hp_status hp_candidates_write(hp_db *db, const hp_candidate *c, int n, const hp_rejected *r, int n_rejected,
                              hp_error *err);
hp_status hp_candidates_read(hp_arena *arena, hp_db *db, hp_candidate **c, int *n, hp_rejected **r,
                             int *n_rejected, hp_error *err);

#endif
