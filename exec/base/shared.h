/* shared.h - memory that other processes of the node can map.
 *
 * It has no name in a file system: another process of the same user opens it through /proc/PID/fd. So it
 * vanishes however a process ends, and the size of /dev/shm, 64 MB in many containers, is no limit.
 * Opening fails between PID namespaces and for processes that are not dumpable; the caller then falls
 * back to another route. */
#ifndef HP_SHARED_H
#define HP_SHARED_H

#include "exec/base/exec_memory.h"

/* Zeroed memory, aligned to a huge page. The system commits a page at the first write to
 * it. Errors: HP_EPLAN. */
hp_status hp_shared_new(int64_t bytes, void **at, hp_error *err);
/* Commits all pages now. Otherwise a page that is unavailable later would kill the
 * process. Errors: HP_EPLAN. */
hp_status hp_shared_reserve(void *at, hp_error *err);
/* A handle by which other processes can open the memory as long as this process has it.
 * Errors: HP_EUNAVAIL. */
hp_status hp_shared_name(const void *at, hp_memory_name *name, hp_error *err);
/* Maps exactly the memory that the handle was made for. Errors: HP_EUNAVAIL (not reachable). */
hp_status hp_shared_open(const hp_memory_name *name, bool writable, void **at, hp_error *err);
/* Unmaps memory of hp_shared_new or hp_shared_open; accepts NULL. The memory is freed
 * with its last mapping. */
void hp_shared_free(void *at);

#endif
