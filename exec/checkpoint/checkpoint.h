/* checkpoint.h - saves a run's state in the background, and restores it.
 *
 * When a save is due, each rank copies the state that is home there (checkpoints/checkpoint_state.h), and a
 * thread writes the copy during the next steps. Ranks signal each other in the sum that ends every step
 * anyway (HP_METRIC_ASKED). Rank 0 signals that a save is due, any rank that it was told to leave, each rank
 * that its part is written. When all parts are written, ranks exchange their hashes and rank 0 completes the
 * checkpoint. All functions with an error are collective over all ranks. */
#ifndef HP_CHECKPOINT_H
#define HP_CHECKPOINT_H

#include "exec/comm/comm.h"
#include "checkpoints/checkpoint_folder.h"

#include <signal.h>

typedef struct hp_checkpoint hp_checkpoint;

typedef struct hp_checkpoint_config {
    const char *dir; /* folder that all ranks share */
    bool resume;
    int64_t every_steps; /* 0: by time */
    double every_s;
    int64_t keep;
    hp_comm *comm;
    const hp_memory *memory;
    unsigned char *arena; /* the program's memory */
    const hp_program *program;
    const hp_graph *graph;
    int32_t role, replica;
    hp_manifest run; /* identifies this run; each save sets step and scores. Only rank 0 knows data_hash */
    const volatile sig_atomic_t *stop, *leave; /* signals: stop at once; save, then stop */
} hp_checkpoint_config;

/* Checks the folder and, with `resume`, finds its newest complete checkpoint. Copies the config, but its
 * strings must outlive the checkpoint. Errors: HP_ECREATE (no folder that all share), HP_EDATA (belongs to
 * another run; has checkpoints and `resume` is not set), HP_EPLAN (no memory for the copy). */
hp_status hp_checkpoint_open(const hp_checkpoint_config *config, hp_checkpoint **c, bool *speaker,
                             hp_error *err);
void hp_checkpoint_close(hp_checkpoint *c); /* not collective; accepts NULL */

/* The checkpoint that the run resumes from; NULL: it starts afresh. */
const hp_manifest *hp_checkpoint_resumed(const hp_checkpoint *c);
/* Loads the checkpoint's state into the program's memory. All other buffers stay as before a first step. */
hp_status hp_checkpoint_load(hp_checkpoint *c, bool *speaker, hp_error *err);

/* This rank's term in the sum that ends the next step. */
double hp_checkpoint_ask(const hp_checkpoint *c);

typedef struct hp_checkpoint_now {
    int64_t done; /* steps */
    bool last;    /* this is the last step */
    double asked; /* sum of all ranks' terms */
    int64_t updates;
    double loss, loss_scale;
    int64_t loss_scale_good, loss_scale_skipped;
} hp_checkpoint_now;

/* Called after each step. *leave: the requested save is complete, the run should end. A failed save is
 * reported on stderr and the run goes on with the previous checkpoint. Errors, only for a save before the run
 * ends: HP_EIO, HP_ECREATE. */
hp_status hp_checkpoint_visit(hp_checkpoint *c, const hp_checkpoint_now *now, bool *leave, hp_error *err);

typedef struct hp_checkpoint_cost {
    int64_t saves, bytes; /* saves so far; size of the last one, over all ranks */
    double last_s;        /* time the last visit took on this rank; 0: it did nothing */
    double total_s;
} hp_checkpoint_cost;
hp_checkpoint_cost hp_checkpoint_cost_of(const hp_checkpoint *c);

#endif
