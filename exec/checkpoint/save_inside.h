/* save_inside.h - shared by the files about checkpoints: open.c (the folder), resume.c (reading), save.c
 * (writing), save_schedule.c (when). */
#ifndef HP_SAVE_INSIDE_H
#define HP_SAVE_INSIDE_H

#include "exec/checkpoint/checkpoint.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct checkpoint_job { /* disk work done by a thread */
    pthread_t thread;
    bool started;
    atomic_bool done;
    hp_status status;
    hp_error err;
} checkpoint_job;

struct hp_checkpoint {
    hp_checkpoint_config o;
    hp_arena *arena;
    hp_state_piece *piece;
    int n;
    int64_t bytes;       /* size of the pieces that are home */
    unsigned char *copy; /* copy of those pieces while they are written */
    int lock;            /* rank 0: holds the lock of the folder */
    bool resumed;
    hp_manifest stored;
    bool pending; /* a save is under way; same on all ranks */
    hp_manifest now;
    hp_chunks chunks; /* hashes of this rank's file */
    checkpoint_job write, commit;
    double saved_s; /* time at which the last save began */
    hp_checkpoint_cost cost;
};

/* Ranks may wait for each other's disks. */
enum { CHECKPOINT_LIMIT_S = 3600 };

/* --- open.c --- */

/* Every rank's value. */
hp_status checkpoint_share(const hp_checkpoint *c, double value, double *all, hp_error *err);
/* As hp_comm_agree, with a time limit that suits disks. */
hp_status checkpoint_agree(const hp_checkpoint *c, hp_status mine, bool *speaker, hp_error *err);

/* --- resume.c --- */

hp_status checkpoint_find(hp_checkpoint *c, bool *speaker, hp_error *err);

/* --- save.c --- */

/* Copies the state and starts to write it. No save may be pending. */
hp_status checkpoint_begin(hp_checkpoint *c, const hp_checkpoint_now *now, hp_error *err);
/* Has this rank written its part? */
bool checkpoint_written(const hp_checkpoint *c);
/* Lets rank 0 complete the pending save once all parts are written. `wait`: waits until then. */
hp_status checkpoint_complete(hp_checkpoint *c, bool wait, hp_error *err);
/* Waits until the last checkpoint is complete, or reports why it cannot be. */
void checkpoint_settle(hp_checkpoint *c);
/* Waits for the thread of a job. */
hp_status checkpoint_join(checkpoint_job *j, hp_error *err);

#endif
