/* quota.h - deliberately slow processes: each has a control group whose CPU quota emulates a slower device.
 *
 * The kernel hands out time in periods of 2 ms (longer below half a processor, because a quota is at least 1
 * ms). A process is therefore slow within a task, not now and then (Linux: sched-bwc.rst, cgroup-v2.rst
 * cpu.max). */
#ifndef HP_QUOTA_H
#define HP_QUOTA_H

#include "base/status.h"
#include "machines/cgroup.h"

typedef struct hp_quota {
    char folder[HP_CGROUP_PATH + 64]; /* path of the group; "": none */
    char parent[HP_CGROUP_PATH];
} hp_quota;

/* Parses "1:0.5" and takes entry `index` of `n`, in processors; a single entry applies to all. Errors:
 * HP_EUSAGE. */
hp_status hp_quota_parse(const char *text, int index, int n, double *processors, hp_error *err);

/* Moves this process into a new group below its own, limited to that many processors. root: ""; tests pass a
 * directory with another file system. Errors: HP_EUNAVAIL. */
hp_status hp_quota_join(hp_quota *q, const char *root, double processors, hp_error *err);
/* Moves this process back and removes the group. */
void hp_quota_leave(hp_quota *q);

/* Removes the groups of processes that were killed. */
void hp_quota_sweep(const char *root);

#endif
