/* oom.c - reads oom_kill from memory.events (control groups 2), from memory.oom_control (1), and from
 * /proc/vmstat (the node, including groups). */
#include "cli/launch/oom.h"

#include "base/units.h"
#include "machines/cgroup.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t node_kills(void) {
    char line[128];
    int64_t kills = -1;
    FILE *f = fopen("/proc/vmstat", "re");
    while (f && kills < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "oom_kill %" SCNd64, &kills) != 1) kills = -1;
    if (f) fclose(f);
    return kills;
}

oom_count oom_count_read(void) {
    hp_cgroup group;
    hp_cgroup_read("", &group);
    return (oom_count){.group = group.oom_kills, .node = node_kills()};
}

const char *oom_words(const oom_count *before, const char *needs, char *out, size_t size) {
    const oom_count now = oom_count_read();
    hp_cgroup group;
    char limit[32];
    hp_cgroup_read("", &group);
    if (before->group >= 0 && now.group > before->group)
        snprintf(
            out, size,
            " for want of memory: its control group may have %s (%s)%s%s; raise that limit, end what else "
            "is in the group, or plan for less with --memory-limit",
            group.memory_file[0] ? hp_format_bytes((double)group.memory_bytes, limit) : "no more",
            group.memory_file[0] ? group.memory_file : "a limit above it", needs[0] ? ", " : "", needs);
    else if (before->node >= 0 && now.node > before->node)
        snprintf(out, size,
                 "; the kernel killed a process for want of memory meanwhile%s%s: end what else uses this "
                 "node's memory, or plan for less with --memory-limit",
                 needs[0] ? ", " : "", needs);
    else if (before->node >= 0 && now.node == before->node)
        snprintf(out, size, "; not for want of memory on this node");
    else
        snprintf(out, size, "; if it was not killed on purpose, the node ran out of memory");
    return out;
}
