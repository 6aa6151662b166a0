/* oom.h - was a process killed for want of memory? The kernel counts that, for a control group and for the node. */
#ifndef HP_OOM_H
#define HP_OOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct oom_count {
    int64_t group, node; /* killed so far; -1: not counted */
} oom_count;
oom_count oom_count_read(void);

/* Why a process of this node was killed since `before`, to follow a message; `needs`: what the run's memory is. */
const char *oom_words(const oom_count *before, const char *needs, char *out, size_t size);

#endif
