/* cgroup.h - memory and CPU time that Linux control groups (version 1 or 2) leave to this process. The
 * allowed processors are part of its affinity (machines/here.h). */
#ifndef HP_CGROUP_H
#define HP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { HP_CGROUP_PATH = 512 };

typedef struct hp_cgroup {
    int64_t memory_bytes;             /* smallest limit from the group to the root; INT64_MAX: none */
    int64_t memory_free_bytes;        /* least free memory of any limited group; INT64_MAX: no limit */
    int64_t oom_kills;                /* processes of this group that were killed for lack of memory; -1: not
                                * counted */
    double cpus;                      /* the smallest quota: seconds of CPU time per second; HUGE_VAL: none */
    char memory_file[HP_CGROUP_PATH]; /* file that contains the limit; "" without one */
    char cpus_file[HP_CGROUP_PATH];
} hp_cgroup;

/* Reads /proc/self/cgroup, /proc/self/mountinfo and the groups' files, all of them below `root` ("": the
 * system's own). Limits that cannot be read do not apply. */
void hp_cgroup_read(const char *root, hp_cgroup *out);

/* Finds the directory of this process's group in the CPU controller; false if there is none. */
bool hp_cgroup_cpu(const char *root, char folder[HP_CGROUP_PATH], bool *version_2);

#endif
