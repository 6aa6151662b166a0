/* shared.h - memory that other processes of the node can map.
 *
 * It has no name in any file system: another process of the same user opens it by way of /proc/PID/fd, so nothing is
 * left of it however a process ends, and the size of /dev/shm, 64 MB in many containers, is no limit. Where that way is
 * closed (processes in different PID namespaces, or not dumpable) opening fails, and who wanted it goes another way. */
#ifndef HP_SHARED_H
#define HP_SHARED_H

#include "exec/base/exec_memory.h"

/* Zeroed, aligned to a huge page. Pages are taken from the system with the first write to them. Errors: HP_EPLAN. */
hp_status hp_shared_new(int64_t bytes, void **at, hp_error *err);
/* Takes all pages now: a page that cannot be had later ends the process. Errors: HP_EPLAN. */
hp_status hp_shared_reserve(void *at, hp_error *err);
/* What another process opens it by, while this one has it. Errors: HP_EUNAVAIL. */
hp_status hp_shared_name(const void *at, hp_memory_name *name, hp_error *err);
/* Maps what that name was given to, and nothing else. Errors: HP_EUNAVAIL, it is out of reach. */
hp_status hp_shared_open(const hp_memory_name *name, bool writable, void **at, hp_error *err);
/* Of hp_shared_new or hp_shared_open; NULL as well. The memory goes with its last mapping. */
void hp_shared_free(void *at);

#endif
