/* quota.h - processes that are slow on purpose: a control group each, whose quota of CPU time stands in for a slower
 * device. The kernel hands time out in periods of 2 ms (longer for less than half a processor: a quota is at least
 * 1 ms), so that a process is slow within a task, not now and then (Linux: sched-bwc.rst, cgroup-v2.rst cpu.max). */
#ifndef HP_QUOTA_H
#define HP_QUOTA_H

#include "base/status.h"
#include "machines/cgroup.h"

typedef struct hp_quota {
    char folder[HP_CGROUP_PATH + 64]; /* of the group; "": none */
    char parent[HP_CGROUP_PATH];
} hp_quota;

/* "1:0.5": entry `index` of `n`, in processors; one entry is for all. Errors: HP_EUSAGE. */
hp_status hp_quota_parse(const char *text, int index, int n, double *processors, hp_error *err);

/* Moves this process into a new group below its own, with so many processors' time. root: "", or where another file
 * system begins, for tests. Errors: HP_EUNAVAIL. */
hp_status hp_quota_join(hp_quota *q, const char *root, double processors, hp_error *err);
/* Moves this process back and removes the group. */
void hp_quota_leave(hp_quota *q);

/* Removes the groups of processes that were killed. */
void hp_quota_sweep(const char *root);

#endif
