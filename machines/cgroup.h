/* cgroup.h - what Linux control groups, of version 1 or 2, leave to this process: memory and CPU time. Which
 * processors they leave is part of its affinity (machines/here.h). */
#ifndef HP_CGROUP_H
#define HP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { HP_CGROUP_PATH = 512 };

typedef struct hp_cgroup {
    int64_t memory_bytes;      /* the smallest limit from the group to the root; INT64_MAX: none */
    int64_t memory_free_bytes; /* the least that a limited group still has; INT64_MAX: no limit */
    int64_t oom_kills;         /* processes of this one's group that were killed for want of memory; -1: not
                                         counted */
    double cpus;               /* the smallest quota: seconds of CPU time per second; HUGE_VAL: none */
    char memory_file[HP_CGROUP_PATH]; /* where the limit stands; "" without one */
    char cpus_file[HP_CGROUP_PATH];
} hp_cgroup;

/* Reads /proc/self/cgroup, /proc/self/mountinfo and the groups' files, all of them below `root` ("": the system's
 * own). What cannot be read limits nothing. */
void hp_cgroup_read(const char *root, hp_cgroup *out);

/* The folder of this process's group where CPU time is shared out. False: there is none. */
bool hp_cgroup_cpu(const char *root, char folder[HP_CGROUP_PATH], bool *version_2);

#endif
