/* run_disk.h - checks before a run that the disk has room for its checkpoints and for the weights it will
 * save. */
#ifndef HP_RUN_DISK_H
#define HP_RUN_DISK_H

#include "plan/store/store.h"

typedef struct run_disk {
    const char *checkpoints; /* their folder, which need not be there yet; NULL: none are made */
    const char *keep;        /* as --keep has it, NULL: not given */
    const char *save;        /* file of the weights; NULL: not saved */
} run_disk;

/* Counts checkpoints that the folder already holds as room for new ones. Errors: HP_EIO with what is needed
 * and what is free. */
hp_status run_disk_check(hp_arena *arena, const hp_plan *plan, const run_disk *disk, hp_error *err);

#endif
