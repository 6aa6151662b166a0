/* run_disk.h - asked before a run starts: is there room for its checkpoints, and for the weights that it will save? */
#ifndef HP_RUN_DISK_H
#define HP_RUN_DISK_H

#include "plan/store/store.h"

typedef struct run_disk {
    const char *checkpoints; /* their folder, which need not be there yet; NULL: none are made */
    const char *keep;        /* as --keep has it, NULL: not given */
    const char *save;        /* file of the weights; NULL: not saved */
} run_disk;

/* Checkpoints that the folder holds already make room for new ones. Errors: HP_EIO with what is needed and what is free. */
hp_status run_disk_check(hp_arena *arena, const hp_plan *plan, const run_disk *disk, hp_error *err);

#endif
