/* checkpoint.h - saves a run's state while it goes on, and puts it back.
 *
 * After a step that is due each rank copies what is its home (checkpoints/checkpoint_state.h) into memory of its own, and a thread
 * writes that while the next steps run. What the ranks want of each other, they say in the sum that ends every step
 * anyway (HP_METRIC_ASKED): rank 0 that it is time, a rank that was told to leave, each that it has written its part.
 * When all have, they exchange the hashes of what they wrote, and rank 0 completes the checkpoint. All functions with an
 * error are collective over all ranks. */
#ifndef HP_CHECKPOINT_H
#define HP_CHECKPOINT_H

#include "exec/comm/comm.h"
#include "checkpoints/checkpoint_folder.h"

#include <signal.h>

typedef struct hp_checkpoint hp_checkpoint;

typedef struct hp_checkpoint_config {
    const char *dir; /* shared by all ranks */
    bool resume;
    int64_t every_steps; /* 0: by time */
    double every_s;
    int64_t keep;
    hp_comm *comm;
    const hp_memory *memory;
    unsigned char *arena; /* of the program */
    const hp_program *program;
    const hp_graph *graph;
    int32_t role, replica;
    hp_manifest run; /* what this run is; step and scores are set by each save. Of rank 0 alone: data_hash */
    const volatile sig_atomic_t *stop, *leave; /* signals: to end at once; to save and end */
} hp_checkpoint_config;

/* Checks the folder, and with `resume` finds its newest checkpoint that is whole. Copies the config, whose texts must
 * outlive it. Errors: HP_ECREATE (no folder that all share), HP_EDATA (of another run; there are checkpoints and
 * `resume` is not set), HP_EPLAN (no memory for the copy). */
hp_status hp_checkpoint_open(const hp_checkpoint_config *config, hp_checkpoint **c, bool *speaker,
                             hp_error *err);
void hp_checkpoint_close(hp_checkpoint *c); /* not collective; NULL is fine */

/* What the run goes on from; NULL: it begins. */
const hp_manifest *hp_checkpoint_resumed(const hp_checkpoint *c);
/* Puts that state into the arena, all other buffers of which are as before a first step. */
hp_status hp_checkpoint_load(hp_checkpoint *c, bool *speaker, hp_error *err);

/* A rank's term of the sum that ends the next step. */
double hp_checkpoint_ask(const hp_checkpoint *c);

typedef struct hp_checkpoint_now {
    int64_t done; /* steps */
    bool last;    /* there is no other */
    double asked; /* the sum of the terms */
    int64_t updates;
    double loss, loss_scale;
    int64_t loss_scale_good, loss_scale_skipped;
} hp_checkpoint_now;

/* After each step. *leave: what was asked for is saved, and the run is to end. A save that fails is said on stderr, and the
 * run goes on with the one before; but for the one to end with: HP_EIO, HP_ECREATE. */
hp_status hp_checkpoint_visit(hp_checkpoint *c, const hp_checkpoint_now *now, bool *leave, hp_error *err);

typedef struct hp_checkpoint_cost {
    int64_t saves, bytes; /* of all ranks, of the last one */
    double last_s;        /* for which the last step's visit held this rank up; 0: it did nothing */
    double total_s;
} hp_checkpoint_cost;
hp_checkpoint_cost hp_checkpoint_cost_of(const hp_checkpoint *c);

#endif
