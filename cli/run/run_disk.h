/* run_disk.h - asked before a run starts: has the folder of its checkpoints room for them? */
#ifndef HP_RUN_DISK_H
#define HP_RUN_DISK_H

#include "plan/store/store.h"

/* dir: of the checkpoints, which need not be there yet; NULL: none are made. keep: as --keep has it, NULL: not given. Those that
 * the folder holds already make room for new ones. Errors: HP_EIO with what they need and what is free. */
hp_status run_disk_check(hp_arena *arena, const hp_plan *plan, const char *dir, const char *keep,
                         hp_error *err);

#endif
